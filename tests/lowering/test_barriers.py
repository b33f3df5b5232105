"""The barriers lower to what somebody would have written by hand in raw Pallas."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.extend import source_info_util

import safepallas as sp
from safepallas.testing import assert_lowers_like

from ..unit.helpers import equations
from .alike import assert_same

X = OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)
PARAMS = pltpu.CompilerParams(collective_id=7)
REGULAR = pltpu.SemaphoreType.REGULAR

OverMesh = Callable[..., Any]
Index = Callable[[int], Any]

pytestmark = pytest.mark.usefixtures("tpu")


def raw_exchange(sem: Any, axes: Any, size: int, steps: tuple[int, ...]) -> None:
    here = jax.lax.axis_index(axes)
    to = [jax.lax.rem(here + np.int32(step), np.int32(size)) for step in steps]
    for device in to:
        pl.semaphore_signal(sem, device_id={axes: device})
    pl.semaphore_wait(sem, len(steps))


def raw_all_to_all(axes: Any, size: int) -> None:
    raw_exchange(pltpu.get_barrier_semaphore(), axes, size, tuple(range(1, size)))


def raw_rounds(axes: Any, size: int, steps: tuple[int, ...], index: Index) -> None:
    def inside(sems: Any) -> None:
        raw_exchange(pltpu.get_barrier_semaphore(), axes, size, (1, size - 1))
        for number, step in enumerate(steps):
            raw_exchange(sems.at[index(number)], axes, size, (step, size - step))

    pl.run_scoped(inside, REGULAR((len(steps),)))


def compare(
    over_mesh: OverMesh, ours: Callable[[], None], raw: Callable[[], None], **axes: int
) -> None:
    def call(body: Callable[[], None], of: Any) -> Any:
        def kernel(x, o):
            body()
            o[...] = x[...]

        return over_mesh(of.pallas_call(kernel, OUT, compiler_params=PARAMS), **axes)

    assert_lowers_like(call(ours, sp), call(raw, pl), X)


@pytest.mark.parametrize("size", [2, 4, 5])
def test_all_to_all(size: int, index: Index, over_mesh: OverMesh) -> None:
    for ours in (lambda: sp.barrier_all("i"), lambda: sp.barrier_neighbors("i")):
        compare(over_mesh, ours, lambda: raw_all_to_all("i", size), i=size)
        compare(over_mesh, ours, lambda: raw_all_to_all("i", size), j=2, i=size)


def test_alone(index: Index, over_mesh: OverMesh) -> None:
    def raw() -> None:
        barrier = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier)
        pl.semaphore_wait(barrier)

    for ours in (lambda: sp.barrier_all(("i", "j")), lambda: sp.barrier_neighbors("i")):
        compare(over_mesh, ours, raw, i=1, j=1)


def test_rounds_between_neighbors(index: Index, over_mesh: OverMesh) -> None:
    compare(
        over_mesh,
        lambda: sp.barrier_neighbors("i"),
        lambda: raw_rounds("i", 6, (1,), index),
        i=6,
    )


def test_rounds_of_all(index: Index, over_mesh: OverMesh) -> None:
    compare(
        over_mesh,
        lambda: sp.barrier_all("i"),
        lambda: raw_rounds("i", 16, (1, 2, 4), index),
        i=16,
    )


def test_several_axes(index: Index, over_mesh: OverMesh) -> None:
    both = ("i", "k")
    compare(
        over_mesh,
        lambda: sp.barrier_all(["k", "i"]),
        lambda: raw_all_to_all(both, 4),
        i=2,
        j=2,
        k=2,
    )
    compare(
        over_mesh,
        lambda: sp.barrier_all(("j", "k", "i")),
        lambda: raw_rounds(both, 8, (1, 2), index),
        i=2,
        j=1,
        k=4,
    )


def test_mixed_and_in_a_loop(index: Index, over_mesh: OverMesh) -> None:
    def ours() -> None:
        sp.barrier_neighbors("i")
        jax.lax.fori_loop(0, 3, lambda _, c: (sp.barrier_all("i"), c)[1], 0)

    def raw() -> None:
        raw_rounds("i", 7, (1,), index)
        jax.lax.fori_loop(0, 3, lambda _, c: (raw_rounds("i", 7, (1, 1), index), c)[1], 0)

    compare(over_mesh, ours, raw, i=7)


@pytest.mark.parametrize("size", [1, 4, 6])
def test_every_equation_is_on_the_callers_line(size: int, over_mesh: OverMesh) -> None:
    """Also inside the scope, which the user did not open."""

    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        sp.barrier_all("i")

    call = over_mesh(sp.pallas_call(kernel, OUT, compiler_params=PARAMS), i=size)
    here = kernel.__code__.co_firstlineno + 1
    traced = jax.make_jaxpr(call)(jnp.zeros(X.shape))
    found = [
        eqn
        for name in ("get_barrier_semaphore", "semaphore_signal", "semaphore_wait", "rem")
        for eqn in equations(traced, name)
    ]
    assert len(found) == {1: 3, 4: 8, 6: 16}[size]
    for eqn in found:
        assert source_info_util.summarize(eqn.source_info).startswith(f"{__file__}:{here}")


def core_mesh(cores: int) -> Any:
    make: Any = getattr(pltpu, "TensorCoreMesh", None) or pltpu.create_tensorcore_mesh
    return make(axis_name="core", num_cores=cores)


@pytest.mark.parametrize("cores", [1, 2])
def test_core_barrier(cores: int) -> None:
    def build(m: Any) -> Any:
        def kernel(x, o, sem):
            ready = m.adopt(sem, m.semaphore())
            m.core_barrier(ready, core_axis_name="core")
            m.core_barrier(ready, core_axis_name="core")
            pltpu.sync_copy(x, o)

        return pl.kernel(kernel, OUT, mesh=core_mesh(cores), scratch_types=(REGULAR,))

    assert_same(build, X)
