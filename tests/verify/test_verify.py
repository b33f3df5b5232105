"""Whole functions: what `verify` says of kernels that work, that do not, or cannot be read."""

import functools
import gc
from collections.abc import Callable
from pathlib import Path
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

import safepallas as sp
from safepallas import verify
from safepallas._verify.analysis.analyse import analyse
from safepallas.verification import Report

from ..loading import load

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
# That example asks for the kind of chip while it is built: test_examples.py has it.
FOLLOWED = [path for path in EXAMPLES if not path.stem.startswith("sparse_core_")]

DMA = pltpu.SemaphoreType.DMA
REGULAR = pltpu.SemaphoreType.REGULAR
ANY = pl.BlockSpec(memory_space=pl.ANY)
X = jax.ShapeDtypeStruct((8, 128), jnp.float32)


def ring(devices: int) -> AbstractMesh:
    return AbstractMesh((devices,), ("x",), axis_types=(AxisType.Auto,))


def call(kernel: Callable[..., None], *scratch: Any, out: Any = X, **options: Any) -> Any:
    options = {"in_specs": [ANY], "out_specs": ANY, "scratch_shapes": scratch, **options}
    return pl.pallas_call(kernel, out, **options)


def sharded(fn: Any, devices: int) -> Any:
    return jax.shard_map(fn, mesh=ring(devices), in_specs=P(), out_specs=P(), check_vma=False)


def kinds(report: Report) -> set[str]:
    return {finding.kind.value for finding in report.findings}


def copy_and_wait(x: Any, o: Any, sem: Any) -> None:
    copy = pltpu.make_async_copy(x, o, sem)
    copy.start()
    copy.wait()


# The library's own examples, and the kernels that JAX ships.


@pytest.mark.parametrize("devices", [2, 4, 8])
@pytest.mark.parametrize("path", FOLLOWED, ids=lambda path: path.stem)
def test_examples_are_safe(path: Path, devices: int) -> None:
    fn, args = load(path).build(ring(devices))
    report = verify(fn, *args)
    assert report.verdict == "safe", str(report)
    assert report.analysis is not None
    assert report.analysis.counts["copies"]


def test_counts_that_come_from_peers_are_followed() -> None:
    module = load(ROOT / "docs" / "examples" / "moe_all_to_all.py")
    fn, (x, counts) = module.build(ring(2))
    copies = []
    for table in (counts, jnp.zeros_like(counts)):
        report = verify(fn, x, table)
        assert report.verdict == "safe", str(report)
        assert report.analysis is not None
        copies.append(report.analysis.counts["copies"])
    assert copies[0] > copies[1]
    unknown = verify(fn, x, jax.ShapeDtypeStruct(counts.shape, counts.dtype))
    assert unknown.verdict == "undecided"


def test_a_peer_that_announces_too_little() -> None:
    def kernel(x: Any, o: Any, mine: Any, theirs: Any, go: Any, *sems: Any) -> None:
        told, counted, send_sem, recv_sem = sems
        me = lax.axis_index("x")
        other = {"x": 1 - me}
        mine[0] = 3 - me  # device 0 announces 3 copies, device 1 announces 2
        number = pltpu.make_async_remote_copy(mine, theirs, told, counted, device_id=other)
        number.start()
        number.wait()

        def send(i: Any, c: Any) -> Any:
            pltpu.make_async_remote_copy(
                x.at[i], o.at[i], send_sem, recv_sem, device_id=other
            ).start()
            return c

        def wait(i: Any, c: Any) -> Any:
            pltpu.make_async_copy(x.at[i], x.at[i], send_sem).wait()
            return c

        def take(i: Any, c: Any) -> Any:
            pltpu.make_async_copy(o.at[i], o.at[i], recv_sem).wait()
            return c

        lax.fori_loop(0, 3, send, 0)
        lax.fori_loop(0, 3, wait, 0)
        lax.fori_loop(0, theirs[0], take, 0)

    numbers = pltpu.SMEM((1,), jnp.int32)
    report = verify(sharded(call(kernel, numbers, numbers, REGULAR, DMA, DMA, DMA, DMA), 2), X)
    assert kinds(report) == {"leak"}
    assert report.program is not None
    assert "device x=0" in " ".join(str(report).split())  # which was told of two


