"""The barrier semaphore and the barriers between devices and between cores, misused."""

import jax

import safepallas as sp


# The barrier semaphore, misused.
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


# The barriers between devices and between cores, misused.
def between_devices(ready: sp.Semaphore, i: jax.Array) -> None:
    sp.barrier_neighbors(0)  # E: an axis has a name
    sp.barrier_neighbors(("x", "y"))  # E: one axis; several are barrier_all's
    sp.barrier_neighbors(None)  # E: no axis
    sp.barrier_neighbors()  # E: left out
    sp.barrier_neighbors("x", "y")  # E: one only
    sp.barrier_neighbors(ready)  # E: it takes the semaphore of the collective_id
    sp.barrier_neighbors("x", collective_id=0)  # E: that stands in CompilerParams
    sp.barrier_all(0)  # E: no name
    sp.barrier_all(("x", 1))  # E: the second is none
    sp.barrier_all({"x": 1})  # E: names, not coordinates
    sp.barrier_all(i)  # E: nor a traced value
    sp.barrier_all("x", "y")  # E: a sequence of names: ("x", "y")
    sp.barrier_all(sp.get_barrier_semaphore())  # E: it gets that itself
    sp.barrier_all()  # E: over which axes?
    count: int = sp.barrier_all("x")  # E: it returns nothing
    sp.wait(sp.barrier_neighbors("x"))  # E: it has waited
    del count


Slots = sp.SemaphoreArray[sp.Semaphore, tuple[int]]


def between_cores(ready: sp.Semaphore, copied: sp.DmaSemaphore, barrier: sp.BarrierSemaphore, two: Slots) -> None:
    sp.core_barrier(copied, core_axis_name="core")  # E: copies only
    sp.core_barrier(barrier, core_axis_name="core")  # E: cores of one device take a regular one
    sp.core_barrier(two, core_axis_name="core")  # E: one of them
    sp.core_barrier(ready.ref, core_axis_name="core")  # E: the handle
    sp.core_barrier(ready, "core")  # E: by keyword, as in Pallas
    sp.core_barrier(ready)  # E: which axis?
    sp.core_barrier(ready, core_axis_name=0)  # E: its name
    sp.core_barrier(core_axis_name="core")  # E: which semaphore?
