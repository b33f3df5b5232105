"""Semaphores of one kind, or of several, where another is needed, and amounts that are none."""

import dataclasses

import jax

import safepallas as sp


# Semaphores of one kind where another is needed.
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


# Handles that may be absent or of several kinds, used without asking.
@dataclasses.dataclass
class Stream:
    src: sp.Ref
    dst: sp.Ref
    sem: sp.DmaSemaphore | None = None
    done: sp.Semaphore | sp.DmaSemaphore | None = None

    def run(self) -> None:
        sp.async_copy(self.src, self.dst, self.sem).wait()  # E: it may be None
        if self.done is not None:
            sp.signal(self.done)  # E: it may be a DMA semaphore
        if not isinstance(self.done, sp.DmaSemaphore):
            sp.wait(self.done)  # E: it may be None


def either(sem: sp.Semaphore | sp.DmaSemaphore, o: sp.Ref) -> None:
    sp.wait(sem)  # E: it may be a DMA semaphore
    sp.wait_bytes(sem, o)  # E: it may be a regular one
    if isinstance(sem, sp.Semaphore):
        sp.wait_bytes(sem, o)  # E: here it is a regular one
    else:
        sp.wait(sem)  # E: and here a DMA semaphore


def one_or_many(
    x: sp.Ref, o: sp.Ref, sems: sp.DmaSemaphore | sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]
) -> None:
    sp.async_copy(x, o, sems).wait()  # E: it may be an array
    sp.async_copy(x, o, sems.at[0]).wait()  # E: it may be one semaphore


def lookup(sems: dict[str, sp.Semaphore], name: str) -> None:
    sp.signal(sems.get(name))  # E: get() may give None
    sp.signal(sems.get(name, 0))  # E: and 0 is no semaphore


def maybe(sem: sp.DmaSemaphore | None) -> sp.DmaSemaphore:
    return sem  # E: it may be None


def anything(sem: object) -> None:
    sp.signal(sem)  # E: an object is no semaphore
    sp.read(sem)  # E: not even to be read


# Amounts of signals and waits, and options that safepallas does not offer.
def amounts(sem: sp.Semaphore, n: jax.Array) -> None:
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
