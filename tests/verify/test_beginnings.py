"""Rule 12: what is found in the beginning of a program is wrong with all of it, whatever comes."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas import verify
from safepallas._verify.analysis.analyse import analyse
from safepallas._verify.diagnostics.details import NegativeAmount, Overflow
from safepallas._verify.diagnostics.finding import FindingKind
from safepallas._verify.program import (
    Enter,
    Event,
    Leave,
    Program,
    Release,
    Semaphore,
    Signal,
    Wait,
)

from .by_hand import SEM, SEND, inside, line, no_barrier, program, send_not_waited

DMA, REGULAR = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
ANY = pl.BlockSpec(memory_space=pl.ANY)
X = jax.ShapeDtypeStruct((8, 128), np.float32)


def begin(whole: Program, *lengths: int | None) -> Program:
    """Only so many events of each core are known; None for all that there are."""
    cores = [events[:length] for events, length in zip(whole.cores, lengths, strict=True)]
    opened = {core for core, length in enumerate(lengths) if length is not None}
    return dataclasses.replace(whole, cores=cores, open_cores=frozenset(opened))


def kinds(whole: Program) -> list[FindingKind]:
    return [finding.kind for finding in analyse(whole).findings]


def test_a_deadlock_stands_if_nobody_is_left_to_help() -> None:
    wait, signal = Wait(Semaphore(0, SEM), 1, line(2)), Signal(Semaphore(0, SEM), 1, line(3))
    both: list[list[Event]] = [inside(wait), inside(wait._replace(semaphore=Semaphore(1, SEM)))]
    assert kinds(begin(program(both), 2, 2)) == [FindingKind.DEADLOCK]
    assert kinds(begin(program(both), 2, None)) == [FindingKind.DEADLOCK]
    # Core 1 may signal after what is known of it.
    assert kinds(begin(program([inside(wait), inside(signal)]), None, 1)) == []
    # It may too if it is blocked, and core 2 may help it.
    three = [*both, inside()]
    assert kinds(begin(program(three), None, 2, 1)) == []
    # What it would do after its wait is known, and that is nothing: but core 2 may.
    assert kinds(begin(program(three), None, None, 1)) == []
    assert kinds(program(three)) == [FindingKind.DEADLOCK]


def test_a_leak_stands_if_its_owner_is_known_to_the_end() -> None:
    assert kinds(begin(send_not_waited(), *[None] * len(send_not_waited().cores))) == [
        FindingKind.LEAK
    ]
    events = [inside(Signal(Semaphore(0, SEM), 1, line(2)))]
    assert kinds(begin(program(events), None)) == [FindingKind.LEAK]
    # Another call may take it.
    assert kinds(begin(program(events), 3)) == []


def test_a_race_stands() -> None:
    whole = no_barrier()
    lengths = [len(events) - 1 for events in whole.cores]
    assert FindingKind.RACE in kinds(begin(whole, *lengths))
    nothing = [0 for _ in whole.cores]
    assert kinds(begin(whole, *nothing)) == []


def test_a_copy_in_flight_where_a_later_call_may_get_its_buffer_is_not_told() -> None:
    copy = program([inside(Wait(Semaphore(0, SEND), 0, line(2)))])
    assert kinds(begin(copy, 3)) == []


def test_random_beginnings() -> None:
    pytest.importorskip("hypothesis", reason="random protocols need hypothesis")
    from .random_programs import beginnings
    from .random_run import SECONDS, STATES, for_random
    from .search import TooManyStatesError, search

    shares: Counter[str] = Counter()

    def check(both: tuple[Program, Program]) -> None:
        beginning, whole = both
        try:
            truth = search(whole, STATES, prompt=True)
        except TooManyStatesError:
            return
        shares["searched"] += 1
        findings = analyse(beginning).findings
        shares.update(kind.value for kind in {finding.kind for finding in findings})
        races = {frozenset(access[:2] for access in pair) for pair in truth.races}
        for finding in findings:
            first = finding.events[-1]
            event = beginning.cores[first.core][first.at]
            then: Any = finding.events[0]
            if finding.kind is FindingKind.DEADLOCK:
                assert truth.deadlock
            elif finding.kind is FindingKind.LEAK:
                assert truth.leaks
            elif isinstance(finding.detail, NegativeAmount):
                assert (then.core, then.at) in truth.negative
            elif isinstance(finding.detail, Overflow):
                assert finding.detail.semaphore in truth.overflows
            elif finding.kind is FindingKind.REMOTE_BEFORE_ENTRY:
                assert (then.core, then.at) in truth.signals_before_entry
            elif isinstance(event, Enter):
                assert (then.core, then.at) in {access[:2] for access in truth.before_entry}
            elif isinstance(event, (Leave, Release)):
                assert (then.core, then.at) in {access[:2] for access in truth.after_exit}
            else:
                assert frozenset(where[:2] for where in finding.events) in races

    for_random(beginnings(), check, seconds=0.1 * SECONDS, at_least=300)
    # Deadlocks that are certain already are drawn too rarely to ask for: see by hand, above.
    for kind in ("leak", "race"):
        assert shares[kind] > 0.01 * shares["searched"], shares


# From kernels.


def call(kernel: Any, *scratch: Any) -> Any:
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[ANY], out_specs=ANY, scratch_shapes=scratch
    )
    return pl.pallas_call(kernel, X, grid_spec=spec)


N = jax.ShapeDtypeStruct((1,), np.int32)


@pytest.mark.parametrize("wrong", [False, True])
def test_a_deadlock_before_the_first_unknown_value(wrong: bool) -> None:
    def kernel(n: Any, x: Any, o: Any, sem: Any) -> None:
        del x, o
        if wrong:
            pl.semaphore_wait(sem, 1)

        @pl.when(n[0] > 0)
        def _() -> None:
            pl.semaphore_signal(sem, 1)

    report = verify(call(kernel, REGULAR), N, X)
    assert report.undecided is not None
    assert report.verdict == ("unsafe" if wrong else "undecided")
    assert [finding.kind.value for finding in report.findings] == ["deadlock"] * wrong
    assert ("There may be more than was found" in str(report)) == wrong


@pytest.mark.parametrize("wrong", [False, True])
def test_a_race_before_the_first_unknown_value(wrong: bool) -> None:
    def kernel(n: Any, x: Any, o: Any, v: Any, sem: Any) -> None:
        copy = pltpu.make_async_copy(x, v, sem)
        copy.start()
        if not wrong:
            copy.wait()
        o_copy = pltpu.make_async_copy(v, o, sem)
        o_copy.start()

        @pl.when(n[0] > 0)
        def _() -> None:
            o_copy.wait()

    report = verify(call(kernel, pltpu.VMEM(X.shape, X.dtype), DMA), N, X)
    assert report.undecided is not None
    assert report.verdict == ("unsafe" if wrong else "undecided")
    assert [finding.kind.value for finding in report.findings] == ["race"] * wrong
