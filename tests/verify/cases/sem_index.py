"""The semaphore of a copy, one of 4, is chosen by a prefetched scalar; the delivered value is 5.

Right: modulo the array size (5 mod 4 = 1).
Wrong: as it is. OUT OF RANGE: the index points at some other piece of semaphore memory. (Start and
wait agree, so with a clamping interpreter everything looks fine.)
"""

import jax
import numpy as np
from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, tiles, vmem

RIGHT = Form()
WRONG = Form("out-of-range", line="sems.at[slot]).start()")


def kernel(idx_ref, x_ref, o_ref, buf, sems, *, correct):
    slot = jax.lax.rem(idx_ref[0], 4) if correct else idx_ref[0]
    pltpu.make_async_copy(x_ref, buf, sems.at[slot]).start()
    pltpu.make_async_copy(x_ref, buf, sems.at[slot]).wait()
    o_ref[...] = buf[...]


def build(n, correct):
    one = call(kernel, vmem(), DMA((4,)), correct=correct, prefetch=1, out_in_hbm=False)
    return one, (np.array([5], np.int32), tiles())
