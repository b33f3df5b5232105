"""Semaphores of one kind where another is needed."""

import safepallas as sp


class Sems(sp.Scratch):
    send = sp.dma_semaphore()
    recv = sp.dma_semaphore(3)
    ready = sp.semaphore()
    credits = sp.semaphore(3)


def kernel(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.signal(s.send)  # E: only a copy signals a DMA semaphore
    sp.wait(s.send)  # E: a DMA semaphore is waited for by its copy
    sp.wait(s.recv.at[0], 2)  # E: the same, out of an array
    sp.signal(s.recv[1], 1, device_id={"x": 0})  # E: the same, on another device
    sp.async_copy(x, o, s.ready).wait()  # E: a copy needs a DMA semaphore
    sp.make_async_copy(x, o, s.credits.at[2])  # E: the same, out of an array
    sp.async_remote_copy(x, o, s.ready, s.send, {"x": 1})  # E: the sending side
    sp.async_remote_copy(x, o, s.send, s.ready, {"x": 1})  # E: the receiving side
    sp.make_async_remote_copy(x, o, s.ready, s.credits[0], {"x": 1})  # E: both sides
    sp.wait_bytes(s.ready, o)  # E: a regular semaphore does not count bytes
    barrier = sp.get_barrier_semaphore()
    sp.async_copy(x, o, barrier).wait()  # E: a barrier semaphore carries no copy
    sp.async_remote_copy(x, o, s.send, barrier, {"x": 1}).wait()  # E: nor a remote one
    sp.wait_bytes(barrier, o)  # E: nor its bytes


def arrive(sem: sp.BarrierSemaphore) -> None:
    sp.signal(sem)


def drain(sem: sp.DmaSemaphore) -> None:
    sp.wait(sem)  # E: in a helper of its own


def helpers(s: Sems) -> None:
    arrive(s.ready)  # E: a regular semaphore is no barrier
    arrive(s.send)  # E: nor is a DMA semaphore
    drain(s.ready)  # E: a helper for DMA semaphores
    for sem in s.recv:
        sp.signal(sem)  # E: elements of a DMA array
    by_name = {"send": s.send, "recv": s.recv.at[0]}
    sp.wait(by_name["send"])  # E: through a dict
    list(map(lambda sem: sp.signal(sem), s.recv))  # E: inside a lambda
    list(map(sp.wait, s.recv))  # E: as an argument
