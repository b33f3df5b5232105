"""Copies that are waited for without the object that started them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

STEPS, ROWS, COLS = 3, 8, 128


class Buffers(sp.Scratch):
    window = sp.vmem((2, ROWS, COLS), jnp.float32)
    arrived = sp.dma_semaphore(2)
    bulk = sp.dma_semaphore()
    all_of_it = sp.vmem((STEPS, ROWS, COLS), jnp.float32)


def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    """Starts in one grid step what the next waits for."""
    step = pl.program_id(0)
    slot = jax.lax.rem(step, 2)

    @pl.when(step == 0)
    def _first() -> None:
        sp.make_async_copy(x.at[0], s.window.at[0], s.arrived.at[0]).start()

    @pl.when(step + 1 < STEPS)
    def _next() -> None:
        sp.make_async_copy(x.at[step + 1], s.window.at[1 - slot], s.arrived.at[1 - slot]).start()

    # A descriptor made for waiting alone.
    sp.make_async_copy(s.window.at[slot], s.window.at[slot], s.arrived.at[slot]).wait()
    o[...] = s.window[slot]

    # Many copies, one wait for all their bytes.
    for i in range(STEPS):
        sp.async_copy(x.at[i], s.all_of_it.at[i], s.bulk, priority=0)
    sp.wait_bytes(s.bulk, s.all_of_it)
    o[...] += s.all_of_it[0]


def main() -> None:
    x = jnp.arange(STEPS * ROWS * COLS, dtype=jnp.float32).reshape(STEPS, ROWS, COLS)

    def window(i: jax.Array) -> tuple[jax.Array, int, int]:
        return i, 0, 0

    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(STEPS,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((None, ROWS, COLS), window),
        scratch_shapes=Buffers,
        interpret=pltpu.InterpretParams(),
    )
    np.testing.assert_array_equal(call(x), x + x[0])
