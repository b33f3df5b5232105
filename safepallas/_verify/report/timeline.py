"""A schedule laid out in time: when each core is where, what is in flight, what reaches whom.

The time is logical. An event takes one step of it, a copy a few, and each happens as soon as what
it needs has happened: cores run side by side, as they do on the chip, although the schedule names
one event after the other.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from safepallas._verify.program import (
    Barrier,
    Enter,
    Finding,
    Program,
    Semaphore,
    Signal,
    Start,
    Step,
    Wait,
    Where,
)

# Steps from the start of a copy to its ends: few, but enough for an arrow to be seen.
READ_TAKES: Final = 2
COPY_TAKES: Final = 3


class Moment(NamedTuple):
    """When a core comes to an event, and when the event happens: later, where it has to wait."""

    begin: int
    end: int


class Flight(NamedTuple):
    """A copy between its start and its end. `end` is None where the schedule does not end it."""

    begin: int
    end: int | None


@dataclasses.dataclass(slots=True)
class Hop:
    """A signal or the end of a copy on its way to the core that owns the semaphore or buffer."""

    source: Where  # the event that sends it
    departure: int
    core: int  # where it arrives
    arrival: int
    is_copy: bool
    into: Where | None = None  # the wait that took it; None if none did


@dataclasses.dataclass(slots=True)
class Timeline:
    """A schedule in logical time."""

    moments: list[list[Moment]]  # by core and event, as far as the core comes
    blocked: dict[int, int]  # by core: since when it waits for ever at its next event
    flights: dict[Where, Flight]
    hops: list[Hop]
    length: int  # the first time at which nothing happens any more


def lay_out(program: Program, order: Iterable[Step], late: Step | None = None) -> Timeline:
    """The schedule `order` in logical time.

    `late` is a step to be shown as late as the schedule allows: after all that comes before it in
    `order`. Without that it would move to where it may happen first.
    """
    return _Layout(program).run(order, late)


def complete(
    program: Program, finding: Finding, order: Sequence[Step]
) -> tuple[list[Step], Step | None]:
    """The schedule that shows a finding, to its end, and the step of it that is to be late.

    A witness ends with what should not have happened yet, while the other of the two is held back.
    If it ends with the start of a copy, the whole of that copy comes then. Next is what was held
    back, and after it the rest of `order`: what could happen still can.
    """
    shown = [*finding.witness]
    happened = set(shown)
    core, at, _ = last = shown[-1]
    if isinstance(program.cores[core][at], Start) and last[:2] in finding.events:
        ends = Step(core, at, "read"), Step(core, at, "write")
        shown += [step for step in ends if step not in happened]
        happened.update(ends)
    rest = [step for step in order if step not in happened]
    late = next((step for step in rest if step[:2] in finding.events), None)
    return [*shown, *rest], late


class _Arrivals:
    """What has come to one semaphore, earliest first, and what its owner has taken of it."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, int, int, Hop | None]] = []  # a heap: time, serial, amount
        self.serial = 0
        self.come = 0
        self.asked = 0
        self.time = 0

    def add(self, time: int, amount: int, hop: Hop | None) -> None:
        self.serial += 1
        heapq.heappush(self.waiting, (time, self.serial, amount, hop))

    def take(self, amount: int, taker: Where) -> int:
        """When there is enough for the next wait."""
        self.asked += amount
        while self.come < self.asked and self.waiting:
            time, _, more, hop = heapq.heappop(self.waiting)
            self.come += more
            self.time = max(self.time, time)
            if hop is not None:
                hop.into = taker
        return self.time


class _Layout:
    def __init__(self, program: Program) -> None:
        cores = len(program.cores)
        self.program = program
        self.moments: list[list[Moment]] = [[] for _ in range(cores)]
        self.free = [0] * cores  # the time of each core's next event
        self.arrivals: defaultdict[Semaphore, _Arrivals] = defaultdict(_Arrivals)
        self.entries: list[defaultdict[Hashable, int]] = [defaultdict(int) for _ in range(cores)]
        self.gates: dict[tuple[Hashable, int], int] = {}  # when all cores have come to a call
        self.flights: dict[Where, Flight] = {}
        self.reads: dict[Where, int] = {}
        self.hops: list[Hop] = []
        self.last = 0

    def run(self, order: Iterable[Step], late: Step | None) -> Timeline:
        for step in order:
            core, at, part = step
            floor = self.last + 1 if step == late else 0
            event = self.program.cores[core][at]
            if part == "":
                self.happen(Where(core, at), floor)
            elif isinstance(event, Start):
                self.end_copy(Where(core, at), event, part, floor)
        length = self.last + 1
        blocked = {
            core: free
            for core, free in enumerate(self.free)
            if len(self.moments[core]) < len(self.program.cores[core])
        }
        if blocked:
            length = max(length, *(free + 1 for free in blocked.values())) + 1
        return Timeline(self.moments, blocked, self.flights, self.hops, length)

    def happen(self, where: Where, floor: int) -> None:
        core = where.core
        event = self.program.cores[core][where.at]
        begin = end = max(self.free[core], floor)
        match event:
            case Wait():
                end = max(begin, self.arrivals[event.semaphore].take(event.amount, where))
            case Enter(barrier=True):
                end = max(begin, self.gate(core, event.call, range(len(self.free))))
            case Barrier():
                end = max(begin, self.gate(core, ("meet", event.key), event.among))
            case Signal():
                hop = None
                if event.semaphore.core != core:
                    hop = Hop(where, begin, event.semaphore.core, begin + 1, is_copy=False)
                    self.hops.append(hop)
                self.arrivals[event.semaphore].add(begin + 1, event.amount, hop)
            case Start():
                self.flights[where] = Flight(begin, None)
            case _:
                pass
        self.moments[core].append(Moment(begin, end))
        self.free[core] = end + 1
        self.last = max(self.last, end)

    def gate(self, core: int, what: Hashable, among: Iterable[int]) -> int:
        """When all those cores have come to a call or a barrier, for the first time or a later."""
        self.entries[core][what] += 1
        key = what, self.entries[core][what]
        # The first to pass finds all the others there: none is beyond its own entry yet.
        return self.gates.setdefault(key, max(self.free[other] for other in among))

    def end_copy(self, where: Where, event: Start, part: str, floor: int) -> None:
        begin = self.flights[where].begin
        if part == "read":
            time = self.reads[where] = max(begin + READ_TAKES, floor)
            if event.send is not None:
                self.arrivals[event.send].add(time, event.amount, None)
        else:
            # Never complete before the source is read.
            time = max(begin + COPY_TAKES, self.reads.get(where, 0) + 1, floor)
            self.flights[where] = Flight(begin, time)
            hop = None
            into = event.target.core if event.recv is None else event.recv.core
            if into != where.core:
                hop = Hop(where, begin, into, time, is_copy=True)
                self.hops.append(hop)
            if event.recv is not None:
                self.arrivals[event.recv].add(time, event.amount, hop)
        self.last = max(self.last, time)
