"""Memory belongs to a call, or to a scope in it: nothing may reach it before or after.

Another device must know that the owner has entered before it writes or signals there, and no copy
may still be under way when the owner leaves.
"""

from __future__ import annotations

from collections.abc import Mapping

from safepallas.verify._machine import Net, Run
from safepallas.verify._model import (
    Allocate,
    Enter,
    Finding,
    Kind,
    Leave,
    Line,
    Release,
    Semaphore,
    Signal,
    Start,
    Step,
    Where,
)
from safepallas.verify._ordering import Ordering
from safepallas.verify._races import witness
from safepallas.verify._touches import Touch
from safepallas.verify._words import Words

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
    lifetimes, births, shares = Lifetimes(net), _Births(ordering), _shares(net)
    found: dict[tuple[Line, Line], Finding] = {}
    cores = net.program.cores
    for touch in all_touches:
        if not touch.end.part:
            continue
        core, allocation = touch.region[:2]
        sharers = shares[allocation][core] if allocation in shares else (core,)
        birth = lifetimes.birth(core, allocation)
        if birth is not None and touch.begin.core not in sharers:
            lines = (touch.line, cores[core][birth.at].line)
            if not (found and lines in found) and not any(
                births.certain(one, touch.begin) for one in lifetimes.births(sharers, allocation)
            ):
                text = words.before_entry_copy(touch, cores[core][birth.at])
                found[lines] = Finding(
                    Kind.RACE,
                    text,
                    lines,
                    (touch.begin, birth),
                    witness(net, Step(*birth), touch.begin),
                )
        # What several cores have goes when the last of them leaves.
        deaths = lifetimes.deaths(sharers, allocation, touch.begin.core)
        if not deaths or any(run.done[one.core] <= one.at for one in deaths):
            continue
        death = deaths[0]
        if leaking and _told(net, touch) & leaking:
            continue
        if touch.begin.core == death.core and touch.begin.at > death.at:
            continue  # a buffer of an earlier call, passed on to this one
        lines = (touch.line, cores[death.core][death.at].line)
        if not (found and lines in found) and not any(
            ordering.certain(touch.end, one) for one in deaths
        ):
            own = touch.begin.core in sharers
            found[lines] = Finding(
                Kind.UNWAITED_COPY if own else Kind.RACE,
                words.unwaited(touch) if own else words.after_exit(touch),
                lines,
                (touch.begin, death),
                witness(net, touch.end, death),
            )
    for core, at, part in run.order:
        if part:
            continue
        event = cores[core][at]
        if not (type(event) is Signal or type(event) is Start):
            continue
        semaphore = event.semaphore if isinstance(event, Signal) else event.came
        if semaphore is None or semaphore.core == core or semaphore.is_global:
            continue
        birth = lifetimes.birth(semaphore.core, semaphore.allocation)
        if birth is None:
            continue
        lines = (event.line, cores[semaphore.core][birth.at].line)
        if not (found and lines in found) and not births.certain(birth, Where(core, at)):
            found[lines] = Finding(
                Kind.REMOTE_BEFORE_ENTRY,
                words.before_entry_signal(
                    core, semaphore, event.line, cores[semaphore.core][birth.at]
                ),
                lines,
                (Where(core, at), birth),
                witness(net, Step(*birth), Where(core, at)),
            )
    return list(found.values())


def _shares(net: Net) -> dict[int, Mapping[int, tuple[int, ...]]]:
    """By allocation: the cores that have it together."""
    allocations = net.program.allocations.items()
    return {number: one.together for number, one in allocations if one.together is not None}


def _told(net: Net, touch: Touch) -> set[Semaphore]:
    """The semaphores that would tell of the end of this touch."""
    event = net.program.cores[touch.begin.core][touch.begin.at]
    assert isinstance(event, Start)
    semaphore = event.came if touch.is_write or event.sent is None else event.sent
    return set() if semaphore is None else {semaphore}
