"""Races: two touches of the same memory that may happen at once, or in either order.

A schedule already has an order for each pair. The other order is possible if the earlier touch can
be held back and the later one begins all the same; then neither waits for the other. So one
question decides a pair: is the earlier one certain to be over before the later one begins?
"""

from __future__ import annotations

from collections import defaultdict

from safepallas.verify._machine import Net, Run, schedule
from safepallas.verify._model import Finding, Kind, Line, Region, Step, UndecidedError, Where
from safepallas.verify._ordering import Ordering
from safepallas.verify._touches import Touch, by_buffer, covers, overlaps
from safepallas.verify._words import Words

# Of a pair of lines one race is reported. Touches that have raced stay in the comparison, as they
# may race with other lines as well, but only so many: a loop that races would be compared with all
# of its past.
KEPT = 64


def races(
    net: Net, run: Run, all_touches: list[Touch], ordering: Ordering, words: Words
) -> list[Finding]:
    """One finding for each pair of source lines that race, in the order of the schedule."""
    found: dict[tuple[Line, Line], tuple[Touch, Touch]] = {}
    try:
        for group in by_buffer(all_touches):
            meets = overlaps([touch.region for touch in group])
            live: dict[Region, list[Touch]] = defaultdict(list)
            for then in group:
                for region in meets[then.region]:
                    if region in live:
                        live[region] = _compare(live[region], then, ordering, found)
                live[then.region].append(then)
    except UndecidedError:
        if not found:
            raise  # else what is found is wrong, whatever there is besides
    begun = {(core, at): i for i, (core, at, part) in enumerate(run.order) if not part}
    pairs = sorted(found.values(), key=lambda pair: (begun[pair[1].begin], begun[pair[0].begin]))
    return [_finding(first, then, net, words) for first, then in pairs]


def _compare(
    before: list[Touch],
    then: Touch,
    ordering: Ordering,
    found: dict[tuple[Line, Line], tuple[Touch, Touch]],
) -> list[Touch]:
    """Look for races of `then` with earlier touches; returns those that later ones still concern.

    A touch drops out where `then` stands for it: certainly later, and whatever meets it meets
    `then` as well.
    """
    kept: list[Touch] = []
    for first in before:
        if first.begin == then.begin:
            kept.append(first)
            continue
        meet = first.is_write or then.is_write
        if meet and ((then.line, first.line) in found or (first.line, then.line) in found):
            if len(before) <= KEPT:
                kept.append(first)
            continue
        stands_for = covers(then.region, first.region) and (then.is_write or not first.is_write)
        if not meet and not stands_for:
            kept.append(first)
        elif _certain(first, then, ordering, exactly=meet):
            if not stands_for:
                kept.append(first)
        else:
            kept.append(first)
            if meet:
                found[then.line, first.line] = (first, then)
    return kept


def _certain(first: Touch, then: Touch, ordering: Ordering, *, exactly: bool) -> bool:
    if not first.is_copy and first.begin.core == then.begin.core:
        return True  # the core's own order
    return ordering.certain(first.end, then.begin, exactly=exactly)


def _finding(first: Touch, then: Touch, net: Net, words: Words) -> Finding:
    return Finding(
        Kind.RACE,
        words.race(first, then),
        (then.line, first.line),
        (then.begin, first.begin),
        witness(net, first.end, then.begin),
    )


def witness(net: Net, held: Step, then: Where) -> list[Step]:
    """A schedule in which `then` happens and `held`, which should have come before, has not."""
    order = schedule(net, held).order
    return order[: order.index(Step(*then)) + 1]
