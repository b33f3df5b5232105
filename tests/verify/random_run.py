"""The verifier against the search of all interleavings, on random programs: as many as time allows.

Each run takes a fresh seed, which is printed, also with a failure. To repeat one::

    SAFEPALLAS_VERIFY_SEED=123 pytest tests/verify/test_random.py

A test has a budget of seconds and a least number of programs. A long run prints a line now and
then::

    python -m tests.verify.random_run --programs 20000
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable

from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis.strategies import SearchStrategy

from safepallas._verify.analysis.analyse import analyse
from safepallas._verify.analysis.deadlocks_and_leaks import leaks
from safepallas._verify.analysis.semaphore_machine import number_program, schedule
from safepallas._verify.diagnostics.details import NegativeAmount, Overflow, SameWrites
from safepallas._verify.diagnostics.finding import Finding, FindingKind
from safepallas._verify.program import Enter, Leave, Program, Release, Start, Step

from .random_programs import protocols
from .search import TooManyStatesError, Truth, search

SEED = int(os.environ.get("SAFEPALLAS_VERIFY_SEED") or secrets.randbits(32))
# Of all random tests of a run taken as one; each of them has a part of it.
SECONDS = float(os.environ.get("SAFEPALLAS_VERIFY_SECONDS", "20"))
BATCH = 100  # the programs of a seed: the next batch has the next one
STATES = 1000
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def for_random(
    programs: SearchStrategy[Program],
    check: Callable[[Program], None],
    *,
    seconds: float,
    at_least: int,
    tell: Callable[[int, int], None] = lambda number, seed: None,
) -> int:
    """Check random programs for so many seconds, and at least so many; returns how many."""
    start, number, first = time.monotonic(), 0, SEED
    while number < at_least or time.monotonic() - start < seconds:
        batch = seed(first)(
            settings(max_examples=BATCH, deadline=None, database=None, suppress_health_check=SLOW)(
                given(programs)(check)
            )
        )
        try:
            batch()
        except BaseException as error:
            error.add_note(f"To repeat it: SAFEPALLAS_VERIFY_SEED={first}")
            raise
        number, first = number + BATCH, first + 1
        tell(number, first - 1)
    return number


def agree(program: Program, shares: Counter[str]) -> None:
    """Search a program, unless it is too large, compare, and count what is wrong with it."""
    try:
        truth = search(program, STATES)
    except TooManyStatesError:
        shares["too large to search"] += 1
        return
    note(describe(program))
    compare(program, truth)
    if not truth.negative:  # else less may come of more
        promptly = search(program, STATES, prompt=True)
        assert dataclasses.replace(promptly, states=truth.states) == truth
    count(truth, shares)


def describe(program: Program) -> str:
    return "\n".join(
        f"core {core}: " + "\n        ".join(str(event) for event in events)
        for core, events in enumerate(program.cores)
    )


def count(truth: Truth, shares: Counter[str]) -> None:
    shares["searched"] += 1
    shares["safe"] += truth.is_safe
    shares["deadlock"] += truth.deadlock
    shares["leak"] += bool(truth.leaks)
    shares["race"] += bool(truth.races)
    shares["same bytes"] += bool(truth.same_bytes)
    shares["amount"] += bool(truth.negative or truth.overflows)
    shares["before entry"] += bool(truth.before_entry or truth.signals_before_entry)
    shares["after exit"] += bool(truth.after_exit)
    shares["states"] += truth.states


def compare(program: Program, truth: Truth) -> None:
    analysis = analyse(program)
    findings = analysis.findings
    assert bool(findings) != truth.is_safe
    by_kind = {kind: [f for f in findings if f.kind is kind] for kind in FindingKind}
    amounts = [f.detail for f in by_kind[FindingKind.AMOUNT]]
    negative = {detail.event for detail in amounts if isinstance(detail, NegativeAmount)}
    assert negative <= truth.negative
    assert bool(negative) == bool(truth.negative)
    if negative:  # nothing else is claimed
        return
    # One for each allocation.
    high = {detail.semaphore for detail in amounts if isinstance(detail, Overflow)}
    assert high <= truth.overflows
    assert {s.allocation for s in high} == {s.allocation for s in truth.overflows}
    assert bool(by_kind[FindingKind.DEADLOCK]) == truth.deadlock
    numbered = number_program(program)
    run = schedule(numbered)
    leaking = leaks(numbered, run)[1]
    assert leaking == truth.leaks
    assert bool(by_kind[FindingKind.LEAK]) == bool(leaking)

    true_races = {frozenset(access[:2] for access in pair) for pair in truth.races}
    early = {access[:2] for access in truth.before_entry}
    late = {access[:2] for access in truth.after_exit}
    told_races: set[frozenset[tuple[int, int]]] = set()
    told_early: set[tuple[int, int]] = set()
    told_late: set[tuple[int, int]] = set()
    for finding in by_kind[FindingKind.RACE] + by_kind[FindingKind.UNAWAITED_COPY]:
        then, other = finding.events
        event = program.cores[other.core][other.at]
        if isinstance(event, Enter):
            told_early.add((then.core, then.at))
        elif isinstance(event, (Leave, Release)):
            told_late.add((then.core, then.at))
        else:
            told_races.add(frozenset(((then.core, then.at), (other.core, other.at))))
        check_schedule(program, finding)
    noted = {
        frozenset(access.begin for access in (note.detail.first, note.detail.second))
        for note in analysis.notes
        if isinstance(note.detail, SameWrites)
    }
    same_bytes = {frozenset(access[:2] for access in pair) for pair in truth.same_bytes}
    assert noted <= same_bytes
    assert noted or not same_bytes or true_races
    assert told_races <= true_races
    assert bool(told_races) == bool(true_races)
    assert told_early == early
    assert told_late <= late
    assert told_late or not late or leaking
    # A signal that comes too early with its copy is told with the copy.
    told_signals = {
        (f.events[0].core, f.events[0].at) for f in by_kind[FindingKind.REMOTE_BEFORE_ENTRY]
    }
    assert told_signals | told_early == truth.signals_before_entry | early


def check_schedule(program: Program, finding: Finding) -> None:
    """The schedule ends with what may come too soon, and what should come before is not in it."""
    then, first = finding.events
    if isinstance(program.cores[first.core][first.at], (Leave, Release)):
        then, first = first, then
    steps = list(finding.schedule)
    assert steps[-1] == Step(*then)
    if isinstance(program.cores[first.core][first.at], Start):
        # Of the two accesses of a copy it is the one that is still to be over.
        assert not {Step(*first, "read"), Step(*first, "write")} <= set(steps)
    else:
        assert Step(*first) not in steps


def main() -> None:
    parser = argparse.ArgumentParser(description="The verifier against a search, at length.")
    parser.add_argument("--programs", type=int, default=20_000, help="how many, at least")
    wanted = parser.parse_args().programs
    shares: Counter[str] = Counter()
    start = time.monotonic()

    def tell(number: int, seed: int) -> None:
        if number % 1000 == 0 or number >= wanted:
            print(
                f"{number:,} programs, seed {seed}, {time.monotonic() - start:.0f} s: "
                f"{dict(sorted(shares.items()))}",
                flush=True,
            )

    print(f"seed {SEED}", flush=True)
    for_random(protocols(), lambda p: agree(p, shares), seconds=0, at_least=wanted, tell=tell)
    print("all agree")


if __name__ == "__main__":
    main()
