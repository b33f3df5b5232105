"""Double-buffered fetch of 4 chunks in a fori_loop with one DMA semaphore per slot.

Right: a slot is refilled only after its previous content has been read (program order), and each
semaphore carries one copy at a time.
Wrong: each round waits on the OTHER slot's semaphore. RACE: in round 0 it waits for chunk 1 and
reads slot 0, whose chunk 0 is not awaited; in round 1 chunk 2 is even started into slot 0 while
chunk 0 may be in flight. Because 4 is even, each semaphore still gets 2 copies and 2 waits: no
leak, no deadlock, only the race.
"""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from . import DMA, TILE, Form, call, tiles, vmem

CHUNKS = 4
RIGHT = Form()
WRONG = Form("race", line="o_ref[...] += buf[slot]")


def kernel(x_ref, o_ref, buf, sems, *, correct):
    def fetch(i, slot):
        return pltpu.make_async_copy(x_ref.at[i], buf.at[slot], sems.at[slot])

    fetch(0, 0).start()
    o_ref[...] = jnp.zeros(TILE, jnp.float32)

    def body(i, carry):
        slot = jax.lax.rem(i, 2)
        nxt = 1 - slot

        @pl.when(i + 1 < CHUNKS)
        def _():
            fetch(i + 1, nxt).start()

        fetch(i, slot if correct else nxt).wait()
        o_ref[...] += buf[slot]
        return carry

    jax.lax.fori_loop(0, CHUNKS, body, 0)


def build(n, correct):
    return call(kernel, vmem(2), DMA((2,)), correct=correct, out_in_hbm=False), (tiles(CHUNKS),)
