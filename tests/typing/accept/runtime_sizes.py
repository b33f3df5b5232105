"""A Scratch defined where the sizes are known: inside the function that builds the call."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp


def reverse_chunks(x: jax.Array, *, slots: int) -> jax.Array:
    chunks, *block = x.shape

    class Buffers(sp.Scratch):
        window = sp.vmem((slots, *block), x.dtype)
        arrived = sp.dma_semaphore(slots)
        stored = sp.dma_semaphore(slots)

    def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
        def step(i: jax.Array, carry: None) -> None:
            slot = jax.lax.rem(i, slots)
            sp.async_copy(x.at[i], s.window.at[slot], s.arrived.at[slot]).wait()
            sp.async_copy(s.window.at[slot], o.at[chunks - 1 - i], s.stored.at[slot]).wait()
            return carry

        jax.lax.fori_loop(0, chunks, step, None)

    hbm = pl.BlockSpec(memory_space=pl.ANY)
    result: jax.Array = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[hbm],
        out_specs=hbm,
        scratch_shapes=Buffers,
        interpret=pltpu.InterpretParams(),
    )(x)
    return result


def main() -> None:
    for chunks, slots in ((3, 2), (4, 3)):
        x = jnp.arange(chunks * 1024, dtype=jnp.float32).reshape(chunks, 8, 128)
        np.testing.assert_array_equal(reverse_chunks(x, slots=slots), x[::-1])
