"""Refs of the wrong kind, and what is no semaphore at all."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas.raw import (
    BarrierSemaphoreRef,
    DmaSemaphoreRef,
    Ref,
    SemaphoreArrayRef,
    SemaphoreRef,
)


def signals(
    x: Ref,
    dma: DmaSemaphoreRef,
    slots: SemaphoreArrayRef[SemaphoreRef, tuple[int]],
    ready: SemaphoreRef,
    value: jax.Array,
) -> None:
    pl.semaphore_signal("banana")  # E: a string
    pl.semaphore_signal(None)  # E: nothing
    pl.semaphore_signal(0)  # E: a number
    pl.semaphore_signal(value)  # E: an array
    pl.semaphore_signal(x)  # E: a buffer
    pl.semaphore_signal(dma)  # E: a DMA semaphore
    pl.semaphore_signal(slots)  # E: not indexed
    pl.semaphore_signal(pltpu.SemaphoreType.REGULAR)  # E: a request
    pl.semaphore_signal(ready, 1.5)  # E: a fraction
    pl.semaphore_signal(ready, device_id="x")  # E: an axis is no device
    pl.semaphore_signal(ready, core_index="x")  # E: nor a core
    pltpu.semaphore_signal(dma)  # E: under its older name too


def waits(
    x: Ref,
    dma: DmaSemaphoreRef,
    slots: SemaphoreArrayRef[SemaphoreRef, tuple[int]],
    ready: SemaphoreRef,
) -> None:
    pl.semaphore_wait(x)  # E: a buffer
    pl.semaphore_wait(dma)  # E: a DMA semaphore
    pl.semaphore_wait(slots)  # E: not indexed
    pl.semaphore_wait(pl.semaphore_read(ready))  # E: what was read is a number
    pl.semaphore_wait(ready, "1")  # E: a string
    pl.semaphore_wait()  # E: for what?


def reads(x: Ref, slots: SemaphoreArrayRef[SemaphoreRef, tuple[int]]) -> None:
    pl.semaphore_read(x)  # E: a buffer
    pl.semaphore_read(slots)  # E: not indexed
    pl.semaphore_read("banana")  # E: a string


def barriers(
    x: Ref, o: Ref, ready: SemaphoreRef, dma: DmaSemaphoreRef, entry: BarrierSemaphoreRef
) -> None:
    pltpu.make_async_copy(x, o, pltpu.get_barrier_semaphore())  # E: the barrier
    pltpu.core_barrier(dma, core_axis_name="core")  # E: a DMA semaphore
    pltpu.core_barrier(pltpu.get_barrier_semaphore(), core_axis_name="core")  # E: the barrier
    regular: SemaphoreRef = pltpu.get_barrier_semaphore()  # E: another kind
    pltpu.sync_copy(x, entry)  # E: no destination
    pl.semaphore_signal(regular)


def data(x: Ref, ready: SemaphoreRef, dma: DmaSemaphoreRef) -> None:
    x[...] = ready  # E: a semaphore has no value to store
    x[0] = dma  # E: the same
    jnp.add(ready, 1)  # E: nor one to add
    ready[...]  # E: nor one to load
    ready.at[0]  # E: one semaphore has no parts
