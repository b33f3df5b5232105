"""Handles in raw Pallas, raw refs in safepallas, and types of refs that are used as classes."""

from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp
from safepallas import raw


class Buffers(sp.Scratch):
    done = sp.dma_semaphore()
    slots = sp.dma_semaphore(2)
    grid = sp.dma_semaphore(2, 2)
    ready = sp.semaphore()


def wait_row(x: sp.Ref, done: raw.SemaphoreArrayRef[raw.DmaSemaphoreRef, tuple[int]]) -> None:
    pltpu.make_async_copy(x, x, done.at[0]).wait()


def handles(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    pl.semaphore_signal(s.ready)  # E: a handle, not its ref
    pl.semaphore_read(s.done)  # E: the same
    pltpu.async_copy(x, o, s.done)  # E: the same
    pl.semaphore_signal(s.done.ref)  # E: the ref to a DMA semaphore
    pl.semaphore_signal(s.slots.ref)  # E: the ref to two
    pltpu.async_copy(x, o, s.ready.ref)  # E: the ref to a regular semaphore
    pltpu.async_copy(x, o, sp.get_barrier_semaphore().ref)  # E: to the barrier
    wait_row(x, s.slots)  # E: a handle
    wait_row(x, s.done.ref)  # E: one semaphore
    wait_row(x, s.grid.ref)  # E: of rank 2


def refs(x: raw.Ref, o: raw.Ref, done: raw.DmaSemaphoreRef, ready: raw.SemaphoreRef) -> None:
    sp.async_copy(x, o, done)  # E: a raw ref, not adopted
    sp.signal(ready)  # E: the same
    sp.async_copy(x, done, sp.adopt(done, sp.dma_semaphore()))  # E: a semaphore is no destination
    raw.DmaSemaphoreRef()  # E: for annotations only
    raw.SemaphoreRef(ready)  # E: the same
    raw.SemaphoreArrayRef(done)  # E: the same


class Special(raw.DmaSemaphoreRef):  # E: final
    """No such thing."""
