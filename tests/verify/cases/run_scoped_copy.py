"""Each loop round allocates a VMEM buffer and a DMA semaphore with run_scoped, fetches one chunk
and adds it up.

Right: the copy is awaited inside the scope that owns buffer and semaphore.
"""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from . import DMA, TILE, Form, call, copy_here, tiles, vmem

RIGHT = Form()


def kernel(x_ref, o_ref):
    o_ref[...] = jnp.zeros(TILE, jnp.float32)

    def body(i, carry):
        def scope(buf, sem):
            copy_here(x_ref.at[i], buf, sem)
            o_ref[...] += buf[...]

        pl.run_scoped(scope, vmem(), DMA(()))
        return carry

    jax.lax.fori_loop(0, 3, body, 0)


def build(n, correct):
    return call(kernel, out_in_hbm=False), (tiles(3),)
