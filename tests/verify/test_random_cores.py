"""Random programs of cores that share memory and wait at barriers, against the search.

They are the programs of `random_programs`, changed: the data of each call may be one buffer for
all cores or for the first two, with rows that lie between each other, some copies read a list of
indices besides, and cores wait at barriers, at which one of them may be missing.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("hypothesis", reason="random protocols need hypothesis: pip install hypothesis")

from hypothesis import given, note, seed, settings
from hypothesis import strategies as st

from safepallas._verify.program import Barrier, Enter, Event, Leave, Line, Program, Region, Start

from .random_programs import ROWS, protocols
from .random_run import SEED, SLOW, STATES, compare, describe
from .search import TooManyStatesError, Truth, search

EXAMPLES = 600


@st.composite
def programs(draw: st.DrawFn) -> Program:
    program = draw(protocols())
    n = len(program.cores)
    groups = draw(st.sampled_from([[(0, 1)], [tuple(range(n))], []]))
    sharers = {core: (core,) for core in range(n)}
    sharers.update({core: group for group in groups for core in group})
    allocations = {
        number: dataclasses.replace(one, shared_by=sharers) if one.name == "data" else one
        for number, one in program.allocations.items()
    }

    def region(old: Region) -> Region:
        if allocations[old.allocation].name != "data":
            return old
        core = sharers[old.core][0]
        # Row 0 is all even rows of twice as many, row 1 all odd ones.
        (low,), (high,) = old.low, old.high
        if low == high:
            return Region(core, old.allocation, (low,), (low,))
        if (low, high) == (0, ROWS):
            return Region(core, old.allocation, (0,), (2 * ROWS,))
        return Region(core, old.allocation, (low,), (low + 2 * ROWS - 1,), (ROWS,))

    def moved(core: int, old: Event) -> Event:
        if isinstance(old, Start):
            indices: Any = ()
            if draw(st.integers(0, 3)) == 0:
                row = draw(st.integers(0, ROWS - 1))
                indices = (region(Region(core, old.source.allocation, (row,), (row + 1,))),)
            return old._replace(
                source=region(old.source), target=region(old.target), indices=indices
            )
        return old._replace(region=region(old.region)) if hasattr(old, "region") else old

    cores = [[moved(core, old) for old in events] for core, events in enumerate(program.cores)]
    for key in range(draw(st.integers(0, 2))):
        among = draw(st.sampled_from([(0, 1), tuple(range(n))]))
        missing = draw(st.sampled_from([None, None, None, None, *among]))
        for core in among:
            inside = [
                at
                for at in range(1, len(cores[core]))
                if not isinstance(cores[core][at], Enter)
                or not isinstance(cores[core][at - 1], Leave)
            ]
            if core != missing and inside:
                at = draw(st.sampled_from(inside))
                line = Line("kernel.py", 10_000 * (key + 1) + core)
                cores[core].insert(at, Barrier(key, among, line))
    parts = tuple(f"core {core}" for core in range(n))
    return dataclasses.replace(program, cores=cores, allocations=allocations, mesh=(), parts=parts)


def test_the_verifier_agrees_with_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    shares: Counter[str] = Counter()

    @seed(SEED)
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=SLOW)
    @given(programs())
    def agree(program: Program) -> None:
        try:
            truth = search(program, STATES, prompt=True)
        except TooManyStatesError:
            shares["too large to search"] += 1
            return
        note(describe(program))
        compare(program, truth)
        count(program, truth, shares)

    agree()
    searched = shares["safe"] + shares["unsafe"]
    with capsys.disabled():
        print(f"\nseed {SEED}: {searched} programs of cores searched:")
        print(dict(sorted(shares.items())))
    few = {k: shares[k] for k in KINDS if shares[k] < 0.05 * searched}
    assert not few, f"too few of some kinds among {searched} programs: {few}"


KINDS = ("safe", "deadlock", "leak", "race", "barriers", "shares")


def count(program: Program, truth: Truth, shares: Counter[str]) -> None:
    shares["safe" if truth.is_safe else "unsafe"] += 1
    shares["deadlock"] += truth.deadlock
    shares["leak"] += bool(truth.leaks)
    shares["race"] += bool(truth.races)
    shares["barriers"] += any(isinstance(e, Barrier) for events in program.cores for e in events)
    shares["shares"] += any(len(program.sharers(0, number)) > 1 for number in program.allocations)
