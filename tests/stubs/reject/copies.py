"""Copies that signal what is no DMA semaphore, or copy what is no ref."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

from safepallas.raw import DmaSemaphoreRef, Ref, SemaphoreArrayRef, SemaphoreRef


def local(
    x: Ref,
    o: Ref,
    done: DmaSemaphoreRef,
    slots: SemaphoreArrayRef[DmaSemaphoreRef, tuple[int]],
    ready: SemaphoreRef,
    value: jax.Array,
) -> None:
    pltpu.make_async_copy(x, o)  # E: no semaphore
    pltpu.make_async_copy(x, o, ready)  # E: a regular semaphore
    pltpu.make_async_copy(x, o, slots)  # E: not indexed
    pltpu.make_async_copy(x, done, o)  # E: the arguments in another order
    pltpu.make_async_copy(x, o, pltpu.SemaphoreType.DMA)  # E: a request
    pltpu.make_async_copy(value, o, done)  # E: an array is no ref
    pltpu.make_async_copy(x.transpose(1, 0), o, done)  # E: Pallas takes a tuple: (1, 0)
    pltpu.make_async_copy(x, value, done)  # E: nor here
    pltpu.async_copy(x, o, ready)  # E: a regular semaphore
    pltpu.async_copy(x, o, slots)  # E: not indexed
    pltpu.async_copy(x, o, "banana")  # E: a string
    pltpu.async_copy(x, done, done)  # E: a semaphore is no destination
    pltpu.sync_copy(done, o)  # E: nor a source
    pltpu.sync_copy(x, "banana")  # E: a string
    pltpu.make_async_copy(x, o, slots.at["a"])  # E: an index
    pltpu.make_async_copy(x, o, slots.at[0, 0])  # E: too many indices
    pltpu.make_async_copy(x, o, slots[0])  # E: a ref is indexed with .at


def remote(
    x: Ref,
    o: Ref,
    done: DmaSemaphoreRef,
    grid: SemaphoreArrayRef[DmaSemaphoreRef, tuple[int, int]],
    ready: SemaphoreRef,
) -> None:
    pltpu.make_async_remote_copy(x, o, ready, done, 0)  # E: sends with a regular semaphore
    pltpu.make_async_remote_copy(x, o, done, ready, 0)  # E: receives with one
    pltpu.make_async_remote_copy(x, o, done, done, "x")  # E: an axis is no device
    pltpu.make_async_remote_copy(x, o, done, done)  # E: to which device?
    pltpu.make_async_remote_copy(x, o, grid.at[0], done, 0)  # E: a row of semaphores
    pltpu.async_remote_copy(x, o, done, ready, {"x": 0})  # E: a regular semaphore
    pltpu.async_remote_copy(x, done, done, done, {"x": 0})  # E: no destination
    pltpu.async_remote_copy(x, o, done, grid, {"x": 0})  # E: not indexed
    pltpu.async_remote_copy(jnp.zeros(8), o, done, done, {"x": 0})  # E: an array is no ref
