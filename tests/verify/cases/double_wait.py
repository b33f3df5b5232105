"""Starts one copy. Right: waits for it once.

Wrong: waits for it twice. DEADLOCK: the first wait takes off all the bytes; the second one waits
for bytes that no DMA will ever add. Independent of the schedule.
"""

from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, tiles

RIGHT = Form()
WRONG = Form("deadlock", line="copy.wait()  # second")


def kernel(x_ref, o_ref, sem, *, correct):
    copy = pltpu.make_async_copy(x_ref, o_ref, sem)
    copy.start()
    copy.wait()
    if not correct:
        copy.wait()  # second


def build(n, correct):
    return call(kernel, DMA, correct=correct), (tiles(),)
