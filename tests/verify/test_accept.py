"""`accept=`: kinds of findings that somebody has decided to live with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from safepallas import verify
from safepallas._verify.analysis.analyse import analyse
from safepallas._verify.diagnostics.finding import FindingKind
from safepallas._verify.program import Event, Program, Semaphore, Signal, Wait
from safepallas._verify.run import judge

from . import by_hand
from .by_hand import RECV, SEM, SEND, inside, line, program, remote

X = jax.ShapeDtypeStruct((8, 128), jnp.float32)
ANY = pl.BlockSpec(memory_space=pl.ANY)
KINDS = frozenset(FindingKind)


def judged(whole: Program, *accept: FindingKind, **options: Any) -> Any:
    analysis = analyse(whole, accept=frozenset(accept), **options)
    return judge(whole, analysis, frozenset(accept))


def early_signal() -> Any:
    """Two devices, a barrier of the kernel's own in scratch, and no barrier before it."""

    def kernel(x: Any, o: Any, barrier: Any, sem: Any) -> None:
        pl.semaphore_signal(barrier, device_id={"x": 1 - jax.lax.axis_index("x")})
        pl.semaphore_wait(barrier, 1)
        pltpu.make_async_copy(x, o, sem).start()
        pltpu.make_async_copy(x, o, sem).wait()

    call = pl.pallas_call(
        kernel,
        X,
        in_specs=[ANY],
        out_specs=ANY,
        scratch_shapes=[pltpu.SemaphoreType.REGULAR, pltpu.SemaphoreType.DMA],
        compiler_params=pltpu.CompilerParams(skip_device_barrier=True),
    )
    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    return jax.shard_map(call, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)


def test_what_is_accepted_is_listed_and_makes_nothing_unsafe() -> None:
    assert verify(early_signal(), X).verdict == "unsafe"
    assert verify(early_signal(), X, accept={"race", "leak"}).verdict == "unsafe"
    report = verify(early_signal(), X, accept={"remote-before-entry"})
    assert (report.verdict, report.findings) == ("safe", [])
    assert [finding.kind.value for finding in report.accepted] == ["remote-before-entry"]
    text = str(report)
    assert text.startswith("safe: kernel on 2 devices (x=2), 1 accepted.")
    assert "Accepted: use of another core's memory before its entry at " in text
    report.raise_if_unsafe()


@pytest.mark.parametrize("wrong", [{"hope"}, {"race", "hope"}, "race"])
def test_a_name_that_is_no_kind_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"deadlock, leak, race, .*amount.* to accept, but got"):
        verify(early_signal(), X, accept=wrong)


@pytest.mark.parametrize("name", by_hand.CASES)
def test_no_finding_is_lost(name: str) -> None:
    """Whatever is accepted, the rest makes a program as unsafe as before."""
    whole = by_hand.CASES[name][0]()
    kinds = {finding.kind for finding in analyse(whole).findings}
    for kind in kinds:
        report = judged(whole, kind)
        assert {finding.kind for finding in report.accepted} == {kind}
        assert {finding.kind for finding in report.findings} >= kinds - {kind}
    report = judged(whole, *KINDS)
    assert not report.findings
    # After a negative amount nothing is known.
    assert report.verdict == (
        "undecided" if FindingKind.AMOUNT in kinds and name != "too_much" else "safe"
    )


def test_an_accepted_race_hides_no_signal() -> None:
    """The signal of a copy that comes too early is told with the copy, but for that."""
    copy = remote(2, 0, 1)
    cores: list[list[Event]] = [
        inside(copy, Wait(Semaphore(0, SEND), 512, line(3))),
        inside(Wait(Semaphore(1, RECV, (0,)), 512, line(4))),
    ]
    whole = program(cores)
    assert [f.kind for f in analyse(whole).findings] == [FindingKind.RACE]
    report = judged(whole, FindingKind.RACE)
    assert [f.kind for f in report.findings] == [FindingKind.REMOTE_BEFORE_ENTRY]
    assert judged(whole, FindingKind.RACE, FindingKind.REMOTE_BEFORE_ENTRY).verdict == "safe"


def test_an_accepted_leak_hides_no_copy_in_flight() -> None:
    report = judged(by_hand.send_not_waited(), FindingKind.LEAK)
    assert [f.kind for f in report.findings] == [FindingKind.UNAWAITED_COPY]


def test_an_analysis_that_stopped_is_not_safe() -> None:
    """It found a leak, and reached its limit in the search for races."""
    leak: Event = Signal(Semaphore(0, SEM), 1, line(5))
    cores = by_hand.no_barrier().cores
    cores[0].insert(1, leak)
    whole = program(cores)
    report = judged(whole, FindingKind.LEAK, limit=11, runs=1)
    assert report.verdict == "undecided"
    assert "stopped at its limit" in report.undecided.text


def out_of_range() -> Any:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        pl.semaphore_signal(sem.at[pl.program_id(0) + 3], 1)

    return pl.pallas_call(
        kernel,
        X,
        grid=(1,),
        in_specs=[ANY],
        out_specs=ANY,
        scratch_shapes=[pltpu.SemaphoreType.REGULAR((2,))],
    )


def test_what_ends_the_extraction_leaves_the_rest_undecided() -> None:
    make: Callable[..., Any] = out_of_range
    assert verify(make(), X).verdict == "unsafe"
    report = verify(make(), X, accept={"out-of-range"})
    assert report.verdict == "undecided"
    assert [finding.kind.value for finding in report.accepted] == ["out-of-range"]
