"""Right permute behind a neighbour barrier.

Right (for one call): all devices signal.
Wrong: device 0 does not. DEADLOCK: its neighbours wait for 2 signals and get at most 1 (n = 2:
none). Device 0 itself, and others, may pass, but then hang in wait_recv.
"""

from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, on_ring, ring, rows

RIGHT = Form(devices=(2, 3, 4))
WRONG = Form("deadlock", devices=(2, 3, 4), line="pl.semaphore_wait(barrier, 2)")


def kernel(x_ref, o_ref, send_sem, recv_sem, *, correct):
    _n, me, left, right = ring()
    barrier = pltpu.get_barrier_semaphore()

    @pl.when(me >= 0 if correct else me != 0)
    def _():
        for d in (left, right):
            pl.semaphore_signal(barrier, 1, device_id=(d,))

    pl.semaphore_wait(barrier, 2)
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send_sem, recv_sem, device_id=(right,))
    copy.start()
    copy.wait()


def build(n, correct):
    return on_ring(call(kernel, DMA, DMA, correct=correct, has_barrier=True), n), (rows(n),)
