"""From a program to what is wrong with it."""

from __future__ import annotations

import dataclasses
from collections import Counter

from safepallas.verify._counts import deadlocks, leaks, place_in_order
from safepallas.verify._machine import build, schedule
from safepallas.verify._model import Finding, Program, Step, UndecidedError
from safepallas.verify._ordering import Ordering
from safepallas.verify._owners import owners
from safepallas.verify._races import races
from safepallas.verify._touches import touches
from safepallas.verify._words import Words

# Events of all runs together: about a minute.
LIMIT = 100_000_000


@dataclasses.dataclass(slots=True)
class Analysis:
    """What is wrong, a schedule to show, and how much there was of everything."""

    findings: list[Finding]
    order: list[Step]  # one schedule, as far as it goes: each core and copy a step in turn
    counts: dict[str, int]


def analyse(program: Program, limit: int = LIMIT) -> Analysis:
    """Find all deadlocks, leaks and races of a program; none found is a proof that there are none.

    Example::

        analysis = analyse(program)
        assert not analysis.findings

    Args:
        program: all events, core by core.
        limit: how many events all runs together may take. One run is needed for deadlocks and
            leaks, and one for each access that the quick rule for races leaves open.

    Raises:
        UndecidedError: the limit was reached, and nothing wrong was found before.
    """
    net = build(program)
    if net.events > limit:
        raise UndecidedError(f"The program has {net.events:,} events: more than `limit={limit:,}`.")
    words = Words(program)
    run = schedule(net)
    counts = Counter(type(event).__name__.lower() for events in program.cores for event in events)
    found, leaking = leaks(net, run, words)
    found += deadlocks(net, run, words)
    found.sort(key=lambda finding: place_in_order(net, finding))
    ordering = Ordering(net, run, limit - net.events)
    met = touches(program, run)
    try:
        found += races(net, run, met, ordering, words)
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
            "copies": counts["start"],
            "waits": counts["wait"],
            "signals": counts["signal"],
            "accesses": counts["access"],
            "exact runs": ordering.exact_runs,
        },
    )
