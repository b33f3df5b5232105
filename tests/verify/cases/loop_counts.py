"""A loop starts cu[1]-cu[0] copies, a second loop waits for them. Delivered: 4, and lens[0] = 3.

Right: both loops are bounded by the same SMEM values (4 starts, 4 waits); all copies are drained
before the rows are read.
Wrong: the second loop waits lens[0] times; the two SMEM arrays are meant to agree. LEAK: one copy's
bytes stay on the semaphore. Also a RACE: after 3 of 4 waits no particular buffer row is known to be
complete, yet the kernel sums them. (With lens[0] > 4 it would be a deadlock instead.)
"""

import jax
import numpy as np
from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, tiles, vmem

RIGHT = Form()
WRONG = Form("leak", also=("race",), line="buf.at[i], sem).start()")


def kernel(cu_ref, lens_ref, x_ref, o_ref, buf, sem, *, correct):
    count = cu_ref[1] - cu_ref[0]

    def start(i, carry):
        pltpu.make_async_copy(x_ref.at[i], buf.at[i], sem).start()
        return carry

    def wait(i, carry):
        pltpu.make_async_copy(x_ref.at[i], buf.at[i], sem).wait()
        return carry

    jax.lax.fori_loop(0, count, start, 0)
    jax.lax.fori_loop(0, count if correct else lens_ref[0], wait, 0)
    o_ref[...] = buf[0] + buf[1] + buf[2] + buf[3]


def build(n, correct):
    one = call(kernel, vmem(4), DMA, correct=correct, prefetch=2, out_in_hbm=False)
    return one, (np.array([0, 4], np.int32), np.array([3], np.int32), tiles(4))
