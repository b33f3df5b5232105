"""Waits for 1 on a regular semaphore. Right: signals it by 1.

Wrong: signals it by 2. LEAK: it is 1 at the end of the kernel.
"""

from jax.experimental import pallas as pl

from . import REGULAR, Form, call, tiles

RIGHT = Form()
WRONG = Form("leak", line="pl.semaphore_signal(sem, 2)")


def kernel(x_ref, o_ref, sem, *, correct):
    if correct:
        pl.semaphore_signal(sem, 1)
    else:
        pl.semaphore_signal(sem, 2)
    pl.semaphore_wait(sem, 1)
    o_ref[...] = x_ref[...]


def build(n, correct):
    return call(kernel, REGULAR, correct=correct, hbm=None, out_in_hbm=False), (tiles(),)
