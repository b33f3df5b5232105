"""Copy as many pages as a table says, all on one DMA semaphore, and wait for them in bulk.

Each grid step reads its row of a prefetched page table and starts `count` copies. A DMA semaphore
counts bytes, so the wait need not repeat the loop: `sp.wait_bytes(sem, like)` takes as many bytes
as `like` holds. The size of `like` is static and `count` is not; so wait once per binary digit of
`count` that is set, for 1, 2, 4 .. pages: in all exactly what was started, for every `count`.
Not before the last of these waits is it certain that any one page has come.

`python docs/examples/paged_copy.py` runs it on the CPU, race detector on.
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

PAGES, ROWS, COLS = 12, 8, 128
MOST = 7  # pages per row of the table


def kernel(
    table: sp.Ref, counts: sp.Ref, pages: sp.Ref, o: sp.Ref, arrived: sp.DmaSemaphore
) -> None:
    row = pl.program_id(0)
    count = counts[row]
    o[...] = jnp.zeros(o.shape, o.dtype)

    def start(i: jax.Array, carry: int) -> int:
        sp.make_async_copy(pages.at[table[row, i]], o.at[i], arrived).start()
        return carry

    jax.lax.fori_loop(0, count, start, 0)

    def wait_for(many: int) -> None:
        @pl.when(count & many != 0)
        def _wait() -> None:
            sp.wait_bytes(arrived, o.at[:many])

    for bit in range(MOST.bit_length()):
        wait_for(1 << bit)


def window(row: jax.Array, *_: sp.Ref) -> tuple[jax.Array, int, int]:
    return row, 0, 0


def build(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None, *, interpret: Any = False
) -> tuple[Callable[..., jax.Array], tuple[jax.Array, ...]]:
    """The function and arguments for it. It runs on one device: no mesh is needed."""
    table = jnp.array([[0] * MOST, [5, 2, 9, 0, 0, 0, 0], [11, 3, 3, 7, 0, 8, 1]], jnp.int32)
    counts = jnp.array([0, 3, 7], jnp.int32)
    pages = jax.random.normal(jax.random.key(0), (PAGES, ROWS, COLS), jnp.float32)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((len(counts) * MOST, ROWS, COLS), jnp.float32),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=2,
            grid=(len(counts),),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec((MOST, ROWS, COLS), window),
        ),
        scratch_shapes=(sp.dma_semaphore(),),
        interpret=interpret,
    )

    def fn(*args: jax.Array) -> jax.Array:
        # A TPU core has no 64 bit types, whatever the caller has.
        with jax.enable_x64(False):
            result: jax.Array = call(*args)
        return result

    return fn, (table, counts, pages)


def expected(table: jax.Array, counts: jax.Array, pages: jax.Array) -> jax.Array:
    copied = jnp.arange(MOST) < counts[:, None]
    return jnp.where(copied.reshape(-1, 1, 1), pages[table.reshape(-1)], 0.0)


def main() -> None:
    fn, args = build(interpret=pltpu.InterpretParams(detect_races=True))
    np.testing.assert_array_equal(jax.jit(fn)(*args), expected(*args))
    print(f"page copies of {args[1].tolist()} pages, waited for in bulk: ok")


if __name__ == "__main__":
    main()