def all_gather(devices: int) -> Report:
    from jax.experimental.pallas.ops.tpu.all_gather import all_gather

    x = jax.ShapeDtypeStruct((devices * 16, 128), jnp.float32)
    return verify(lambda x: all_gather(x, mesh=ring(devices), axis_name="x"), x)


def test_the_all_gather_that_jax_ships_races_from_three_devices_on() -> None:
    """Both copies of a direction share one receive semaphore, so a wait may be for the other."""
    assert all_gather(2).verdict == "safe"
    for devices in (3, 4):
        report = all_gather(devices)
        assert kinds(report) == {"race"}
        for finding in report.findings:
            assert all(line.file.endswith("all_gather.py") for line in finding.lines)


def shipped() -> Any:
    return load(ROOT / "tests" / "shipped" / "kernels.py")


@pytest.mark.parametrize(
    "name",
    ["megablox_gmm", "paged_attention", "paged_attention_quantized", "ragged_paged_attention"],
)
def test_other_kernels_that_jax_ships_are_safe(name: str) -> None:
    fn, args = shipped().KERNELS[name]()
    report = verify(fn, *args)
    assert report.verdict == "safe", str(report)


# What is around a kernel


def test_repeated_calls() -> None:
    def repeated(x: Any) -> Any:
        one = call(copy_and_wait, DMA)
        return lax.scan(lambda c, _: (jax.jit(one)(c), None), x, None, length=3)[0]

    report = verify(repeated, X)
    assert report.verdict == "safe"
    assert report.analysis is not None
    assert report.analysis.counts["copies"] == 3
    assert report.program is not None
    assert report.program.calls == ["copy_and_wait"] * 3
    twice = verify(repeated, X, calls=2)
    assert twice.analysis is not None
    assert twice.analysis.counts["copies"] == 6


def test_a_grid_whose_size_is_an_argument() -> None:
    def fn(n: Any, x: Any) -> Any:
        return call(copy_and_wait, DMA, grid=(n,))(x)

    report = verify(fn, np.int32(3), X)
    assert report.analysis is not None
    assert report.analysis.counts["copies"] == 3
    unknown = verify(fn, jax.ShapeDtypeStruct((), jnp.int32), X)
    assert unknown.verdict == "undecided"
    assert "grid" in str(unknown.undecided)


def test_a_copy_in_flight_on_a_block_when_the_step_ends() -> None:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        pltpu.make_async_copy(x, o, sem).start()

        @pl.when(pl.program_id(0) == 3)
        def _() -> None:
            for _ in range(4):
                pltpu.make_async_copy(x, o, sem).wait()

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    rows = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    options: Any = {"out": rows, "grid": (4,), "in_specs": [block], "out_specs": block}
    assert kinds(verify(call(kernel, DMA, **options), rows)) == {"race"}
    assert verify(call(copy_and_wait, DMA, **options), rows).verdict == "safe"


