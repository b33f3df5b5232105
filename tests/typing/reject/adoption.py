"""Refs adopted as what nobody asked for."""

from typing import Any

import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp


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
