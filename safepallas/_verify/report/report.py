"""What `verify` has found: the verdict, and the text and pictures of it."""

from __future__ import annotations

import dataclasses
import json
import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias, get_args

import jax

from safepallas._errors import verification_errors
from safepallas._verify.diagnostics.finding import Finding, FindingKind, Note
from safepallas._verify.diagnostics.naming import Names, count, is_known, short_paths
from safepallas._verify.program import Line, Program, Step, UndecidedError
from safepallas._verify.report import perfetto
from safepallas._verify.report import picture as _picture
from safepallas._verify.report.timeline import Timeline, complete, lay_out

Verdict: TypeAlias = Literal["safe", "unsafe", "undecided"]

_VERDICTS: Final = get_args(Verdict)

_WIDTH: Final = 100
_ONE: Final = {"copies": "copy", "accesses": "access"}


class Schedule(Protocol):
    """What a report needs of an analysis: one real schedule, and how much there was to analyse."""

    @property
    def order(self) -> Sequence[Step]: ...

    @property
    def counts(self) -> Mapping[str, int]: ...


@dataclasses.dataclass(slots=True, frozen=True)
class Report:
    """The verdict on a protocol, and the reasons. `verify` makes it.

    `verdict` is ``"safe"``, ``"unsafe"`` (there are `findings`) or ``"undecided"`` (the reason is
    in `undecided`). `notes` tell what is worth knowing and not wrong, `accepted` holds the findings
    of the kinds that ``accept=`` names. The verdict holds for the devices and the values that were
    given, and no others; they are listed at the end of the text, ``str(report)``. `program` and
    `analysis` are what the pictures are drawn from; their classes are private.

    Raises:
        ValueError: The verdict does not agree with the reasons.

    Example::

        report = sp.verify(fn, x)
        print(report)
        report.to_svg("protocol.svg")
        report.to_perfetto("protocol.json")
        report.raise_if_unsafe()
    """

    verdict: Verdict
    findings: Sequence[Finding]
    program: Program | None = None  # None where nothing could be made of the function
    analysis: Schedule | None = None
    undecided: UndecidedError | None = None
    notes: Sequence[Note] = ()  # what is worth knowing and not wrong
    accepted: Sequence[Finding] = ()  # findings of the kinds that `verify` was told to accept

    def __post_init__(self) -> None:
        # Undecided is never reported as safe, whoever makes the report.
        if self.verdict not in _VERDICTS:
            raise ValueError(f"expected a verdict of {_VERDICTS}, but got {self.verdict!r}")
        if (self.verdict == "unsafe") != bool(self.findings):
            raise ValueError(f"{self.verdict!r} does not go with {len(self.findings)} findings")
        if self.verdict == "safe" and self.undecided is not None:
            raise ValueError(f"'safe' does not go with a reason to be undecided: {self.undecided}")
        if self.verdict == "undecided" and self.undecided is None:
            raise ValueError("'undecided' needs a reason")

    def raise_if_unsafe(self) -> None:
        """Raise unless the verdict is ``"safe"``, also where it is ``"undecided"``.

        Raises:
            UnsafeProtocolError: The verdict is not ``"safe"``. The message is the whole report.
        """
        if self.verdict != "safe":
            raise verification_errors.unsafe_protocol(str(self))

    def __str__(self) -> str:
        paragraphs = [self._headline()]
        for number, finding in enumerate(self.findings, 1):
            paragraphs.append(_paragraph(number, finding))
        paragraphs += map(_accepted, self.accepted)
        paragraphs += map(_noted, self.notes)
        if self.undecided is not None:
            paragraphs.append(_undecided_paragraph(self.undecided, bool(self.findings)))
        paragraphs += self._scope()
        return "\n\n".join(paragraphs)

    def to_perfetto(self, path: str | os.PathLike[str]) -> None:
        """Write a timeline that https://ui.perfetto.dev and ``chrome://tracing`` open.

        A thread for each core, with its kernel calls, waits and signals; threads beside it for its
        copies while they are in flight; an arrow for each copy and each signal to another core, to
        the wait that took it. The time is logical, a microsecond for an event: how long things
        take on a chip is not known. It shows one schedule: that of the first finding which has one.

        Args:
            path: of the file to write, JSON.

        Raises:
            PictureError: There is no timeline, as the protocol could not be run.
        """
        timeline, program = self._timeline()
        trace = perfetto.trace(program, timeline, self.findings)
        Path(path).write_text(json.dumps(trace, separators=(",", ":")), encoding="utf-8")

    def to_svg(self, path: str | os.PathLike[str]) -> None:
        """Write a picture: a column for each core, time goes down, findings in red.

        It shows one schedule: that of the first finding which has one. Of a long protocol it shows
        the part around the first finding.

        Args:
            path: of the file to write, SVG.

        Raises:
            PictureError: There is no timeline, as the protocol could not be run, or there are more
                than 8 cores.
        """
        timeline, program = self._timeline()
        if len(program.cores) > _picture.MOST_CORES:
            raise verification_errors.too_many_cores_to_draw(
                len(program.cores), _picture.MOST_CORES
            )
        about = self._counts(), self._shown()
        text = _picture.picture(self.verdict, program, timeline, self.findings, about)
        Path(path).write_text(text, encoding="utf-8")

    def _timeline(self) -> tuple[Timeline, Program]:
        if self.program is None or self.analysis is None:
            why = "the protocol could not be run"
            if self.findings:
                why = f"the protocol stops at {self.findings[0].lines[0]}"
            elif self.undecided is not None:
                why = f"the protocol is undecided{_at(self.undecided)}"
            raise verification_errors.nothing_to_draw(why)
        shown = self._shown_finding()
        if shown is None:
            return lay_out(self.program, self.analysis.order), self.program
        order, late = complete(self.program, shown, self.analysis.order)
        return lay_out(self.program, order, late), self.program

    def _shown_finding(self) -> Finding | None:
        return next((finding for finding in self.findings if finding.schedule), None)

    def _shown(self) -> str:
        shown = self._shown_finding()
        if shown is None:
            return "one of its schedules"
        return f"a schedule that shows finding {self.findings.index(shown) + 1}"

    def _headline(self) -> str:
        if self.program is None:
            return f"{self.verdict}."
        found = f": {count(len(self.findings), 'finding')}" if self.findings else ""
        if self.accepted:
            found += f", {len(self.accepted)} accepted"
        names = Names(self.program)
        return f"{self.verdict}: {names.calls()} on {names.mesh()}{found}."

    def _counts(self) -> str:
        if self.program is None:
            return "nothing"
        counted = [
            count(len(self.program.cores), "core"),
            count(len(self.program.calls), "kernel call"),
        ]
        if self.analysis is not None:
            counted += [
                f"{number:,} {noun if number != 1 else _ONE.get(noun, noun.removesuffix('s'))}"
                for noun, number in self.analysis.counts.items()
                if number and noun != "cores"
            ]
        return ", ".join(counted)

    def _scope(self) -> list[str]:
        """What was analysed, and what the verdict takes for granted."""
        if self.program is None:
            return []
        lines = [_fill(f"Analysed: {self._counts()}.")]
        if self.program.assumed:
            lines.append("Assumed:")
            lines += [_fill(f"- {text}", "  ") for text in self.program.assumed]
        if self.program.not_checked:
            lines.append("Not checked:")
            lines += [_fill(f"- {text}", "  ") for text in self.program.not_checked]
        last = f"Traced with JAX {jax.__version__}."
        if self.verdict == "safe":
            last += " The verdict holds for these devices and values, and no others."
        lines.append(last)
        return ["\n".join(lines)]


