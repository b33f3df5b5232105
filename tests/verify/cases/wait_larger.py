"""Copies one tile of two. Right: waits for that tile.

Wrong: waits with a descriptor of the whole (two-tile) buffer. DEADLOCK: the DMA adds the bytes of
one tile, the wait asks for two.
"""

from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, tiles, vmem

RIGHT = Form()
WRONG = Form("deadlock", line="pltpu.make_async_copy(x_ref, buf, sem).wait()")


def kernel(x_ref, o_ref, buf, sem, *, correct):
    pltpu.make_async_copy(x_ref.at[0], buf.at[0], sem).start()
    if correct:
        pltpu.make_async_copy(x_ref.at[0], buf.at[0], sem).wait()
    else:
        pltpu.make_async_copy(x_ref, buf, sem).wait()
    o_ref[...] = buf[0]


def build(n, correct):
    return call(kernel, vmem(2), DMA, correct=correct, out_in_hbm=False), (tiles(2),)
