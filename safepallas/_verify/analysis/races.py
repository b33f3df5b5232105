"""Races: two accesses to the same memory that may happen at once, or in either order.

A schedule already has an order for each pair. The other order is possible if the earlier access can
be held back and the later one begins all the same; then neither waits for the other. So one
question decides a pair: is the earlier one certain to be over before the later one begins?

A copy moves its elements in any order (rule 2), so what it reads and what it writes always race.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from safepallas._verify.analysis.accesses import by_buffer, covers, overlaps
from safepallas._verify.analysis.happens_before import Budget, Ordering
from safepallas._verify.analysis.same_bytes import SameBytes
from safepallas._verify.analysis.semaphore_machine import NumberedProgram, Run, schedule
from safepallas._verify.diagnostics.details import MemoryAccess, Race, SameWrites
from safepallas._verify.diagnostics.finding import Finding, FindingKind, Note
from safepallas._verify.program import Line, Program, Step, UndecidedError, Where

# Of a pair of lines one race is reported. Accesses that have raced stay in the comparison, as they
# may race with other lines as well, but only so many: a loop that races would be compared with all
# of its past.
KEPT = 64
# After so many accesses, say how far it is.
_MANY = 4096


def races(
    numbered: NumberedProgram,
    run: Run,
    accesses: list[MemoryAccess],
    ordering: Ordering,
    budget: Budget,
) -> tuple[list[Finding], list[Note], UndecidedError | None]:
    """One finding for each pair of source lines that race, in the order of the schedule.

    Notes are of writes that would race, were they not of the same bytes. The error is the limit
    that was reached after races had been found.
    """
    stopped = None
    search = _Search(ordering, SameBytes(numbered.program), _Pairs({}, {}), _Pairs({}, {}))
    found = search.found
    try:
        for number, group in enumerate(by_buffer(accesses), 1):
            budget.tell(f"races: buffer {number}, accesses: {len(group):,}")
            overlapping = overlaps([access.region for access in group])
            place = {region: i for i, region in enumerate(overlapping)}
            near = [[place[other] for other in others] for others in overlapping.values()]
            live: list[list[MemoryAccess]] = [[] for _ in near]
            compared = 0
            for at, then in enumerate(group, 1):
                if at % _MANY == 0:
                    budget.spend(compared)
                    compared = 0
                    budget.tell(f"races: buffer {number}, accesses: {at:,} of {len(group):,}")
                mine = place[then.region]
                for other in near[mine]:
                    if live[other]:
                        compared += len(live[other])
                        live[other] = _compare(live[other], then, search, other == mine)
                live[mine].append(then)
    except UndecidedError as error:
        stopped = error
        if not found.sure:
            raise  # else what is found is wrong, whatever there is besides
    for pair in _with_themselves(accesses):
        if not found.has(*pair):
            found.add(*pair)
    begun = {(core, at): i for i, (core, at, part) in enumerate(run.order) if not part}

    def in_order(pairs: _Pairs) -> list[tuple[MemoryAccess, MemoryAccess]]:
        return sorted(pairs.all(), key=lambda pair: (begun[pair[1].begin], begun[pair[0].begin]))

    findings = [_finding(first, then, numbered, run) for first, then in in_order(found)]
    notes = [_note(*pair, numbered.program) for pair in in_order(search.same)]
    return findings, notes, stopped


def _note(first: MemoryAccess, then: MemoryAccess, program: Program) -> Note:
    lines = tuple(dict.fromkeys((then.line, first.line)))
    return Note(lines, SameWrites(first, then), program)


def _with_themselves(
    accesses: list[MemoryAccess],
) -> Iterator[tuple[MemoryAccess, MemoryAccess]]:
    """What a copy reads, and what it writes, where these share elements."""
    for _, group in groupby(accesses, key=lambda access: access.begin):
        mine = [*group]
        for write in mine:
            if write.is_copy and write.is_write:
                reads = [access for access in mine if not access.is_write]
                yield from ((r, write) for r in reads if r.region.overlaps(write.region))


class _Pairs(NamedTuple):
    """One race for each pair of lines, a sure one if there is any."""

    sure: dict[tuple[Line, Line], tuple[MemoryAccess, MemoryAccess]]
    doubtful: dict[tuple[Line, Line], tuple[MemoryAccess, MemoryAccess]]

    def has(self, first: MemoryAccess, then: MemoryAccess) -> bool:
        """Whether there is already such a race, or a surer one."""
        if self.has_surer(first, then):
            return True
        if not self.doubtful or _is_sure(first, then):
            return False
        pairs = self.doubtful
        return (then.line, first.line) in pairs or (first.line, then.line) in pairs

    def add(self, first: MemoryAccess, then: MemoryAccess) -> None:
        pairs = self.sure if _is_sure(first, then) else self.doubtful
        pairs[then.line, first.line] = first, then

    def all(self) -> list[tuple[MemoryAccess, MemoryAccess]]:
        rest = [pair for pair in self.doubtful.values() if not self.has_surer(*pair)]
        return [*self.sure.values(), *rest]

    def has_surer(self, first: MemoryAccess, then: MemoryAccess) -> bool:
        if not self.sure:
            return False
        return (then.line, first.line) in self.sure or (first.line, then.line) in self.sure


class _Search(NamedTuple):
    """What is asked of each pair, and what was found."""

    ordering: Ordering
    same_bytes: SameBytes
    found: _Pairs
    same: _Pairs  # of the same bytes


def _is_sure(first: MemoryAccess, then: MemoryAccess) -> bool:
    """Whether both are where they seem to be, and not somewhere within."""
    return first.region.exact and then.region.exact


def _compare(
    before: list[MemoryAccess],
    then: MemoryAccess,
    search: _Search,
    is_same: bool,
) -> list[MemoryAccess]:
    """Look for races of `then` with earlier accesses; returns those that later ones still concern.

    All of these are to one region, `is_same` if `then` is to that one too. An access drops out
    where `then` stands for it: certainly later, and in conflict with whatever that conflicts with.
    """
    kept: list[MemoryAccess] = []
    for first in before:
        if first.begin == then.begin:
            kept.append(first)
            continue
        conflict = first.is_write or then.is_write
        is_harmless = conflict and search.same_bytes(first, then)
        found = search.same if is_harmless else search.found
        if conflict and found.has(first, then):
            # Others may still race with what has only been noted.
            if is_harmless or len(before) <= KEPT:
                kept.append(first)
            continue
        stands_for = then.is_write or not first.is_write
        if not is_same and stands_for:
            stands_for = covers(then.region, first.region)
            if first.region.exact and not then.region.exact:
                stands_for = False
        if stands_for and not is_harmless and search.same_bytes.may_repeat(then):
            stands_for = False  # a write of the same bytes conflicts with `first`, and not with it
        if not conflict and not stands_for:
            kept.append(first)
        elif _certain(first, then, search.ordering, exactly=conflict):
            if not stands_for:
                kept.append(first)
        else:
            kept.append(first)
            if conflict:
                found.add(first, then)
    return kept


def _certain(first: MemoryAccess, then: MemoryAccess, ordering: Ordering, *, exactly: bool) -> bool:
    if not first.end.part and first.begin.core == then.begin.core:
        return True  # the core's own order
    return ordering.certain(first.end, then.begin, exactly=exactly)


def _finding(
    first: MemoryAccess, then: MemoryAccess, numbered: NumberedProgram, run: Run
) -> Finding:
    lines: tuple[Line, ...] = (then.line, first.line)
    if first.begin == then.begin:
        lines, order = (then.line,), run.order[: run.order.index(Step(*then.begin)) + 1]
    else:
        order = schedule_without(numbered, first.end, then.begin)
    return Finding(
        FindingKind.RACE,
        lines,
        Race(first, then),
        (then.begin, first.begin),
        order,
        _is_sure(first, then),
        numbered.program,
    )


def schedule_without(numbered: NumberedProgram, held: Step | None, then: Where) -> list[Step]:
    """A schedule in which `then` happens and `held`, which should have come before, has not."""
    order = schedule(numbered, held).order
    return order[: order.index(Step(*then)) + 1]
