"""In from raw Pallas and out again: adopt() and .ref."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

ROWS = 8


def old_wait(sem: Any, value: int) -> None:
    """A helper of the code base that nobody has moved over."""
    pl.semaphore_wait(sem, value)


def kernel(x: sp.Ref, o: sp.Ref, count: sp.Semaphore) -> None:
    def body(raw_sem: Any, raw_sems: Any, raw_buffer: Any) -> None:
        sem = sp.adopt(raw_sem, sp.dma_semaphore())
        sems = sp.adopt(raw_sems, sp.dma_semaphore(2))
        buffer = sp.adopt(raw_buffer, sp.vmem((ROWS, 128), jnp.float32))
        sp.async_copy(x, buffer, sem).wait()
        sp.async_copy(buffer, o, sems.at[1]).wait()

    pl.run_scoped(
        body,
        pltpu.SemaphoreType.DMA,
        pltpu.SemaphoreType.DMA((2,)),
        pltpu.VMEM((ROWS, 128), jnp.float32),
    )
    sp.signal(count, 3)
    old_wait(count.ref, 2)
    again = sp.adopt(count.ref, sp.semaphore())
    sp.wait(again)


def main() -> None:
    x = jnp.arange(ROWS * 128, dtype=jnp.float32).reshape(ROWS, 128)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=(sp.semaphore(),),
        interpret=pltpu.InterpretParams(),
    )
    np.testing.assert_array_equal(call(x), x)
