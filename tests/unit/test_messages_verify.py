"""The messages of the errors of a verification's report."""

import pytest

import safepallas as sp
from safepallas._verify.analysis.analyse import analyse
from safepallas._verify.diagnostics.details import Stated
from safepallas._verify.diagnostics.finding import Finding, FindingKind
from safepallas._verify.program import Line, Program, UndecidedError
from safepallas._verify.report.report import Report

from .helpers import Message, assert_says

LINE = Line("ring.py", 16, "kernel")
LEAK = Finding(FindingKind.LEAK, (LINE,), Stated("1 is left on sem. Wait for it."))
UNSAFE = Report("unsafe", [LEAK])
UNDECIDED = Report("undecided", [], undecided=UndecidedError("the value of n is not known", LINE))

MESSAGES: dict[str, Message] = {
    "unsafe": Message(
        sp.errors.UnsafeProtocolError,
        UNSAFE.raise_if_unsafe,
        "unsafe.\n\n1. leak at ring.py:16\n   1 is left on sem. Wait for it. [unsafe-protocol]",
    ),
    "undecided": Message(
        sp.errors.UnsafeProtocolError,
        UNDECIDED.raise_if_unsafe,
        "undecided.\n\nUndecided at ring.py:16: the value of n is not known. Nothing is claimed. "
        "[unsafe-protocol]",
    ),
    "drawing what was found before it ran": Message(
        sp.errors.PictureError,
        lambda: UNSAFE.to_svg("nowhere.svg"),
        "there is no timeline to draw: the protocol stops at ring.py:16. The text of the report, "
        "str(report), says more. [picture]",
    ),
    "a trace of what is undecided": Message(
        sp.errors.PictureError,
        lambda: UNDECIDED.to_perfetto("nowhere.json"),
        "there is no timeline to draw: the protocol is undecided at ring.py:16. The text of the "
        "report, str(report), says more. [picture]",
    ),
    "too many cores": Message(
        sp.errors.PictureError,
        lambda: many_cores().to_svg("nowhere.svg"),
        "a picture shows 8 cores at most, and this protocol runs on 9. Verify it for 8 devices to "
        "draw it, or use to_perfetto, which takes any number. [picture]",
    ),
}


def many_cores() -> Report:
    program = Program([[] for _ in range(9)], {}, [])
    return Report("safe", [], program, analyse(program))


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_it_says(message: Message) -> None:
    assert_says(message, __file__)
