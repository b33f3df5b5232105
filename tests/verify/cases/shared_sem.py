"""Two copies of equal size; the kernel waits for the first and reads it, then for the second.

Right: each on its own DMA semaphore, which carries one copy only.
Wrong: both in flight on the same one. RACE: the first wait is satisfied by ANY bytes of the two
copies (all of copy b, or half of each), so copy a may still be writing `va` when it is read. The
second wait brings the sum to both copies, hence no leak, no deadlock, and the read of `vb` is
ordered.
"""

from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, tiles, vmem

RIGHT = Form()
WRONG = Form("race", line="o_ref[0] = va[...]")


def kernel(a_ref, b_ref, o_ref, va, vb, sems, *, correct):
    copy_a = pltpu.make_async_copy(a_ref, va, sems.at[0])
    copy_b = pltpu.make_async_copy(b_ref, vb, sems.at[1 if correct else 0])
    copy_a.start()
    copy_b.start()
    copy_a.wait()
    o_ref[0] = va[...]
    copy_b.wait()
    o_ref[1] = vb[...]


def build(n, correct):
    scratch = vmem(), vmem(), DMA((2,))
    one = call(kernel, *scratch, correct=correct, out=(2,), hbm=2, out_in_hbm=False)
    return one, (tiles(), tiles())
