"""Allocations, scopes and control flow: each kernel lowers like its reference kernel.

A kernel that differs by more than names is written twice, with the same name and parameters.
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

from .alike import assert_same

X = OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)
COUNT = jax.ShapeDtypeStruct((1,), jnp.int32)
DMA = pltpu.SemaphoreType.DMA
REGULAR = pltpu.SemaphoreType.REGULAR
SMEM_SPEC = pl.BlockSpec(memory_space=pltpu.SMEM)
VMEM_SPEC = pl.BlockSpec(memory_space=pltpu.VMEM)

Index = Callable[[int], Any]

pytestmark = pytest.mark.usefixtures("x64")


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
    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, *, sem: sp.DmaSemaphore, acc: sp.Ref, more: Any) -> None:
            m.async_copy(x, acc, sem).wait()
            m.signal(more["a"][0])
            o[...] = acc[...]

        scratch: Any = {
            "sem": m.dma_semaphore(),
            "acc": m.vmem((8, 128), jnp.float32),
            "more": {"b": m.dma_semaphore(2), "a": (m.semaphore(),)},
        }
        return m.pallas_call(kernel, OUT, scratch_shapes=scratch)

    assert_same(build, X)


def test_nested_tuples_in_scratch(index: Index) -> None:
    def build(m: Any) -> Any:
        class Pair(NamedTuple):
            send: Any
            recv: Any

        def kernel(x: sp.Ref, o: sp.Ref, pair: Pair, deep: Any) -> None:
            m.async_copy(x, o, pair.send).wait()
            (_, [sems, _]) = deep
            m.wait_bytes(sems.at[index(1)], o)
            m.wait_bytes(pair.recv, o)

        deep: Any = (m.semaphore(), [m.dma_semaphore(2), m.smem((1,), jnp.int32)])
        pair = Pair(m.dma_semaphore(), m.dma_semaphore())
        return m.pallas_call(kernel, OUT, scratch_shapes=(pair, deep))

    assert_same(build, X)


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
    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref) -> None:
            def body(buffer: sp.Ref, sem: sp.DmaSemaphore) -> jax.Array:
                m.async_copy(x, buffer, sem).wait()
                return buffer[...] + 1

            o[...] = m.run_scoped(body, m.vmem((8, 128), jnp.float32), m.dma_semaphore())

        return m.pallas_call(kernel, OUT)

    assert_same(build, X)


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
    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref) -> None:
            @m.with_scoped(m.dma_semaphore(), m.semaphore())
            def copy(src: sp.Ref, dst: sp.Ref, sem: sp.DmaSemaphore, ready: sp.Semaphore) -> None:
                m.async_copy(src, dst, sem).wait()
                m.signal(ready)

            copy(x, o)
            copy(x.at[pl.ds(0, 4)], o.at[pl.ds(4, 4)])

        return m.pallas_call(kernel, OUT)

    assert_same(build, X)


def test_closures_under_when_in_a_grid() -> None:
    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, ready: sp.Semaphore) -> None:
            copy = m.make_async_copy(x, o, sem)

            @pl.when(pl.program_id(0) == 0)
            def _() -> None:
                copy.start()
                m.signal(ready)

            @pl.when(pl.program_id(0) == 1)
            def _() -> None:
                copy.wait()
                m.wait(ready)

        blocks: Any = {"grid": (2,), "in_specs": [pl.BlockSpec((8, 128), lambda i: (0, 0))]}
        scratch = (m.dma_semaphore(), m.semaphore())
        return m.pallas_call(kernel, OUT, scratch_shapes=scratch, **blocks)

    assert_same(build, X)


def test_loop_with_a_traced_index(index: Index) -> None:
    def build(m: Any) -> Any:
        def kernel(
            x: sp.Ref, o: sp.Ref, sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]
        ) -> None:
            m.async_copy(x.at[index(0)], o.at[index(0)], sems.at[index(0)])

            def step(i: jax.Array, carry: None) -> None:
                m.async_copy(x.at[i + 1], o.at[i + 1], sems.at[(i + 1) % 2])
                m.make_async_copy(x.at[i], o.at[i], sems.at[jax.lax.rem(i, jnp.int32(2))]).wait()

            jax.lax.fori_loop(jnp.int32(0), jnp.int32(7), step, None)

        return m.pallas_call(kernel, OUT, scratch_shapes=(m.dma_semaphore(2),))

    assert_same(build, X)


def test_cond_by_closure_and_as_an_operand() -> None:
    def build(m: Any) -> Any:
        def kernel(n: sp.Ref, x: sp.Ref, o: sp.Ref, s: sp.Semaphore, t: sp.DmaSemaphore) -> None:
            jax.lax.cond(n[0] > 3, lambda: m.signal(s, 4), lambda: m.wait(s))
            jax.lax.cond(
                n[0] > 5,
                lambda s, t: m.async_copy(x, o, t).wait(),
                lambda s, t: m.signal(s, n[0]),
                s,
                t,
            )

        specs: Any = {"in_specs": [SMEM_SPEC, VMEM_SPEC]}
        return m.pallas_call(
            kernel, OUT, scratch_shapes=(m.semaphore(), m.dma_semaphore()), **specs
        )

    assert_same(build, COUNT, X)


def test_partial_with_keyword_only_arguments() -> None:
    def build(m: Any) -> Any:
        def kernel(
            n: int, x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, *, inc: int, on: bool
        ) -> None:
            m.async_copy(x, o, sem, priority=n).wait()
            o[...] += inc if on else 0

        partial: Any = functools.partial(functools.partial(kernel, 1, inc=3), on=True)
        return m.pallas_call(partial, OUT, scratch_shapes=(m.dma_semaphore(),))

    assert_same(build, X)


def test_any_number_of_refs() -> None:
    def build(m: Any) -> Any:
        def kernel(*refs: Any) -> None:
            *data, sem = refs
            m.async_copy(data[0], data[2], sem).wait()
            m.async_copy(data[1], data[3], sem).wait()

        return m.pallas_call(kernel, (OUT, OUT), scratch_shapes=(m.dma_semaphore(),))

    assert_same(build, X, X)


def test_the_call_has_a_name() -> None:
    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
            m.async_copy(x, o, sem).wait()

        return m.pallas_call(kernel, OUT, scratch_shapes=(m.dma_semaphore(),), name="my copy")

    assert_same(build, X)
