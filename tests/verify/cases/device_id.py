"""Right permute; implicit entry barrier, one send and one receive per device.

Right: right = (me + 1) mod n.
Wrong: right = me + 1, without the modulo. OUT OF RANGE on the last device (id n). As a consequence
nobody sends to device 0, which waits for a receive: DEADLOCK there.
"""

import jax
from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, on_ring, ring, rows

RIGHT = Form(devices=(2, 3, 4))
WRONG = Form("out-of-range", also=("deadlock",), devices=(2, 3, 4), line="copy.start()")


def kernel(x_ref, o_ref, send_sem, recv_sem, *, correct):
    n, me, _, _ = ring()
    right = jax.lax.rem(me + 1, n) if correct else me + 1
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send_sem, recv_sem, device_id=(right,))
    copy.start()
    copy.wait()


def build(n, correct):
    return on_ring(call(kernel, DMA, DMA, correct=correct), n), (rows(n),)
