"""Device 0 sends its block to device 1, which waits for its receive; the others copy locally.
Implicit entry barrier (no collective_id).

Right: device 0 waits for its send.
Wrong: it calls copy.wait(), i.e. wait_send AND wait_recv. DEADLOCK: wait_recv on device 0 waits for
something that comes IN to device 0; nobody sends there.
"""

from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, copy_here, on_ring, ring, rows

RIGHT = Form(devices=(2, 3, 4))
WRONG = Form("deadlock", devices=(2, 3, 4), line="copy.wait()")


def kernel(x_ref, o_ref, local_sem, send_sem, recv_sem, *, correct):
    _n, me, _left, _right = ring()
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send_sem, recv_sem, device_id=(1,))

    @pl.when(me == 0)
    def _():
        copy.start()
        if correct:
            copy.wait_send()
        else:
            copy.wait()

    @pl.when(me == 1)
    def _():
        copy.wait_recv()

    @pl.when(me != 1)
    def _():
        copy_here(x_ref, o_ref, local_sem)


def build(n, correct):
    return on_ring(call(kernel, DMA, DMA, DMA, correct=correct), n), (rows(n),)
