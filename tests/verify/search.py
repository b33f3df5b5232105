"""All interleavings of a small program, by definition and one by one: the judge of the verifier.

It shares the model of events with `safepallas.verify` and nothing else. A state says how far each
core and each copy has come, byte by byte; the search visits every state that can be reached and
notes what goes wrong in it:

- deadlock: nothing can happen, and a core is not at its end;
- leak: a semaphore is above zero after its owner has left the call (the barrier semaphore: after
  the owner's last event, in a state in which nothing can happen);
- race: two accesses to the same memory are in flight, or about to happen, in one state; also
  those of one copy, which moves its elements in any order (rule 2);
- amount: a core is about to signal, wait for or copy less than nothing, or a semaphore holds more
  than 32 bits with a sign can (rule 3).

Two writes of the same bytes to the same region are noted apart (rule 11): copies of one region, to
which nothing in the program writes, and writes of one constant.

A copy of amount 0 does nothing (rule 1).

Amounts should be small: bytes are states.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Hashable

from safepallas._verify.program import (
    Access,
    Allocate,
    Barrier,
    Enter,
    Leave,
    Program,
    Region,
    Release,
    Semaphore,
    Signal,
    Start,
    Wait,
)

# An access: the core and place of its event, and "access", "read" or "write".
AccessKey = tuple[int, int, str]
# Of a copy: bytes told to the sender, is all read; bytes told to the receiver, is all written.
Flight = tuple[int, bool, int, bool]
State = tuple[tuple[int, ...], tuple[tuple[tuple[int, int], Flight], ...], tuple[int, ...]]


class TooManyStatesError(Exception):
    """The program is too large for this search."""


@dataclasses.dataclass
class Truth:
    """What can go wrong in some schedule."""

    deadlock: bool = False
    leaks: set[Semaphore] = dataclasses.field(default_factory=set)
    races: set[frozenset[AccessKey]] = dataclasses.field(default_factory=set)
    same_bytes: set[frozenset[AccessKey]] = dataclasses.field(default_factory=set)
    before_entry: set[AccessKey] = dataclasses.field(default_factory=set)  # of copies
    signals_before_entry: set[tuple[int, int]] = dataclasses.field(default_factory=set)
    after_exit: set[AccessKey] = dataclasses.field(default_factory=set)
    negative: set[tuple[int, int]] = dataclasses.field(default_factory=set)
    overflows: set[Semaphore] = dataclasses.field(default_factory=set)
    states: int = 0

    @property
    def is_safe(self) -> bool:
        return not (
            self.deadlock
            or self.leaks
            or self.races
            or self.before_entry
            or self.signals_before_entry
            or self.after_exit
            or self.negative
            or self.overflows
        )


class Search:
    """One program, and the way from a state to the next ones."""

    def __init__(self, program: Program, *, prompt: bool) -> None:
        self.program = program
        self.prompt = prompt
        names: dict[Semaphore, None] = {}
        for core in program.cores:
            for event in core:
                if isinstance(event, (Signal, Wait)):
                    names[event.semaphore] = None
                elif isinstance(event, Start):
                    names.update({s: None for s in (event.send, event.recv) if s is not None})
        self.semaphores = list(names)
        self.number = {semaphore: i for i, semaphore in enumerate(self.semaphores)}
        self.entered: dict[tuple[int, int], int] = {}
        self.barriers: dict[tuple[int, Hashable], int] = {}
        self.life = self.lifetimes()

    def start(self) -> State:
        return (0,) * len(self.program.cores), (), (0,) * len(self.semaphores)

    def next_event(self, state: State, core: int) -> object:
        events, at = self.program.cores[core], state[0][core]
        return events[at] if at < len(events) else None

    def lifetimes(self) -> dict[tuple[int, int], tuple[int, int]]:
        """By core and allocation: how far the core must have come, and how far it may."""
        found: dict[tuple[int, int], tuple[int, int]] = {}
        allocations = self.program.allocations
        for core, events in enumerate(self.program.cores):
            for place, event in enumerate(events):
                if isinstance(event, Enter):
                    # A core that stands at the barrier of a call has come to it.
                    self.entered[core, event.call] = place + (not event.barrier)
                elif isinstance(event, Barrier):
                    self.barriers[core, event.key] = place
                elif isinstance(event, Allocate):
                    found.update({(core, a): (place + 1, len(events)) for a in event.allocations})
                elif isinstance(event, Release):
                    for a in event.allocations:
                        found[core, a] = (found[core, a][0], place)
            for number, allocated in allocations.items():
                begin = self.entered.get((core, allocated.call))
                if begin is not None and (core, number) not in found:
                    ends = [
                        place
                        for place, event in enumerate(events)
                        if isinstance(event, Leave) and event.call == allocated.last_call
                    ]
                    found[core, number] = (begin, ends[0] if ends else len(events))
        return found

    def inside(self, state: State, core: int, allocation: int) -> int:
        """-1: the core has not yet what is allocated; 1: it has it no more; 0: it has it."""
        whole = (0, len(self.program.cores[core]))
        # What several cores have is there once one of them has come, until all have left.
        lives = [
            (state[0][one], *self.life.get((one, allocation), whole))
            for one in self.program.sharers(core, allocation)
        ]
        if all(at < begin for at, begin, _ in lives):
            return -1
        return int(all(at > end for at, _, end in lives))

    def following(self, state: State) -> list[State]:
        """Each state that one step leads to."""
        done, flights, values = state
        found: list[State] = []
        for core, at in enumerate(done):
            event = self.next_event(state, core)
            if event is None:
                continue
            moved = (*done[:core], at + 1, *done[core + 1 :])
            if isinstance(event, Wait):
                here = self.number[event.semaphore]
                if values[here] >= event.amount:
                    found.append((moved, flights, self.add(values, here, -event.amount)))
            elif isinstance(event, Signal):
                here = self.number[event.semaphore]
                found.append((moved, flights, self.add(values, here, event.amount)))
            elif isinstance(event, Start) and event.amount:
                flight: Flight = (0, False, 0, False)
                told = values
                if self.prompt:
                    told = self.tell(told, event.send, event.amount - 1)
                    told = self.tell(told, event.recv, event.amount - 1)
                found.append((moved, tuple(sorted([*flights, ((core, at), flight)])), told))
            elif isinstance(event, Enter) and event.barrier:
                if all(at >= self.entered[c, event.call] for c, at in enumerate(done)):
                    found.append((moved, flights, values))
            elif isinstance(event, Barrier):
                come = [self.barriers.get((c, event.key), math.inf) for c in event.among]
                if all(done[c] >= place for c, place in zip(event.among, come, strict=True)):
                    found.append((moved, flights, values))
            else:
                found.append((moved, flights, values))
        for i, (where, flight) in enumerate(flights):
            for after, semaphore in self.fly(where, flight):
                rest = flights[:i] + (((where, after),) if after else ()) + flights[i + 1 :]
                told = values if semaphore is None else self.add(values, semaphore, 1)
                if self.prompt:
                    event = self.program.cores[where[0]][where[1]]
                    assert isinstance(event, Start)
                    told = self.tell(values, event.recv if flight[1] else event.send, 1)
                found.append((done, rest, told))
        return found

    def fly(self, where: tuple[int, int], flight: Flight) -> list[tuple[Flight | None, int | None]]:
        """What a copy can do next: its state then (None: it is over), and whom it gives a byte."""
        event = self.program.cores[where[0]][where[1]]
        assert isinstance(event, Start)
        told, read, arrived, written = flight
        if self.prompt:
            return [(None if read else (0, True, 0, False), None)]
        steps: list[tuple[Flight, int | None]] = []
        if not read:
            steps.append(((told, True, arrived, written), None))
        elif not written:
            steps.append(((told, read, arrived, True), None))
        # The last byte is told of when all is read, or written.
        if event.send is not None and told < (event.amount if read else event.amount - 1):
            steps.append(((told + 1, read, arrived, written), self.number[event.send]))
        if event.recv is not None and arrived < (event.amount if written else event.amount - 1):
            steps.append(((told, read, arrived + 1, written), self.number[event.recv]))
        all_told = (
            0 if event.send is None else event.amount,
            True,
            0 if event.recv is None else event.amount,
            True,
        )
        return [(None if after == all_told else after, give) for after, give in steps]

    def tell(
        self, values: tuple[int, ...], semaphore: Semaphore | None, amount: int
    ) -> tuple[int, ...]:
        return values if semaphore is None else self.add(values, self.number[semaphore], amount)

    @staticmethod
    def add(values: tuple[int, ...], here: int, amount: int) -> tuple[int, ...]:
        return (*values[:here], values[here] + amount, *values[here + 1 :])

    def same_bytes(self, access: AccessKey, other: AccessKey) -> bool:
        events = [self.program.cores[core][at] for core, at, _ in (access, other)]
        match events:
            case [Access(region, True, _, value), Access(region2, True, _, value2)]:
                return region == region2 and value == value2 and value is not None
            case [Start(source, target, indices=()), Start(source2, target2, indices=())]:
                every = [event for core in self.program.cores for event in core]
                return (
                    access[:2] != other[:2]
                    and (access[2], other[2]) == ("write", "write")
                    and (source, target) == (source2, target2)
                    and not any(
                        source.overlaps(event.region)
                        for event in every
                        if isinstance(event, Access) and event.is_write
                    )
                    and not any(
                        source.overlaps(event.target)
                        for event in every
                        if isinstance(event, Start) and event.amount
                    )
                )
        return False

    def counts_granules(self, semaphore: Semaphore) -> bool:
        """Whether it counts 32 bytes as one."""
        allocated = self.program.allocations.get(semaphore.allocation)
        return allocated is not None and allocated.what.lower().startswith("dma")

    def active(self, state: State) -> list[tuple[AccessKey, Region, bool]]:
        """The accesses that are in flight, or that a core makes next."""
        found: list[tuple[AccessKey, Region, bool]] = []
        for core, at in enumerate(state[0]):
            event = self.next_event(state, core)
            if isinstance(event, Access):
                found.append(((core, at, "access"), event.region, event.is_write))
        for (core, at), (_, read, _, written) in state[1]:
            event = self.program.cores[core][at]
            assert isinstance(event, Start)
            if not read:
                found += [((core, at, "read"), r, False) for r in (event.source, *event.indices)]
            if not written:
                found.append(((core, at, "write"), event.target, True))
        return [one for one in found if not one[1].is_empty]


def search(
    program: Program, limit: int = 50_000, *, prompt: bool = False, first: bool = False
) -> Truth:
    """Visit all states, breadth first; or all up to the `first` in which something is wrong.

    If `prompt`, bytes are told of as soon as they may be. It misses nothing: where bytes are told
    of late, the same could have happened had they been told of at once, as counts are only higher.
    It needs far fewer states.

    Raises:
        TooManyStatesError: there are more than `limit`.
    """
    job, truth = Search(program, prompt=prompt), Truth()
    seen = {job.start()}
    queue = deque(seen)
    while queue:
        state = queue.popleft()
        following = job.following(state)
        _judge(job, state, not following, truth)
        if first and not truth.is_safe:
            break
        for after in following:
            if after not in seen:
                seen.add(after)
                queue.append(after)
        if len(seen) > limit:
            raise TooManyStatesError(f"more than {limit:,} states")
    truth.states = len(seen)
    return truth


def _judge(job: Search, state: State, is_last: bool, truth: Truth) -> None:
    done, _, values = state
    program = job.program
    if is_last and any(at < len(program.cores[core]) for core, at in enumerate(done)):
        truth.deadlock = True
    for semaphore, value in zip(job.semaphores, values, strict=True):
        if value >= 2**31 * (32 if job.counts_granules(semaphore) else 1):
            truth.overflows.add(semaphore)
        if value == 0:
            continue
        if semaphore.is_global:
            if is_last and done[semaphore.core] == len(program.cores[semaphore.core]):
                truth.leaks.add(semaphore)
        elif job.inside(state, semaphore.core, semaphore.allocation) > 0:
            truth.leaks.add(semaphore)
    active = job.active(state)
    for i, (access, region, is_write) in enumerate(active):
        for other, region2, is_write2 in active[:i]:
            if (is_write or is_write2) and region.overlaps(region2):
                pair = frozenset((access, other))
                (truth.same_bytes if job.same_bytes(access, other) else truth.races).add(pair)
        if access[2] != "access":
            inside = job.inside(state, region.core, region.allocation)
            if inside < 0 and access[0] not in program.sharers(region.core, region.allocation):
                truth.before_entry.add(access)
            elif inside > 0:
                truth.after_exit.add(access)
    for core, at in enumerate(done):
        event = job.next_event(state, core)
        semaphore = event.semaphore if isinstance(event, Signal) else None
        if isinstance(event, Start):
            semaphore = event.recv
        if isinstance(event, (Signal, Start, Wait)) and event.amount < 0:
            truth.negative.add((core, at))
        if isinstance(event, (Signal, Start)) and not event.amount:
            continue
        if semaphore is None or semaphore.is_global or semaphore.core == core:
            continue
        if job.inside(state, semaphore.core, semaphore.allocation) < 0:
            truth.signals_before_entry.add((core, at))
