"""Right calls with an untyped call for an argument, as `jax.ShapeDtypeStruct` is to mypy."""

import jax
import jax.numpy as jnp

import safepallas as sp


class Buffers(sp.Scratch):
    sem = sp.dma_semaphore()


def copies(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(x, o, sem).wait()


def named(x: sp.Ref, y: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, o, s.sem).wait()


def like(dtype):  # without annotations
    return jax.ShapeDtypeStruct((8, 128), dtype)


def calls() -> None:
    sp.pallas_call(named, like(jnp.float32), scratch_shapes=Buffers)  # with a Scratch
    sp.pallas_call(copies, like(jnp.float32), scratch_shapes=(sp.dma_semaphore(),))  # with a tuple
