"""Decide deadlocks, leaked semaphores and races of Pallas TPU kernels before they run.

`verify` traces a function, follows the protocol of its kernels on every device, and returns a
`Report`. It works on raw Pallas kernels and on those of safepallas, and needs no TPU.
"""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Callable
from typing import Any

from safepallas.verify._analysis import LIMIT, Analysis, analyse
from safepallas.verify._extract import Source
from safepallas.verify._model import Finding, Kind, Program, UndecidedError, WrongError
from safepallas.verify._report import Report

__all__ = ["Finding", "Kind", "Report", "verify"]


def verify(
    function: Callable[..., Any],
    *args: Any,
    calls: int | None = None,
    limit: int = LIMIT,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Decide whether the kernels of a function can deadlock, leak a semaphore or race.

    The verdict holds for the devices of the mesh and for the values in `args`, and for no others.
    It says nothing of what the compiler or the hardware may do wrong.

    Args:
        function: any traceable function that calls Pallas kernels, raw ones or those of safepallas.
        args: arrays, or ``jax.ShapeDtypeStruct`` where no control flow, index, amount or device id
            depends on their values.
        calls: how often the function is called, one call right after the other. By default twice
            where a kernel uses the barrier semaphore of ``collective_id``, which outlives a call;
            else once, for then it makes no difference.
        limit: the most events (signals, waits, copies, accesses) of all devices together. The
            search for races stops at 50 times as many, over all its runs.
        progress: called now and then with a short line of text.

    Returns:
        A report. Its verdict is ``"undecided"`` where something is not known before the kernel
        runs, where an operation is not followed, or where `limit` was reached.

    Raises:
        ValueError: `calls` or `limit` is below 1.

    Example::

        class Flags(sp.Scratch):
            sent = sp.dma_semaphore()
            came = sp.dma_semaphore()

        def shift(x: sp.Ref, o: sp.Ref, s: Flags) -> None:
            sp.barrier_neighbors("x")
            right = jax.lax.rem(jax.lax.axis_index("x") + 1, 8)
            sp.async_remote_copy(x, o, s.sent, s.came, {"x": right}).wait()

        params = pltpu.CompilerParams(collective_id=0)
        call = sp.pallas_call(shift, like, scratch_shapes=Flags, compiler_params=params)
        mesh = jax.sharding.AbstractMesh((8,), ("x",))
        fn = jax.shard_map(call, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
        sp.verify(fn, x).raise_if_unsafe()
    """
    if (calls is not None and calls < 1) or limit < 1:
        raise ValueError(f"expected calls and limit of at least 1, but got {calls} and {limit}")
    tell = progress or _say_nothing
    collects = gc.isenabled()
    gc.disable()  # millions of small tuples, none of them garbage: half the time went there
    try:
        return _verify(function, args, calls, limit, tell)
    finally:
        if collects:
            gc.enable()


def _verify(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    calls: int | None,
    limit: int,
    tell: Callable[[str], None],
) -> Report:
    program = None
    try:
        source = Source(function, args)  # errors of the function itself are its caller's
    except UndecidedError as undecided:
        return Report("undecided", [], program, None, undecided)
    try:
        program = source.extract(calls, limit, tell)
        tell(f"{sum(map(len, program.cores)):,} events of {len(program.cores)} devices")
        analysis = analyse(program, limit, tell)
    except UndecidedError as undecided:
        return Report("undecided", [], program, None, undecided)
    except WrongError as wrong:
        return Report("unsafe", [wrong.finding])
    except Exception as error:  # never a traceback of ours, and never a verdict on half of it
        reason = UndecidedError(f"sp.verify failed on this program: {error!r}. Please report that.")
        reason.__cause__ = error
        return Report("undecided", [], program, None, reason)
    return _judge(program, analysis)


def _say_nothing(text: str) -> None:
    pass


def _judge(program: Program, analysis: Analysis) -> Report:
    """The report. A race with what may be elsewhere in the buffer is none for sure."""
    findings = [finding for finding in analysis.findings if finding.is_sure]
    doubtful = [finding for finding in analysis.findings if not finding.is_sure]
    if findings:
        return Report("unsafe", findings, program, analysis)
    if doubtful:
        reason = UndecidedError(
            "Two accesses may overlap: where one of them goes is not known before it runs. "
            + doubtful[0].text,
            doubtful[0].lines[0],
        )
        return Report("undecided", [], program, analysis, reason)
    return Report("safe", [], program, analysis)


class _Package(types.ModuleType):
    """A package that can be called: ``sp.verify`` is this one, and is to be the function in it."""

    def __call__(self, function: Callable[..., Any], *args: Any, **options: Any) -> Report:
        return verify(function, *args, **options)


sys.modules[__name__].__class__ = _Package
