"""Fetches a tile into VMEM and reads it.

Right: after the wait.
Wrong: before the wait. RACE: the DMA may write the destination at any time until it completes. No
leak: the wait comes later.
"""

from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, tiles, vmem

RIGHT = Form()
WRONG = Form("race", line="o_ref[...] = buf[...] * 2.0")


def kernel(x_ref, o_ref, buf, sem, *, correct):
    copy = pltpu.make_async_copy(x_ref, buf, sem)
    copy.start()
    if correct:
        copy.wait()
    o_ref[...] = buf[...] * 2.0
    if not correct:
        copy.wait()


def build(n, correct):
    return call(kernel, vmem(), DMA, correct=correct, out_in_hbm=False), (tiles(),)
