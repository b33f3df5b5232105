"""Semaphores made out of nothing, and requests for what cannot be had."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

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
