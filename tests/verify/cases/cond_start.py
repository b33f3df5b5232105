"""A copy is started only when the prefetched scalar n is positive. Delivered argument: n = 0.

Right: it is waited for under the very same predicate, so it is safe for every n.
Wrong: it is always waited for. DEADLOCK for n <= 0: the wait has no matching DMA. (For n > 0 the
same kernel is safe: the verdict depends on the data.)
"""

import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from . import DMA, TILE, Form, call, tiles, vmem

RIGHT = Form()
WRONG = Form("deadlock", line="copy.wait()  # unconditional")


def kernel(n_ref, x_ref, o_ref, buf, sem, *, correct):
    n = n_ref[0]
    buf[...] = jnp.zeros(TILE, jnp.float32)
    copy = pltpu.make_async_copy(x_ref, buf, sem)

    @pl.when(n > 0)
    def _():
        copy.start()

    if correct:

        @pl.when(n > 0)
        def _():
            copy.wait()

    else:
        copy.wait()  # unconditional
    o_ref[...] = buf[...]


def build(n, correct):
    one = call(kernel, vmem(), DMA, correct=correct, prefetch=1, out_in_hbm=False)
    return one, (np.array([0], np.int32), tiles())
