"""Semaphores made out of nothing, and requests for and adoption of what cannot be had."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

# Semaphores made out of nothing, and requests for what cannot be had.
sp.Semaphore()  # E: only an allocator makes one
sp.DmaSemaphore(2)  # E: it would be sp.dma_semaphore(2)
sp.BarrierSemaphore(None)  # E: sp.get_barrier_semaphore()
sp.SemaphoreArray((2,))  # E: sp.semaphore(2)
sp.Spec()  # E: requests are made by functions
sp.LocalCopy()  # E: sp.make_async_copy
sp.RemoteCopy(1)  # E: sp.make_async_remote_copy
sp.Scratch()  # E: the allocator makes instances


class Buffers(sp.Scratch):
    sem = sp.dma_semaphore()


Buffers()  # E: the allocator makes instances
Buffers(sem=1)  # E: the allocator fills the fields


class MySemaphore(sp.Semaphore):  # E: final
    pass


class MyDma(sp.DmaSemaphore):  # E: final
    pass


class MyBarrier(sp.BarrierSemaphore):  # E: final
    pass


class MyArray(sp.SemaphoreArray[sp.Semaphore, tuple[int]]):  # E: final
    pass


class MySpec(sp.Spec[sp.Semaphore]):  # E: final
    pass


class MyCopy(sp.LocalCopy):  # E: final
    pass


sp.dma_semaphore((2,))  # E: sizes one by one
sp.dma_semaphore([2, 3])  # E: sizes one by one
sp.semaphore(2.0)  # E: a size is an int
sp.semaphore("2")  # E: a size is an int
sp.semaphore(None)  # E: no size for one semaphore
sp.dma_semaphore(1, 2, 3, 4, 5)  # E: four dimensions at most
sp.barrier_semaphore(1, 1, 1, 1, 1)  # E: four dimensions at most
sp.semaphore(shape=(2,))  # E: sizes by position
sp.dma_semaphore(dtype=jnp.float32)  # E: it has no dtype to choose
sp.vmem((8, 128))  # E: a buffer needs a dtype
sp.vmem(8, 128)  # E: a shape is a tuple
sp.vmem(jnp.float32, (8, 128))  # E: in the other order
sp.smem((4.0,), jnp.int32)  # E: a size is an int
sp.vmem((2,), sp.dma_semaphore())  # E: a request is no dtype
sp.dma_semaphore(2)(3)  # E: a request is not called
pltpu.SemaphoreType.DMA + sp.dma_semaphore()  # E: nor added


def from_raw(raw: Any, x: jax.Array) -> None:
    made: sp.Semaphore = 1  # E: an int is no semaphore
    taken: sp.DmaSemaphore = x  # E: nor is an array
    found: sp.SemaphoreArray[sp.Semaphore, tuple[int]] = [made, made]  # E: nor is a list an array
    which: sp.SemaphoreArray[int, tuple[int]] = raw  # E: arrays hold semaphores
    shaped: sp.SemaphoreArray[sp.Semaphore, int] = raw  # E: a shape is a tuple
    del taken, found, which, shaped


# Refs adopted as what nobody asked for.
def body(raw: Any, x: sp.Ref, o: sp.Ref) -> None:
    sp.adopt(raw)  # E: as what?
    sp.adopt(raw, sp.DmaSemaphore)  # E: a type is no request
    sp.adopt(raw, sp.dma_semaphore)  # E: the request is not called
    sp.adopt(raw, "dma")  # E: a name is no request
    sp.adopt(raw, None)  # E: nor is None
    sp.adopt(raw, pltpu.SemaphoreType.DMA)  # E: nor is one of raw Pallas
    sp.adopt(raw, (2,))  # E: nor is a shape
    count: sp.Semaphore = sp.adopt(raw, sp.dma_semaphore())  # E: it yields a DMA semaphore
    sp.signal(sp.adopt(raw, sp.dma_semaphore()))  # E: the same, at once
    sp.async_copy(x, o, sp.adopt(raw, sp.semaphore())).wait()  # E: a regular semaphore
    sp.async_copy(x, o, sp.adopt(raw, sp.dma_semaphore(2))).wait()  # E: an array
    sp.async_copy(x, o, sp.adopt(raw, sp.vmem((8, 128), jnp.float32))).wait()  # E: a buffer
    sp.adopt(raw, sp.dma_semaphore(2)).at[0, 1]  # E: of rank 1
    sp.signal(count)


def spec_for_handle(x: sp.Ref, o: sp.Ref, done: sp.Semaphore) -> None:
    sem = sp.dma_semaphore()
    sp.async_copy(x, o, sem).wait()  # E: a request is no semaphore before it is allocated
    sp.signal(sp.semaphore())  # E: the same
    sp.wait(sp.barrier_semaphore())  # E: the same
    sp.dma_semaphore(2).at[0]  # E: the same for an array
    sp.sync_copy(sp.vmem((8, 128), jnp.float32), o)  # E: the same for a buffer
    sp.vmem((8, 128), jnp.float32)[...]  # E: the same for a buffer
    sem.ref  # E: nothing is allocated yet
    sp.adopt(done, done)  # E: a handle is no request


numbers: sp.Spec[sp.Semaphore] = sp.dma_semaphore()  # E: a request for another kind
arrays: sp.Spec[sp.SemaphoreArray[sp.DmaSemaphore, tuple[int, int]]] = sp.dma_semaphore(2)  # E: another rank
