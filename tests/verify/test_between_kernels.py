"""What leaves a kernel and enters the next is the same: semaphores, buffers, arrays, refs of JAX.

One kernel starts a copy, and another one waits for it: safe if both mean the same memory and the
same semaphore. Where the wait is left out, or something is used in between, that is found.
"""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from .judging import ANY, DMA, F32, X, has, is_safe, judge

SEM = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
EFFECTS = pltpu.CompilerParams(has_side_effects=True)


def start(x: Any, other: Any, d: Any, o: Any, sem: Any) -> None:
    pltpu.make_async_copy(x, d, sem).start()


def done(x: Any, other: Any, d: Any, sem: Any, o: Any) -> None:
    pltpu.make_async_copy(x, d, sem).wait()


def started(x: Any, other: Any, d: Any) -> Any:
    return pl.pallas_call(
        start,
        (X, DMA(())),
        in_specs=[ANY] * 3,
        out_specs=(ANY, SEM),
        input_output_aliases={2: 0},
        compiler_params=EFFECTS,
    )(x, other, d)


def finished(x: Any, other: Any, d: Any, sem: Any) -> Any:
    return pl.pallas_call(
        done,
        X,
        in_specs=[ANY] * 3 + [SEM],
        out_specs=ANY,
        input_output_aliases={2: 0},
        compiler_params=EFFECTS,
    )(x, other, d, sem)


def test_an_array_that_is_given_twice_is_one() -> None:
    def both(x: Any, y: Any, d: Any) -> Any:
        d, sem = started(x, y, d)
        return finished(x, y, d, sem)

    is_safe(both, X, X, X)
    is_safe(lambda x, d: both(x, x, d), X, X)
    has("leak", lambda x, d: started(x, x, d)[0], X, X)


def test_a_jitted_half_hands_on_as_well() -> None:
    def both(x: Any, d: Any) -> Any:
        d, sem = jax.jit(started)(x, x, d)
        return jax.jit(finished)(x, x, d, sem)

    is_safe(both, X, X)


@pytest.mark.parametrize("spec", [P(), P("x")], ids=["same", "split"])
def test_two_shard_maps_with_whatever_specs(spec: Any) -> None:
    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    like = jax.ShapeDtypeStruct((32, 128), F32)

    def mapped(fn: Callable[..., Any], ins: Any, outs: Any) -> Any:
        return jax.shard_map(fn, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False)

    def first(x: Any, d: Any) -> Any:
        return mapped(lambda x, d: started(x, x, d), (P("x"), P("x")), (P("x"), P()))(x, d)

    def both(x: Any, d: Any, *, waits: bool = True) -> Any:
        d, sem = first(x, d)
        if not waits:
            return d
        second = mapped(lambda x, d, s: finished(x, x, d, s), (P("x"), P("x"), P()), P("x"))
        return second(x, d, sem)

    is_safe(both, like, like)
    has("leak", lambda x, d: both(x, d, waits=False), like, like)


def test_a_kernel_in_between_reads_what_is_in_flight() -> None:
    """By blocks, which the pipeline fetches."""

    def reads(d: Any, o: Any) -> None:
        o[...] = d[...]

    def through(x: Any, d: Any, *, early: bool) -> Any:
        block = pl.BlockSpec((8, 128), lambda i: (i, 0))
        read = pl.pallas_call(reads, X, grid=(2,), in_specs=[block], out_specs=block)
        d, sem = started(x, x, d)
        if early:
            return read(d), finished(x, x, d, sem)
        d = finished(x, x, d, sem)
        return read(d)

    is_safe(lambda x, d: through(x, d, early=False), X, X)
    has("race", lambda x, d: through(x, d, early=True), X, X)


# Refs of JAX


def mesh_of_cores() -> Any:
    if hasattr(pltpu, "TensorCoreMesh"):
        return pltpu.TensorCoreMesh(axis_name="core", num_cores=1)
    return pltpu.create_tensorcore_mesh("core", num_cores=1)  # type: ignore[attr-defined, unused-ignore]


def core_map() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # by JAX 0.12, which still has it
        return pl.core_map


