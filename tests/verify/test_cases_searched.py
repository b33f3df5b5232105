"""The cases at their smallest size, against the search of all interleavings.

Amounts are divided by what all copies have in common: a byte less is then a unit less, and as what
is asked is in whole units too, no wait can tell the difference.
"""

from __future__ import annotations

import dataclasses
import math

import pytest

from safepallas._verify.diagnostics.finding import FindingKind
from safepallas._verify.program import Event, Program, Signal, Start, Wait

from .search import search
from .test_cases import CASES, Case, judge

STATES = 60_000
# Too many copies are under way at once to visit every state: the search ends where it goes wrong.
TOO_LARGE = {"a2a_barrier_bad", "barrier_twice_bad"}


def scaled(program: Program) -> Program:
    """The same program, with as few bytes as show the same."""
    bytes_on = {
        semaphore
        for events in program.cores
        for event in events
        if isinstance(event, Start)
        for semaphore in (event.send, event.recv)
        if semaphore is not None
    }

    def is_bytes(event: Event) -> bool:
        return isinstance(event, Start) or (
            isinstance(event, (Wait, Signal)) and event.semaphore in bytes_on
        )

    every = [event for events in program.cores for event in events if is_bytes(event)]
    unit = math.gcd(*(event.amount for event in every if isinstance(event, (Start, Wait, Signal))))
    cores = [
        [
            event._replace(amount=event.amount // unit)
            if isinstance(event, (Start, Wait, Signal)) and is_bytes(event)
            else event
            for event in events
        ]
        for events in program.cores
    ]
    return dataclasses.replace(program, cores=cores)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_search_agrees(case: Case) -> None:
    report = judge(case, case.form.devices[0])
    if report.program is None:
        assert case.form.expect == "out-of-range"  # found before there is a program
        return
    first = case.name in TOO_LARGE
    truth = search(scaled(report.program), STATES, prompt=True, first=first)
    kinds = {finding.kind for finding in report.findings}
    assert (report.verdict == "safe") == truth.is_safe
    assert (FindingKind.DEADLOCK in kinds) == truth.deadlock
    assert (FindingKind.LEAK in kinds) == bool(truth.leaks)
    told = kinds & {FindingKind.RACE, FindingKind.UNAWAITED_COPY, FindingKind.REMOTE_BEFORE_ENTRY}
    true = truth.races or truth.before_entry or truth.signals_before_entry
    # A copy that goes on after the end is told as the leak, if its semaphore leaks.
    assert bool(told) == bool(true) or (truth.after_exit and truth.leaks)