def test_pairs_of_kernels() -> None:
    class Flight(sp.Scratch):
        sem = sp.dma_semaphore()

    def start(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
        sp.async_copy(x, o, flight.sem)

    def done(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
        sp.wait_bytes(flight.sem, o)

    pair = sp.pallas_call_async(Flight, start, done, X)
    assert verify(lambda x: pair.done(pair.start(x)), X).verdict == "safe"
    assert "leak" in kinds(verify(lambda x: pair.start(x).then(x), X))


def test_counted_copies() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        for half in (pl.ds(0, 4), pl.ds(4, 4)):
            sp.async_copy_counted(x.at[half], o.at[half], sem)
        sp.wait(sem, 2)

    fn = sp.pallas_call(kernel, X, in_specs=[ANY], out_specs=ANY, scratch_shapes=(sp.semaphore(),))
    report = verify(fn, X)
    assert report.verdict == "safe"
    assert report.analysis is not None
    assert report.analysis.counts["copies"] == 2


def test_a_buffer_is_no_semaphore() -> None:
    def kernel(x: Any, o: Any, buffer: Any) -> None:
        pltpu.make_async_copy(x, o, buffer).start()

    report = verify(call(kernel, pltpu.SMEM((), jnp.int16)), X)
    assert kinds(report) == {"kind"}
    assert "buffer (int16[])" in " ".join(str(report).split())


# What is not known


def test_a_race_with_what_may_be_elsewhere_is_undecided() -> None:
    def kernel(n: Any, x: Any, o: Any, sem: Any) -> None:
        copy = pltpu.make_async_copy(x.at[0], o.at[n[0]], sem)
        copy.start()
        o[1] = o[1] + 1.0
        copy.wait()

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[ANY], out_specs=ANY, scratch_shapes=[DMA]
    )
    fn = pl.pallas_call(kernel, X, grid_spec=spec)
    report = verify(fn, jax.ShapeDtypeStruct((1,), jnp.int32), X)
    assert report.verdict == "undecided"
    assert report.undecided is not None
    assert report.undecided.line is not None
    assert kinds(verify(fn, np.array([1], np.int32), X)) == {"race"}
    assert verify(fn, np.array([0], np.int32), X).verdict == "safe"


def test_no_kernel() -> None:
    report = verify(lambda x: x + 1, X)
    assert report.verdict == "undecided"
    assert "calls no Pallas kernel" in " ".join(str(report).split())


def test_kernels_on_some_devices_only() -> None:
    def fn(x: Any) -> Any:
        run = call(copy_and_wait, DMA)
        return lax.cond(lax.axis_index("x") == 0, run, lambda x: x, x)

    report = verify(sharded(fn, 2), X)
    assert report.verdict == "undecided"
    assert "Not all devices" in " ".join(str(report).split())


def test_a_loop_around_a_kernel_that_runs_as_long_as_data_says() -> None:
    def fn(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0, 0] > 0, call(copy_and_wait, DMA), x)

    report = verify(fn, X)
    assert report.verdict == "undecided"
    assert "How often a loop runs" in " ".join(str(report).split())


def test_limits() -> None:
    fn = call(copy_and_wait, DMA, grid=(100,))
    assert verify(fn, X, limit=300).verdict == "safe"
    report = verify(fn, X, limit=150)
    assert report.verdict == "undecided"
    assert "more than 150 events" in " ".join(str(report).split())

    def spin(x: Any, o: Any, sem: Any) -> None:
        def turn(i: Any) -> Any:
            @pl.when(i > 5)
            def _() -> None:
                copy_and_wait(x, o, sem)

            return i

        lax.while_loop(lambda i: i < 5, turn, 0)

    endless = verify(call(spin, DMA), X, limit=150)
    assert endless.verdict == "undecided"
    assert "loops" in str(endless)


