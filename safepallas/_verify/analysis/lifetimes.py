"""Memory belongs to a call, or to a scope in it: nothing may reach it before or after.

Another device must know that the owner has entered before it writes or signals there, and no copy
may still be under way when the owner leaves.
"""

from __future__ import annotations

from collections.abc import Mapping

from safepallas._verify.analysis.accesses import Touch
from safepallas._verify.analysis.happens_before import Ordering
from safepallas._verify.analysis.races import witness
from safepallas._verify.analysis.semaphore_machine import Net, Run
from safepallas._verify.program import (
    Allocate,
    Enter,
    Finding,
    FindingKind,
    Leave,
    Line,
    Release,
    Semaphore,
    Signal,
    Start,
    Step,
    Where,
)
from safepallas._verify.report.text import Words

_MARKS = {Enter, Leave, Allocate, Release}


class Lifetimes:
    """When each allocation of each core begins and ends to be."""

    def __init__(self, net: Net) -> None:
        self._allocations = net.program.allocations
        self._calls: dict[tuple[bool, int, int], Where] = {}
        self._scopes: dict[tuple[bool, int, int], Where] = {}
        self._found: dict[tuple[bool, int, int], Where | None] = {}
        for core, events in enumerate(net.program.cores):
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
                elif isinstance(event, Release):
                    for allocation in event.allocations:
                        self._scopes[False, core, allocation] = Where(core, at)

    def birth(self, core: int, allocation: int) -> Where | None:
        """The event from which on it is there; None if it outlives the calls."""
        return self._find(True, core, allocation)

    def births(self, sharers: tuple[int, ...], allocation: int) -> list[Where]:
        """That of each of those who share it."""
        found = [self._find(True, core, allocation) for core in sharers]
        return [birth for birth in found if birth is not None]

    def deaths(self, sharers: tuple[int, ...], allocation: int, first: int) -> list[Where]:
        """The events at which it goes, for each of those who share it; that of `first` first."""
        if len(sharers) == 1:
            death = self._find(False, sharers[0], allocation)
            return [] if death is None else [death]
        found = [self._find(False, core, allocation) for core in sharers]
        return sorted(
            (death for death in found if death is not None),
            key=lambda death: (death.core != first, death.core),
        )

    def _find(self, birth: bool, core: int, allocation: int) -> Where | None:
        key = birth, core, allocation
        if key not in self._found:
            self._found[key] = self._look_up(birth, core, allocation)
        return self._found[key]

    def _look_up(self, birth: bool, core: int, allocation: int) -> Where | None:
        if (birth, core, allocation) in self._scopes:
            return self._scopes[birth, core, allocation]
        allocated = self._allocations.get(allocation)
        if allocated is None:
            return None
        call = allocated.call if birth else allocated.last_call
        return self._calls.get((birth, core, call))


class _Births:
    """Whether a core certainly knows that memory is there: from then on it does."""

    def __init__(self, ordering: Ordering) -> None:
        self._ordering = ordering
        self._since: dict[tuple[int, Where], int] = {}  # by who asks, and what

    def certain(self, birth: Where, then: Where) -> bool:
        key = then.core, birth
        since = self._since.get(key)
        if since is not None and since <= then.at:
            return True
        is_certain = self._ordering.certain(Step(*birth), then)
        if is_certain:
            self._since[key] = then.at
        return is_certain


def owners(
    net: Net,
    run: Run,
    all_touches: list[Touch],
    ordering: Ordering,
    words: Words,
    leaking: set[Semaphore],
) -> list[Finding]:
    """What reaches memory that is not there: one finding for each pair of source lines.

    `leaking` are semaphores whose counts do not come out: a copy that nobody waits for is told
    there.
    """
    search = _Search(net, ordering, words)
    for touch in all_touches:
        if touch.end.part:
            search.before_entry(touch)
            if not leaking or not _told(net, touch) & leaking:
                search.after_exit(touch, run)
    cores = net.program.cores
    for core, at, part in run.order:
        if part:
            continue
        event = cores[core][at]
        if type(event) is Signal:
            search.too_early(Where(core, at), event.semaphore, event.line)
        elif type(event) is Start and event.recv is not None:
            search.too_early(Where(core, at), event.recv, event.line)
    return list(search.found.values())


