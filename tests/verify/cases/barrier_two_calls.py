"""A shift to the right without wrap-around (device 0 keeps its block), behind a neighbour barrier,
called twice with the same collective_id.

Right: the barrier has a second round, on a regular scratch semaphore. Device 0 can reach call 2
only after the second round of call 1, which needs the second signal of both neighbours, given
after they passed the first round with true signals.
Wrong: it has one round. RACE for n >= 4: device 0 receives nothing, so it can finish call 1 and
signal for call 2 while device 2 has not entered call 1. Device 1 then holds two signals of device
0 (call 1 and call 2), passes its barrier of call 1 and writes into device 2. Within a single call
the kernel is safe; the barrier semaphore persists between the calls. n <= 3: device 0's own
neighbours are all others, so it cannot finish call 1 before all have entered.
"""

from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from . import DMA, REGULAR, Form, call, copy_here, on_ring, ring, rows, signal_and_wait

RIGHT = Form(devices=(2, 3, 4, 5))
WRONG = Form("race", devices=(4, 5), safe_on=(2, 3), line="copy.start()")


def kernel(x_ref, o_ref, local_sem, send_sem, recv_sem, second, *, correct):
    n, me, left, right = ring()
    signal_and_wait(pltpu.get_barrier_semaphore(), [left, right])
    if correct:
        signal_and_wait(second, [left, right])
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send_sem, recv_sem, device_id=(right,))

    @pl.when(me < n - 1)
    def _():
        copy.start()
        copy.wait_send()

    @pl.when(me > 0)
    def _():
        copy.wait_recv()

    @pl.when(me == 0)
    def _():
        copy_here(x_ref, o_ref, local_sem)


def build(n, correct):
    one = call(kernel, DMA, DMA, DMA, REGULAR, correct=correct, has_barrier=True)
    return on_ring(lambda x: one(one(x)), n), (rows(n),)
