"""Counting copies on regular semaphores, in protocols that are safe and in some that are not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import safepallas as sp
from safepallas import verify
from safepallas._verify.diagnostics.finding import Finding
from safepallas._verify.program import Start
from safepallas.verification import Report

from .on_cores import finds, undecided

ROWS, COLS = 4, 128
X = jax.ShapeDtypeStruct((ROWS, COLS), jnp.float32)
ANY = pl.BlockSpec(memory_space=pl.ANY)
VMEM = pl.BlockSpec(memory_space=pltpu.VMEM)


def judge(kernel: Callable[..., None], *scratch: Any, devices: int = 1) -> Report:
    params = pltpu.CompilerParams(collective_id=0) if devices > 1 else None
    fn: Any = sp.pallas_call(
        kernel,
        X,
        in_specs=[ANY],
        out_specs=VMEM,
        scratch_shapes=scratch,
        compiler_params=params,
    )
    if devices > 1:
        mesh = AbstractMesh((devices,), ("x",), axis_types=(AxisType.Auto,))
        fn = jax.shard_map(fn, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    return verify(fn, X, calls=1)


def line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


def starts_at(finding: Finding, text: str) -> None:
    assert finding.lines[0].number == line_of(text)
    assert finding.lines[0].file == __file__


def local(wait: int, read: int | None = None, then: int = 0, signals: int = 0) -> Report:
    """As many copies as rows on one semaphore; wait for some, read, wait for more."""

    def kernel(x: sp.Ref, o: sp.Ref, ready: sp.Semaphore) -> None:
        for row in range(ROWS):
            sp.async_copy_counted(x.at[row], o.at[row], ready)
        if signals:
            sp.signal(ready, signals)
        sp.wait(ready, wait)
        if read is not None:
            o[read] = o[read] + 1.0
        if then:
            sp.wait(ready, then)

    return judge(kernel, sp.semaphore())


def test_all_are_waited_for() -> None:
    report = finds(local(4, read=0), set())
    assert report.program is not None
    (events,) = report.program.cores
    assert [event.amount for event in events if isinstance(event, Start)] == [1] * 4
    finds(local(2, then=2), set())
    finds(local(1, then=3), set())


def test_some_are_not() -> None:
    report = finds(local(3), {"leak", "race"})  # Pallas reads the output at the end
    assert report.findings[0].text.replace(__file__, "here.py") == (
        "`ready` is left at 1 when `kernel` ends: it gets 4 in all, the last by a copy of 1 by "
        f"the device at here.py:{line_of('sp.async_copy_counted(')}, and 1 wait takes 3. Wait for "
        "each copy that is started, for as much as it copies."
    )


def test_too_many_are() -> None:
    report = finds(local(5), {"deadlock"})
    starts_at(report.findings[0], "sp.wait(ready, wait)")
    assert "for 5 on `ready`, which holds 4" in report.findings[0].text


def test_one_of_them_may_be_any_of_them() -> None:
    """A count says how many are complete, and not which."""
    report = finds(local(1, read=0, then=3), {"race"})
    starts_at(report.findings[0], "o[read] = o[read] + 1.0")
    finds(local(3, read=3, then=1), {"race"})


@pytest.mark.parametrize(
    ("signals", "wait", "then", "expected"),
    [(2, 6, 0, set()), (2, 4, 2, {"race"}), (2, 4, 0, {"race", "leak"}), (1, 6, 0, {"deadlock"})],
)
def test_signals_on_the_same_semaphore(
    signals: int, wait: int, then: int, expected: set[str]
) -> None:
    finds(local(wait, read=0, then=then, signals=signals), expected)


def right(size: int) -> Any:
    return {"x": lax.rem(lax.axis_index("x") + 1, size)}


def ring(size: int, *, barrier: bool = True, received: int = 1, late: bool = False) -> Report:
    """Each sends to the right, and reads what comes from the left."""

    def kernel(x: sp.Ref, o: sp.Ref, send: sp.Semaphore, recv: sp.Semaphore) -> None:
        if barrier:
            sp.barrier_neighbors("x")
        else:
            sp.signal(sp.get_barrier_semaphore())
            sp.wait(sp.get_barrier_semaphore())
        sp.async_remote_copy_counted(x, o, send, recv, right(size))
        sp.wait(send)
        if late:
            o[0] = o[0] + 1.0  # too early
        if received:
            sp.wait(recv, received)

    return judge(kernel, sp.semaphore(), sp.semaphore(), devices=size)


@pytest.mark.parametrize("size", [2, 3])
def test_a_ring(size: int) -> None:
    finds(ring(size), set())
    report = finds(ring(size, received=0), {"leak", "race"})
    starts_at(report.findings[0], "sp.async_remote_copy_counted(x, o, send, recv")
    report = finds(ring(size, received=2), {"deadlock"})
    starts_at(report.findings[0], "sp.wait(recv, received)")
    assert "for 2 on `recv`, which holds 1" in report.findings[0].text
    report = finds(ring(size, late=True), {"race"})
    starts_at(report.findings[0], "# too early")
    report = finds(ring(size, barrier=False), {"race"})
    starts_at(report.findings[0], "sp.async_remote_copy_counted(x, o, send, recv")
    assert "before device x=1 has entered the kernel" in report.findings[0].text


@pytest.mark.parametrize(("first", "expected"), [(2, set()), (1, {"race"})])
def test_one_semaphore_for_both_ends(first: int, expected: set[str]) -> None:
    """Of two devices: what is sent out and what comes in count on the same one."""

    def kernel(x: sp.Ref, o: sp.Ref, both: sp.Semaphore) -> None:
        sp.barrier_neighbors("x")
        sp.async_remote_copy_counted(x, o, both, both, right(2))
        sp.wait(both, first)
        o[0] = o[0] + 1.0
        if first < 2:
            sp.wait(both, 2 - first)

    finds(judge(kernel, sp.semaphore(), devices=2), expected)


def test_a_buffer_is_used_again_once_it_is_read() -> None:
    """The source may change when `send` says so, and not before."""

    def build(early: bool) -> Callable[..., None]:
        def kernel(x: sp.Ref, o: sp.Ref, mine: sp.Ref, send: Any, recv: Any) -> None:
            sp.barrier_neighbors("x")
            sp.async_remote_copy_counted(mine, o, send, recv, right(2))
            if not early:
                sp.wait(send)
            mine[0] = mine[0] + 1.0  # the source
            if early:
                sp.wait(send)
            sp.wait(recv)

        return kernel

    scratch = (sp.vmem((ROWS, COLS), jnp.float32), sp.semaphore(), sp.semaphore())
    finds(judge(build(False), *scratch, devices=2), set())
    report = finds(judge(build(True), *scratch, devices=2), {"race"})
    starts_at(report.findings[0], "# the source")


def test_a_semaphore_of_each_kind() -> None:
    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        pltpu.make_async_remote_copy(x, o, send, recv, device_id={"x": 0}).start()

    dma, regular = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
    options: Any = {"in_specs": [ANY], "out_specs": ANY, "scratch_shapes": [dma, regular]}
    fn: Any = pl.pallas_call(kernel, X, **options)
    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    fn = jax.shard_map(fn, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    report = verify(fn, X)
    undecided(report, "A copy with two kinds of semaphores is not followed", __file__)
