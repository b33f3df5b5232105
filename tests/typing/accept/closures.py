"""Handles in closures: under pl.when, in loops, in functions made inside the kernel."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

STEPS, ROWS, COLS = 4, 8, 128


class Buffers(sp.Scratch):
    row = sp.vmem((ROWS, COLS), jnp.float32)
    sem = sp.dma_semaphore()
    odd = sp.semaphore()


def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    step = pl.program_id(0)

    @pl.when(step == 0)
    def _init() -> None:
        o[...] = jnp.zeros(o.shape, o.dtype)

    def fetch() -> sp.LocalCopy:
        return sp.async_copy(x.at[step], s.row, s.sem)

    fetch().wait()

    @pl.when(jax.lax.rem(step, 2) == 1)
    def _count() -> None:
        sp.signal(s.odd)

        @pl.when(step == 1)
        def _again() -> None:
            sp.signal(s.odd, 2)

    o[...] += s.row[...]

    @pl.when(step == pl.num_programs(0) - 1)
    def _drain() -> None:
        sp.wait(s.odd, STEPS // 2 + 2)


def main() -> None:
    x = jnp.arange(STEPS * ROWS * COLS, dtype=jnp.float32).reshape(STEPS, ROWS, COLS)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((ROWS, COLS), jnp.float32),
        grid=(STEPS,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((ROWS, COLS), lambda i: (0, 0)),
        scratch_shapes=Buffers,
        interpret=pltpu.InterpretParams(),
    )
    np.testing.assert_array_equal(call(x), x.sum(axis=0))
