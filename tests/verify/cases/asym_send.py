"""A replicated flag table says who sends to its right neighbour (even devices do).

Right: a device waits for a receive if its LEFT neighbour's flag is set; start on one device and
wait on the other are guarded by the same table entry. A device that receives nothing copies
locally.
Wrong: it waits if its OWN flag is set. DEADLOCK: even devices wait although their left neighbour
(odd) does not send. Also a LEAK on the odd ones, which receive without waiting - and, since they
may have left the kernel before the block is sent, a RACE (write to a device outside the call).
"""

import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

from . import DMA, Form, call, copy_here, on_ring, ring, rows

RIGHT = Form(devices=(2, 4))
WRONG = Form("deadlock", also=("leak", "race"), devices=(2, 4), line="copy.wait_recv()")


def kernel(flag_ref, x_ref, o_ref, local_sem, send_sem, recv_sem, *, correct):
    _n, me, left, right = ring()
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send_sem, recv_sem, device_id=(right,))

    @pl.when(flag_ref[me] == 1)
    def _():
        copy.start()
        copy.wait_send()

    @pl.when(flag_ref[left if correct else me] == 1)
    def _():
        copy.wait_recv()

    @pl.when(flag_ref[left] == 0)
    def _():
        copy_here(x_ref, o_ref, local_sem)


def build(n, correct):
    one = call(kernel, DMA, DMA, DMA, correct=correct, prefetch=1)
    flags = (np.arange(n) % 2 == 0).astype(np.int32)
    return on_ring(one, n, (P(), P("x"))), (flags, rows(n))
