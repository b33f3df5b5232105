"""Kernels that JAX has in its caches: no check is lost there, and none is carried over.

JAX 0.12 keeps the trace of a kernel by its function; 0.10 traces anew in each call.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import safepallas as sp

X = OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)
WITH_ID = pltpu.CompilerParams(collective_id=3)


def trace(kernel: Any, *scratch: Any, **options: Any) -> Any:
    return jax.make_jaxpr(sp.pallas_call(kernel, OUT, scratch_shapes=scratch, **options))(X)


# No check is lost or wrongly carried over.


def test_with_and_without_a_collective_id() -> None:
    def with_barrier(x: sp.Ref, o: sp.Ref) -> None:
        sp.signal(sp.get_barrier_semaphore())

    def without(x: sp.Ref, o: sp.Ref) -> None:
        pass

    for _ in range(2):
        trace(with_barrier, compiler_params=WITH_ID)
        with pytest.raises(sp.errors.MissingCollectiveIdError):
            trace(with_barrier)
        trace(without)
        for number in 3, 4:
            params = pltpu.CompilerParams(collective_id=number)
            with pytest.raises(sp.errors.UnusedCollectiveIdError, match=f"collective_id={number} "):
                trace(without, compiler_params=params)
        allowed = pltpu.CompilerParams(
            collective_id=3, allow_collective_id_without_custom_barrier=True
        )
        trace(without, compiler_params=allowed)


def test_with_other_kinds() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sem: Any) -> None:
        sp.wait(sem)

    for _ in range(2):
        trace(kernel, sp.semaphore())
        with pytest.raises(sp.errors.WrongKindError):
            trace(kernel, sp.dma_semaphore())
        with pytest.raises(sp.errors.NotScalarError):
            trace(kernel, sp.semaphore(2))
        trace(kernel, sp.barrier_semaphore())


def test_with_other_annotations_of_the_same_code() -> None:
    def kernel_for(kind: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, sem: kind) -> None:
            sp.signal(sem)

        return kernel

    for _ in range(2):
        trace(kernel_for(sp.Semaphore), sp.semaphore())
        with pytest.raises(sp.errors.AnnotationError):
            trace(kernel_for(sp.BarrierSemaphore), sp.semaphore())
        trace(kernel_for(sp.BarrierSemaphore), sp.barrier_semaphore())


def test_with_other_interpreters() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        sp.read(sem)

    for _ in range(2):
        trace(kernel, sp.semaphore(), interpret=True)
        with pytest.raises(sp.errors.InterpretedReadError):
            trace(kernel, sp.semaphore(), interpret=pltpu.InterpretParams())
        with pltpu.force_tpu_interpret_mode(), pytest.raises(sp.errors.InterpretedReadError):
            trace(kernel, sp.semaphore())
        trace(kernel, sp.semaphore())


def test_with_other_shapes() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sems: Any) -> None:
        sp.signal(sems[1])

    for _ in range(2):
        trace(kernel, sp.semaphore(2))
        with pytest.raises(sp.errors.IndexRangeError, match="of size 1"):
            trace(kernel, sp.semaphore(1))
        trace(kernel, sp.semaphore(3))


def test_with_other_shapes_made_on_the_same_line_in_a_scratch() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, s: Any) -> None:
        sp.signal(s.sems[1])

    def scratch(size: int) -> type[sp.Scratch]:
        class Buffers(sp.Scratch):
            sems = sp.semaphore(size)

        return Buffers

    def call(size: int) -> None:
        jax.make_jaxpr(sp.pallas_call(kernel, OUT, scratch_shapes=scratch(size)))(X)

    for _ in range(2):
        call(2)
        with pytest.raises(sp.errors.IndexRangeError, match="of size 1"):
            call(1)


def test_with_other_meshes() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        sp.signal(sem, device_id={"i": 3})

    call = sp.pallas_call(kernel, OUT, scratch_shapes=(sp.semaphore(),))

    def on_mesh(size: int) -> None:
        mesh = AbstractMesh((size,), ("i",), axis_types=(AxisType.Auto,))
        over = jax.shard_map(call, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
        jax.make_jaxpr(over)(X)

    for _ in range(2):
        on_mesh(4)
        with pytest.raises(sp.errors.DeviceIdError, match="size 3"):
            on_mesh(3)
        with pytest.raises(sp.errors.DeviceIdError, match="no mesh"):
            jax.make_jaxpr(call)(X)


def test_wrapped_kernels_are_kernels_of_their_own() -> None:
    """`functools.wraps` copies all that a function keeps."""

    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        sp.signal(sem)

    spec = sp.semaphore()
    before = str(trace(kernel, spec))

    @functools.wraps(kernel)
    def wrapped(*args: Any) -> None:
        kernel(*args)
        sp.wait(args[-1])

    for _ in range(2):
        assert str(trace(kernel, spec)) == before
        assert str(trace(wrapped, spec)).count("semaphore_wait") == 1


def test_messages_name_the_call_at_hand() -> None:
    """Two calls with equal requests written on different lines: each error names its own."""

    def kernel(x: sp.Ref, o: sp.Ref, sem: Any) -> None:
        sp.signal(sem, True)

    def line_of_request(request: Any) -> str:
        with pytest.raises(sp.errors.AmountTypeError) as info:
            trace(kernel, request)
        return str(info.value).partition("allocated at ")[2].partition(")")[0]

    first, second = line_of_request(sp.semaphore()), 0
    second = line_of_request(sp.semaphore())
    assert first.startswith(f"{__file__}:")
    assert second.startswith(f"{__file__}:")
    assert first != second


def test_a_jitted_helper_that_gets_the_barrier_for_several_kernels() -> None:
    """JAX does not run it again; it counts all the same."""
    runs = []

    @jax.jit
    def helper() -> None:
        runs.append(1)
        barrier = sp.get_barrier_semaphore()
        sp.signal(barrier)
        sp.wait(barrier)

    def kernel_with_the_barrier() -> Any:
        def kernel(x: sp.Ref, o: sp.Ref) -> None:
            pl.when(x[0, 0] > 0)(helper)

        return kernel

    for _ in range(3):
        trace(kernel_with_the_barrier(), compiler_params=WITH_ID)
        with pytest.raises(sp.errors.MissingCollectiveIdError):
            trace(kernel_with_the_barrier())
    assert runs == [1]


def test_a_jitted_helper_that_reads_for_several_kernels() -> None:
    @jax.jit
    def helper(sem: sp.Semaphore) -> jax.Array:
        return sp.read(sem)

    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        helper(sem)

    trace(kernel, sp.semaphore(), interpret=True)
    with pytest.raises(sp.errors.InterpretedReadError):
        trace(kernel, sp.semaphore(), interpret=pltpu.InterpretParams())


# Handles that come out of traces that JAX has kept belong to the kernel at hand.


def loop_body(carry: Any, _: Any) -> tuple[Any, None]:
    sp.signal(carry)
    return carry, None


def while_body(carry: Any) -> Any:
    sp.signal(carry[1])
    return carry[0] + 1, carry[1]


def below_three(carry: Any) -> Any:
    return carry[0] < 3


identity = jax.jit(lambda sem: sem)
remat = jax.checkpoint(lambda sem: sem)
first_of = jax.jit(lambda sems: sems[0])
barrier_of = jax.jit(lambda _: sp.get_barrier_semaphore())

KEPT: dict[str, tuple[Any, Any]] = {
    "scan": (lambda sem: jax.lax.scan(loop_body, sem, None, length=3)[0], sp.semaphore()),
    "while": (lambda sem: jax.lax.while_loop(below_three, while_body, (0, sem))[1], sp.semaphore()),
    "jit": (identity, sp.semaphore()),
    "checkpoint": (remat, sp.semaphore()),
    "an element": (first_of, sp.semaphore(2)),
    "the barrier": (barrier_of, sp.semaphore()),
}


@pytest.mark.parametrize(("through", "request_"), KEPT.values(), ids=KEPT)
def test_handles_out_of_kept_traces(through: Any, request_: Any) -> None:
    params = WITH_ID if through is barrier_of else None
    leaked = []

    def kernel_that_uses_it() -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, sem: Any) -> None:
            sp.signal(through(sem))
            leaked.append(through(sem))
            sp.wait(leaked[-1])

        return kernel

    first, second = (
        str(trace(kernel_that_uses_it(), request_, compiler_params=params)) for _ in range(2)
    )
    assert first == second
    for handle in leaked:
        with pytest.raises(sp.errors.ScopeEndedError):
            sp.signal(handle)


def test_handles_out_of_kept_traces_in_two_scopes() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        for _ in range(2):
            sp.run_scoped(lambda own: sp.signal(identity(own)), sp.semaphore())
        sp.signal(identity(sem))

    trace(kernel, sp.semaphore())


def test_a_dead_handle_stays_dead_through_a_kept_trace() -> None:
    leaked = []

    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        sp.run_scoped(lambda own: leaked.append(own), sp.semaphore())
        copied = jax.tree_util.tree_map(lambda ref: ref, leaked[0])
        with pytest.raises(sp.errors.ScopeEndedError, match=r"'own'.*run_scoped"):
            sp.signal(copied)

    trace(kernel)
