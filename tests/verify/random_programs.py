"""Small programs for the tests: by hand, and at random."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from hypothesis import strategies as st

from safepallas._verify.program import (
    Access,
    Allocate,
    Allocation,
    Enter,
    Event,
    Leave,
    Line,
    Program,
    Region,
    Release,
    Semaphore,
    Signal,
    Start,
    UndecidedError,
    Wait,
)

ROWS = 2
# What a mutation leaves alone: a core makes its calls and scopes in order.
KEPT = (Enter, Leave, Allocate, Release)
NOWHERE = Line("?", 0)


def barrier_semaphore(core: int) -> Semaphore:
    return Semaphore(core, 99, (), True)


def empty(region: Region) -> Region:
    """No rows, where the first one of a region would be."""
    return region._replace(high=region.low)


def finish(cores: list[list[Event]], calls: int, scopes: Sequence[int] = ()) -> Program:
    """Give each event a line of its own, so that each pair of events is a pair of lines."""
    lined = [
        [
            event._replace(line=Line("kernel.py", 100 * core + at + 1, "kernel"))
            for at, event in enumerate(events)
        ]
        for core, events in enumerate(cores)
    ]
    allocations = {99: Allocation("barrier", "barrier semaphore", -1)}
    for call in range(calls):
        allocations[10 * call] = Allocation("data", f"float32[{ROWS}]", call, (ROWS,))
        allocations[10 * call + 3] = Allocation("input", "float32[2]", call, (ROWS,))
        allocations[10 * call + 1] = Allocation("sems", "regular semaphores", call, (2,))
        allocations[10 * call + 2] = Allocation("dma", "dma semaphores", call, (2,))
    for i, call in enumerate(scopes):
        allocations[100 + 2 * i] = Allocation("inner", "float32[2]", call)
        allocations[101 + 2 * i] = Allocation("inner_sem", "dma semaphore", call)
    names = [f"call{call}" for call in range(calls)]
    return Program(lined, allocations, names, (("x", len(cores)),))


@dataclasses.dataclass
class _Writer:
    """Writes phases that are in balance by themselves.

    What is wrong comes from mutations, and from phases that access the same rows.
    """

    draw: st.DrawFn
    n: int
    cores: list[list[Event]]
    copies: int = 0
    call: int = 0
    scopes: list[int] = dataclasses.field(default_factory=list)  # by scope, its call
    later: list[tuple[int, Event]] = dataclasses.field(default_factory=list)

    def pick(self, *choices: object) -> object:
        return self.draw(st.sampled_from(choices))

    def number(self, below: int) -> int:
        return self.draw(st.integers(0, below - 1))

    def rarely(self) -> bool:
        return self.number(6) == 5

    def row(self, core: int, row: int) -> Region:
        if row == ROWS:
            return Region(core, 10 * self.call, (0,), (ROWS,))
        return Region(core, 10 * self.call, (row,), (row + 1,))

    def semaphore(self, core: int, what: int, index: int) -> Semaphore:
        return Semaphore(core, 10 * self.call + what, (index,))

    def emit(self, core: int, event: Event) -> None:
        self.cores[core].append(event)

    def barrier(self) -> None:
        others = self.pick("all", "right")
        for core in range(self.n):
            targets = [c for c in range(self.n) if c != core]
            targets = targets if others == "all" else [(core + 1) % self.n]
            for target in targets:
                self.emit(core, Signal(barrier_semaphore(target), 1, NOWHERE))
            self.emit(core, Wait(barrier_semaphore(core), len(targets), NOWHERE))

    def signal(self) -> None:
        giver, taker, index = self.number(self.n), self.number(self.n), self.number(2)
        amount = 0 if self.rarely() else 1 + self.number(2)
        if self.rarely():  # two of these are more than a semaphore can hold (rule 3)
            amount = 2**30
        self.emit(giver, Signal(self.semaphore(taker, 1, index), amount, NOWHERE))
        self.wait(taker, Wait(self.semaphore(taker, 1, index), amount, NOWHERE))

    def wait(self, core: int, event: Event) -> None:
        if self.number(4) == 0:
            self.later.append((core, event))
        else:
            self.emit(core, event)

    def copy(self) -> None:
        if self.copies == 2:
            return self.access()
        self.copies += 1
        sender, receiver = self.number(self.n), self.number(self.n)
        if self.copies == 1 and self.rarely():
            return self.same_bytes(sender, receiver)
        source, target = self.number(ROWS + 1), self.number(ROWS + 1)
        amount = 1 + self.number(2)
        send, recv = self.number(2), self.number(2)
        if sender == receiver and not self.rarely():  # else it may overlap itself (rule 2)
            source, target = source % ROWS, (source + 1) % ROWS
        # A core may also send to itself, perhaps on one semaphore for both ends.
        is_local = sender == receiver and self.number(2) == 0
        first = None if is_local else self.semaphore(sender, 2, send)
        last = self.semaphore(receiver, 2, recv)
        region = self.row(sender, source), self.row(receiver, target)
        if self.rarely():  # no rows (rule 1)
            amount, region = 0, (empty(region[0]), empty(region[1]))
        self.emit(sender, Start(*region, first, last, amount, NOWHERE))
        if first is not None:
            self.wait(sender, Wait(first, amount, NOWHERE))
        self.wait(receiver, Wait(last, amount, NOWHERE))
        return None

    def same_bytes(self, sender: int, receiver: int) -> None:
        """Two copies of one row into one row, and perhaps another write to the first (rule 11)."""
        source, target = self.row(sender, 0), self.row(receiver, 1)
        source = source._replace(allocation=source.allocation + 3)
        for index in range(2):
            recv = self.semaphore(receiver, 2, index)
            send = self.semaphore(sender, 2, index) if sender != receiver else None
            self.emit(sender, Start(source, target, send, recv, 1, NOWHERE))
            if send is not None:
                self.wait(sender, Wait(send, 1, NOWHERE))
            self.wait(receiver, Wait(recv, 1, NOWHERE))
        if self.number(4) == 0:
            self.emit(sender, Access(source, True, NOWHERE))

    def scope(self) -> None:
        """A copy into a buffer that one core has for a while."""
        if self.copies == 2:
            return self.access()
        self.copies += 1
        inner, own = 100 + 2 * len(self.scopes), 101 + 2 * len(self.scopes)
        self.scopes.append(self.call)
        core, amount = self.number(self.n), 1 + self.number(2)
        semaphore = self.semaphore(core, 2, 0) if self.number(2) else Semaphore(core, own)
        source, target = self.row(core, self.number(ROWS)), Region(core, inner)
        wait = Wait(semaphore, amount, NOWHERE)
        self.emit(core, Allocate((inner, own), NOWHERE))
        self.emit(core, Start(source, target, None, semaphore, amount, NOWHERE))
        if semaphore.allocation == own:
            self.emit(core, wait)
        else:
            self.wait(core, wait)
        if self.number(2):
            self.emit(core, Access(target, False, NOWHERE))
        self.emit(core, Release((inner, own), NOWHERE))
        return None

    def access(self) -> None:
        core = self.number(self.n)
        region = self.row(core, self.number(ROWS + 1))
        region = empty(region) if self.rarely() and self.rarely() else region
        is_write = self.number(2) == 0
        # Cores that share memory may store the same there (rule 11).
        value = 0 if is_write and self.number(2) == 0 else None
        self.emit(core, Access(region, is_write, NOWHERE, value))

    def flush(self) -> None:
        for core, event in self.later:
            self.emit(core, event)
        self.later.clear()


@st.composite
def protocols(draw: st.DrawFn) -> Program:
    """A program of two or three cores: half of them in balance, half with an event gone wrong."""
    n = draw(st.integers(2, 3))
    calls = draw(st.sampled_from([1, 1, 1, 2]))
    writer = _Writer(draw, n, [[] for _ in range(n)])
    for call in range(calls):
        writer.call = call
        barrier = draw(st.booleans())
        for core in range(n):
            writer.emit(core, Enter(call, barrier, NOWHERE))
        if not barrier and draw(st.integers(0, 3)):
            writer.barrier()
        kinds = ["signal", "copy", "copy", "copy", "access", "access", "access", "barrier", "scope"]
        for kind in draw(
            st.lists(st.sampled_from(kinds), min_size=2, max_size=5 if calls == 1 else 2)
        ):
            for _ in range(draw(st.sampled_from([1, 1, 2]))):
                getattr(writer, kind)()
        writer.flush()
        for core in range(n):
            writer.emit(core, Leave(call, NOWHERE))
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        mutate(draw, writer.cores)
    return finish(writer.cores, calls, writer.scopes)


@st.composite
def beginnings(draw: st.DrawFn) -> tuple[Program, Program]:
    """A program of which only the beginnings of some cores are known, and the whole (rule 12)."""
    whole = draw(protocols())
    opened = draw(st.sets(st.integers(0, len(whole.cores) - 1), min_size=1))
    cores = [
        events[: draw(st.integers(0, len(events)))] if core in opened else events
        for core, events in enumerate(whole.cores)
    ]
    unknown = UndecidedError("a value is not known")
    return dataclasses.replace(
        whole, cores=cores, open_cores=frozenset(opened), unknown=unknown
    ), whole


def mutate(draw: st.DrawFn, cores: list[list[Event]]) -> None:
    """Let one event of one device be gone, twice there, too late, or miscounted."""
    events = cores[draw(st.integers(0, len(cores) - 1))]
    places = [i for i, event in enumerate(events) if not isinstance(event, KEPT)]
    if not places:
        return
    at = draw(st.sampled_from(places))
    event = events[at]
    what = draw(st.sampled_from(["drop", "repeat", "swap", "count"]))
    if what == "drop":
        del events[at]
    elif what == "repeat":
        events.insert(at, event)
    elif what == "swap" and at + 1 in places:
        events[at : at + 2] = [events[at + 1], event]
    elif isinstance(event, (Signal, Wait)):
        amount = 3 - event.amount if event.amount < 3 else 1
        if draw(st.integers(0, 5)) == 5:
            amount = -1  # rule 3
        events[at] = event._replace(amount=amount)
