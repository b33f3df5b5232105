"""From a program to what is wrong with it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection

from safepallas._verify.analysis.accesses import memory_accesses
from safepallas._verify.analysis.amounts import negative_amounts, overflows
from safepallas._verify.analysis.deadlocks_and_leaks import deadlocks, leaks, place_in_order
from safepallas._verify.analysis.happens_before import RUNS, Budget, Ordering
from safepallas._verify.analysis.lifetimes import lifetime_violations
from safepallas._verify.analysis.races import races
from safepallas._verify.analysis.semaphore_machine import (
    NumberedProgram,
    number_program,
    schedule,
)
from safepallas._verify.diagnostics.details import Leak, NeverAllocated
from safepallas._verify.diagnostics.finding import Finding, FindingKind, Note
from safepallas._verify.program import (
    Access,
    Program,
    Signal,
    Start,
    Step,
    UndecidedError,
    Wait,
)

# The most events of all devices taken as one: about 1 GiB.
LIMIT = 2_000_000


def _say_nothing(text: str) -> None:
    pass


@dataclasses.dataclass(slots=True)
class Analysis:
    """What is wrong, a schedule to show, and how much there was of everything."""

    findings: list[Finding]
    order: list[Step]  # one schedule, as far as it goes: each core and copy a step in turn
    counts: dict[str, int]
    notes: list[Note] = dataclasses.field(default_factory=list)
    # Why more may be wrong than was found.
    stopped: UndecidedError | None = dataclasses.field(default=None, compare=False)


def _without_consequences(found: list[Finding]) -> list[Finding]:
    """Leave out what is left on a semaphore by a copy to memory that never is there."""
    nowhere = {one.events[0] for one in found if isinstance(one.detail, NeverAllocated)}
    return [
        one
        for one in found
        if not (isinstance(one.detail, Leak) and one.detail.is_copy and one.detail.last in nowhere)
    ]


def analyse(
    program: Program,
    limit: int = LIMIT,
    tell: Callable[[str], None] = _say_nothing,
    *,
    runs: int = RUNS,
    accept: Collection[FindingKind] = (),
) -> Analysis:
    """Find all deadlocks, leaks and races of a program; none found is a proof that there are none.

    Example::

        analysis = analyse(program)
        assert not analysis.findings

    Args:
        program: all events, core by core.
        limit: the most events that the program may have.
        tell: called now and then with what is being done.
        runs: how many times `limit` all runs may take in events. One run is needed for
            deadlocks and leaks, and one for each access that the quick rule for races leaves open.
        accept: findings of these kinds stand for no others that would be told with them.

    Raises:
        UndecidedError: the limit was reached, and nothing wrong was found before.
    """
    numbered = number_program(program)
    if numbered.events > limit:
        raise UndecidedError(
            f"The program has {numbered.events:,} events: more than `limit={limit:,}`."
        )
    budget = Budget(limit, tell, runs)
    tell(f"deadlocks and leaks, events: {numbered.events:,}")
    counts: Counter[type] = Counter()
    for events in program.cores:
        counts.update(map(type, events))
    found = negative_amounts(numbered, budget)
    if found:  # no more can be said: see there
        text = "A semaphore is given a negative amount: nothing else was analysed."
        return Analysis(
            found,
            list(found[0].schedule),
            _counts(numbered, counts, budget),
            stopped=UndecidedError(text, found[0].lines[0]),
        )
    budget.spend(numbered.events)
    run = schedule(numbered)
    found, leaking = leaks(numbered, run)
    found += deadlocks(numbered, run)
    notes: list[Note] = []
    stopped: UndecidedError | None = None
    found.sort(key=lambda finding: place_in_order(numbered, finding))
    try:
        found += overflows(numbered, run, budget)
        ordering = Ordering(numbered, run, budget)
        accesses = memory_accesses(program, run)
        racing, notes, stopped = races(numbered, run, accesses, ordering, budget)
        found += racing
        tell(f"lifetimes of memory, accesses: {len(accesses):,}")
        found += lifetime_violations(numbered, run, accesses, ordering, leaking, budget, accept)
        if FindingKind.RACE not in accept:
            found = _without_consequences(found)
    except UndecidedError as error:
        stopped = error
        if not found:
            raise  # else it is not safe, whatever there is besides
    return Analysis(found, run.order, _counts(numbered, counts, budget), notes, stopped)


def _counts(numbered: NumberedProgram, counts: Counter[type], budget: Budget) -> dict[str, int]:
    return {
        "cores": len(numbered.ops),
        "events": numbered.events,
        "copies": counts[Start],
        "waits": counts[Wait],
        "signals": counts[Signal],
        "accesses": counts[Access],
        "exact runs": budget.exact_runs,
    }
