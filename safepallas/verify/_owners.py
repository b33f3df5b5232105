"""Memory belongs to a call, or to a scope in it: nothing may reach it before or after.

Another device must know that the owner has entered before it writes or signals there, and no copy
may still be under way when the owner leaves.
"""

from __future__ import annotations

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


class Lifetimes:
    """When each allocation of each core begins and ends to be."""

    def __init__(self, net: Net) -> None:
        self._allocations = net.program.allocations
        self._calls: dict[tuple[bool, int, int], Where] = {}
        self._scopes: dict[tuple[bool, int, int], Where] = {}
        for core, events in enumerate(net.program.cores):
            for at, event in enumerate(events):
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

    def death(self, core: int, allocation: int) -> Where | None:
        """The event at which it goes."""
        return self._find(False, core, allocation)

    def _find(self, birth: bool, core: int, allocation: int) -> Where | None:
        if (birth, core, allocation) in self._scopes:
            return self._scopes[birth, core, allocation]
        allocated = self._allocations.get(allocation)
        if allocated is None:
            return None
        call = allocated.call if birth else allocated.last_call
        return self._calls.get((birth, core, call))


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
    lifetimes = Lifetimes(net)
    found: dict[tuple[Line, Line], Finding] = {}
    cores = net.program.cores
    for touch in all_touches:
        if not touch.is_copy:
            continue
        core, allocation = touch.region.core, touch.region.allocation
        birth = lifetimes.birth(core, allocation)
        if birth is not None and touch.begin.core != core:
            lines = (touch.line, cores[core][birth.at].line)
            if lines not in found and not ordering.certain(Step(*birth), touch.begin):
                text = words.before_entry_copy(touch)
                found[lines] = Finding(
                    Kind.RACE,
                    text,
                    lines,
                    (touch.begin, birth),
                    witness(net, Step(*birth), touch.begin),
                )
        death = lifetimes.death(core, allocation)
        if death is None or run.done[core] <= death.at or _told(net, touch) & leaking:
            continue
        if touch.begin.core == core and touch.begin.at > death.at:
            continue  # a buffer of an earlier call, passed on to this one
        lines = (touch.line, cores[core][death.at].line)
        if lines not in found and not ordering.certain(touch.end, death):
            own = touch.begin.core == core
            found[lines] = Finding(
                Kind.UNWAITED_COPY if own else Kind.RACE,
                words.unwaited(touch) if own else words.after_exit(touch),
                lines,
                (touch.begin, death),
                witness(net, touch.end, death),
            )
    for core, at, part in run.order:
        event = cores[core][at]
        if part or not isinstance(event, (Signal, Start)):
            continue
        semaphore = event.semaphore if isinstance(event, Signal) else event.came
        if semaphore is None or semaphore.core == core or semaphore.is_global:
            continue
        birth = lifetimes.birth(semaphore.core, semaphore.allocation)
        if birth is None:
            continue
        lines = (event.line, cores[semaphore.core][birth.at].line)
        if lines not in found and not ordering.certain(Step(*birth), Where(core, at)):
            found[lines] = Finding(
                Kind.REMOTE_BEFORE_ENTRY,
                words.before_entry_signal(core, semaphore, event.line),
                lines,
                (Where(core, at), birth),
                witness(net, Step(*birth), Where(core, at)),
            )
    return list(found.values())


def _told(net: Net, touch: Touch) -> set[Semaphore]:
    """The semaphores that would tell of the end of this touch."""
    event = net.program.cores[touch.begin.core][touch.begin.at]
    assert isinstance(event, Start)
    semaphore = event.came if touch.is_write or event.sent is None else event.sent
    return set() if semaphore is None else {semaphore}
