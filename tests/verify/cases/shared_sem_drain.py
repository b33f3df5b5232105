"""Two copies of DIFFERENT sizes share one DMA semaphore; the kernel waits for both (in the 'wrong'
order, the larger wait first) before it reads anything.

Right: after both waits the semaphore has been lowered by the total of both copies, so every byte
of both has arrived, whatever the order. The first wait alone proves nothing, but nothing is
read after it. A verifier must not flag sharing as such.
"""

from jax.experimental.pallas import tpu as pltpu

from . import DMA, Form, call, tiles, vmem

RIGHT = Form()


def kernel(a_ref, b_ref, o_ref, va, vb, sem):
    copy_a = pltpu.make_async_copy(a_ref, va, sem)
    copy_b = pltpu.make_async_copy(b_ref, vb, sem)
    copy_a.start()
    copy_b.start()
    copy_b.wait()
    copy_a.wait()
    o_ref[...] = vb[...]
    o_ref[0] += va[...]


def build(n, correct):
    one = call(kernel, vmem(), vmem(2), DMA, out=(2,), hbm=2, out_in_hbm=False)
    return one, (tiles(), tiles(2))
