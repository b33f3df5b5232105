"""Right permute. Right: waits for its send and its receive.

Wrong: for its receive only. LEAK: the send semaphore gets the bytes of the outgoing copy and nobody
takes them off. Also the kernel may end while its input is still being read by the DMA (a race with
whoever reuses the memory).
"""

from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, on_ring, ring, rows

RIGHT = Form(devices=(2, 3, 4))
WRONG = Form("leak", also=("race",), devices=(2, 3, 4), line="copy.start()")


def kernel(x_ref, o_ref, send_sem, recv_sem, *, correct):
    _n, _me, _left, right = ring()
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send_sem, recv_sem, device_id=(right,))
    copy.start()
    if correct:
        copy.wait_send()
    copy.wait_recv()


def build(n, correct):
    return on_ring(call(kernel, DMA, DMA, correct=correct), n), (rows(n),)
