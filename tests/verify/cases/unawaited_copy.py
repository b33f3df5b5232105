"""Copies the input to the output with one DMA. Right: waits for it, once and for as much.

Wrong: never waits for it. LEAK: the DMA adds its bytes to `sem` at some time and nobody takes them
off, so the semaphore is not zero when the kernel ends. The output is also still being written when
the kernel ends (a race with whoever reads the result).
"""

from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, tiles

RIGHT = Form()
WRONG = Form("leak", also=("race",), line="copy.start()")


def kernel(x_ref, o_ref, sem, *, correct):
    copy = pltpu.make_async_copy(x_ref, o_ref, sem)
    copy.start()
    if correct:
        copy.wait()


def build(n, correct):
    return call(kernel, DMA, correct=correct), (tiles(),)
