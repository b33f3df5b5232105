"""Annotations kept as text: the boundary reads them all the same, also of local classes."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp

Sems = sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]


class Buffers(sp.Scratch):
    sems = sp.dma_semaphore(2)


def with_class(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, o, s.sems.at[1]).wait()


def with_tuple(x: sp.Ref, o: sp.Ref, sems: Sems, done: sp.Semaphore | None, *, slot: int) -> None:
    sp.async_copy(x, o, sems.at[slot]).wait()
    if done is not None:
        sp.signal(done)
        sp.wait(done)


def check_future_annotations() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)

    class Local(sp.Scratch):
        sem = sp.dma_semaphore()

    def local(x: sp.Ref, o: sp.Ref, s: Local) -> None:
        sp.async_copy(x, o, s.sem).wait()

    by_class = sp.pallas_call(with_class, like, scratch_shapes=Buffers, interpret=True)
    by_local = sp.pallas_call(local, like, scratch_shapes=Local, interpret=True)
    by_tuple = sp.pallas_call(
        functools.partial(with_tuple, slot=0),
        like,
        scratch_shapes=(sp.dma_semaphore(2), sp.semaphore()),
        interpret=True,
    )
    for call in (by_class, by_local, by_tuple):
        np.testing.assert_array_equal(call(x), x)
