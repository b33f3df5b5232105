"""Ring all-reduce with two buffers used in turn; each hop sends slot s%2 to the right neighbour's
other slot.

Right (for one call): when a slot has been sent (and was added up one hop earlier) its owner grants
one credit to the left neighbour, who takes it before the next hop. The left neighbour's hop s+1
writes the slot I sent in hop s; it starts after my credit of hop s, given after wait_send of hop s
and after the slot was read. Credits granted (hops 0..n-3) and taken (hops 1..n-2) balance: n-2
each.
Wrong: no flow control. RACE for n >= 3: my hop 1 writes the right neighbour's slot 0, which that
(slow) neighbour may not yet have sent in its hop 0; my hop 1 depends only on my left neighbour.
n = 2 has one hop: safe.
"""

from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from . import DMA, REGULAR, Form, call, on_ring, ring, rows, signal_and_wait, vmem

RIGHT = Form(devices=(2, 3, 4))
WRONG = Form("race", devices=(3, 4), safe_on=(2,), line="copy.start()")


def kernel(x_ref, o_ref, comm, send_sem, recv_sem, credit, *, correct):
    n, _me, left, right = ring()
    comm[0] = x_ref[...]
    o_ref[...] = x_ref[...]
    signal_and_wait(pltpu.get_barrier_semaphore(), [left, right])
    for step in range(n - 1):
        slot, nxt = step % 2, 1 - step % 2
        if correct and step > 0:
            pl.semaphore_wait(credit, 1)
        copy = pltpu.make_async_remote_copy(
            comm.at[slot], comm.at[nxt], send_sem, recv_sem, device_id=(right,)
        )
        copy.start()
        copy.wait()
        o_ref[...] += comm[nxt]
        if correct and step < n - 2:
            pl.semaphore_signal(credit, 1, device_id=(left,))


def build(n, correct):
    options = {"hbm": None, "out_in_hbm": False, "has_barrier": True}
    one = call(kernel, vmem(2), DMA, DMA, REGULAR, correct=correct, **options)
    return on_ring(one, n), (rows(n),)
