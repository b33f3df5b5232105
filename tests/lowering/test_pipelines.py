"""`emit_pipeline` inside our kernels: its semaphores stay its own, and ours work in its bodies.

A kernel that differs by more than names is written twice, with the same name and parameters.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp
from safepallas.testing import assert_lowers_like

from .alike import assert_same

X = OUT = jax.ShapeDtypeStruct((32, 128), jnp.float32)
DMA = pltpu.SemaphoreType.DMA
REGULAR = pltpu.SemaphoreType.REGULAR
ANY_SPEC = pl.BlockSpec(memory_space=pl.ANY)
BLOCK = pl.BlockSpec((8, 128), lambda i: (i, 0))
PIPELINE: dict[str, Any] = {"grid": (4,), "in_specs": [BLOCK], "out_specs": [BLOCK]}

pytestmark = pytest.mark.usefixtures("tpu")


def hbm(of: Any, kernel: Any, **options: Any) -> Any:
    return of.pallas_call(kernel, OUT, in_specs=[ANY_SPEC], out_specs=ANY_SPEC, **options)


def test_a_body_around_handles() -> None:
    def build(m: Any) -> Any:
        def kernel(
            x: sp.Ref, o: sp.Ref, row: sp.Ref, sem: sp.DmaSemaphore, n: sp.Semaphore
        ) -> None:
            def body(x_block: sp.Ref, o_block: sp.Ref) -> None:
                m.async_copy(x_block, row, sem).wait()
                m.signal(n)
                o_block[...] = row[...] + 1.0

            pltpu.emit_pipeline(body, **PIPELINE)(x, o)
            m.wait(n, 4)

        specs = (m.vmem((8, 128), jnp.float32), m.dma_semaphore(), m.semaphore())
        return hbm(m, kernel, scratch_shapes=specs)

    assert_same(build, X)


def test_a_kernel_as_the_body() -> None:
    """Its scratch goes through `scratches=`, as handles."""

    class Group(sp.Scratch):
        row = sp.vmem((8, 128), jnp.float32)
        sem = sp.dma_semaphore(2)

    def body(x: sp.Ref, o: sp.Ref, row: sp.Ref, sem: sp.DmaSemaphore, same: Group) -> None:
        sp.async_copy(x, row, sem).wait()
        sp.async_copy(same.row, o, same.sem.at[0]).wait()

    def kernel(x: sp.Ref, o: sp.Ref, s: Group) -> None:
        pltpu.emit_pipeline(body, **PIPELINE)(x, o, scratches=(s.row, s.sem.at[1], s))

    ours = hbm(sp, kernel, scratch_shapes=Group)

    def kernel(x, o, row, sem):
        def body(x, o, row, one, same):
            pltpu.async_copy(x, row, one).wait()
            pltpu.async_copy(same[0], o, same[1].at[0]).wait()

        pltpu.emit_pipeline(body, **PIPELINE)(x, o, scratches=(row, sem.at[1], (row, sem)))

    requests = (pltpu.VMEM((8, 128), jnp.float32), DMA((2,)))
    assert_lowers_like(ours, hbm(pl, kernel, scratch_shapes=requests), X)


def test_allocations_of_a_pipeline() -> None:
    """Made once for several runs of the pipeline, in a scope and as scratch."""
    refs = (X, OUT)

    def parts(body: Any) -> Any:
        return pltpu.emit_pipeline_with_allocations(body, **PIPELINE)

    def copy(x: Any, o: Any) -> None:
        o[...] = x[...]

    _, allocate = parts(copy)
    typed = [jax.ShapeDtypeStruct(ref.shape, ref.dtype) for ref in refs]
    allocations = from_types(allocate, *typed)

    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, allocations: Any, sem: sp.DmaSemaphore) -> None:
            pipeline, allocate = parts(copy)
            pipeline(x, o, allocations=allocations)
            run = lambda inner: pipeline(x, o, allocations=inner)  # noqa: E731
            m.run_scoped(run, allocate(x, o))
            m.async_copy(x, o, sem).wait()

        return hbm(m, kernel, scratch_shapes=(allocations, m.dma_semaphore()))

    assert_same(build, X)


def from_types(allocate: Any, *types: Any) -> Any:
    """The allocations for refs of these types, which exist inside a kernel only."""
    found: list[Any] = []

    def kernel(x: Any, o: Any) -> None:
        found.append(allocate(x, o))

    jax.eval_shape(hbm(pl, kernel), types[0])
    return found[0]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Fetching(pltpu.BufferedRef):  # type: ignore[misc, unused-ignore]
    """A buffer that starts the copies of its inputs itself, with its own semaphores."""

    def copy_in(self, src_ref: Any, grid_indices: Any) -> None:
        slot: Any = self.current_copy_in_slot
        window: Any = self.window_ref
        arrived = sp.adopt(self.sem_recvs, sp.dma_semaphore(2))
        block = src_ref.at[self.compute_slice(grid_indices)]
        sp.async_copy(block, window.at[slot], arrived.at[slot])


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RawFetching(pltpu.BufferedRef):  # type: ignore[misc, unused-ignore]
    def copy_in(self, src_ref: Any, grid_indices: Any) -> None:
        slot: Any = self.current_copy_in_slot
        window: Any = self.window_ref
        arrived: Any = self.sem_recvs
        block = src_ref.at[self.compute_slice(grid_indices)]
        pltpu.async_copy(block, window.at[slot], arrived.at[slot])


def test_a_buffer_that_adopts_its_semaphores() -> None:
    def copy(x: Any, o: Any) -> None:
        o[...] = x[...]

    def allocations(cls: Any) -> Any:
        return (cls.input(BLOCK, jnp.float32), pltpu.BufferedRef.output(BLOCK, jnp.float32))

    def kernel(x: sp.Ref, o: sp.Ref, buffers: Any) -> None:
        pltpu.emit_pipeline(copy, **PIPELINE)(x, o, allocations=buffers)
        other = sp.adopt(buffers[1].sem_sends, sp.dma_semaphore(2))
        sp.wait_bytes(other.at[0], o)

    ours = hbm(sp, kernel, scratch_shapes=(allocations(Fetching),))

    def kernel(x, o, buffers):
        pltpu.emit_pipeline(copy, **PIPELINE)(x, o, allocations=buffers)
        pltpu.make_async_copy(o, o, buffers[1].sem_sends.at[0]).wait()

    assert_lowers_like(ours, hbm(pl, kernel, scratch_shapes=(allocations(RawFetching),)), X)


def test_a_buffer_that_adopts_them_as_something_else() -> None:
    def copy(x: Any, o: Any) -> None:
        o[...] = x[...]

    def kernel(x: sp.Ref, o: sp.Ref, buffer: Any) -> None:
        sp.adopt(buffer.sem_recvs, sp.semaphore(2))

    buffer = pltpu.BufferedRef.input(BLOCK, jnp.float32)
    with pytest.raises(sp.errors.AdoptError):
        jax.eval_shape(hbm(sp, kernel, scratch_shapes=(buffer,)), X)


def test_its_semaphores_are_counted() -> None:
    def kernel(x: Any, o: Any, buffer: Any, sems: Any) -> None: ...

    buffer = pltpu.BufferedRef.input(BLOCK, jnp.float32)
    call = hbm(sp, kernel, scratch_shapes=(buffer, sp.dma_semaphore(398)))
    with pytest.warns(sp.errors.SemaphoreLimitWarning, match="holds 400 semaphores"):
        jax.eval_shape(call, X)
