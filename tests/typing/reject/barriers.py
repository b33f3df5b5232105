"""The barrier semaphore, misused."""

import jax

import safepallas as sp


def kernel(x: sp.Ref, o: sp.Ref, send: sp.DmaSemaphore, recv: sp.DmaSemaphore) -> None:
    barrier = sp.get_barrier_semaphore()
    sp.get_barrier_semaphore(0)  # E: collective_id stands in CompilerParams
    sp.get_barrier_semaphore(collective_id=0)  # E: the same by keyword
    barrier.at[0]  # E: it is one semaphore
    barrier.signal()  # E: operations are functions: sp.signal(barrier)
    barrier.wait(2)  # E: sp.wait(barrier, 2)
    sp.async_remote_copy(x, o, barrier, recv, {"x": 1})  # E: it carries no copy
    sp.async_remote_copy(x, o, send, recv, barrier)  # E: nor is it a device
    neighbours(barrier.ref)  # E: a helper wants the handle
    neighbours(sp.get_barrier_semaphore)  # E: it is not called
    mine: sp.Semaphore = barrier  # E: a barrier semaphore is no regular one
    count: jax.Array = barrier  # E: nor is it its count
    del mine, count


def neighbours(barrier: sp.BarrierSemaphore) -> None:
    sp.signal(barrier, device_id={"x": 0})
    sp.wait(barrier)


def wrong_scratch(o: sp.Ref, ready: sp.Semaphore, slots: sp.SemaphoreArray[sp.BarrierSemaphore, tuple[int]]) -> None:
    neighbours(ready)  # E: a regular semaphore is no barrier
    neighbours(slots)  # E: one of them
    neighbours(slots.at[0].at[0])  # E: that is one already
