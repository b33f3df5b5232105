"""Data refs still go to Pallas and JAX as they are: pl.ds, pl.load, jnp, core arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp


class Buffers(sp.Scratch):
    part = sp.vmem((4, 128), jnp.float32)
    flags = sp.smem((2,), jnp.int32)
    sem = sp.dma_semaphore()


def column_sums(ref: sp.Ref) -> jax.Array:
    return jnp.sum(ref[...], axis=0, keepdims=True)


def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
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


def main() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((4, 128), x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=Buffers,
        interpret=pltpu.InterpretParams(),
    )
    sums = x.reshape(2, 4, 128).sum(axis=1) * jnp.array([[1.0], [2.0]]) / 4 + 0.5
    wanted = jnp.zeros((4, 128)).at[:2].set(sums).at[2, 0].set(7.0).at[3].set(1.0)
    np.testing.assert_allclose(call(x), wanted)
