"""Semaphores of scopes: what is left on their places of the stack, and which scope left it.

Scopes that do not nest use the same places, and nothing is zeroed between them. So what a scope
leaves is there in the next one, and what comes early for the next one is there in this one. Two
things are certain, whatever the schedule: what all that a call adds to a place and takes from it
comes to; and that a scope ends above zero, where what is sure to have come by then is more than
what has been taken.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

from safepallas._verify.analysis.semaphore_machine import NumberedProgram, Run, reach
from safepallas._verify.program import (
    Event,
    Leave,
    Release,
    Semaphore,
    Signal,
    Start,
    Step,
    Wait,
    Where,
)

# Of a core: the allocation of a scope, and the indices there.
_Name: TypeAlias = tuple[int, int, tuple[int, ...]]


@dataclasses.dataclass(slots=True)
class _Count:
    """What one scope's semaphore gets and gives, by the name that each core has for it."""

    semaphore: Semaphore
    balance: int = 0
    last: Where | None = None  # the last event that adds to it


def has_name(event: Event, semaphore: Semaphore) -> bool:
    """Whether a wait is for a semaphore by the name that this one has."""
    return isinstance(event, Wait) and event.semaphore.named == semaphore.named


def left_over(
    numbered: NumberedProgram, run: Run
) -> list[tuple[Semaphore, int, Where, Where | None]]:
    """Each that is left above zero: how much, the last event that adds to it, and its end."""
    if not any(semaphore.scope >= 0 for semaphore in numbered.semaphores):
        return []
    found: list[tuple[Semaphore, int, Where, Where | None]] = []
    ends = _Ends(numbered, run)
    for place, counts in _by_place(numbered, run).items():
        leave = ends.leave(place)
        if leave is None:
            continue  # it is blocked: that is what is wrong
        total = run.value[numbered.number[place]]
        for count in counts:
            if count.balance <= 0 or count.last is None:
                continue
            release = ends.release(count.semaphore)
            left = min(count.balance, total)
            if not total and release is not None:
                left = _certain(numbered, place, release)
            if left > 0:
                found.append((count.semaphore, left, count.last, release or leave))
    return found


class _Ends:
    """Where scopes and calls end."""

    def __init__(self, numbered: NumberedProgram, run: Run) -> None:
        self._program = numbered.program
        self._releases: dict[tuple[int, int], Where] = {}
        self._leaves: dict[tuple[int, int], Where] = {}
        for core, events in enumerate(numbered.program.cores):
            for at, event in enumerate(events[: run.done[core]]):
                if isinstance(event, Release):
                    for allocation in event.allocations:
                        self._releases[core, allocation] = Where(core, at)
                elif isinstance(event, Leave):
                    self._leaves[core, event.call] = Where(core, at)

    def release(self, semaphore: Semaphore) -> Where | None:
        """That of the scope; None where the owner never opens it."""
        return self._releases.get((semaphore.core, semaphore.scope))

    def leave(self, semaphore: Semaphore) -> Where | None:
        """That of the call; None where the owner does not come so far."""
        call = self._program.allocations[semaphore.allocation].call
        return self._leaves.get((semaphore.core, call))


def _added(event: Event) -> Iterator[tuple[Semaphore, int, str]]:
    """What an event adds, and which end of a copy does."""
    if isinstance(event, Signal):
        yield event.semaphore, event.amount, ""
    elif isinstance(event, Start):
        for semaphore, part in ((event.send, "read"), (event.recv, "write")):
            if semaphore is not None:
                yield semaphore, event.amount, part


def _by_place(numbered: NumberedProgram, run: Run) -> dict[Semaphore, list[_Count]]:
    """By place: what each scope there counts to."""
    counts: dict[_Name, _Count] = {}

    def count_of(semaphore: Semaphore) -> _Count:
        key = semaphore.core, *semaphore.named
        if key not in counts:
            counts[key] = _Count(semaphore)
        return counts[key]

    for core, at, part in run.order:
        event = numbered.program.cores[core][at]
        if part:
            continue
        for semaphore, amount, _ in _added(event):
            if semaphore.scope >= 0 and amount:
                count = count_of(semaphore)
                count.balance += amount
                count.last = Where(core, at)
        if isinstance(event, Wait) and event.semaphore.scope >= 0:
            count_of(event.semaphore).balance -= event.amount
    places: dict[Semaphore, list[_Count]] = defaultdict(list)
    for count in counts.values():
        places[count.semaphore].append(count)
    return places


def _certain(numbered: NumberedProgram, place: Semaphore, release: Where) -> int:
    """How much is at a place at least when a scope ends, whatever the schedule."""
    least = 0
    for core, events in enumerate(numbered.program.cores):
        for at, event in enumerate(events):
            if core == release.core and at >= release.at:
                break
            if isinstance(event, Wait) and event.semaphore == place:
                least -= event.amount
            for semaphore, amount, part in _added(event):
                if semaphore == place and amount:
                    is_own = core == release.core and not part
                    if is_own or reach(numbered, Step(core, at, part))[release.core] <= release.at:
                        least += amount
    return least
