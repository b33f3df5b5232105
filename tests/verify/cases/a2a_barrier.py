"""All-to-all behind a barrier. All chunks share one send and one recv semaphore.

Right: the barrier is one of all devices, so everybody has entered before anybody writes; the
shared semaphores are drained completely (n-1 equal chunks each) and nothing is read in between.
Wrong: it is one of the two ring neighbours. A RACE for n >= 4: the writes to devices two or more
hops away are not ordered after those devices' entry. n <= 3: everybody is a neighbour.
"""

import jax
from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, on_ring, ring, signal_and_wait, tiles

RIGHT = Form(devices=(2, 3, 4))
WRONG = Form("race", devices=(4, 5), safe_on=(2, 3), line="copy.start()")


def kernel(x_ref, o_ref, local_sem, send_sem, recv_sem, *, correct):
    n, me, left, right = ring()
    others = [jax.lax.rem(me + k, n) for k in range(1, n)]
    signal_and_wait(pltpu.get_barrier_semaphore(), others if correct else [left, right])
    copies = [pltpu.make_async_copy(x_ref.at[me], o_ref.at[me], local_sem)]
    for d in others:
        copies.append(
            pltpu.make_async_remote_copy(
                x_ref.at[d], o_ref.at[me], send_sem, recv_sem, device_id=(d,)
            )
        )
    for copy in copies:
        copy.start()
    for copy in copies:
        copy.wait()


def build(n, correct):
    one = call(kernel, DMA, DMA, DMA, correct=correct, out=(n,), has_barrier=True)
    return on_ring(one, n), (tiles(n * n),)
