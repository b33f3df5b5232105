"""Raw Pallas and safepallas in one code base: the refs go both ways. The tests run all of it."""

import typing

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp
from safepallas import raw

SHAPE = (2, 8, 128)
OUT = jax.ShapeDtypeStruct(SHAPE, jnp.float32)
Slots: typing.TypeAlias = raw.SemaphoreArrayRef[raw.DmaSemaphoreRef, tuple[int]]


def raw_kernel(x: raw.Ref, o: raw.Ref, done: Slots, ready: raw.SemaphoreRef) -> None:
    for slot in range(2):
        pltpu.async_copy(x.at[slot], o.at[slot], done.at[slot]).wait()
    pl.semaphore_signal(ready, 3)
    o[...] = o[...] + pl.semaphore_read(ready).astype(jnp.float32)
    pl.semaphore_wait(ready, 3)


def old_copy(x: sp.Ref, o: sp.Ref, done: raw.DmaSemaphoreRef) -> None:  # for both kinds of kernel
    pltpu.async_copy(x, o, done).wait()


def old_copies(x: sp.Ref, o: sp.Ref, done: Slots) -> None:
    for slot in range(2):
        old_copy(x.at[slot], o.at[slot], done.at[slot])


def old_count(ready: raw.SemaphoreRef) -> jax.Array:
    pl.semaphore_signal(ready, 3)
    pl.semaphore_wait(ready)
    left: jax.Array = pl.semaphore_read(ready)
    pl.semaphore_wait(ready, 2)
    return left


class Buffers(sp.Scratch):
    copied = sp.dma_semaphore()
    slots = sp.dma_semaphore(2)
    ready = sp.semaphore()


def new_kernel_that_calls_old_code(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    old_copy(x, o, s.copied.ref)
    old_copies(x, o, s.slots.ref)
    pltpu.async_copy(x.at[0], o.at[0], s.slots[0].ref).wait()
    pltpu.async_copy(x.at[1], o.at[1], s.slots.ref.at[1]).wait()
    pl.semaphore_signal(s.ready.ref)
    pl.semaphore_wait(s.ready.ref)
    o[...] = x[...] + old_count(s.ready.ref)


def old_kernel_that_calls_new_code(x: raw.Ref, o: raw.Ref, done: Slots) -> None:
    first = sp.adopt(done.at[0], sp.dma_semaphore())
    both = sp.adopt(done, sp.dma_semaphore(2))
    sp.async_copy(x.at[0], o.at[0], first).wait()
    sp.async_copy(x.at[1], o.at[1], both[1]).wait()
    old_copies(x, o, both.ref)
    old_copy(x.at[0], o.at[0], first.ref)


def run() -> None:
    x = jnp.arange(2 * 8 * 128, dtype=jnp.float32).reshape(SHAPE)
    dma, regular = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
    scratch = [dma((2,)), regular]
    moved = pl.pallas_call(raw_kernel, OUT, scratch_shapes=scratch, interpret=True)(x)
    assert (moved == x + 3).all()
    moved = sp.pallas_call(
        new_kernel_that_calls_old_code, OUT, scratch_shapes=Buffers, interpret=True
    )(x)
    assert (moved == x + 2).all()
    moved = pl.pallas_call(
        old_kernel_that_calls_new_code, OUT, scratch_shapes=[dma((2,))], interpret=True
    )(x)
    assert (moved == x).all()
