"""Memory is allocated for a call, or for a scope in it: nothing may use it before or after.

Another device must know that the owner has entered before it writes or signals there, and no copy
may still be in flight when the owner leaves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import NamedTuple

from safepallas._verify.analysis.happens_before import Budget, Ordering
from safepallas._verify.analysis.races import schedule_without
from safepallas._verify.analysis.semaphore_machine import NumberedProgram, Run, reach
from safepallas._verify.diagnostics.details import (
    AccessAfterExit,
    AccessBeforeEntry,
    Detail,
    MemoryAccess,
    NeverAllocated,
    SignalBeforeEntry,
    UnawaitedCopy,
)
from safepallas._verify.diagnostics.finding import Finding, FindingKind
from safepallas._verify.program import (
    Allocate,
    Enter,
    Leave,
    Line,
    Release,
    Semaphore,
    Signal,
    Start,
    Step,
    Where,
)

_MARKS = {Enter, Leave, Allocate, Release}


class Span(NamedTuple):
    """From the event that begins a scope to the one that ends it; None if that never comes."""

    begin: Where
    end: Where | None = None


class Lifetimes:
    """The events that allocate and release what each core has."""

    def __init__(self, numbered: NumberedProgram) -> None:
        self._allocations = numbered.program.allocations
        self._calls: dict[tuple[bool, int, int], Where] = {}
        self._scopes: dict[tuple[bool, int, int], Where] = {}
        self._found: dict[tuple[bool, int, int], Where | None] = {}
        # By core and allocation: when a buffer of scopes at one place is there, in order.
        self._spans: dict[tuple[int, int], list[Span]] = {}
        for core, events in enumerate(numbered.program.cores):
            for at, event in enumerate(events):
                if type(event) not in _MARKS:
                    continue
                if isinstance(event, Enter):
                    self._calls[True, core, event.call] = Where(core, at)
                elif isinstance(event, Leave):
                    self._calls[False, core, event.call] = Where(core, at)
                elif isinstance(event, Allocate):
                    for allocation in event.allocations:
                        self._scopes.setdefault((True, core, allocation), Where(core, at))
                        spans = self._spans.setdefault((core, allocation), [])
                        spans.append(Span(Where(core, at)))
                elif isinstance(event, Release):
                    for allocation in event.allocations:
                        self._scopes[False, core, allocation] = Where(core, at)
                        spans = self._spans[core, allocation]
                        spans[-1] = Span(spans[-1].begin, Where(core, at))

    def is_scoped(self, allocation: int) -> bool:
        """Whether it is a buffer that only scopes have."""
        allocated = self._allocations.get(allocation)
        return allocated is not None and allocated.place is not None

    def spans(self, core: int, allocation: int) -> list[Span]:
        """When a core has a buffer of scopes."""
        return self._spans.get((core, allocation), [])

    def allocation(self, core: int, allocation: int) -> Where | None:
        """The event from which on it is there; None if it outlives the calls."""
        return self._find(True, core, allocation)

    def allocations(self, sharers: tuple[int, ...], allocation: int) -> list[Where]:
        """That of each of those who share it."""
        found = [self._find(True, core, allocation) for core in sharers]
        return [where for where in found if where is not None]

    def releases(self, sharers: tuple[int, ...], allocation: int, first: int) -> list[Where]:
        """The events that release it, of each of those who share it; that of `first` first."""
        if len(sharers) == 1:
            release = self._find(False, sharers[0], allocation)
            return [] if release is None else [release]
        found = [self._find(False, core, allocation) for core in sharers]
        return sorted(
            (release for release in found if release is not None),
            key=lambda release: (release.core != first, release.core),
        )

    def _find(self, begins: bool, core: int, allocation: int) -> Where | None:
        key = begins, core, allocation
        if key not in self._found:
            self._found[key] = self._look_up(begins, core, allocation)
        return self._found[key]

    def _look_up(self, begins: bool, core: int, allocation: int) -> Where | None:
        if (begins, core, allocation) in self._scopes:
            return self._scopes[begins, core, allocation]
        allocated = self._allocations.get(allocation)
        if allocated is None:
            return None
        call = allocated.call if begins else allocated.last_call
        return self._calls.get((begins, core, call))


class _KnownAllocations:
    """Whether a core certainly knows that memory is allocated: from then on it does."""

    def __init__(self, ordering: Ordering) -> None:
        self._ordering = ordering
        self._since: dict[tuple[int, Where], int] = {}  # by who asks, and what

    def certain(self, allocation: Where, then: Where) -> bool:
        key = then.core, allocation
        since = self._since.get(key)
        if since is not None and since <= then.at:
            return True
        is_certain = self._ordering.certain(Step(*allocation), then)
        if is_certain:
            self._since[key] = then.at
        return is_certain


def lifetime_violations(
    numbered: NumberedProgram,
    run: Run,
    accesses: list[MemoryAccess],
    ordering: Ordering,
    leaking: set[Semaphore],
    budget: Budget,
    accept: Collection[FindingKind] = (),
) -> list[Finding]:
    """What uses memory that is not allocated: one finding for each pair of source lines.

    `leaking` are semaphores whose counts do not come out: a copy that nobody waits for is reported
    there. A finding of a kind that is in `accept` stands for no other.
    """
    if FindingKind.LEAK in accept:
        leaking = set()
    search = _Search(numbered, ordering, run, budget, accept)
    for access in accesses:
        if access.end.part and search.is_of_a_scope_elsewhere(access):
            search.access_to_a_scope(access)
        elif access.end.part:
            search.access_before_entry(access)
            if not leaking or not _told_by(numbered, access) & leaking:
                search.access_after_exit(access, run)
    cores = numbered.program.cores
    for core, at, part in run.order:
        if part:
            continue
        event = cores[core][at]
        if type(event) is Signal and event.amount:
            search.signal_before_entry(Where(core, at), event.semaphore, event.line)
        elif type(event) is Start and event.recv is not None and event.amount:
            search.signal_before_entry(Where(core, at), event.recv, event.line)
    return [*search.accepted, *search.found.values()]


class _Search:
    """Looks at copies and signals one by one, and keeps a finding for each pair of lines."""

    def __init__(
        self,
        numbered: NumberedProgram,
        ordering: Ordering,
        run: Run,
        budget: Budget,
        accept: Collection[FindingKind],
    ) -> None:
        self._accept, self.accepted = accept, list[Finding]()
        self._told: set[tuple[FindingKind, tuple[Line, Line]]] = set()
        self._numbered = numbered
        self._run = run
        self._budget = budget
        self._cores = numbered.program.cores
        self._open = numbered.program.open_cores
        self._ordering = ordering
        self._lifetimes, self._known = Lifetimes(numbered), _KnownAllocations(ordering)
        self._shares = _shares(numbered)
        self.found: dict[tuple[Line, Line], Finding] = {}

    def _sharers(self, core: int, allocation: int) -> tuple[int, ...]:
        shared = self._shares.get(allocation)
        return (core,) if shared is None else shared[core]

    def is_of_a_scope_elsewhere(self, access: MemoryAccess) -> bool:
        """Whether it is to a buffer of a scope of another core."""
        core, allocation = access.region[:2]
        return access.begin.core != core and self._lifetimes.is_scoped(allocation)

    def access_to_a_scope(self, access: MemoryAccess) -> None:
        """A copy to a buffer of a scope must be within one time that its owner has it.

        The last time that is sure to have begun before is the only one that it could be in: if it
        is not sure to be over when that ends, there is a schedule in which it is not, and in which
        the next time has not begun (both can be held back at once).
        """
        spans = self._lifetimes.spans(*access.region[:2])
        if not spans and access.region.core in self._open:
            return  # it may be there later
        if not spans:
            if (access.line, access.line) not in self.found:
                until = self._run.order.index(Step(*access.begin)) + 1
                self.found[access.line, access.line] = Finding(
                    FindingKind.RACE,
                    (access.line,),
                    NeverAllocated(access),
                    (access.begin,),
                    self._run.order[:until],
                    program=self._numbered.program,
                )
            return
        sure = [span for span in spans if self._known.certain(span.begin, access.begin)]
        if not sure:
            allocated = spans[0].begin
            self._report(
                FindingKind.RACE,
                (access.line, self._cores[allocated.core][allocated.at].line),
                AccessBeforeEntry(access, allocated),
                (access.begin, allocated),
                Step(*allocated),
            )
            return
        release = sure[-1].end
        if release is None or self._run.done[release.core] <= release.at:
            return
        if not self._ordering.certain(access.end, release):
            self._report(
                FindingKind.RACE,
                (access.line, self._cores[release.core][release.at].line),
                AccessAfterExit(access, release),
                (access.begin, release),
                access.end,
            )

    def access_before_entry(self, access: MemoryAccess) -> None:
        """A copy from elsewhere may begin before the owner has entered."""
        core, allocation = access.region[:2]
        sharers = self._sharers(core, allocation)
        if access.begin.core in sharers:
            return
        allocated = self._lifetimes.allocation(core, allocation)
        if allocated is None:
            return
        lines = (access.line, self._cores[core][allocated.at].line)
        if self.found and lines in self.found:
            return
        all_allocated = self._lifetimes.allocations(sharers, allocation)
        if any(self._known.certain(one, access.begin) for one in all_allocated):
            return
        numbered = self._numbered
        if all_allocated[1:]:
            # It may be certain that one of them is there, and not which.
            numbered = _stopped_before(numbered, all_allocated)
            self._budget.run(numbered.events)
            if reach(numbered)[access.begin.core] <= access.begin.at:
                return
        self._report(
            FindingKind.RACE,
            lines,
            AccessBeforeEntry(access, allocated),
            (access.begin, allocated),
            None if all_allocated[1:] else Step(*allocated),
            numbered,
        )

    def access_after_exit(self, access: MemoryAccess, run: Run) -> None:
        """A copy may be in flight when the owner leaves."""
        core, allocation = access.region[:2]
        sharers = self._sharers(core, allocation)
        # What several cores share is released when the last of them leaves.
        releases = self._lifetimes.releases(sharers, allocation, access.begin.core)
        if not releases or any(run.done[one.core] <= one.at for one in releases):
            return
        release = self._own_release(access) or releases[0]
        if access.begin.core == release.core and access.begin.at > release.at:
            return  # a buffer of an earlier call, passed on to this one
        lines = (access.line, self._cores[release.core][release.at].line)
        if self.found and lines in self.found:
            return
        if self._lifetimes.is_scoped(allocation):
            releases = [release]
        if not self._open.isdisjoint(sharers) and not isinstance(
            self._cores[release.core][release.at], Release
        ):
            return  # a later call may get the buffer
        if any(self._ordering.certain(access.end, one) for one in releases):
            return
        is_own = access.begin.core in sharers
        self._report(
            FindingKind.UNAWAITED_COPY if is_own else FindingKind.RACE,
            lines,
            UnawaitedCopy(access, release) if is_own else AccessAfterExit(access, release),
            (access.begin, release),
            access.end,
        )

    def _own_release(self, access: MemoryAccess) -> Where | None:
        """The end of the scope that the core is in which has it, and starts the copy there."""
        for span in reversed(self._lifetimes.spans(*access.region[:2])):
            if span.begin.core == access.begin.core and span.begin.at < access.begin.at:
                return span.end
        return None

    def signal_before_entry(self, at: Where, semaphore: Semaphore, line: Line) -> None:
        """What is added to a semaphore of another core may come before it is allocated."""
        owner = semaphore.core
        if owner == at.core or semaphore.is_global:
            return
        allocated = self._lifetimes.allocation(owner, semaphore.allocation)
        if allocated is None:
            return
        lines = (line, self._cores[owner][allocated.at].line)
        if (self.found and lines in self.found) or self._known.certain(allocated, at):
            return
        self._report(
            FindingKind.REMOTE_BEFORE_ENTRY,
            lines,
            SignalBeforeEntry(at, semaphore, allocated),
            (at, allocated),
            Step(*allocated),
        )

    def _report(
        self,
        kind: FindingKind,
        lines: tuple[Line, Line],
        detail: Detail,
        events: tuple[Where, Where],
        held: Step | None,
        numbered: NumberedProgram | None = None,
    ) -> None:
        """With a schedule without `held` up to the later of the two, unless it is told already.

        `numbered` is the program to take the schedule of, where it is not the whole one.
        """
        if lines in self.found or (kind, lines) in self._told:
            return
        program = self._numbered.program
        then = events[1] if held is not None and held.part else events[0]
        schedule = schedule_without(numbered or self._numbered, held, then)
        finding = Finding(kind, lines, detail, events, schedule, program=program)
        if kind in self._accept:
            self.accepted.append(finding)
            self._told.add((kind, lines))
        else:
            self.found[lines] = finding


def _stopped_before(numbered: NumberedProgram, events: list[Where]) -> NumberedProgram:
    """The program in which these, and what comes after them on their cores, never happen."""
    ops = [*numbered.ops]
    for core, at in events:
        ops[core] = ops[core][:at]
    return dataclasses.replace(numbered, ops=ops)


def _shares(numbered: NumberedProgram) -> dict[int, Mapping[int, tuple[int, ...]]]:
    """By allocation: the cores that share it."""
    allocations = numbered.program.allocations.items()
    return {number: one.shared_by for number, one in allocations if one.shared_by is not None}


def _told_by(numbered: NumberedProgram, access: MemoryAccess) -> set[Semaphore]:
    """The semaphores that would tell of the end of this access of a copy."""
    event = numbered.program.cores[access.begin.core][access.begin.at]
    if not isinstance(event, Start):
        raise TypeError(f"expected an access of a copy, but got one of {event}")
    semaphore = event.recv if access.is_write or event.send is None else event.send
    return set() if semaphore is None else {semaphore}
