"""Arrays of semaphores of ranks 1 to 4, indexed by ints and by traced indices."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp


class Sems(sp.Scratch):
    line = sp.dma_semaphore(4)
    plane = sp.dma_semaphore(2, 2)
    cube = sp.dma_semaphore(2, 2, 2)
    tesseract = sp.dma_semaphore(2, 1, 2, 2)
    counts = sp.semaphore(2, 2)


def kernel(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    def start(i: jax.Array, carry: None) -> None:
        sp.make_async_copy(x.at[0, i], o.at[0, i], s.line.at[i]).start()
        row, col = i // 2, jax.lax.rem(i, 2)
        sp.make_async_copy(x.at[1, i], o.at[1, i], s.plane.at[row, col]).start()
        # In two steps, and with a Python int in between.
        sp.make_async_copy(x.at[2, i], o.at[2, i], s.cube.at[1].at[row, col]).start()
        sp.make_async_copy(x.at[3, i], o.at[3, i], s.tesseract.at[row, 0].at[1].at[col]).start()
        sp.signal(s.counts.at[row, col], i + 1)
        return carry

    def wait(i: jax.Array, carry: jax.Array) -> jax.Array:
        row, col = i // 2, jax.lax.rem(i, 2)
        sp.make_async_copy(x.at[0, i], o.at[0, i], s.line[i]).wait()
        sp.make_async_copy(x.at[1, i], o.at[1, i], s.plane[row][col]).wait()
        sp.make_async_copy(x.at[2, i], o.at[2, i], s.cube[1, row, col]).wait()
        sp.make_async_copy(x.at[3, i], o.at[3, i], s.tesseract[row, 0, 1, col]).wait()
        sp.wait(s.counts[row, col], i + 1)
        return carry + 1

    jax.lax.fori_loop(0, 4, start, None)
    jax.lax.fori_loop(0, 4, wait, jnp.int32(0))

    # NumPy integers and negative ints are indices, too.
    last = s.line.at[-1]
    for i in np.arange(2):
        sp.async_copy(x.at[0, 0], o.at[0, 0], s.plane.at[i, -1]).wait()
    sp.async_copy(x.at[0, 3], o.at[0, 3], last).wait()


def main() -> None:
    x = jnp.arange(4 * 4 * 128, dtype=jnp.float32).reshape(4, 4, 128)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=Sems,
        interpret=pltpu.InterpretParams(),
    )
    np.testing.assert_array_equal(call(x), x)
