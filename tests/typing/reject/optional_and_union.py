"""Handles that may be absent or of several kinds, used without asking."""

import dataclasses

import safepallas as sp


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
