"""Ten misuses whose messages docs/type-checkers.md shows, each marked with its heading there."""

import jax
import jax.numpy as jnp

import safepallas as sp

LIKE = jax.ShapeDtypeStruct((8, 128), jnp.float32)


class Buffers(sp.Scratch):
    sem = sp.dma_semaphore()
    done = sp.semaphore()
    slots = sp.dma_semaphore(2)


class Others(sp.Scratch):
    sem = sp.dma_semaphore()


def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, o, s.done)  # E: a copy with a regular semaphore
    sp.signal(s.sem)  # E: a signal to a DMA semaphore
    sp.wait_bytes(s.slots, o)  # E: an array that is not indexed
    sp.wait_bytes(s.slots[0, 1], o)  # E: too many indices
    sp.wait(x)  # E: a data ref for a semaphore
    sp.sync_copy(x[...], o)  # E: an array for a ref
    sp.async_copy(x, o, s.sem).wait_send()  # E: a remote copy's wait for a local one
    sp.signal(sp.Semaphore())  # E: a semaphore that nobody allocated


def positional(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, done: sp.Semaphore) -> None:
    sp.async_copy(x, o, sem).wait()
    sp.signal(done)


sp.pallas_call(positional, LIKE, scratch_shapes=(sp.semaphore(), sp.dma_semaphore()))  # E: scratch in another order
sp.pallas_call(kernel, LIKE, scratch_shapes=Others)  # E: another Scratch class
