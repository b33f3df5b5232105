"""A double-buffered pipeline: fetch the next chunk from HBM while working on this one.

`arrived` is an array of two DMA semaphores, one per half of the window. A copy is started in one
iteration of the loop and waited for in the next, by a descriptor of its own: both name the same
half of the window and the same semaphore, picked by a traced index. Each semaphore carries one
copy at a time, so a wait can only mean the chunk it names.

`python docs/examples/double_buffer.py` runs it on the CPU, race detector on.
"""

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

CHUNKS, ROWS, COLS = 6, 16, 128


class Buffers(sp.Scratch):
    window = sp.vmem((2, ROWS, COLS), jnp.float32)
    arrived = sp.dma_semaphore(2)


def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    def fetch(chunk: int | jax.Array, slot: int | jax.Array) -> sp.LocalCopy:
        return sp.make_async_copy(x.at[chunk], s.window.at[slot], s.arrived.at[slot])

    fetch(0, 0).start()
    o[...] = jnp.full((ROWS, COLS), -jnp.inf, jnp.float32)

    def step(chunk: jax.Array, carry: int) -> int:
        slot = jax.lax.rem(chunk, 2)

        @pl.when(chunk + 1 < CHUNKS)
        def _prefetch() -> None:
            fetch(chunk + 1, 1 - slot).start()

        fetch(chunk, slot).wait()
        o[...] = jnp.maximum(o[...], s.window[slot])
        return carry

    jax.lax.fori_loop(0, CHUNKS, step, 0)


def build(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None, *, interpret: Any = False
) -> tuple[Callable[..., jax.Array], tuple[jax.Array, ...]]:
    """The function and arguments for it. It runs on one device: no mesh is needed."""
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((ROWS, COLS), jnp.float32),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=Buffers,
        interpret=interpret,
    )
    x = jax.random.normal(jax.random.key(0), (CHUNKS, ROWS, COLS), jnp.float32)

    def fn(*args: jax.Array) -> jax.Array:
        # A TPU core has no 64 bit types, whatever the caller has.
        with jax.enable_x64(False):
            result: jax.Array = call(*args)
        return result

    return fn, (x,)


def expected(x: jax.Array) -> jax.Array:
    return x.max(axis=0)


def main() -> None:
    fn, args = build(interpret=pltpu.InterpretParams(detect_races=True))
    np.testing.assert_array_equal(jax.jit(fn)(*args), expected(*args))
    print(f"maximum over {CHUNKS} double-buffered chunks: ok")


if __name__ == "__main__":
    main()
