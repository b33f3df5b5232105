"""From a program to what is wrong with it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable

from safepallas._verify.analysis.accesses import touches
from safepallas._verify.analysis.budget import RUNS, Budget
from safepallas._verify.analysis.deadlocks_and_leaks import deadlocks, leaks, place_in_order
from safepallas._verify.analysis.happens_before import Ordering
from safepallas._verify.analysis.lifetimes import owners
from safepallas._verify.analysis.races import races
from safepallas._verify.analysis.semaphore_machine import build, schedule
from safepallas._verify.program import (
    Access,
    Finding,
    Program,
    Signal,
    Start,
    Step,
    UndecidedError,
    Wait,
)
from safepallas._verify.report.text import Words

# The most events of all devices shared_by: about 1 GiB.
LIMIT = 2_000_000


def _say_nothing(text: str) -> None:
    pass


@dataclasses.dataclass(slots=True)
class Analysis:
    """What is wrong, a schedule to show, and how much there was of everything."""

    findings: list[Finding]
    order: list[Step]  # one schedule, as far as it goes: each core and copy a step in turn
    counts: dict[str, int]


def analyse(
    program: Program,
    limit: int = LIMIT,
    tell: Callable[[str], None] = _say_nothing,
    *,
    runs: int = RUNS,
) -> Analysis:
    """Find all deadlocks, leaks and races of a program; none found is a proof that there are none.

    Example::

        analysis = analyse(program)
        assert not analysis.findings

    Args:
        program: all events, core by core.
        limit: the most events that the program may have.
        tell: called now and then with what is being done.
        runs: how many times `limit` the events of all runs together may be. One run is needed for
            deadlocks and leaks, and one for each access that the quick rule for races leaves open.

    Raises:
        UndecidedError: the limit was reached, and nothing wrong was found before.
    """
    net = build(program)
    if net.events > limit:
        raise UndecidedError(f"The program has {net.events:,} events: more than `limit={limit:,}`.")
    words, budget = Words(program), Budget(limit, tell, runs)
    tell(f"deadlocks and leaks, events: {net.events:,}")
    budget.spend(net.events)
    run = schedule(net)
    counts: Counter[type] = Counter()
    for events in program.cores:
        counts.update(map(type, events))
    found, leaking = leaks(net, run, words)
    found += deadlocks(net, run, words)
    found.sort(key=lambda finding: place_in_order(net, finding))
    try:
        ordering = Ordering(net, run, budget)
        met = touches(program, run)
        found += races(net, run, met, ordering, words, budget)
        tell(f"lifetimes of memory, accesses: {len(met):,}")
        found += owners(net, run, met, ordering, words, leaking)
    except UndecidedError:
        if not found:
            raise  # else it is not safe, whatever there is besides
    return Analysis(
        found,
        run.order,
        {
            "cores": len(program.cores),
            "events": net.events,
            "copies": counts[Start],
            "waits": counts[Wait],
            "signals": counts[Signal],
            "accesses": counts[Access],
            "exact runs": budget.exact_runs,
        },
    )