def with_refs(*, waits: bool, other_target: bool = False) -> Callable[..., Any]:
    mesh = mesh_of_cores()

    def fn(x: Any) -> Any:
        sem: Any = pl.kernel(lambda _: None, DMA(()), mesh=mesh, compiler_params=EFFECTS)()
        flag = jax.new_ref(sem, memory_space=pltpu.SEMAPHORE)
        source, target, other = (jax.new_ref(a) for a in (x, jnp.zeros_like(x), x))

        def begin(a: Any, b: Any, s: Any) -> None:
            pltpu.make_async_copy(a, b, s).start()

        def use(a: Any, b: Any, c: Any, s: Any) -> None:
            if other_target:
                pltpu.sync_copy(c, b)  # in flight
            if waits:
                pltpu.make_async_copy(a, b, s).wait()

        pl.kernel(begin, (), mesh=mesh)(source, target, flag)
        pl.kernel(use, (), mesh=mesh)(source, target, other, flag)
        return jax.freeze(target)

    return fn


def test_a_semaphore_and_buffers_in_refs_of_jax() -> None:
    is_safe(with_refs(waits=True), X)
    has("leak", with_refs(waits=False), X)
    has("race", with_refs(waits=True, other_target=True), X)


def test_run_state_around_a_core_map() -> None:
    def build(*, waits: bool) -> Callable[..., Any]:
        def fn(x: Any) -> Any:
            def inner(refs: Any) -> None:
                a, b = refs

                @core_map()(mesh_of_cores())
                def _() -> None:
                    def scope(sem: Any) -> None:
                        copy = pltpu.make_async_copy(a, b, sem)
                        copy.start()
                        if waits:
                            copy.wait()

                    pl.run_scoped(scope, DMA)

            return pl.run_state(inner)((x, jnp.zeros_like(x)))[1]

        return fn

    is_safe(build(waits=True), X)
    has("leak", build(waits=False), X)


def test_run_state_around_two_kernels_that_close_over_its_refs() -> None:
    def build(*, waits: bool) -> Callable[..., Any]:
        def fn(x: Any) -> Any:
            def inner(refs: Any) -> None:
                a, b = refs
                sem = pl.pallas_call(
                    lambda sem: pltpu.make_async_copy(a, b, sem).start(),
                    DMA(()),
                    out_specs=SEM,
                    compiler_params=EFFECTS,
                )()
                if waits:
                    pl.pallas_call(
                        lambda sem: pltpu.make_async_copy(a, b, sem).wait(),
                        (),
                        in_specs=[SEM],
                        compiler_params=EFFECTS,
                    )(sem)

            return pl.run_state(inner)((x, jnp.zeros_like(x)))[1]

        return fn

    is_safe(build(waits=True), X)
    has("leak", build(waits=False), X)


# What stays in VMEM


def in_vmem(*, waits: bool) -> Callable[..., Any]:
    here = pl.BlockSpec(memory_space=pltpu.VMEM)
    stays: Any = pltpu.VMEM((16, 128), F32)

    def begin(x: Any, same: Any, o: Any, sem: Any) -> None:
        pltpu.make_async_copy(x, o, sem).start()

    def end(x: Any, o: Any, sem: Any, same: Any) -> None:
        if waits:
            pltpu.make_async_copy(x, o, sem).wait()

    def fn(x: Any) -> Any:
        x, out, sem = pl.pallas_call(
            begin,
            (X, stays, DMA(())),
            in_specs=[ANY],
            out_specs=(ANY, here, SEM),
            input_output_aliases={0: 0},
            compiler_params=EFFECTS,
        )(x)
        return pl.pallas_call(
            end,
            stays,
            in_specs=[ANY, here, SEM],
            out_specs=here,
            input_output_aliases={1: 0},
            compiler_params=EFFECTS,
        )(x, out, sem)

    return fn


def test_an_output_that_stays_in_vmem_is_not_copied_out() -> None:
    is_safe(in_vmem(waits=True), X)
    has("leak", in_vmem(waits=False), X)


