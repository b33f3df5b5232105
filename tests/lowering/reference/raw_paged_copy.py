"""The reference kernel, in raw Pallas, of docs/examples/paged_copy.py."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

PAGES, ROWS, COLS = 12, 8, 128
MOST = 7


def kernel(table: Any, counts: Any, pages: Any, o: Any, arrived: Any) -> None:
    row = pl.program_id(0)
    count = counts[row]
    o[...] = jnp.zeros(o.shape, o.dtype)

    def start(i: Any, carry: Any) -> Any:
        pltpu.make_async_copy(pages.at[table[row, i]], o.at[i], arrived).start()
        return carry

    jax.lax.fori_loop(0, count, start, 0)

    def wait_for(many: Any) -> None:
        @pl.when(count & many != 0)
        def _wait() -> None:
            like = o.at[:many]
            pltpu.make_async_copy(like, like, arrived).wait()

    for bit in range(MOST.bit_length()):
        wait_for(1 << bit)


def window(row: jax.Array, *_: Any) -> tuple[jax.Array, int, int]:
    return row, 0, 0


def build(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None, *, interpret: Any = False
) -> tuple[Callable[..., Any], tuple[jax.Array, ...]]:
    table = jnp.array([[0] * MOST, [5, 2, 9, 0, 0, 0, 0], [11, 3, 3, 7, 0, 8, 1]], jnp.int32)
    counts = jnp.array([0, 3, 7], jnp.int32)
    pages = jax.random.normal(jax.random.key(0), (PAGES, ROWS, COLS), jnp.float32)
    call = pl.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((len(counts) * MOST, ROWS, COLS), jnp.float32),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=2,
            grid=(len(counts),),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec((MOST, ROWS, COLS), window),
            scratch_shapes=[pltpu.SemaphoreType.DMA],
        ),
        interpret=interpret,
    )

    def fn(*args: jax.Array) -> jax.Array:
        # A TPU core has no 64 bit types, whatever the caller has.
        with jax.enable_x64(False):
            result: jax.Array = call(*args)
        return result

    return fn, (table, counts, pages)
