"""Allocations, scopes and control flow: each kernel lowers like its reference kernel.

Every kernel is written twice, under the same name and with the same parameters.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp
from safepallas.testing import assert_lowers_like

X = OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)
COUNT = jax.ShapeDtypeStruct((1,), jnp.int32)
DMA = pltpu.SemaphoreType.DMA
REGULAR = pltpu.SemaphoreType.REGULAR
SMEM_SPEC = pl.BlockSpec(memory_space=pltpu.SMEM)
VMEM_SPEC = pl.BlockSpec(memory_space=pltpu.VMEM)
SEM_SPEC = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)

Index = Callable[[int], Any]

pytestmark = pytest.mark.usefixtures("x64")


def test_positional_scratch() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, ready: sp.Semaphore) -> None:
        sp.async_copy(x, o, sem).wait()
        sp.signal(ready, 2)
        sp.wait(ready, 2)

    ours = sp.pallas_call(kernel, OUT, scratch_shapes=(sp.dma_semaphore(), sp.semaphore()))

    def kernel(x, o, sem, ready):
        pltpu.async_copy(x, o, sem).wait()
        pl.semaphore_signal(ready, 2)
        pl.semaphore_wait(ready, 2)

    assert_lowers_like(ours, pl.pallas_call(kernel, OUT, scratch_shapes=(DMA, REGULAR)), X)


def test_scratch_class_whose_fields_are_the_raw_parameters(index: Index) -> None:
    class Base(sp.Scratch):
        acc = sp.vmem((8, 128), jnp.float32)
        sem = sp.dma_semaphore()

    class Buffers(Base):
        counts = sp.smem((4,), jnp.int32)
        ready = sp.semaphore(3)

    def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
        sp.async_copy(x, s.acc, s.sem).wait()
        s.counts[0] = 1
        sp.signal(s.ready[2])
        o[...] = s.acc[...]

    ours = sp.pallas_call(kernel, OUT, scratch_shapes=Buffers)

    def kernel(x, o, acc, sem, counts, ready):
        pltpu.async_copy(x, acc, sem).wait()
        counts[0] = 1
        pl.semaphore_signal(ready.at[index(2)])
        o[...] = acc[...]

    scratch = (pltpu.VMEM((8, 128), jnp.float32), DMA, pltpu.SMEM((4,), jnp.int32), REGULAR((3,)))
    assert_lowers_like(ours, pl.pallas_call(kernel, OUT, scratch_shapes=scratch), X)


def test_scratch_class_with_a_default_after_it() -> None:
    class Buffers(sp.Scratch):
        sem = sp.dma_semaphore()

    def kernel(x: sp.Ref, o: sp.Ref, s: Buffers, priority: int = 1) -> None:
        sp.async_copy(x, o, s.sem, priority=priority).wait()

    ours = sp.pallas_call(kernel, OUT, scratch_shapes=Buffers)

    def kernel(x, o, sem, priority=1):
        pltpu.async_copy(x, o, sem, priority=priority).wait()

    assert_lowers_like(ours, pl.pallas_call(kernel, OUT, scratch_shapes=(DMA,)), X)


def test_scratch_class_behind_any_number_of_refs(index: Index) -> None:
    class Buffers(sp.Scratch):
        sem = sp.dma_semaphore(2)
        acc = sp.vmem((8, 128), jnp.float32)

    def kernel(*refs: Any) -> None:
        x, _, s = refs
        sp.async_copy(x, s.acc, s.sem[1]).wait()

    ours = sp.pallas_call(kernel, OUT, scratch_shapes=Buffers)

    def kernel(*refs):
        x, _, sem, acc = refs
        pltpu.async_copy(x, acc, sem.at[index(1)]).wait()

    scratch = (DMA((2,)), pltpu.VMEM((8, 128), jnp.float32))
    assert_lowers_like(ours, pl.pallas_call(kernel, OUT, scratch_shapes=scratch), X)


def test_dict_scratch() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, *, sem: sp.DmaSemaphore, acc: sp.Ref, more: Any) -> None:
        sp.async_copy(x, acc, sem).wait()
        sp.signal(more["a"][0])
        o[...] = acc[...]

    scratch: Any = {
        "sem": sp.dma_semaphore(),
        "acc": sp.vmem((8, 128), jnp.float32),
        "more": {"b": sp.dma_semaphore(2), "a": (sp.semaphore(),)},
    }
    ours = sp.pallas_call(kernel, OUT, scratch_shapes=scratch)

    def kernel(x, o, *, sem, acc, more):
        pltpu.async_copy(x, acc, sem).wait()
        pl.semaphore_signal(more["a"][0])
        o[...] = acc[...]

    scratch = {
        "sem": DMA,
        "acc": pltpu.VMEM((8, 128), jnp.float32),
        "more": {"b": DMA((2,)), "a": (REGULAR,)},
    }
    assert_lowers_like(ours, pl.pallas_call(kernel, OUT, scratch_shapes=scratch), X)


def test_nested_tuples_in_scratch(index: Index) -> None:
    class Pair(NamedTuple):
        send: Any
        recv: Any

    def kernel(x: sp.Ref, o: sp.Ref, pair: Pair, deep: Any) -> None:
        sp.async_copy(x, o, pair.send).wait()
        (_, [sems, _]) = deep
        sp.wait_bytes(sems.at[1], o)
        sp.wait_bytes(pair.recv, o)

    deep: Any = (sp.semaphore(), [sp.dma_semaphore(2), sp.smem((1,), jnp.int32)])
    pair = Pair(sp.dma_semaphore(), sp.dma_semaphore())
    ours = sp.pallas_call(kernel, OUT, scratch_shapes=(pair, deep))

    def kernel(x, o, pair, deep):
        pltpu.async_copy(x, o, pair.send).wait()
        (_, [sems, _]) = deep
        pltpu.make_async_copy(o, o, sems.at[index(1)]).wait()
        pltpu.make_async_copy(o, o, pair.recv).wait()

    deep = (REGULAR, [DMA((2,)), pltpu.SMEM((1,), jnp.int32)])
    assert_lowers_like(ours, pl.pallas_call(kernel, OUT, scratch_shapes=(Pair(DMA, DMA), deep)), X)


def test_raw_requests_among_ours() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, acc: sp.Ref, sem: sp.DmaSemaphore) -> None:
        sp.async_copy(x, acc, sem).wait()

    mixed = (pltpu.VMEM((8, 128), jnp.float32), sp.dma_semaphore())
    ours = sp.pallas_call(kernel, OUT, scratch_shapes=mixed)

    def kernel(x, o, acc, sem):
        pltpu.async_copy(x, acc, sem).wait()

    raw = pl.pallas_call(kernel, OUT, scratch_shapes=(pltpu.VMEM((8, 128), jnp.float32), DMA))
    assert_lowers_like(ours, raw, X)


def test_run_scoped() -> None:
    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        def body(buffer: sp.Ref, sem: sp.DmaSemaphore) -> jax.Array:
            sp.async_copy(x, buffer, sem).wait()
            return buffer[...] + 1

        o[...] = sp.run_scoped(body, sp.vmem((8, 128), jnp.float32), sp.dma_semaphore())

    ours = sp.pallas_call(kernel, OUT)

    def kernel(x, o):
        def body(buffer, sem):
            pltpu.async_copy(x, buffer, sem).wait()
            return buffer[...] + 1

        o[...] = pl.run_scoped(body, pltpu.VMEM((8, 128), jnp.float32), DMA)

    assert_lowers_like(ours, pl.pallas_call(kernel, OUT), X)


def test_run_scoped_with_a_scratch_class_and_scopes_in_scopes(index: Index) -> None:
    class Outer(sp.Scratch):
        sems = sp.dma_semaphore(2)
        ready = sp.semaphore()

    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        def outer(s: Outer) -> None:
            def inner(buffer: sp.Ref, own: sp.DmaSemaphore) -> None:
                sp.async_copy(x, buffer, own).wait()
                sp.async_copy(buffer, o, s.sems[1]).wait()
                sp.signal(s.ready)

            sp.run_scoped(inner, sp.vmem((8, 128), jnp.float32), sp.dma_semaphore())
            sp.wait(s.ready)

        sp.run_scoped(outer, Outer)

    ours = sp.pallas_call(kernel, OUT)

    def kernel(x, o):
        def outer(sems, ready):
            def inner(buffer, own):
                pltpu.async_copy(x, buffer, own).wait()
                pltpu.async_copy(buffer, o, sems.at[index(1)]).wait()
                pl.semaphore_signal(ready)

            pl.run_scoped(inner, pltpu.VMEM((8, 128), jnp.float32), DMA)
            pl.semaphore_wait(ready)

        pl.run_scoped(outer, DMA((2,)), REGULAR)

    assert_lowers_like(ours, pl.pallas_call(kernel, OUT), X)


def test_with_scoped() -> None:
    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        @sp.with_scoped(sp.dma_semaphore(), sp.semaphore())
        def copy(src: sp.Ref, dst: sp.Ref, sem: sp.DmaSemaphore, ready: sp.Semaphore) -> None:
            sp.async_copy(src, dst, sem).wait()
            sp.signal(ready)

        copy(x, o)
        copy(x.at[pl.ds(0, 4)], o.at[pl.ds(4, 4)])

    ours = sp.pallas_call(kernel, OUT)

    def kernel(x, o):
        @pl.with_scoped(DMA, REGULAR)
        def copy(src, dst, sem, ready):
            pltpu.async_copy(src, dst, sem).wait()
            pl.semaphore_signal(ready)

        copy(x, o)
        copy(x.at[pl.ds(0, 4)], o.at[pl.ds(4, 4)])

    assert_lowers_like(ours, pl.pallas_call(kernel, OUT), X)


def test_closures_under_when_in_a_grid() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, ready: sp.Semaphore) -> None:
        copy = sp.make_async_copy(x, o, sem)

        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            copy.start()
            sp.signal(ready)

        @pl.when(pl.program_id(0) == 1)
        def _() -> None:
            copy.wait()
            sp.wait(ready)

    blocks: Any = {"grid": (2,), "in_specs": [pl.BlockSpec((8, 128), lambda i: (0, 0))]}
    scratch = (sp.dma_semaphore(), sp.semaphore())
    ours = sp.pallas_call(kernel, OUT, scratch_shapes=scratch, **blocks)

    def kernel(x, o, sem, ready):
        copy = pltpu.make_async_copy(x, o, sem)

        @pl.when(pl.program_id(0) == 0)
        def _():
            copy.start()
            pl.semaphore_signal(ready)

        @pl.when(pl.program_id(0) == 1)
        def _():
            copy.wait()
            pl.semaphore_wait(ready)

    raw = pl.pallas_call(kernel, OUT, scratch_shapes=(DMA, REGULAR), **blocks)
    assert_lowers_like(ours, raw, X)


def test_loop_with_a_traced_index(index: Index) -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]) -> None:
        sp.async_copy(x.at[index(0)], o.at[index(0)], sems.at[index(0)])

        def step(i: jax.Array, carry: None) -> None:
            sp.async_copy(x.at[i + 1], o.at[i + 1], sems.at[(i + 1) % 2])
            sp.make_async_copy(x.at[i], o.at[i], sems[jax.lax.rem(i, jnp.int32(2))]).wait()

        jax.lax.fori_loop(jnp.int32(0), jnp.int32(7), step, None)

    ours = sp.pallas_call(kernel, OUT, scratch_shapes=(sp.dma_semaphore(2),))

    def kernel(x, o, sems):
        pltpu.async_copy(x.at[index(0)], o.at[index(0)], sems.at[index(0)])

        def step(i, carry):
            pltpu.async_copy(x.at[i + 1], o.at[i + 1], sems.at[(i + 1) % 2])
            rest = sems.at[jax.lax.rem(i, jnp.int32(2))]
            pltpu.make_async_copy(x.at[i], o.at[i], rest).wait()

        jax.lax.fori_loop(jnp.int32(0), jnp.int32(7), step, None)

    assert_lowers_like(ours, pl.pallas_call(kernel, OUT, scratch_shapes=(DMA((2,)),)), X)


def test_cond_by_closure_and_as_an_operand() -> None:
    def kernel(n: sp.Ref, x: sp.Ref, o: sp.Ref, s: sp.Semaphore, t: sp.DmaSemaphore) -> None:
        jax.lax.cond(n[0] > 3, lambda: sp.signal(s, 4), lambda: sp.wait(s))
        jax.lax.cond(
            n[0] > 5,
            lambda s, t: sp.async_copy(x, o, t).wait(),
            lambda s, t: sp.signal(s, n[0]),
            s,
            t,
        )

    specs: Any = {"in_specs": [SMEM_SPEC, VMEM_SPEC]}
    ours = sp.pallas_call(kernel, OUT, scratch_shapes=(sp.semaphore(), sp.dma_semaphore()), **specs)

    def kernel(n, x, o, s, t):
        jax.lax.cond(n[0] > 3, lambda: pl.semaphore_signal(s, 4), lambda: pl.semaphore_wait(s))
        jax.lax.cond(
            n[0] > 5,
            lambda s, t: pltpu.async_copy(x, o, t).wait(),
            lambda s, t: pl.semaphore_signal(s, n[0]),
            s,
            t,
        )

    raw = pl.pallas_call(kernel, OUT, scratch_shapes=(REGULAR, DMA), **specs)
    assert_lowers_like(ours, raw, COUNT, X)


def test_partial_with_keyword_only_arguments() -> None:
    def kernel(n: int, x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, *, inc: int, on: bool) -> None:
        sp.async_copy(x, o, sem, priority=n).wait()
        o[...] += inc if on else 0

    partial: Any = functools.partial(functools.partial(kernel, 1, inc=3), on=True)
    ours = sp.pallas_call(partial, OUT, scratch_shapes=(sp.dma_semaphore(),))

    def kernel(n, x, o, sem, *, inc, on):
        pltpu.async_copy(x, o, sem, priority=n).wait()
        o[...] += inc if on else 0

    partial = functools.partial(functools.partial(kernel, 1, inc=3), on=True)
    assert_lowers_like(ours, pl.pallas_call(partial, OUT, scratch_shapes=(DMA,)), X)


def test_any_number_of_refs() -> None:
    def kernel(*refs: Any) -> None:
        *data, sem = refs
        sp.async_copy(data[0], data[2], sem).wait()
        sp.async_copy(data[1], data[3], sem).wait()

    ours = sp.pallas_call(kernel, (OUT, OUT), scratch_shapes=(sp.dma_semaphore(),))

    def kernel(*refs):
        *data, sem = refs
        pltpu.async_copy(data[0], data[2], sem).wait()
        pltpu.async_copy(data[1], data[3], sem).wait()

    assert_lowers_like(ours, pl.pallas_call(kernel, (OUT, OUT), scratch_shapes=(DMA,)), X, X)


def test_the_call_has_a_name() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
        sp.async_copy(x, o, sem).wait()

    ours = sp.pallas_call(kernel, OUT, scratch_shapes=(sp.dma_semaphore(),), name="my copy")

    def kernel(x, o, sem):
        pltpu.async_copy(x, o, sem).wait()

    assert_lowers_like(ours, pl.pallas_call(kernel, OUT, scratch_shapes=(DMA,), name="my copy"), X)
