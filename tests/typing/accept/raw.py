"""Beside raw Pallas: in and out again, and its functions on data refs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

equal = np.testing.assert_array_equal
SIMULATED = pltpu.InterpretParams()


# In from raw Pallas and out again: adopt() and .ref.
ROWS = 8


def old_wait(sem: Any, value: int) -> None:
    """A helper of the code base that nobody has moved over."""
    pl.semaphore_wait(sem, value)


def kernel(x: sp.Ref, o: sp.Ref, count: sp.Semaphore) -> None:
    def body(raw_sem: Any, raw_sems: Any, raw_buffer: Any) -> None:
        sem = sp.adopt(raw_sem, sp.dma_semaphore())
        sems = sp.adopt(raw_sems, sp.dma_semaphore(2))
        buffer = sp.adopt(raw_buffer, sp.vmem((ROWS, 128), jnp.float32))
        sp.async_copy(x, buffer, sem).wait()
        sp.async_copy(buffer, o, sems.at[1]).wait()

    pl.run_scoped(
        body,
        pltpu.SemaphoreType.DMA,
        pltpu.SemaphoreType.DMA((2,)),
        pltpu.VMEM((ROWS, 128), jnp.float32),
    )
    sp.signal(count, 3)
    old_wait(count.ref, 2)
    again = sp.adopt(count.ref, sp.semaphore())
    sp.wait(again)


def check_adopt_raw() -> None:
    x = jnp.arange(ROWS * 128, dtype=jnp.float32).reshape(ROWS, 128)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=(sp.semaphore(),),
        interpret=SIMULATED,
    )
    equal(call(x), x)


# Data refs still go to Pallas and JAX as they are: pl.ds, pl.load, jnp, core arithmetic.
class Buffers(sp.Scratch):
    part = sp.vmem((4, 128), jnp.float32)
    flags = sp.smem((2,), jnp.int32)
    sem = sp.dma_semaphore()


def column_sums(ref: sp.Ref) -> jax.Array:
    return jnp.sum(ref[...], axis=0, keepdims=True)


def raw_helpers(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    o[...] = jnp.zeros(o.shape, o.dtype)
    for i in range(2):
        s.flags[i] = i + 1
        sp.async_copy(x.at[pl.ds(i * 4, 4)], s.part, s.sem).wait()
        rows, cols = s.part.shape
        scale = s.flags[i].astype(jnp.float32) / rows
        o[pl.ds(i, 1), :cols] = column_sums(s.part) * scale
        o.at[pl.ds(i, 1)][...] += jnp.full((1, cols), 0.5, s.part.dtype)
    o[2, 0] = 7.0
    o[3, :] = jnp.ones(128)


def check_raw_helpers() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    call = sp.pallas_call(
        raw_helpers,
        jax.ShapeDtypeStruct((4, 128), x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=Buffers,
        interpret=SIMULATED,
    )
    sums = x.reshape(2, 4, 128).sum(axis=1) * jnp.array([[1.0], [2.0]]) / 4 + 0.5
    wanted = jnp.zeros((4, 128)).at[:2].set(sums).at[2, 0].set(7.0).at[3].set(1.0)
    np.testing.assert_allclose(call(x), wanted)