def test_an_output_that_does_not_stay_is() -> None:
    def begin(x: Any, o: Any, sem: Any) -> None:
        pltpu.make_async_copy(x, o, sem).start()

    def fn(x: Any) -> Any:
        here = pl.BlockSpec(memory_space=pltpu.VMEM)
        call = pl.pallas_call(
            begin, (X, DMA(())), in_specs=[ANY], out_specs=(here, SEM), compiler_params=EFFECTS
        )
        return call(x)[0]

    assert "race" in judge(fn, X)[1]


def test_a_ref_of_jax_that_is_written_between_two_kernels() -> None:
    """What the second copy takes to the same place are other bytes."""

    def build(*, writes: bool) -> Callable[..., Any]:
        mesh = mesh_of_cores()

        def begin(a: Any, b: Any, s: Any) -> None:
            pltpu.make_async_copy(a, b, s).start()

        def use(a: Any, b: Any, s: Any) -> None:
            pltpu.sync_copy(a, b)
            pltpu.make_async_copy(a, b, s).wait()

        def fn(x: Any) -> Any:
            sem: Any = pl.kernel(lambda _: None, DMA(()), mesh=mesh, compiler_params=EFFECTS)()
            flag = jax.new_ref(sem, memory_space=pltpu.SEMAPHORE)
            source, target = jax.new_ref(x), jax.new_ref(jnp.zeros_like(x))
            pl.kernel(begin, (), mesh=mesh)(source, target, flag)
            if writes:
                source[...] = x + 1
            pl.kernel(use, (), mesh=mesh)(source, target, flag)
            return jax.freeze(target)

        return fn

    is_safe(build(writes=False), X)
    has("race", build(writes=True), X)


# Numbers


def plan_by(*, scale: int = 1) -> Callable[..., Any]:
    """A kernel that computes how many rows the next one copies."""
    smem = pl.BlockSpec(memory_space=pltpu.SMEM)

    def schedule(lengths: Any, plan: Any) -> None:
        plan[0] = (lengths[0] + lengths[1]) * scale

    def copies(plan: Any, x: Any, o: Any, sem: Any) -> None:
        rows = pl.ds(0, plan[0])
        pltpu.async_copy(x.at[rows], o.at[rows], sem).wait()

    like = jax.ShapeDtypeStruct((1,), jnp.int32)
    first = pl.pallas_call(schedule, like, in_specs=[smem], out_specs=smem)
    grid_spec: Any = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[ANY], out_specs=ANY, scratch_shapes=[DMA]
    )
    second = pl.pallas_call(copies, X, grid_spec=grid_spec)
    return lambda lengths, x: second(first(lengths), x)


def test_numbers_that_a_kernel_computes_are_known_in_the_next() -> None:
    lengths = np.array([3, 5], np.int32)
    is_safe(plan_by(), lengths, X)
    has("out-of-bounds", plan_by(scale=3), lengths, X)
    assert judge(plan_by(), jax.ShapeDtypeStruct((2,), jnp.int32), X)[0] == "undecided"


@pytest.mark.parametrize(("given", "to"), [(jnp.uint32, jnp.int32), (jnp.int16, jnp.int32)])
def test_a_bitcast_of_a_table(given: Any, to: Any) -> None:
    """Elements along the last dimension but one are packed: the first has the lowest bits."""

    def kernel(table: Any, x: Any, o: Any, sem: Any) -> None:
        rows = pl.ds(0, pltpu.bitcast(table[...], to).max())
        pltpu.async_copy(x.at[rows], o.at[rows], sem).wait()

    table = np.zeros((16, 128), given)
    table[2, 5] = 9
    spec = pl.BlockSpec((16, 128), lambda: (0, 0))
    call = pl.pallas_call(kernel, X, in_specs=[spec, ANY], out_specs=ANY, scratch_shapes=[DMA])
    is_safe(call, table, X)
    table[2, 5] = 17
    has("out-of-bounds", call, table, X)
    if given == jnp.int16:
        table[2:4, 5] = 0, 1  # 65536
        has("out-of-bounds", call, table, X)
