"""Two phases, each: neighbour barrier, then send to the right; the receives are awaited at the end.

Right: each barrier has a second round, on a regular semaphore. My neighbour can signal its next
barrier only after its second round, which needs my second signal, which I give only after passing
the first round. So nobody's first-round signal can be counted twice.
Wrong: each has one round. RACE for n >= 4: device j may pass its FIRST barrier with two signals of
its left neighbour (first and second barrier of that one, which is already one phase ahead), while
its right neighbour has not even entered the kernel; then it writes there. n <= 3: the left
neighbour cannot get ahead without the missing device. Totals agree: no leak, no deadlock.
"""

from jax.experimental.pallas import tpu as pltpu

from . import DMA, REGULAR, Form, call, on_ring, ring, rows, signal_and_wait

RIGHT = Form(devices=(2, 3, 4, 5))
WRONG = Form("race", devices=(4, 5), safe_on=(2, 3), line="copy.start()")


def kernel(x_ref, o_ref, send_sems, recv_sems, second, *, correct):
    _n, _me, left, right = ring()
    copies = []
    for phase in range(2):
        signal_and_wait(pltpu.get_barrier_semaphore(), [left, right])
        if correct:
            signal_and_wait(second, [left, right])
        copy = pltpu.make_async_remote_copy(
            x_ref, o_ref.at[phase], send_sems.at[phase], recv_sems.at[phase], device_id=(right,)
        )
        copy.start()
        copies.append(copy)
    for copy in copies:
        copy.wait()


def build(n, correct):
    scratch = DMA((2,)), DMA((2,)), REGULAR
    return on_ring(call(kernel, *scratch, correct=correct, out=(2,), has_barrier=True), n), (
        rows(n),
    )
