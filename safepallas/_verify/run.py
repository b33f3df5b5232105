"""From a function to a report: trace, extract, analyse."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager

from safepallas._verify.analysis.analyse import Analysis, analyse
from safepallas._verify.diagnostics.finding import WrongError
from safepallas._verify.extract.source import Source, trace
from safepallas._verify.program import Program, UndecidedError
from safepallas._verify.report.report import Report


@contextmanager
def _without_garbage_collection() -> Generator[None]:
    """Millions of small tuples, none of them garbage: half the time went there."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def run(
    function: Callable[..., object],
    args: tuple[object, ...],
    calls: int | None,
    limit: int,
    tell: Callable[[str], None],
) -> Report:
    """See `sp.verify`. Errors of the function itself, while it is traced, are its caller's."""
    traced = trace(function, args)
    program = None
    try:
        with _without_garbage_collection():
            program = Source(traced, args).extract(calls, limit, tell)
            tell(f"{sum(map(len, program.cores)):,} events of {len(program.cores)} devices")
            analysis = analyse(program, limit, tell)
    except UndecidedError as undecided:
        found = undecided.found if program is None else program.found
        return Report("unsafe" if found else "undecided", found, program, None, undecided)
    except WrongError as wrong:
        return Report("unsafe", [*wrong.found, wrong.finding])
    except Exception as error:  # never a traceback of ours, and never a verdict on half of it
        reason = UndecidedError(f"sp.verify failed on this program: {error!r}. Please report that.")
        reason.__cause__ = error
        return Report("undecided", [], program, None, reason)
    return judge(program, analysis)


def judge(program: Program, analysis: Analysis) -> Report:
    """The report on an analysis. A race with what may be elsewhere in a buffer is not certain."""
    findings = [*program.found, *(finding for finding in analysis.findings if finding.is_sure)]
    doubtful = [finding for finding in analysis.findings if not finding.is_sure]
    if findings:
        return Report("unsafe", findings, program, analysis, notes=analysis.notes)
    if doubtful:
        reason = UndecidedError(
            "Two accesses may overlap: where one of them goes is not known before it runs. "
            + doubtful[0].text,
            doubtful[0].lines[0],
        )
        return Report("undecided", [], program, analysis, reason, analysis.notes)
    return Report("safe", [], program, analysis, notes=analysis.notes)
