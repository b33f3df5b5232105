"""Numbers that devices exchange by XLA's collectives before a kernel: metadata of all-to-alls."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from .judging import ANY, DMA, X, has, is_safe, judge

SMEM = pl.BlockSpec(memory_space=pltpu.SMEM)
# What device x=0 and device x=1 have.
GIVEN = np.array([[3, 7], [5, 4]], np.int32)
EXCHANGES: dict[str, tuple[Callable[[Any], Any], list[int]]] = {
    "own": (lambda n: n[0], [3, 5]),
    "all_gather": (lambda n: lax.all_gather(n, "x")[1, 1], [4, 4]),
    "all_gather, tiled": (lambda n: lax.all_gather(n, "x", tiled=True)[2], [5, 5]),
    "psum": (lambda n: lax.psum(n, "x")[1], [11, 11]),
    "pmax": (lambda n: lax.pmax(n, "x")[0], [5, 5]),
    "pmin": (lambda n: lax.pmin(n, "x")[1], [4, 4]),
    "ppermute": (lambda n: lax.ppermute(n, "x", [(0, 1), (1, 0)])[0], [5, 3]),
    "all_to_all": (lambda n: lax.all_to_all(n, "x", 0, 0)[1], [5, 4]),
    "all_to_all, tiled": (lambda n: lax.all_to_all(n, "x", 0, 0, tiled=True)[0], [3, 7]),
    "psum_scatter": (lambda n: lax.psum_scatter(n, "x"), [8, 11]),
    "psum_scatter, tiled": (lambda n: lax.psum_scatter(n, "x", tiled=True)[0], [8, 11]),
}


def over_two(fn: Any) -> Any:
    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    specs = (P("x"), P())
    return jax.shard_map(fn, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)


def copying(exchange: Callable[[Any], Any], room: int) -> Any:
    """Each device copies the rows from the number that it gets on, so many of 16."""

    def kernel(n: Any, x: Any, o: Any, sem: Any) -> None:
        rows = pl.ds(n[0], room)
        pltpu.async_copy(x.at[rows], o.at[rows], sem).wait()

    call = pl.pallas_call(kernel, X, in_specs=[SMEM, ANY], out_specs=ANY, scratch_shapes=[DMA])
    return over_two(lambda n, x: call(jnp.reshape(exchange(n[0]), (1,)), x))


@pytest.mark.parametrize("name", EXCHANGES)
def test_what_each_device_gets(name: str) -> None:
    """The largest number is the one that decides whether a copy leaves its buffer."""
    exchange, expected = EXCHANGES[name]
    is_safe(copying(exchange, 16 - max(expected)), GIVEN, X)
    report = has("out-of-bounds", copying(exchange, 16 - max(expected) + 1), GIVEN, X)
    assert f"`x[{max(expected)}:" in report.findings[0].text
    if expected[0] != expected[1]:
        which = expected.index(max(expected))
        assert report.findings[0].text.startswith(f"Device x={which} ")


def test_they_are_those_of_jax() -> None:
    """What the table says, JAX says too."""
    for exchange, expected in EXCHANGES.values():
        assert jax.vmap(exchange, axis_name="x")(GIVEN).tolist() == expected


def test_who_gets_nothing_gets_zeros() -> None:
    has("out-of-bounds", copying(lambda n: lax.ppermute(n, "x", [(0, 1)])[0], 14), GIVEN, X)
    is_safe(copying(lambda n: lax.ppermute(n, "x", [(0, 1)])[0], 13), GIVEN, X)
    is_safe(copying(lambda n: lax.ppermute(n, "x", [(1, 1)])[0], 11), GIVEN, X)


def test_what_is_not_given_is_not_known() -> None:
    unknown = jax.ShapeDtypeStruct((2, 2), jnp.int32)
    report = judge(copying(EXCHANGES["psum"][0], 4), unknown, X)[2]
    assert report.verdict == "safe"
    assert "Not checked" in str(report)


def test_waits_for_as_much_as_the_other_sends() -> None:
    """A device knows what comes from the counts of all."""

    def build(mine: bool) -> Any:
        def kernel(n: Any, x: Any, o: Any, send: Any, recv: Any) -> None:
            other = 1 - lax.axis_index("x")
            given, received = n[1 - other], n[1 - other] if mine else n[other]

            def start(i: Any, carry: None) -> None:
                pltpu.make_async_remote_copy(
                    x.at[i], o.at[i], send, recv, device_id={"x": other}
                ).start()

            def wait(i: Any, semaphore: Any) -> Any:
                pltpu.make_async_copy(x.at[0], x.at[0], semaphore).wait()

            lax.fori_loop(0, given, start, None)
            lax.fori_loop(0, given, lambda i, c: wait(i, send), None)
            lax.fori_loop(0, received, lambda i, c: wait(i, recv), None)

        call = pl.pallas_call(
            kernel, X, in_specs=[SMEM, ANY], out_specs=ANY, scratch_shapes=[DMA, DMA]
        )
        return over_two(lambda n, x: call(lax.all_gather(n[0, 0], "x"), x))

    is_safe(build(False), GIVEN, X)
    verdict, kinds, report = judge(build(True), GIVEN, X)
    assert verdict == "unsafe", str(report)
    assert {*kinds} & {"deadlock", "leak"}
