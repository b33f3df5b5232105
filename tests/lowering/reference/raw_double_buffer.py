"""The reference kernel, in raw Pallas, of docs/examples/double_buffer.py."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

CHUNKS, ROWS, COLS = 6, 16, 128


def kernel(x: Any, o: Any, window: Any, arrived: Any) -> None:
    def fetch(chunk: Any, slot: Any) -> Any:
        return pltpu.make_async_copy(x.at[chunk], window.at[slot], arrived.at[slot])

    fetch(0, 0).start()
    o[...] = jnp.full((ROWS, COLS), -jnp.inf, jnp.float32)

    def step(chunk: Any, carry: Any) -> Any:
        slot = jax.lax.rem(chunk, 2)

        @pl.when(chunk + 1 < CHUNKS)
        def _prefetch() -> None:
            fetch(chunk + 1, 1 - slot).start()

        fetch(chunk, slot).wait()
        o[...] = jnp.maximum(o[...], window[slot])
        return carry

    jax.lax.fori_loop(0, CHUNKS, step, 0)


def build(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None, *, interpret: Any = False
) -> tuple[Callable[..., Any], tuple[jax.Array, ...]]:
    call = pl.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((ROWS, COLS), jnp.float32),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[
            pltpu.VMEM((2, ROWS, COLS), jnp.float32),
            pltpu.SemaphoreType.DMA((2,)),
        ],
        interpret=interpret,
    )
    x = jax.random.normal(jax.random.key(0), (CHUNKS, ROWS, COLS), jnp.float32)

    def fn(*args: jax.Array) -> jax.Array:
        # A TPU core has no 64 bit types, whatever the caller has.
        with jax.enable_x64(False):
            result: jax.Array = call(*args)
        return result

    return fn, (x,)
