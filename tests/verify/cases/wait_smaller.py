"""Copies two tiles, then reads both. Right: waits for two tiles before.

Wrong: waits with a descriptor of one tile. LEAK: the bytes of one tile stay on the semaphore. Also
a RACE: after half of the bytes any part of the buffer may still be missing (even tile 0).
"""

from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, tiles, vmem

RIGHT = Form()
WRONG = Form("leak", also=("race",), line="pltpu.make_async_copy(x_ref, buf, sem).start()")


def kernel(x_ref, o_ref, buf, sem, *, correct):
    pltpu.make_async_copy(x_ref, buf, sem).start()
    if correct:
        pltpu.make_async_copy(x_ref, buf, sem).wait()
    else:
        pltpu.make_async_copy(x_ref.at[0], buf.at[0], sem).wait()
    o_ref[...] = buf[0] + buf[1]


def build(n, correct):
    return call(kernel, vmem(2), DMA, correct=correct, out_in_hbm=False), (tiles(2),)
