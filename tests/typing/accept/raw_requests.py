"""Requests of raw Pallas beside those of safepallas, as in a kernel that is being moved over."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp


def kernel(x: sp.Ref, o: sp.Ref, acc: Any, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(x, acc, sem).wait()
    o[...] = acc[...] + 1


def annotated(x: sp.Ref, o: sp.Ref, acc: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.sync_copy(x, acc)
    sp.async_copy(acc, o, sem).wait()


def main() -> None:
    x = jnp.ones((8, 128), jnp.int32)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    scratch = (pltpu.VMEM(x.shape, x.dtype), sp.dma_semaphore())
    plus_one = sp.pallas_call(kernel, like, scratch_shapes=scratch, interpret=True)(x)
    np.testing.assert_array_equal(plus_one, x + 1)
    same = sp.pallas_call(
        annotated,
        like,
        scratch_shapes=(pltpu.VMEM(x.shape, x.dtype), sp.dma_semaphore()),
        interpret=True,
    )(x)
    np.testing.assert_array_equal(same, x)