def _paragraph(number: int, finding: Finding) -> str:
    text = _fill(short_paths(finding.text, finding.lines), "   ", True)
    return f"{number}. {_NAMES[finding.kind]}{_at_lines(finding.lines)}\n{text}"


def _accepted(finding: Finding) -> str:
    text = _fill(short_paths(finding.text, finding.lines), "   ", True)
    return f"Accepted: {_NAMES[finding.kind]}{_at_lines(finding.lines)}\n{text}"


def _noted(note: Note) -> str:
    text = _fill(short_paths(note.text, note.lines), "   ", True)
    return f"Note: the same bytes twice{_at_lines(note.lines)}\n{text}"


def _at_lines(all_lines: Sequence[Line]) -> str:
    lines = [*dict.fromkeys(filter(is_known, all_lines))]
    at = f" at {lines[0]}" if lines else ""
    if len(lines) > 1:
        file = lines[0].file
        also = [f"line {line.number}" if line.file == file else str(line) for line in lines[1:]]
        at += f" (and {', '.join(also)})"
    return at


_NAMES: Final = {
    FindingKind.DEADLOCK: "deadlock",
    FindingKind.LEAK: "leak",
    FindingKind.RACE: "race",
    FindingKind.UNAWAITED_COPY: "copy that nobody waits for",
    FindingKind.OUT_OF_RANGE: "out of range",
    FindingKind.OUT_OF_BOUNDS: "out of bounds",
    FindingKind.REMOTE_BEFORE_ENTRY: "use of another core's memory before its entry",
    FindingKind.KIND: "semaphore of the wrong kind",
    FindingKind.AMOUNT: "amount that a semaphore cannot hold",
}


def _undecided_paragraph(undecided: UndecidedError, found: bool) -> str:
    text = f"Undecided{_at(undecided)}: {undecided.text.rstrip('.')}."
    text += " There may be more than was found." if found else " Nothing is claimed."
    return _fill(text)


def _at(undecided: UndecidedError) -> str:
    return f" at {undecided.line}" if undecided.line else ""


def _fill(text: str, indent: str = "", first: bool = False) -> str:
    return textwrap.fill(
        " ".join(text.split()),
        _WIDTH,
        initial_indent=indent if first else "",
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
