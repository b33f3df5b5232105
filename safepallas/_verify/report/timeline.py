"""A schedule laid out in time: when each core is where, what is in flight, what reaches whom.

The time is logical. An event takes one step of it, a copy a few, and each happens as soon as what
it needs has happened: cores run side by side, as they do on the chip, although the schedule names
one event after the other. Which signal satisfies which wait is what the semaphore machine records.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from safepallas._verify.analysis.semaphore_machine import ENTER, number_program, replay
from safepallas._verify.diagnostics.finding import Finding
from safepallas._verify.program import Program, Signal, Start, Step, Wait, Where

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
    blocked: dict[int, int]  # by core: since when it waits at its next event, which never happens
    flights: dict[Where, Flight]
    hops: list[Hop]
    length: int  # the first time at which nothing happens any more


def lay_out(program: Program, order: Iterable[Step], late: Step | None = None) -> Timeline:
    """The schedule `order` in logical time.

    `late` is a step to be shown as late as the schedule allows: after all that comes before it in
    `order`. Without that it would move to where it may happen first.
    """
    return _Layout(program, order, late).lay_out()


def complete(
    program: Program, finding: Finding, order: Sequence[Step]
) -> tuple[list[Step], Step | None]:
    """The schedule that shows a finding, to its end, and the step of it that is to be late.

    Its schedule ends with what should not have happened yet, while the other of the two is held
    back. If it ends with the start of a copy, the whole of that copy comes then. Next is what was
    held back, and after it the rest of `order`: what could happen still can.
    """
    shown = [*finding.schedule]
    happened = set(shown)
    core, at, _ = last = shown[-1]
    if isinstance(program.cores[core][at], Start) and last[:2] in finding.events:
        ends = Step(core, at, "read"), Step(core, at, "write")
        shown += [step for step in ends if step not in happened]
        happened.update(ends)
    rest = [step for step in order if step not in happened]
    late = next((step for step in rest if step[:2] in finding.events), None)
    return [*shown, *rest], late


class _Layout:
    def __init__(self, program: Program, order: Iterable[Step], late: Step | None) -> None:
        self.program = program
        self.numbered = number_program(program)
        self.run = replay(self.numbered, order)
        self.late = late
        self.moments: list[list[Moment]] = [[] for _ in program.cores]
        self.free = [0] * len(program.cores)  # the time of each core's next event
        self.arrivals: dict[Step, int] = {}  # when a signal, or an end of a copy, arrives
        self.hop_of: dict[Step, Hop] = {}
        self.barriers: dict[int, int] = {}  # when all cores are at a barrier, by its number
        self.flights: dict[Where, Flight] = {}
        self.hops: list[Hop] = []
        self.last = 0

    def lay_out(self) -> Timeline:
        for step in self.run.order:
            earliest = self.last + 1 if step == self.late else 0
            event = self.program.cores[step.core][step.at]
            if step.part == "":
                self.place_event(step, earliest)
            elif isinstance(event, Start):
                self.place_end_of_copy(step, event, earliest)
        length = self.last + 1
        blocked = {
            core: free
            for core, free in enumerate(self.free)
            if len(self.moments[core]) < len(self.program.cores[core])
        }
        if blocked:
            length = max(length, *(free + 1 for free in blocked.values())) + 1
        return Timeline(self.moments, blocked, self.flights, self.hops, length)

    def place_event(self, step: Step, earliest: int) -> None:
        core, where = step.core, Where(step.core, step.at)
        event = self.program.cores[core][step.at]
        begin = end = max(self.free[core], earliest)
        code, number, _ = self.numbered.ops[core][step.at]
        if isinstance(event, Wait):
            end = max(begin, self.take(where))
        elif code == ENTER:
            end = max(begin, self.barrier(number))
        elif isinstance(event, Signal):
            self.arrivals[step] = begin + 1
            self.add_hop(step, begin, event.semaphore.core, begin + 1, is_copy=False)
        elif isinstance(event, Start):
            self.flights[where] = Flight(begin, None)
        self.moments[core].append(Moment(begin, end))
        self.free[core] = end + 1
        self.last = max(self.last, end)

    def take(self, wait: Where) -> int:
        """When all that satisfies a wait has arrived."""
        time = 0
        for step in self.run.satisfied_by[wait]:
            time = max(time, self.arrivals[step])
            if step in self.hop_of:
                self.hop_of[step].into = wait
        return time

    def barrier(self, number: int) -> int:
        """When all cores are at a barrier."""
        # The first to pass finds all the others there: none is beyond it yet.
        among = self.numbered.barriers[number].among
        return self.barriers.setdefault(number, max(self.free[other] for other in among))

    def place_end_of_copy(self, step: Step, event: Start, earliest: int) -> None:
        where = Where(step.core, step.at)
        begin = self.flights[where].begin
        if step.part == "read":
            time = max(begin + READ_TAKES, earliest)
        else:
            # Never complete before the source is read.
            read = self.arrivals.get(step._replace(part="read"), 0)
            time = max(begin + COPY_TAKES, read + 1, earliest)
            self.flights[where] = Flight(begin, time)
            into = event.target.core if event.recv is None else event.recv.core
            self.add_hop(step, begin, into, time, is_copy=True)
        self.arrivals[step] = time
        self.last = max(self.last, time)

    def add_hop(
        self, step: Step, departure: int, into: int, arrival: int, *, is_copy: bool
    ) -> None:
        """An arrow, where it goes to another core."""
        if into != step.core:
            hop = Hop(Where(step.core, step.at), departure, into, arrival, is_copy)
            self.hop_of[step] = hop
            self.hops.append(hop)
