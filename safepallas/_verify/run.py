"""From a function to a report: trace, extract, analyse."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager

from safepallas._verify.analysis.analyse import Analysis, analyse
from safepallas._verify.diagnostics.finding import Finding, FindingKind, WrongError
from safepallas._verify.extract.source import Source, trace
from safepallas._verify.program import Program, UndecidedError
from safepallas._verify.report.report import Report, Verdict


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


def kinds_of(names: Collection[str]) -> frozenset[FindingKind]:
    """The kinds of findings of these names.

    Raises:
        ValueError: there is none of such a name.
    """
    known = [kind.value for kind in FindingKind]
    unknown = [names] if isinstance(names, str) else sorted({*names} - {*known})
    if unknown:
        raise ValueError(f"expected a set of {', '.join(known)} to accept, but got {unknown}")
    return frozenset(map(FindingKind, names))


def run(
    function: Callable[..., object],
    args: tuple[object, ...],
    calls: int | None,
    limit: int,
    accept: frozenset[FindingKind],
    tell: Callable[[str], None],
) -> Report:
    """See `sp.verify`. Errors of the function itself, while it is traced, are its caller's."""
    traced = trace(function, args)
    program = None
    try:
        with _without_garbage_collection():
            program = Source(traced, args).extract(calls, limit, tell)
            tell(f"{sum(map(len, program.cores)):,} events of {len(program.cores)} devices")
            analysis = analyse(program, limit, tell, accept=accept)
    except UndecidedError as undecided:
        if program is None:
            return _stopped(undecided.found, None, undecided, accept)
        return _stopped(program.found, program, program.unknown or undecided, accept)
    except WrongError as wrong:
        text = "What is accepted ends the analysis: nothing is known of what comes after it."
        found = [*wrong.found, wrong.finding]
        if all(finding.kind in accept for finding in found):
            return _stopped(found, None, UndecidedError(text, wrong.finding.lines[0]), accept)
        return _stopped(found, None, None, accept)
    except Exception as error:  # never a traceback of ours, and never a verdict on half of it
        reason = UndecidedError(f"sp.verify failed on this program: {error!r}. Please report that.")
        reason.__cause__ = error
        return Report("undecided", [], program, None, reason)
    return judge(program, analysis, accept)


def _stopped(
    found: Sequence[Finding],
    program: Program | None,
    reason: UndecidedError | None,
    accept: frozenset[FindingKind],
) -> Report:
    """The report where there is no analysis."""
    findings = [finding for finding in found if finding.kind not in accept]
    accepted = [finding for finding in found if finding.kind in accept]
    verdict: Verdict = "unsafe" if findings else "undecided"
    return Report(verdict, findings, program, None, reason, accepted=accepted)


def judge(
    program: Program, analysis: Analysis, accept: frozenset[FindingKind] = frozenset()
) -> Report:
    """The report on an analysis. A race with what may be elsewhere in a buffer is not certain."""
    sure = [*program.found, *(finding for finding in analysis.findings if finding.is_sure)]
    findings = [finding for finding in sure if finding.kind not in accept]
    accepted = [finding for finding in sure if finding.kind in accept]
    reason = program.unknown
    if not findings and reason is None:
        reason = analysis.stopped or _doubt(analysis, accept)
    verdict: Verdict = "unsafe" if findings else "safe" if reason is None else "undecided"
    if verdict == "undecided" and program.unknown is not None and not accepted:
        return Report("undecided", [], None, None, reason)  # there is little to show
    return Report(verdict, findings, program, analysis, reason, analysis.notes, accepted)


def _doubt(analysis: Analysis, accept: frozenset[FindingKind]) -> UndecidedError | None:
    """Why the verdict is not safe although nothing is sure to be wrong."""
    doubtful = [
        finding
        for finding in analysis.findings
        if not finding.is_sure and finding.kind not in accept
    ]
    if not doubtful:
        return None
    return UndecidedError(
        "Two accesses may overlap: where one of them goes is not known before it runs. "
        + doubtful[0].text,
        doubtful[0].lines[0],
    )
