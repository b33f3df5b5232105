"""Ring all-gather, one grid step per hop, one recv semaphore per step; neighbour barrier in step 0.
In step 0 the own input is copied to its place in the output.

Right (for one call): this local copy is awaited before the first send; chunk s is forwarded only
after recv semaphore s-1 - which carries exactly that chunk - was awaited; a neighbour running ahead
writes only to rows not accessed yet. The first write to the right neighbour is ordered after its
entry by the barrier. (For repeated calls a barrier of one round is not enough: see
barrier_two_calls.)
Wrong: the local copy is awaited only in the last step. RACE: the remote copy of step 0 reads
out[me] while the local copy may still be writing it.
"""

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, on_ring, ring, rows, signal_and_wait

RIGHT = Form(devices=(2, 3, 4))
WRONG = Form("race", devices=(2, 3, 4), line="send.start()")


def kernel(x_ref, o_ref, local_sem, send_sem, recv_sems, *, correct):
    n, me, left, right = ring()
    step = pl.program_id(0)
    local = pltpu.make_async_copy(x_ref, o_ref.at[me], local_sem)

    @pl.when(step == 0)
    def _():
        signal_and_wait(pltpu.get_barrier_semaphore(), [left, right])
        local.start()
        if correct:
            local.wait()

    chunk = jax.lax.rem(me - step + n, n)
    send = pltpu.make_async_remote_copy(
        o_ref.at[chunk], o_ref.at[chunk], send_sem, recv_sems.at[step], device_id=(right,)
    )
    send.start()
    send.wait()  # my chunk has left, the next one has come in
    if not correct:
        pl.when(step == n - 2)(local.wait)


def build(n, correct):
    scratch = DMA, DMA, DMA((n - 1,))
    one = call(kernel, *scratch, correct=correct, out=(n,), grid=(n - 1,), has_barrier=True)
    return on_ring(one, n), (rows(n),)
