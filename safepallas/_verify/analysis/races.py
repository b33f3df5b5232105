"""Races: two touches of the same memory that may happen at once, or in either order.

A schedule already has an order for each pair. The other order is possible if the earlier touch can
be held back and the later one begins all the same; then neither waits for the other. So one
question decides a pair: is the earlier one certain to be over before the later one begins?
"""

from __future__ import annotations

from typing import NamedTuple

from safepallas._verify.analysis.accesses import Touch, by_buffer, covers, overlaps
from safepallas._verify.analysis.budget import Budget
from safepallas._verify.analysis.happens_before import Ordering
from safepallas._verify.analysis.semaphore_machine import Net, Run, schedule
from safepallas._verify.program import Finding, FindingKind, Line, Step, UndecidedError, Where
from safepallas._verify.report.text import Words

# Of a pair of lines one race is reported. Touches that have raced stay in the comparison, as they
# may race with other lines as well, but only so many: a loop that races would be compared with all
# of its past.
KEPT = 64
# After so many accesses, say how far it is.
_MANY = 4096


def races(
    net: Net,
    run: Run,
    all_touches: list[Touch],
    ordering: Ordering,
    words: Words,
    budget: Budget,
) -> list[Finding]:
    """One finding for each pair of source lines that race, in the order of the schedule."""
    found = _Pairs({}, {})
    try:
        for number, group in enumerate(by_buffer(all_touches), 1):
            budget.tell(f"races: buffer {number}, accesses: {len(group):,}")
            meets = overlaps([touch.region for touch in group])
            place = {region: i for i, region in enumerate(meets)}
            near = [[place[other] for other in others] for others in meets.values()]
            live: list[list[Touch]] = [[] for _ in near]
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
                        live[other] = _compare(live[other], then, ordering, found, other == mine)
                live[mine].append(then)
    except UndecidedError:
        if not found.sure:
            raise  # else what is found is wrong, whatever there is besides
    begun = {(core, at): i for i, (core, at, part) in enumerate(run.order) if not part}
    pairs = sorted(found.all(), key=lambda pair: (begun[pair[1].begin], begun[pair[0].begin]))
    return [_finding(first, then, net, words) for first, then in pairs]


class _Pairs(NamedTuple):
    """One race for each pair of lines, a sure one if there is any."""

    sure: dict[tuple[Line, Line], tuple[Touch, Touch]]
    doubtful: dict[tuple[Line, Line], tuple[Touch, Touch]]

    def has(self, first: Touch, then: Touch) -> bool:
        """Whether there is already such a race, or a surer one."""
        if self.has_surer(first, then):
            return True
        if not self.doubtful or _is_sure(first, then):
            return False
        pairs = self.doubtful
        return (then.line, first.line) in pairs or (first.line, then.line) in pairs

    def add(self, first: Touch, then: Touch) -> None:
        pairs = self.sure if _is_sure(first, then) else self.doubtful
        pairs[then.line, first.line] = first, then

    def all(self) -> list[tuple[Touch, Touch]]:
        rest = [pair for pair in self.doubtful.values() if not self.has_surer(*pair)]
        return [*self.sure.values(), *rest]

    def has_surer(self, first: Touch, then: Touch) -> bool:
        if not self.sure:
            return False
        return (then.line, first.line) in self.sure or (first.line, then.line) in self.sure


def _is_sure(first: Touch, then: Touch) -> bool:
    """Whether both are where they seem to be, and not somewhere within."""
    return first.region.exact and then.region.exact


def _compare(
    before: list[Touch],
    then: Touch,
    ordering: Ordering,
    found: _Pairs,
    is_same: bool,
) -> list[Touch]:
    """Look for races of `then` with earlier touches; returns those that later ones still concern.

    All of these are of one region, `is_same` if `then` is of that one too.
    A touch drops out where `then` stands for it: certainly later, and whatever meets it meets
    `then` as well.
    """
    kept: list[Touch] = []
    for first in before:
        if first.begin == then.begin:
            kept.append(first)
            continue
        meet = first.is_write or then.is_write
        if meet and found.has(first, then):
            if len(before) <= KEPT:
                kept.append(first)
            continue
        stands_for = then.is_write or not first.is_write
        if not is_same and stands_for:
            stands_for = covers(then.region, first.region)
            if first.region.exact and not then.region.exact:
                stands_for = False
        if not meet and not stands_for:
            kept.append(first)
        elif _certain(first, then, ordering, exactly=meet):
            if not stands_for:
                kept.append(first)
        else:
            kept.append(first)
            if meet:
                found.add(first, then)
    return kept


def _certain(first: Touch, then: Touch, ordering: Ordering, *, exactly: bool) -> bool:
    if not first.end.part and first.begin.core == then.begin.core:
        return True  # the core's own order
    return ordering.certain(first.end, then.begin, exactly=exactly)


def _finding(first: Touch, then: Touch, net: Net, words: Words) -> Finding:
    return Finding(
        FindingKind.RACE,
        words.race(first, then),
        (then.line, first.line),
        (then.begin, first.begin),
        witness(net, first.end, then.begin),
        _is_sure(first, then),
    )


def witness(net: Net, held: Step, then: Where) -> list[Step]:
    """A schedule in which `then` happens and `held`, which should have come before, has not."""
    order = schedule(net, held).order
    return order[: order.index(Step(*then)) + 1]
