"""Waits for 2 on a regular semaphore. Right: signals it by 2.

Wrong: signals it by 1, and nobody else does. DEADLOCK.
"""

from jax.experimental import pallas as pl

from . import REGULAR, Form, call, tiles

RIGHT = Form()
WRONG = Form("deadlock", line="pl.semaphore_wait(sem, 2)")


def kernel(x_ref, o_ref, sem, *, correct):
    pl.semaphore_signal(sem, 2 if correct else 1)
    pl.semaphore_wait(sem, 2)
    o_ref[...] = x_ref[...]


def build(n, correct):
    return call(kernel, REGULAR, correct=correct, hbm=None, out_in_hbm=False), (tiles(),)
