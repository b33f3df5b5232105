"""Amounts of signals and waits, and options that safepallas does not offer."""

import jax

import safepallas as sp


def kernel(sem: sp.Semaphore, n: jax.Array) -> None:
    sp.signal(sem, 1.9)  # E: raw Pallas would make it 1
    sp.signal(sem, "1")  # E: a string is no amount
    sp.signal(sem, None)  # E: leave it out for 1
    sp.signal(sem, inc=[1, 2])  # E: one amount
    sp.signal(sem, n, 3)  # E: device_id is by keyword only
    sp.signal(sem, sem)  # E: a semaphore is no amount
    sp.signal(sem, value=2)  # E: it is called inc
    sp.wait(sem, 0.5)  # E: a wait takes whole ones
    sp.wait(sem, None)  # E: leave it out for 1
    sp.wait(sem, inc=2)  # E: it is called value
    sp.wait(sem, 1, decrement=False)  # E: the TPU lowering drops it, so it is not offered
    sp.wait(sem, 2, device_id={"x": 0})  # E: a wait is for one's own semaphore
    sp.signal(sem, core_index="left")  # E: a core is an int
    sp.signal(sem, core_index=1.0)  # E: not a float
    sp.signal()  # E: which semaphore?
    sp.wait()  # E: which semaphore?
    taken: int = sp.wait(sem)  # E: a wait gives nothing back
    del taken
