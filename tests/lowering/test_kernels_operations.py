"""Operations, copies, arrays and calls: each kernel lowers like its reference kernel.

Every kernel is written twice, under the same name and with the same parameters.
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
    def kernel(n: sp.Ref, o: sp.Ref, a: sp.Semaphore, b: sp.BarrierSemaphore) -> None:
        sp.signal(a)
        sp.signal(a, 0)
        sp.signal(a, 2**31 - 1)
        sp.signal(b, n[0])
        sp.signal(b, n[1] + 1)
        sp.wait(a)
        sp.wait(a, 5)
        sp.wait(b, n[2])

    scratch = (sp.semaphore(), sp.barrier_semaphore())
    specs: Any = {"in_specs": [SMEM_SPEC]}
    ours = sp.pallas_call(kernel, OUT, scratch_shapes=scratch, **specs)

    def kernel(n, o, a, b):
        pl.semaphore_signal(a)
        pl.semaphore_signal(a, 0)
        pl.semaphore_signal(a, 2**31 - 1)
        pl.semaphore_signal(b, n[0])
        pl.semaphore_signal(b, n[1] + 1)
        pl.semaphore_wait(a)
        pl.semaphore_wait(a, 5)
        pl.semaphore_wait(b, n[2])

    raw = pl.pallas_call(kernel, OUT, scratch_shapes=(REGULAR, BARRIER), **specs)
    assert_lowers_like(ours, raw, COUNT)


def test_read(index: Index) -> None:
    def kernel(x: sp.Ref, o: sp.Ref, a: sp.Semaphore, b: Any) -> None:
        sp.signal(a, 3)
        o[0] = sp.read(a) + sp.read(b[1])

    smem = jax.ShapeDtypeStruct((1,), jnp.int32)
    specs: Any = {"out_specs": SMEM_SPEC}
    scratch = (sp.semaphore(), sp.dma_semaphore(2))
    ours = sp.pallas_call(kernel, smem, scratch_shapes=scratch, **specs)

    def kernel(x, o, a, b):
        pl.semaphore_signal(a, 3)
        o[0] = pl.semaphore_read(a) + pl.semaphore_read(b.at[index(1)])

    assert_lowers_like(
        ours, pl.pallas_call(kernel, smem, scratch_shapes=(REGULAR, DMA((2,))), **specs), X
    )


def test_local_copies(index: Index) -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
        copy = sp.make_async_copy(x.at[pl.ds(0, 4)], o.at[pl.ds(4, 4)], sem)
        copy.start()
        sp.async_copy(x.at[index(0)], o.at[index(1)], sem, priority=1)
        copy.wait()
        sp.make_async_copy(x.at[index(0)], o.at[index(1)], sem).wait()
        copy.start(1)
        sp.wait_bytes(sem, o.at[pl.ds(0, 4)])
        sp.sync_copy(x.at[index(2)], o.at[index(3)])

    ours = sp.pallas_call(kernel, OUT, scratch_shapes=(sp.dma_semaphore(),))

    def kernel(x, o, sem):
        copy = pltpu.make_async_copy(x.at[pl.ds(0, 4)], o.at[pl.ds(4, 4)], sem)
        copy.start()
        pltpu.async_copy(x.at[index(0)], o.at[index(1)], sem, priority=1)
        copy.wait()
        pltpu.make_async_copy(x.at[index(0)], o.at[index(1)], sem).wait()
        copy.start(1)
        like = o.at[pl.ds(0, 4)]
        pltpu.make_async_copy(like, like, sem).wait()
        pltpu.sync_copy(x.at[index(2)], o.at[index(3)])

    assert_lowers_like(ours, pl.pallas_call(kernel, OUT, scratch_shapes=(DMA,)), X)


def test_barrier_with_a_collective_id(over_mesh: OverMesh) -> None:
    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        right = (jax.lax.axis_index("i") + 1) % 4
        barrier = sp.get_barrier_semaphore()
        sp.signal(barrier, device_id=right)
        sp.signal(barrier, 2, device_id=(right,))
        sp.signal(barrier, device_id={"i": right})
        sp.wait(barrier, 4)

    ours = over_mesh(sp.pallas_call(kernel, OUT, compiler_params=PARAMS), i=4)

    def kernel(x, o):
        right = (jax.lax.axis_index("i") + 1) % 4
        barrier = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier, device_id=right)
        pl.semaphore_signal(barrier, 2, device_id=(right,))
        pl.semaphore_signal(barrier, device_id={"i": right})
        pl.semaphore_wait(barrier, 4)

    assert_lowers_like(ours, over_mesh(pl.pallas_call(kernel, OUT, compiler_params=PARAMS), i=4), X)


def test_remote_copies_on_one_axis(index: Index, over_mesh: OverMesh) -> None:
    def kernel(x: sp.Ref, o: sp.Ref, send: sp.DmaSemaphore, recv: Any) -> None:
        right = (jax.lax.axis_index("i") + 1) % 4
        one = sp.async_remote_copy(x, o, send, recv[0], {"i": right})
        one.wait_send()
        one.wait_recv()
        sp.async_remote_copy(x, o, send, recv[1], (right,)).wait()
        two = sp.make_async_remote_copy(x.at[index(0)], o.at[index(0)], send, recv.at[right], right)
        two.start()
        two.wait()
        sp.wait_bytes(send, x)

    scratch = (sp.dma_semaphore(), sp.dma_semaphore(4))
    ours = over_mesh(sp.pallas_call(kernel, OUT, scratch_shapes=scratch), i=4)

    def kernel(x, o, send, recv):
        right = (jax.lax.axis_index("i") + 1) % 4
        one = pltpu.async_remote_copy(x, o, send, recv.at[index(0)], {"i": right})
        one.wait_send()
        one.wait_recv()
        pltpu.async_remote_copy(x, o, send, recv.at[index(1)], (right,)).wait()
        two = pltpu.make_async_remote_copy(
            x.at[index(0)], o.at[index(0)], send, recv.at[right], right
        )
        two.start()
        two.wait()
        pltpu.make_async_copy(x, x, send).wait()

    raw = pl.pallas_call(kernel, OUT, scratch_shapes=(DMA, DMA((4,))))
    assert_lowers_like(ours, over_mesh(raw, i=4), X)


def test_devices_on_two_axes(index: Index, over_mesh: OverMesh) -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore, send: Any, recv: Any) -> None:
        i, j = jax.lax.axis_index("i"), jax.lax.axis_index("j")
        sp.signal(sem, device_id={"i": 1 - i})
        sp.signal(sem, device_id={"j": 1 - j, "i": i})
        sp.signal(sem, device_id={("i", "j"): 2 * i + j})
        sp.signal(sem, device_id=(1 - i, j))
        sp.signal(sem, 2, device_id=(1 - i, j), core_index=0)
        sp.async_remote_copy(x, o, send, recv, (i, 1 - j)).wait()
        sp.async_remote_copy(x, o, send, recv, {"j": 1 - j}).wait()

    scratch = (sp.semaphore(), sp.dma_semaphore(), sp.dma_semaphore())
    ours = over_mesh(sp.pallas_call(kernel, OUT, scratch_shapes=scratch), i=2, j=2)

    def kernel(x, o, sem, send, recv):
        i, j = jax.lax.axis_index("i"), jax.lax.axis_index("j")
        pl.semaphore_signal(sem, device_id={"i": 1 - i})
        pl.semaphore_signal(sem, device_id={"j": 1 - j, "i": i})
        pl.semaphore_signal(sem, device_id={("i", "j"): 2 * i + j})
        pl.semaphore_signal(sem, device_id=(1 - i, j))
        pl.semaphore_signal(sem, 2, device_id=(1 - i, j), core_index=index(0))
        pltpu.async_remote_copy(x, o, send, recv, (i, 1 - j)).wait()
        pltpu.async_remote_copy(x, o, send, recv, {"j": 1 - j}).wait()

    raw = pl.pallas_call(kernel, OUT, scratch_shapes=(REGULAR, DMA, DMA))
    assert_lowers_like(ours, over_mesh(raw, i=2, j=2), X)


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

    def ours(x: Any) -> Any:
        def start(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, many: Any) -> None:
            sp.async_copy(x, o, sem)
            sp.signal(many[1], 2)

        def done(o: sp.Ref, sem: sp.DmaSemaphore, many: Any, out: sp.Ref) -> None:
            sp.wait_bytes(sem, o)
            sp.wait(many[1], 2)

        leaving = [OUT, sp.dma_semaphore(), sp.semaphore(2)]
        return sp.pallas_call(done, OUT, **ins)(*sp.pallas_call(start, leaving, **outs)(x))

    def raw(x: Any) -> Any:
        def start(x, o, sem, many):
            pltpu.async_copy(x, o, sem)
            pl.semaphore_signal(many.at[index(1)], 2)

        def done(o, sem, many, out):
            pltpu.make_async_copy(o, o, sem).wait()
            pl.semaphore_wait(many.at[index(1)], 2)

        leaving = [OUT, DMA(()), REGULAR((2,))]
        return pl.pallas_call(done, OUT, **ins)(*pl.pallas_call(start, leaving, **outs)(x))

    assert_lowers_like(ours, raw, X)


def test_jitted_helper_called_twice() -> None:
    """JAX traces it once and calls it twice."""
    traced = {"ours": 0, "raw": 0}
    specs: Any = {"in_specs": [SMEM_SPEC]}

    def build_ours() -> Any:
        @jax.jit
        def helper(i: jax.Array, sem: sp.Semaphore, sems: Any) -> jax.Array:
            traced["ours"] += 1
            sp.signal(sem, i)
            sp.wait(sems[i])
            return i + 1

        def kernel(n: sp.Ref, o: sp.Ref, a: sp.Semaphore, b: sp.Semaphore, s: Any) -> None:
            helper(helper(n[0], a, s), b, s)

        scratch = (sp.semaphore(), sp.semaphore(), sp.semaphore(2))
        return sp.pallas_call(kernel, OUT, scratch_shapes=scratch, **specs)

    def build_raw() -> Any:
        @jax.jit
        def helper(i, sem, sems):
            traced["raw"] += 1
            pl.semaphore_signal(sem, i)
            pl.semaphore_wait(sems.at[i])
            return i + 1

        def kernel(n, o, a, b, s):
            helper(helper(n[0], a, s), b, s)

        scratch = (REGULAR, REGULAR, REGULAR((2,)))
        return pl.pallas_call(kernel, OUT, scratch_shapes=scratch, **specs)

    for build in build_ours, build_raw:
        jax.make_jaxpr(build())(COUNT)
    assert traced == {"ours": 1, "raw": 1}
    assert_lowers_like(build_ours(), build_raw(), COUNT)


def test_pipeline_in_a_kernel() -> None:
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))

    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        def body(x: sp.Ref, o: sp.Ref) -> None:
            o[...] = x[...] + 1
            sp.signal(sem)

        pltpu.emit_pipeline(body, grid=(4,), in_specs=[block], out_specs=[block])(x, o)
        sp.wait(sem, 4)

    wide = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    anywhere: Any = {"in_specs": [pl.BlockSpec(memory_space=pl.ANY)]}
    anywhere["out_specs"] = pl.BlockSpec(memory_space=pl.ANY)
    ours = sp.pallas_call(kernel, wide, scratch_shapes=(sp.semaphore(),), **anywhere)

    def kernel(x, o, sem):
        def body(x, o):
            o[...] = x[...] + 1
            pl.semaphore_signal(sem)

        pltpu.emit_pipeline(body, grid=(4,), in_specs=[block], out_specs=[block])(x, o)
        pl.semaphore_wait(sem, 4)

    raw = pl.pallas_call(kernel, wide, scratch_shapes=(REGULAR,), **anywhere)
    with jax.enable_x64(False):  # the pipeline of JAX 0.10 cannot with 64 bit types
        assert_lowers_like(ours, raw, wide)


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
