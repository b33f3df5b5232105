"""One thing that is wrong with a program."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence

from safepallas._verify.diagnostics import messages
from safepallas._verify.diagnostics.details import Detail, Stated
from safepallas._verify.program import Line, Program, Step, Where


class FindingKind(enum.Enum):
    """What is wrong.

    Example: see `Finding`.
    """

    DEADLOCK = "deadlock"  #: a core waits for what never comes
    LEAK = "leak"  #: a semaphore is not zero where its scope ends
    RACE = "race"  #: two accesses to the same elements, one a write, in no happens-before order
    UNAWAITED_COPY = "unawaited-copy"  #: a copy may still be in flight where its scope ends
    OUT_OF_RANGE = "out-of-range"  #: an index or a device id
    OUT_OF_BOUNDS = "out-of-bounds"  #: an access, or a block, outside of its buffer
    REMOTE_BEFORE_ENTRY = "remote-before-entry"  #: use of memory of a core not in the kernel yet
    KIND = "kind"  #: a semaphore of another kind than the operation takes
    AMOUNT = "amount"  #: a negative amount, or more than a semaphore can hold


@dataclasses.dataclass(slots=True)
class Finding:
    """One thing that is wrong, with the lines of both sides.

    `kind` is a `FindingKind`, and `lines` are those of the source, the first the one to point at:
    ``str(line)`` is ``"file.py:12"``. `events` are the steps that take part, and `schedule` is an
    order of steps that shows it; pictures are drawn from both. `detail` says what it consists of
    (who waits for what, which accesses race), by numbers of `program`; the classes of both are
    private. `is_sure` is true of all that a report lists.

    Example::

        for finding in sp.verify(fn, x).findings:
            print(finding.kind.value, finding.lines[0], finding.text)
    """

    kind: FindingKind
    lines: tuple[Line, ...]  # the first is the one to point at
    detail: Detail
    events: tuple[Where, ...] = ()
    schedule: Sequence[Step] = ()
    is_sure: bool = True  # or it depends on where in a buffer something is, which is not known
    # What `detail` counts by; not compared. None where extraction has found it.
    program: Program | None = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        """A paragraph: who, on which semaphore, how much, and what to change.

        Example: see `Finding`.
        """
        return messages.explain(self.detail, self.program)


@dataclasses.dataclass(slots=True)
class Note:
    """What is worth knowing and not wrong: two writes of the same bytes to the same region.

    `lines` are those of the source, `detail` what was seen, as a record, and `program` the events
    that it names.

    Example::

        for note in sp.verify(fn, x).notes:
            print(note.lines[0], note.text)
    """

    lines: tuple[Line, ...]
    detail: Detail
    program: Program | None = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        """A paragraph.

        Example: see `Note`.
        """
        return messages.explain(self.detail, self.program)


class WrongError(Exception):
    """Extraction itself has found what is wrong: an index or an id out of range, a wrong kind."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.text)
        self.finding = finding
        self.found: list[Finding] = []  # what was found before


def stated(kind: FindingKind, text: str, line: Line) -> Finding:
    """What extraction finds, at one line."""
    return Finding(kind, (line,), Stated(text))
