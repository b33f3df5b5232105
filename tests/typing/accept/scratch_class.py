"""A Scratch class: every allocation has a name, and its type comes from the request."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

CHUNKS, ROWS, COLS = 4, 8, 128


class Buffers(sp.Scratch):
    window = sp.vmem((2, ROWS, COLS), jnp.float32)
    total = sp.smem((1,), jnp.int32)
    arrived = sp.dma_semaphore(2)
    left = sp.dma_semaphore()
    steps = sp.semaphore()


def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    s.total[0] = 0

    def fetch(chunk: int) -> sp.LocalCopy:
        slot = chunk % 2
        return sp.make_async_copy(x.at[chunk], s.window.at[slot], s.arrived.at[slot])

    fetch(0).start()
    for chunk in range(CHUNKS):
        if chunk + 1 < CHUNKS:
            fetch(chunk + 1).start()
        fetch(chunk).wait()
        s.window[chunk % 2] = s.window[chunk % 2] * 2.0
        done = sp.async_copy(s.window.at[chunk % 2], o.at[chunk], s.left)
        done.wait()
        sp.signal(s.steps)
        s.total[0] += 1
    sp.wait(s.steps, CHUNKS)


def main() -> None:
    x = jnp.arange(CHUNKS * ROWS * COLS, dtype=jnp.float32).reshape(CHUNKS, ROWS, COLS)
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[hbm],
        out_specs=hbm,
        scratch_shapes=Buffers,
        interpret=pltpu.InterpretParams(),
    )
    np.testing.assert_array_equal(call(x), x * 2)
