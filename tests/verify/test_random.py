"""The verifier against the search of all interleavings, on random small protocols."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("hypothesis", reason="random protocols need hypothesis: pip install hypothesis")

from safepallas._verify.analysis.amounts import negative_amounts
from safepallas._verify.analysis.analyse import LIMIT
from safepallas._verify.analysis.happens_before import Budget, Ordering
from safepallas._verify.analysis.semaphore_machine import number_program, reach, schedule
from safepallas._verify.program import Program, Where

from .random_programs import protocols
from .random_run import SECONDS, SEED, agree, for_random

# What these must be of all programs, or the others are not tried much.
LEAST = {"safe": 0.1, "deadlock": 0.05, "leak": 0.05, "race": 0.05}


def test_verdicts_agree_with_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    shares: Counter[str] = Counter()
    for_random(
        protocols(), lambda program: agree(program, shares), seconds=0.6 * SECONDS, at_least=300
    )
    searched = shares["searched"]
    with capsys.disabled():
        print(f"\nseed {SEED}: {dict(sorted(shares.items()))}")
    assert searched > 200
    few = {kind: shares[kind] for kind, share in LEAST.items() if shares[kind] < share * searched}
    assert not few, f"too few of some kinds among {searched} protocols: {few}"


def test_the_quick_rule_never_says_more_than_the_exact_test() -> None:
    def check(program: Program) -> None:
        numbered = number_program(program)
        if negative_amounts(numbered, Budget(LIMIT, lambda text: None)):
            return  # the rule is not asked
        run = schedule(numbered)
        ordering = Ordering(numbered, run, Budget(0, lambda text: None))
        for first in run.order:
            reached = reach(numbered, first)
            for then in run.order:
                where = Where(then.core, then.at)
                if not then.part and ordering.certain(first, where, exactly=False):
                    assert reached[then.core] <= then.at, (first, then)

    for_random(protocols(), check, seconds=0.15 * SECONDS, at_least=300)