def test_errors_of_the_function_are_its_own() -> None:
    def kernel(x: Any, o: Any) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        verify(call(kernel), X)
    for options in ({"calls": 0}, {"limit": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            verify(call(copy_and_wait, DMA), X, **options)


def test_progress_and_the_collector_of_garbage() -> None:
    said: list[str] = []
    assert gc.isenabled()
    fn = sharded(call(copy_and_wait, DMA), 32)
    assert verify(fn, X, progress=said.append).verdict == "safe"
    assert gc.isenabled()
    assert [text.partition(",")[0] for text in said[:5]] == [
        "16 of 32 devices read",
        "32 of 32 devices read",
        "128 events of 32 devices",
        "deadlocks and leaks",
        "orders",
    ]
    assert said[-1] == "lifetimes of memory, accesses: 64"


def test_the_limit_is_that_of_the_analysis_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exact run for each access that the rule leaves open: here, as if it told nothing."""

    def kernel(x: Any, o: Any, sem: Any) -> None:
        for _ in range(3):
            copy_and_wait(x, o, sem)

    monkeypatch.setattr(
        "safepallas._verify.analysis.happens_before._Clocks.certain", lambda *_: False
    )
    assert verify(call(kernel, DMA), X).verdict == "safe"
    monkeypatch.setattr("safepallas._verify.run.analyse", functools.partial(analyse, runs=4))
    report = verify(call(kernel, DMA), X, limit=8)
    assert report.verdict == "undecided"
    assert report.undecided is not None
    assert report.undecided.text == (
        "The search for races stopped at its limit of 32 events, 4 times `limit=`, after 3 exact "
        "runs: raise `limit=`, or verify fewer devices or steps."
    )


def test_what_was_assumed() -> None:
    def kernel(n: Any, x: Any, o: Any, sem: Any) -> None:
        copy_and_wait(x, o, sem)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[ANY], out_specs=ANY, scratch_shapes=[DMA]
    )
    report = verify(pl.pallas_call(kernel, X, grid_spec=spec), np.array([5, 6], np.int32), X)
    assert report.program is not None
    assert report.program.assumed == [("values", "n = [5, 6]")]
    assert "- values: n = [5, 6]\n" in str(report)


def test_the_values_of_all_devices_are_said() -> None:
    def kernel(n: Any, x: Any, o: Any, sem: Any) -> None:
        copy_and_wait(x, o, sem)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[ANY], out_specs=ANY, scratch_shapes=[DMA]
    )
    mesh = jax.sharding.AbstractMesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    fn = jax.shard_map(
        pl.pallas_call(kernel, X, grid_spec=spec),
        mesh=mesh,
        in_specs=(jax.P("x"), jax.P()),
        out_specs=jax.P(),
        check_vma=False,
    )
    report = verify(fn, np.array([1, 2, 3, 2], np.int32), X)
    assert report.program is not None
    values = "n = [1] on device x=0, [2] on device x=1 and 1 more, [3] on device x=2"
    assert report.program.assumed == [("values", values)]


def test_the_entry_barrier_is_an_assumption() -> None:
    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        right = lax.rem(lax.axis_index("x") + 1, 2)
        pltpu.async_remote_copy(x, o, send, recv, device_id={"x": right}).wait()

    mesh = jax.sharding.AbstractMesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    fn = jax.shard_map(
        call(kernel, DMA, DMA), mesh=mesh, in_specs=jax.P(), out_specs=jax.P(), check_vma=False
    )
    report = verify(fn, X)
    assert report.verdict == "safe"
    assert report.program is not None
    assert [one.name for one in report.program.assumed] == ["entry-barrier"]
    assert "- entry-barrier: Pallas puts a barrier of all devices before" in str(report)


def test_parallel_dimensions_are_an_assumption() -> None:
    options: dict[str, Any] = {}
    assumed = []
    for semantics in ("arbitrary", "parallel"):
        options["compiler_params"] = pltpu.CompilerParams(dimension_semantics=(semantics,))
        report = verify(call(copy_and_wait, DMA, grid=(2,), **options), X)
        assert report.program is not None
        assumed.append(report.program.assumed)
    text = "parallel dimensions of a grid run in order, on one core"
    assert assumed == [[], [("parallel-in-order", text)]]


def test_an_output_in_place_of_an_input_is_the_same_buffer() -> None:
    def kernel(n: Any, x: Any, o: Any, sem: Any) -> None:
        del n
        copies = [pltpu.make_async_copy(r.at[0], x.at[i + 1], sem) for i, r in enumerate((x, o))]
        for copy in copies:
            copy.start()
        o[1] = o[0]
        for copy in copies:
            copy.wait()

    def build(aliases: dict[int, int], grid: Any) -> Any:
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=grid, in_specs=[ANY], out_specs=ANY, scratch_shapes=[DMA]
        )
        return pl.pallas_call(kernel, X, grid_spec=spec, input_output_aliases=aliases)

    n = np.array([0], np.int32)
    assert verify(build({}, (1,)), n, X).verdict == "safe"
    assert kinds(verify(build({1: 0}, (1,)), n, X)) == {"race"}

    def traced(size: Any, n: Any, x: Any) -> Any:
        return build({1: 0}, (size,))(n, x)

    assert kinds(verify(traced, np.int32(1), n, X)) == {"race"}


@pytest.mark.parametrize("form", ["loop", "scan", "view"])
def test_a_buffer_under_another_name_is_still_that_buffer(form: str) -> None:
    """What no copy can access is not written down, so names must not hide a copy."""

    def another(block: Any) -> Any:
        if form == "scan":
            return lax.scan(lambda ref, _: (ref, None), block, None, length=3)[0]
        first = (pl.program_id(0), block.at[...] if form == "view" else block)
        return lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1]), first)[1]

    def kernel(x: Any, o: Any, block: Any, sem: Any) -> None:
        copy = pltpu.make_async_copy(x, another(block), sem)
        copy.start()
        o[...] = block[...]
        copy.wait()

    scratch = [pltpu.VMEM(X.shape, X.dtype), DMA]
    report = verify(call(kernel, *scratch, grid=(1,), out_specs=pl.BlockSpec()), X)
    assert kinds(report) == {"race"}
