"""Semaphores taken for data, and data taken for semaphores."""

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp


class Buffers(sp.Scratch):
    acc = sp.vmem((8, 128), jnp.float32)
    flags = sp.smem((4,), jnp.int32)
    sem = sp.dma_semaphore()
    done = sp.semaphore()
    slots = sp.semaphore(2)


def stores(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    o[...] = s.sem  # E: a semaphore is no value
    o[0] = s.slots  # E: nor is an array of them
    s.flags[0] = s.done  # E: its count is sp.read(s.done)
    o[...] = x  # E: a ref is no value: x[...]
    o[...] = "zero"  # E: nor is a string
    o[...] += s.sem  # E: nor in an augmented assignment
    s.done[...] = 0  # E: a semaphore is not stored to
    s.slots[0] = 1  # E: nor is an array
    s.slots.at[0] = s.done  # E: nor a handle into one


def loads(s: Buffers) -> None:
    s.done[...]  # E: a semaphore is not loaded
    s.done[0]  # E: and has no elements
    jnp.sum(s.done)  # E: it is no array
    jnp.exp(s.slots)  # E: nor are many of them
    jnp.where(s.done, 1, 0)  # E: nor is it a condition
    count: jax.Array = s.done  # E: its count is sp.read(s.done)
    size: int = sp.read(s.done)  # E: which is a traced array
    number: int = s.done  # E: a semaphore is no number
    del count, size, number


def operations(x: sp.Ref, s: Buffers, y: jax.Array, z: np.ndarray[tuple[int], np.dtype[np.int16]]) -> None:
    sp.signal(x)  # E: a data ref is no semaphore
    sp.signal(s.flags)  # E: nor is one in SMEM
    sp.wait(s.flags.at[0])  # E: nor a view of one
    sp.wait(y)  # E: nor an array
    sp.signal(z)  # E: nor an int16 array
    sp.read(x)  # E: a data ref is loaded: x[...]
    sp.signal(s.done.ref)  # E: the raw ref is for raw Pallas
    sp.signal(1)  # E: an int is no semaphore
    sp.signal("banana")  # E: nor is a string
    sp.wait(None)  # E: nor is None
    sp.signal(s)  # E: nor is the whole scratch
    sp.read(s.sem, s.done)  # E: one at a time


def scale(ref: sp.Ref) -> None:
    ref[...] = ref[...] * 2.0


def helpers(x: sp.Ref, s: Buffers) -> None:
    scale(s.sem)  # E: a semaphore is no data ref
    scale(s.slots)  # E: nor is an array of them
    scale(s.done.ref)  # E: nor its raw ref
    scale(x[...])  # E: nor a loaded array
    scale(x.at)  # E: nor an indexer
    scale(np.zeros((8, 128)))  # E: nor an array of NumPy
    refs: list[sp.Ref] = [x, s.acc, s.done]  # E: nor in a list
    del refs
