"""Copies a VMEM staging buffer out to HBM and clears the staging buffer.

Right: after the wait.
Wrong: before the wait. RACE: the DMA may read the source at any time until it completes, so it may
send the zeros.
"""

import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

from . import DMA, TILE, Form, call, tiles, vmem

RIGHT = Form()
WRONG = Form("race", line="staging[...] = jnp.zeros(TILE, jnp.float32)")


def kernel(x_ref, o_ref, staging, sem, *, correct):
    staging[...] = x_ref[...]
    copy = pltpu.make_async_copy(staging, o_ref, sem)
    copy.start()
    if correct:
        copy.wait()
    staging[...] = jnp.zeros(TILE, jnp.float32)
    if not correct:
        copy.wait()


def build(n, correct):
    return call(kernel, vmem(), DMA, correct=correct, hbm=None), (tiles(),)
