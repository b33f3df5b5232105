"""The verifier against the search of all interleavings, on random small protocols."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter

import pytest

pytest.importorskip("hypothesis", reason="random protocols need hypothesis: pip install hypothesis")

from hypothesis import HealthCheck, given, note, seed, settings

from safepallas._verify.analysis.analyse import analyse
from safepallas._verify.analysis.budget import Budget
from safepallas._verify.analysis.deadlocks_and_leaks import leaks
from safepallas._verify.analysis.happens_before import Ordering
from safepallas._verify.analysis.semaphore_machine import number_program, reach, schedule
from safepallas._verify.diagnostics.finding import Finding, FindingKind
from safepallas._verify.program import (
    Enter,
    Leave,
    Program,
    Release,
    Start,
    Step,
    Where,
)

from .random_programs import protocols
from .search import TooManyStatesError, Truth, search

# Another seed tries other protocols; the one that was used is in the report of a failure.
SEED = int(os.environ.get("SAFEPALLAS_VERIFY_SEED", "0"))
EXAMPLES = int(os.environ.get("SAFEPALLAS_VERIFY_EXAMPLES", "2500"))
STATES = 1000
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def test_verdicts_agree_with_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    shares: Counter[str] = Counter()
    distinct: set[str] = set()

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=SLOW,
    )
    @given(protocols())
    def agree(program: Program) -> None:
        try:
            truth = search(program, STATES)
        except TooManyStatesError:
            shares["too large to search"] += 1
            return
        note(describe(program))
        compare(program, truth)
        promptly = search(program, STATES, prompt=True)
        assert dataclasses.replace(promptly, states=truth.states) == truth
        distinct.add(repr(program.cores))
        count(truth, shares)

    agree()
    searched = shares["safe"] + shares["unsafe"]
    with capsys.disabled():
        print(f"\nseed {SEED}: {searched} protocols searched, {len(distinct)} different ones:")
        print(dict(sorted(shares.items())))
    if EXAMPLES >= 2000:
        assert searched >= 2000
        least = {"safe": 0.15, "deadlock": 0.1, "leak": 0.1, "race": 0.1}
        few = {k: shares[k] for k, share in least.items() if shares[k] < share * searched}
        assert not few, f"too few of some kinds among {searched} protocols: {few}"


def describe(program: Program) -> str:
    return "\n".join(
        f"core {core}: " + "\n        ".join(str(event) for event in events)
        for core, events in enumerate(program.cores)
    )


def count(truth: Truth, shares: Counter[str]) -> None:
    shares["safe" if truth.is_safe else "unsafe"] += 1
    shares["deadlock"] += truth.deadlock
    shares["leak"] += bool(truth.leaks)
    shares["race"] += bool(truth.races)
    shares["before entry"] += bool(truth.before_entry or truth.signals_before_entry)
    shares["after exit"] += bool(truth.after_exit)
    shares["states"] += truth.states


def compare(program: Program, truth: Truth) -> None:
    findings = analyse(program).findings
    assert bool(findings) != truth.is_safe
    by_kind = {kind: [f for f in findings if f.kind is kind] for kind in FindingKind}
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


@seed(SEED)
@settings(
    max_examples=min(EXAMPLES, 500),
    deadline=None,
    database=None,
    suppress_health_check=SLOW,
)
@given(protocols())
def test_the_quick_rule_never_says_more_than_the_exact_test(program: Program) -> None:
    numbered = number_program(program)
    run = schedule(numbered)
    ordering = Ordering(numbered, run, Budget(0, print))
    for first in run.order:
        reached = reach(numbered, first)
        for then in run.order:
            where = Where(then.core, then.at)
            if not then.part and ordering.certain(first, where, exactly=False):
                assert reached[then.core] <= then.at, (first, then)
