"""Kernel A signals its scratch semaphore.

Right: it waits on it as well, and kernel B uses none.
Wrong: kernel B waits on its own scratch semaphore, as if they were the same one. LEAK in A
(semaphore is 1 at its end) and DEADLOCK in B (nobody signals B's semaphore). Each kernel is judged
by itself; the first finding in program order is the leak.
"""

from jax.experimental import pallas as pl

from . import REGULAR, Form, call, tiles

RIGHT = Form()
WRONG = Form("leak", also=("deadlock",), line="pl.semaphore_signal(sem, 1)")


def kernel_a(x_ref, o_ref, sem, *, correct):
    pl.semaphore_signal(sem, 1)
    if correct:
        pl.semaphore_wait(sem, 1)
    o_ref[...] = x_ref[...] + 1.0


def kernel_b(x_ref, o_ref, sem, *, correct):
    if not correct:
        pl.semaphore_wait(sem, 1)
    o_ref[...] = x_ref[...] * 2.0


def build(n, correct):
    a, b = (
        call(kernel, REGULAR, correct=correct, hbm=None, out_in_hbm=False)
        for kernel in (kernel_a, kernel_b)
    )
    return lambda x: b(a(x)), (tiles(),)