class _Search:
    """Looks at copies and signals one by one, and keeps a finding for each pair of lines."""

    def __init__(self, net: Net, ordering: Ordering, words: Words) -> None:
        self._net = net
        self._cores = net.program.cores
        self._ordering = ordering
        self._words = words
        self._lifetimes, self._births = Lifetimes(net), _Births(ordering)
        self._shares = _shares(net)
        self.found: dict[tuple[Line, Line], Finding] = {}

    def _sharers(self, core: int, allocation: int) -> tuple[int, ...]:
        shared = self._shares.get(allocation)
        return (core,) if shared is None else shared[core]

    def before_entry(self, touch: Touch) -> None:
        """A copy from elsewhere may begin before the owner has entered."""
        core, allocation = touch.region[:2]
        sharers = self._sharers(core, allocation)
        if touch.begin.core in sharers:
            return
        birth = self._lifetimes.birth(core, allocation)
        if birth is None:
            return
        lines = (touch.line, self._cores[core][birth.at].line)
        if self.found and lines in self.found:
            return
        births = self._lifetimes.births(sharers, allocation)
        if any(self._births.certain(one, touch.begin) for one in births):
            return
        self.found[lines] = Finding(
            FindingKind.RACE,
            self._words.before_entry_copy(touch, self._cores[core][birth.at]),
            lines,
            (touch.begin, birth),
            witness(self._net, Step(*birth), touch.begin),
        )

    def after_exit(self, touch: Touch, run: Run) -> None:
        """A copy may be under way when the owner leaves."""
        core, allocation = touch.region[:2]
        sharers = self._sharers(core, allocation)
        # What several cores have goes when the last of them leaves.
        deaths = self._lifetimes.deaths(sharers, allocation, touch.begin.core)
        if not deaths or any(run.done[one.core] <= one.at for one in deaths):
            return
        death = deaths[0]
        if touch.begin.core == death.core and touch.begin.at > death.at:
            return  # a buffer of an earlier call, passed on to this one
        lines = (touch.line, self._cores[death.core][death.at].line)
        if self.found and lines in self.found:
            return
        if any(self._ordering.certain(touch.end, one) for one in deaths):
            return
        own = touch.begin.core in sharers
        self.found[lines] = Finding(
            FindingKind.UNAWAITED_COPY if own else FindingKind.RACE,
            self._words.unawaited(touch) if own else self._words.after_exit(touch),
            lines,
            (touch.begin, death),
            witness(self._net, touch.end, death),
        )

    def too_early(self, at: Where, semaphore: Semaphore, line: Line) -> None:
        """What is added to a semaphore of another core may come before it is there."""
        owner = semaphore.core
        if owner == at.core or semaphore.is_global:
            return
        birth = self._lifetimes.birth(owner, semaphore.allocation)
        if birth is None:
            return
        lines = (line, self._cores[owner][birth.at].line)
        if (self.found and lines in self.found) or self._births.certain(birth, at):
            return
        self.found[lines] = Finding(
            FindingKind.REMOTE_BEFORE_ENTRY,
            self._words.before_entry_signal(at.core, semaphore, line, self._cores[owner][birth.at]),
            lines,
            (at, birth),
            witness(self._net, Step(*birth), at),
        )


def _shares(net: Net) -> dict[int, Mapping[int, tuple[int, ...]]]:
    """By allocation: the cores that have it together."""
    allocations = net.program.allocations.items()
    return {number: one.shared_by for number, one in allocations if one.shared_by is not None}


def _told(net: Net, touch: Touch) -> set[Semaphore]:
    """The semaphores that would tell of the end of this touch."""
    event = net.program.cores[touch.begin.core][touch.begin.at]
    assert isinstance(event, Start)
    semaphore = event.recv if touch.is_write or event.send is None else event.send
    return set() if semaphore is None else {semaphore}
