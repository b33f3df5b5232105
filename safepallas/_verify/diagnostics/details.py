"""What each kind of finding consists of: cores, semaphores, accesses and amounts, and no sentence.

Cores, allocations and calls are numbers of a `Program`, which `messages` turns into names.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, TypeAlias

from safepallas._verify.program import Line, Region, Semaphore, Step, Where


class MemoryAccess(NamedTuple):
    """A read or a write of a region, from the moment it may begin to the moment it is over.

    `begin` is the event: an access of the core itself, or the start of a copy.
    """

    region: Region
    is_write: bool
    begin: Where
    end: Step
    line: Line

    @property
    def is_copy(self) -> bool:
        """Whether it is an end of a copy and not an access of the core itself."""
        return self.end.part != ""


@dataclasses.dataclass(frozen=True, slots=True)
class BlockedWait:
    """A core that waits for more on a semaphore than it holds."""

    core: int
    at: int
    line: Line
    semaphore: Semaphore
    amount: int
    value: int  # what the semaphore holds
    pending: int  # what would still be added by cores that are blocked themselves
    helpers: tuple[int, ...]  # the other cores among those
    waits_for: int | None  # a core that could help; itself; None if all of them would not do
    added: tuple[tuple[int, int], ...]  # who has added to the semaphore so far, and how much


@dataclasses.dataclass(frozen=True, slots=True)
class BlockedBarrier:
    """A core that waits at a barrier, or at the start of a call, for cores that are not there."""

    core: int
    at: int
    line: Line
    size: int  # the cores that must come
    call: int  # -1 for a barrier
    missing: tuple[int, ...]  # those that never come, or if all do, those that are blocked before
    waits_for: int | None  # one that is blocked before it; None if there are some that never come


Blocked: TypeAlias = BlockedWait | BlockedBarrier


@dataclasses.dataclass(frozen=True, slots=True)
class Deadlock:
    """One wait that nobody can end, or a circular wait."""

    cause: tuple[Blocked, ...]  # each waits for the next, the last for the first
    others: tuple[tuple[int, ...], ...]  # the cores of each such deadlock at the same lines
    behind: tuple[int, ...]  # the cores that wait for one of all these


@dataclasses.dataclass(frozen=True, slots=True)
class Leak:
    """A semaphore that is not zero where its scope ends."""

    semaphore: Semaphore
    balance: int  # what all signals and all waits add up to
    taken: int
    waits: int  # how many there are
    last: Where  # the last event that adds to it
    last_amount: int
    is_copy: bool  # whether that starts a copy
    end: Where | None  # where its scope ends; None for the barrier semaphore, after the last call
    others: tuple[Semaphore, ...]  # that are left above zero likewise, by the same line

    @property
    def added(self) -> int:
        return self.balance + self.taken


@dataclasses.dataclass(frozen=True, slots=True)
class Race:
    """Two accesses to the same elements, one of them a write, with no happens-before order.

    They may be of one copy, which begins both at the same event.
    """

    first: MemoryAccess  # of the two, in the schedule that was analysed
    second: MemoryAccess  # which may come before it


@dataclasses.dataclass(frozen=True, slots=True)
class SameWrites:
    """Two writes of the same bytes to the same region, with no happens-before order."""

    first: MemoryAccess
    second: MemoryAccess


@dataclasses.dataclass(frozen=True, slots=True)
class AccessBeforeEntry:
    """A copy may begin before the memory that it reads or writes is allocated on another core."""

    access: MemoryAccess
    allocation: Where  # the event that allocates it: a call or a scope begins


@dataclasses.dataclass(frozen=True, slots=True)
class NeverAllocated:
    """A copy goes to a buffer of a scope that the other core never opens."""

    access: MemoryAccess


@dataclasses.dataclass(frozen=True, slots=True)
class SignalBeforeEntry:
    """A signal, or a copy's end, may reach a semaphore that is not allocated yet."""

    signal: Where
    semaphore: Semaphore
    allocation: Where


@dataclasses.dataclass(frozen=True, slots=True)
class AccessAfterExit:
    """A copy may go on in memory of another core after that core has released it."""

    access: MemoryAccess
    release: Where


@dataclasses.dataclass(frozen=True, slots=True)
class UnawaitedCopy:
    """A copy may still be in flight when its own core releases the memory."""

    access: MemoryAccess
    release: Where


@dataclasses.dataclass(frozen=True, slots=True)
class NegativeAmount:
    """A signal, a wait or a copy of less than nothing."""

    event: Where
    amount: int


@dataclasses.dataclass(frozen=True, slots=True)
class Overflow:
    """A semaphore that may come to more than it can hold."""

    semaphore: Semaphore
    value: int
    most: int  # that it can hold
    last: Where  # the last event that adds to it, in the schedule that shows it


@dataclasses.dataclass(frozen=True, slots=True)
class Stated:
    """What was found while the program was extracted, before there is one to draw names from."""

    text: str


Detail: TypeAlias = (
    Deadlock
    | Leak
    | Race
    | AccessBeforeEntry
    | NeverAllocated
    | SignalBeforeEntry
    | AccessAfterExit
    | UnawaitedCopy
    | NegativeAmount
    | Overflow
    | SameWrites
    | Stated
)
