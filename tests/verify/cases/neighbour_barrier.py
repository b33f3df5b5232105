"""Right permute after a barrier.

Right (for one call): it signals both sides and waits for 2. Both signals are needed and each
neighbour sends just one, so the right one has entered.
Wrong: it signals only the right neighbour and waits for 1. RACE for n >= 3: the signal I got is
from my LEFT neighbour; nothing says that the right one, whose output I write, has entered the
kernel. n = 2: left and right are the same, safe.
"""

from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, on_ring, ring, rows, signal_and_wait

RIGHT = Form(devices=(2, 3, 4))
WRONG = Form("race", devices=(3, 4), safe_on=(2,), line="copy.start()")


def kernel(x_ref, o_ref, send_sem, recv_sem, *, correct):
    _n, _me, left, right = ring()
    signal_and_wait(pltpu.get_barrier_semaphore(), [left, right] if correct else [right])
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send_sem, recv_sem, device_id=(right,))
    copy.start()
    copy.wait()


def build(n, correct):
    return on_ring(call(kernel, DMA, DMA, correct=correct, has_barrier=True), n), (rows(n),)
