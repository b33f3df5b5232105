"""A grid with scalar prefetch: the scratch stands in scratch_shapes=, not in the grid_spec."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

PAGES, ROWS, COLS = 5, 8, 128


class Buffers(sp.Scratch):
    page = sp.vmem((ROWS, COLS), jnp.float32)
    arrived = sp.dma_semaphore()


def with_class(table: sp.Ref, pages: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(pages.at[table[pl.program_id(0)]], s.page, s.arrived).wait()
    o[...] = s.page[...]


def with_tuple(
    table: sp.Ref, pages: sp.Ref, o: sp.Ref, page: sp.Ref, arrived: sp.DmaSemaphore
) -> None:
    sp.async_copy(pages.at[table[pl.program_id(0)]], page, arrived).wait()
    o[...] = page[...]


def main() -> None:
    table = jnp.array([3, 0, 3, 4], jnp.int32)
    pages = jnp.arange(PAGES * ROWS * COLS, dtype=jnp.float32).reshape(PAGES, ROWS, COLS)
    like = jax.ShapeDtypeStruct((len(table) * ROWS, COLS), jnp.float32)

    def window(i: jax.Array, table: sp.Ref) -> tuple[jax.Array, int]:
        return i, 0

    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=table.shape,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((ROWS, COLS), window),
    )
    wanted = pages[table].reshape(-1, COLS)
    by_class = sp.pallas_call(
        with_class,
        like,
        grid_spec=grid_spec,
        scratch_shapes=Buffers,
        interpret=pltpu.InterpretParams(),
    )
    np.testing.assert_array_equal(by_class(table, pages), wanted)
    by_tuple = sp.pallas_call(
        with_tuple,
        like,
        grid_spec=grid_spec,
        scratch_shapes=(sp.vmem((ROWS, COLS), jnp.float32), sp.dma_semaphore()),
        interpret=pltpu.InterpretParams(),
    )
    np.testing.assert_array_equal(by_tuple(table, pages), wanted)
