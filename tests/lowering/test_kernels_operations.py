"""Operations, copies, arrays and calls: each kernel lowers like its reference kernel.

A kernel that differs by more than names is written twice, with the same name and parameters.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp
from safepallas.testing import assert_lowers_like

from . import raw
from .alike import assert_same

X = OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)
COUNT = jax.ShapeDtypeStruct((4,), jnp.int32)
DMA = pltpu.SemaphoreType.DMA
REGULAR = pltpu.SemaphoreType.REGULAR
BARRIER = pltpu.SemaphoreType.BARRIER
SMEM_SPEC = pl.BlockSpec(memory_space=pltpu.SMEM)
VMEM_SPEC = pl.BlockSpec(memory_space=pltpu.VMEM)
SEM_SPEC = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)

Index = Callable[[int], Any]

pytestmark = pytest.mark.usefixtures("x64")
PARAMS = pltpu.CompilerParams(collective_id=7)

OverMesh = Callable[..., Any]


def test_arrays_of_ranks_two_to_four(index: Index) -> None:
    def kernel(n: sp.Ref, o: sp.Ref, two: Any, three: Any, four: Any) -> None:
        i = n[0]
        sp.signal(two[1, 2])
        sp.signal(two[-1, -3])
        sp.signal(two.at[i, 1])
        sp.signal(two.at[i].at[i])
        sp.signal(two.at[1].at[-2])
        sp.signal(three[1, i, 0])
        sp.signal(three[1][2].at[1])
        sp.signal(three[i, -1][i])
        sp.signal(four[1, 2, 1, 0])
        sp.signal(four[i, i, i, i])
        sp.signal(four[1].at[i, 0].at[-1])
        for row in two:
            for sem in row:
                sp.wait(sem)

    scratch = (sp.semaphore(2, 3), sp.semaphore(2, 3, 2), sp.semaphore(2, 3, 2, 2))
    specs: Any = {"in_specs": [SMEM_SPEC]}
    ours = sp.pallas_call(kernel, OUT, scratch_shapes=scratch, **specs)

    def kernel(n, o, two, three, four):
        i = n[0]
        pl.semaphore_signal(two.at[index(1), index(2)])
        pl.semaphore_signal(two.at[index(1), index(0)])
        pl.semaphore_signal(two.at[i, index(1)])
        pl.semaphore_signal(two.at[i].at[i])
        pl.semaphore_signal(two.at[index(1)].at[index(1)])
        pl.semaphore_signal(three.at[index(1), i, index(0)])
        pl.semaphore_signal(three.at[index(1)].at[index(2)].at[index(1)])
        pl.semaphore_signal(three.at[i, index(2)].at[i])
        pl.semaphore_signal(four.at[index(1), index(2), index(1), index(0)])
        pl.semaphore_signal(four.at[i, i, i, i])
        pl.semaphore_signal(four.at[index(1)].at[i, index(0)].at[index(1)])
        for a in range(2):
            for b in range(3):
                pl.semaphore_wait(two.at[index(a)].at[index(b)])

    raw_scratch = (REGULAR((2, 3)), REGULAR((2, 3, 2)), REGULAR((2, 3, 2, 2)))
    assert_lowers_like(
        ours, pl.pallas_call(kernel, OUT, scratch_shapes=raw_scratch, **specs), COUNT
    )


def test_amounts() -> None:
    def build(m: Any) -> Any:
        def kernel(n: sp.Ref, o: sp.Ref, a: sp.Semaphore, b: sp.BarrierSemaphore) -> None:
            m.signal(a)
            m.signal(a, 0)
            m.signal(a, 2**31 - 1)
            m.signal(b, n[0])
            m.signal(b, n[1] + 1)
            m.wait(a)
            m.wait(a, 5)
            m.wait(b, n[2])

        scratch = (m.semaphore(), m.barrier_semaphore())
        specs: Any = {"in_specs": [SMEM_SPEC]}
        return m.pallas_call(kernel, OUT, scratch_shapes=scratch, **specs)

    assert_same(build, COUNT)


def test_read(index: Index) -> None:
    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, a: sp.Semaphore, b: Any) -> None:
            m.signal(a, 3)
            o[0] = m.read(a) + m.read(b.at[index(1)])

        smem = jax.ShapeDtypeStruct((1,), jnp.int32)
        scratch = (m.semaphore(), m.dma_semaphore(2))
        return m.pallas_call(kernel, smem, scratch_shapes=scratch, out_specs=SMEM_SPEC)

    assert_same(build, X)


def test_local_copies(index: Index) -> None:
    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
            copy = m.make_async_copy(x.at[pl.ds(0, 4)], o.at[pl.ds(4, 4)], sem)
            copy.start()
            m.async_copy(x.at[index(0)], o.at[index(1)], sem, priority=1)
            copy.wait()
            m.make_async_copy(x.at[index(0)], o.at[index(1)], sem).wait()
            copy.start(1)
            m.wait_bytes(sem, o.at[pl.ds(0, 4)])
            m.sync_copy(x.at[index(2)], o.at[index(3)])

        return m.pallas_call(kernel, OUT, scratch_shapes=(m.dma_semaphore(),))

    assert_same(build, X)


def test_barrier_with_a_collective_id(over_mesh: OverMesh) -> None:
    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref) -> None:
            right = (jax.lax.axis_index("i") + 1) % 4
            barrier = m.get_barrier_semaphore()
            m.signal(barrier, device_id=right)
            m.signal(barrier, 2, device_id=(right,))
            m.signal(barrier, device_id={"i": right})
            m.wait(barrier, 4)

        return over_mesh(m.pallas_call(kernel, OUT, compiler_params=PARAMS), i=4)

    assert_same(build, X)


def test_remote_copies_on_one_axis(index: Index, over_mesh: OverMesh) -> None:
    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, send: sp.DmaSemaphore, recv: Any) -> None:
            right = (jax.lax.axis_index("i") + 1) % 4
            one = m.async_remote_copy(x, o, send, recv.at[index(0)], {"i": right})
            one.wait_send()
            one.wait_recv()
            m.async_remote_copy(x, o, send, recv.at[index(1)], (right,)).wait()
            two = m.make_async_remote_copy(
                x.at[index(0)], o.at[index(0)], send, recv.at[right], right
            )
            two.start()
            two.wait()
            m.wait_bytes(send, x)

        scratch = (m.dma_semaphore(), m.dma_semaphore(4))
        return over_mesh(m.pallas_call(kernel, OUT, scratch_shapes=scratch), i=4)

    assert_same(build, X)


def test_devices_on_two_axes(index: Index, over_mesh: OverMesh) -> None:
    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore, send: Any, recv: Any) -> None:
            i, j = jax.lax.axis_index("i"), jax.lax.axis_index("j")
            m.signal(sem, device_id={"i": 1 - i})
            m.signal(sem, device_id={"j": 1 - j, "i": i})
            m.signal(sem, device_id={("i", "j"): 2 * i + j})
            m.signal(sem, device_id=(1 - i, j))
            m.signal(sem, 2, device_id=(1 - i, j), core_index=index(0))
            m.async_remote_copy(x, o, send, recv, (i, 1 - j)).wait()
            m.async_remote_copy(x, o, send, recv, {"j": 1 - j}).wait()

        scratch = (m.semaphore(), m.dma_semaphore(), m.dma_semaphore())
        return over_mesh(m.pallas_call(kernel, OUT, scratch_shapes=scratch), i=2, j=2)

    assert_same(build, X)


def test_devices_by_plain_numbers(index: Index, over_mesh: OverMesh) -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore, send: Any, recv: Any) -> None:
        sp.signal(sem, device_id={"i": 1}, core_index=0)
        sp.signal(sem, device_id=(1, 0))
        sp.async_remote_copy(x, o, send, recv, {"j": 1, "i": 0}).wait()

    scratch = (sp.semaphore(), sp.dma_semaphore(), sp.dma_semaphore())
    ours = over_mesh(sp.pallas_call(kernel, OUT, scratch_shapes=scratch), i=2, j=2)

    def kernel(x, o, sem, send, recv):
        pl.semaphore_signal(sem, device_id={"i": index(1)}, core_index=index(0))
        pl.semaphore_signal(sem, device_id=(index(1), index(0)))
        pltpu.async_remote_copy(x, o, send, recv, {"j": index(1), "i": index(0)}).wait()

    raw = pl.pallas_call(kernel, OUT, scratch_shapes=(REGULAR, DMA, DMA))
    assert_lowers_like(ours, over_mesh(raw, i=2, j=2), X)


def test_scalar_prefetch_in_a_grid() -> None:
    def spec(scratch: Any) -> Any:
        return pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(2,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, n: (n[i], 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, n: (i, 0)),
            scratch_shapes=scratch,
        )

    class Buffers(sp.Scratch):
        sem = sp.dma_semaphore(2)
        acc = sp.vmem((8, 128), jnp.float32)

    def kernel(n: sp.Ref, x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
        sp.async_copy(x, s.acc, s.sem[n[pl.program_id(0)]]).wait()
        o[...] = s.acc[...]

    wide = jax.ShapeDtypeStruct((16, 128), jnp.float32)
    ours = sp.pallas_call(kernel, wide, grid_spec=spec(()), scratch_shapes=Buffers)

    def kernel(n, x, o, sem, acc):
        pltpu.async_copy(x, acc, sem.at[n[pl.program_id(0)]]).wait()
        o[...] = acc[...]

    raw = pl.pallas_call(
        kernel, wide, grid_spec=spec((DMA((2,)), pltpu.VMEM((8, 128), jnp.float32)))
    )
    assert_lowers_like(ours, raw, COUNT, wide)


def test_semaphores_that_go_from_kernel_to_kernel(index: Index) -> None:
    effects: Any = {"compiler_params": pltpu.CompilerParams(has_side_effects=True)}
    outs: Any = {"out_specs": [VMEM_SPEC, SEM_SPEC, SEM_SPEC], "name": "start", **effects}
    ins: Any = {"in_specs": [VMEM_SPEC, SEM_SPEC, SEM_SPEC], "input_output_aliases": {0: 0}}
    ins |= effects

    def build(m: Any) -> Any:
        def start(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, many: Any) -> None:
            m.async_copy(x, o, sem)
            m.signal(many.at[index(1)], 2)

        def done(o: sp.Ref, sem: sp.DmaSemaphore, many: Any, out: sp.Ref) -> None:
            m.wait_bytes(sem, o)
            m.wait(many.at[index(1)], 2)

        def call(x: Any) -> Any:
            leaving = [OUT, m.dma_semaphore(), m.semaphore(2)]
            return m.pallas_call(done, OUT, **ins)(*m.pallas_call(start, leaving, **outs)(x))

        return call

    assert_same(build, X)


def test_jitted_helper_called_twice() -> None:
    """JAX traces it once and calls it twice."""
    traced = []

    def build(m: Any) -> Any:
        @jax.jit
        def helper(i: jax.Array, sem: sp.Semaphore, sems: Any) -> jax.Array:
            traced.append(m)
            m.signal(sem, i)
            m.wait(sems.at[i])
            return i + 1

        def kernel(n: sp.Ref, o: sp.Ref, a: sp.Semaphore, b: sp.Semaphore, s: Any) -> None:
            helper(helper(n[0], a, s), b, s)

        scratch = (m.semaphore(), m.semaphore(), m.semaphore(2))
        return m.pallas_call(kernel, OUT, scratch_shapes=scratch, in_specs=[SMEM_SPEC])

    for m in sp, raw:
        jax.make_jaxpr(build(m))(COUNT)
    assert traced == [sp, raw]
    assert_same(build, COUNT)


def test_adopted_from_raw_pallas(index: Index) -> None:
    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        def body(raw: Any, many: Any) -> None:
            sp.async_copy(x, o, sp.adopt(raw, sp.dma_semaphore())).wait()
            pl.semaphore_signal(sp.adopt(many, sp.semaphore(2))[1].ref)

        pl.run_scoped(body, DMA, REGULAR((2,)))

    ours = sp.pallas_call(kernel, OUT)

    def kernel(x, o):
        def body(raw, many):
            pltpu.async_copy(x, o, raw).wait()
            pl.semaphore_signal(many.at[index(1)])

        pl.run_scoped(body, DMA, REGULAR((2,)))

    assert_lowers_like(ours, pl.pallas_call(kernel, OUT), X)
