"""What a report says, and what it refuses."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import jax
import pytest

import safepallas as sp
from safepallas._verify.diagnostics.details import Stated
from safepallas._verify.diagnostics.finding import Finding, FindingKind
from safepallas._verify.diagnostics.naming import Names, count, short_paths
from safepallas._verify.program import Line, Region, UndecidedError, Where
from safepallas._verify.report import picture
from safepallas._verify.report.report import Report

from . import drawn

SVG = "{http://www.w3.org/2000/svg}"

SAFE = """\
safe: ring on 4 devices (x=4).

Analysed: 4 cores, 1 kernel call, 40 events, 4 copies, 12 waits, 8 signals, 8 accesses.
Assumed:
- values: no values were needed on 4 devices
{traced} The verdict holds for these devices and values, and no others."""

RACE = """\
unsafe: two <copies> on one device: 1 finding.

1. race at ring.py:34 (and line 31)
   The device may read `va` at ring.py:34 before the copy started at ring.py:31 has written it:
   there is no happens-before order. Wait for that copy before, on a semaphore that no other copy
   adds to in the meantime.

Analysed: 1 core, 1 kernel call, 10 events, 2 copies, 2 waits, 4 accesses, 1 exact run.
Assumed:
- values: no values were needed
{traced}"""

UNDECIDED = """\
undecided: ring on 2 devices (x=2).

Undecided at ring.py:16: the value of n is not known. Nothing is claimed.

Analysed: 2 cores, 1 kernel call.
Assumed:
- values: no values were needed on 2 devices
{traced}"""


def undecided() -> Report:
    error = UndecidedError("the value of n is not known.", drawn.at(16))
    return Report("undecided", [], drawn.ring(2), None, error)


def test_texts() -> None:
    traced = f"Traced with JAX {jax.__version__}."
    assert str(drawn.safe_ring()) == SAFE.format(traced=traced)
    assert str(drawn.racing()) == RACE.format(traced=traced)
    assert str(undecided()) == UNDECIDED.format(traced=traced)


def test_a_text_is_the_same_every_time() -> None:
    assert str(drawn.blocked_ring()) == str(drawn.blocked_ring())


def test_only_safe_does_not_raise() -> None:
    drawn.safe_ring().raise_if_unsafe()
    for report in drawn.racing(), drawn.blocked_ring(), undecided():
        with pytest.raises(sp.errors.UnsafeProtocolError) as caught:
            report.raise_if_unsafe()
        assert isinstance(caught.value, AssertionError)
        assert str(caught.value) == f"{report} [unsafe-protocol]"


def test_findings_beside_undecided() -> None:
    """What was found stands; that there may be more is said."""
    lines = drawn.at(3), drawn.at(4), Line("other.py", 5)
    finding = Finding(FindingKind.OUT_OF_RANGE, lines, Stated("index 2 of 2."))
    report = Report("unsafe", [finding], undecided=UndecidedError("the limit was reached"))
    assert str(report) == (
        "unsafe.\n\n1. out of range at ring.py:3 (and line 4, other.py:5)\n   index 2 of 2.\n\n"
        "Undecided: the limit was reached. There may be more than was found."
    )


def test_every_kind_has_a_name() -> None:
    for kind in FindingKind:
        report = Report("unsafe", [Finding(kind, (Line("a.py", 1),), Stated("It is wrong."))])
        assert re.search(r"^1\. [a-z' ]+ at a\.py:1$", str(report), re.M)


LEAK = Finding(FindingKind.LEAK, (), Stated("It is left at 1."))


@pytest.mark.parametrize(
    ("verdict", "findings", "why"),
    [
        ("safe", [LEAK], None),
        ("safe", [], UndecidedError("unknown")),
        ("unsafe", [], None),
        ("undecided", [], None),
        ("undecided", [LEAK], UndecidedError("unknown")),
        ("unknown", [], None),
    ],
)
def test_a_verdict_must_agree_with_its_reasons(
    verdict: Any, findings: list[Finding], why: UndecidedError | None
) -> None:
    with pytest.raises(ValueError, match=verdict):
        Report(verdict, findings, undecided=why)


def test_a_verdict_is_checked_under_python_o() -> None:
    """The same in an interpreter that drops `assert`."""
    code = """
from safepallas._verify.diagnostics.details import Stated
from safepallas.verification import Finding, FindingKind, Report
assert not __debug__, "-O was not given"
leak = Finding(FindingKind.LEAK, (), Stated("It is left at 1."))
for verdict, findings in ("safe", [leak]), ("unsafe", []), ("undecided", []):
    try:
        Report(verdict, findings)
    except ValueError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-O", "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.splitlines() == [
        "'safe' does not go with 1 findings",
        "'unsafe' does not go with 0 findings",
        "'undecided' needs a reason",
    ], done.stderr


# Names.


def test_names() -> None:
    program = drawn.ring(3)
    names = Names(program)
    assert [names.event(0, event) for event in program.cores[0]] == [
        "enter ring",
        "signal barrier semaphore of device x=2 +1",
        "signal barrier semaphore of device x=1 +1",
        "wait barrier semaphore for 2",
        "copy x_ref to o_ref[1] of device x=1",
        "wait send_sems[0] for 4,096",
        "wait recv_sems[0] for 4,096",
        "read o_ref[1]",
        "write x_ref",
        "leave ring",
    ]
    # What is whole is left out, at the end as well; every other row of all is not whole.
    boxes = [(), ()], [(0, 0), (9, 128)], [(0, 0), (9, 128), (2, 1)], [(0, 64), (9, 128)]
    assert [names.region(Region(0, drawn.OUT, *box)) for box in boxes] == [
        "o_ref",
        "o_ref",
        "o_ref[0:9:2]",
        "o_ref[:, 64:128]",
    ]
    assert names.core(2) == "device x=2"
    assert names.mesh() == "3 devices (x=3)"
    assert [count(1, "copy"), count(2, "copy"), count(1200, "wait")] == [
        "1 copy",
        "2 copies",
        "1,200 waits",
    ]


def test_paths_are_short_where_that_is_clear() -> None:
    lines = [Line("/a/b/ring.py", 1), Line("/a/b/util.py", 2), Line("/a/util.py", 3)]
    lines.append(Line("<unknown>", 0))
    text = "/a/b/ring.py:1 /a/b/util.py:2 /a/util.py:3 <unknown>:0"
    short = "ring.py:1 /a/b/util.py:2 /a/util.py:3 <unknown>:0"
    assert short_paths(text, lines) == short
    finding = Finding(
        FindingKind.LEAK, (lines[3], lines[0], lines[0]), Stated("See /a/b/ring.py:1.")
    )
    assert str(Report("unsafe", [finding])) == (
        "unsafe.\n\n1. leak at /a/b/ring.py:1\n   See ring.py:1."
    )


# Pictures.


def svg(report: Report, tmp_path: Path) -> ElementTree.Element:
    path = tmp_path / "protocol.svg"
    report.to_svg(path)
    return ElementTree.fromstring(path.read_text(encoding="utf-8"))


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def shown(root: ElementTree.Element, color: str) -> list[str]:
    """The texts of a colour, without their titles."""
    found = [text for text in root.iter(f"{SVG}text") if text.get("fill") == color]
    return [text.text or (text[0].tail or "") for text in found]


def test_a_picture_shows_every_core_and_event(tmp_path: Path) -> None:
    root = svg(drawn.safe_ring(3), tmp_path)
    text = " ".join(texts(root))
    for core in range(3):
        assert f"device x={core}" in texts(root)
    for expected in ("ring on 3 devices (x=3): safe", "device x=2"):
        assert expected in texts(root)
    assert "one of its schedules; numbers in front are lines of ring.py" in texts(root)
    assert text.count("16 wait recv_sems[0] for 4,096") == 3
    assert text.count("15 copy x_ref to o_ref[1] of device x=1") == 1
    # An arrow, of two paths, for each of 3 copies and 6 signals, and two in the legend.
    assert len(list(root.iter(f"{SVG}path"))) == 2 * (3 + 6 + 2)


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_a_picture_needs_nothing_external_and_keeps_within_its_frame(
    cores: int, tmp_path: Path
) -> None:
    report = drawn.racing() if cores == 1 else drawn.blocked_ring(cores)
    root = svg(report, tmp_path)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for element in root.iter():
        assert element.tag.startswith(SVG)
        assert not {key for key in element.attrib if "href" in key or key == "style"}
        assert "url(" not in "".join(element.attrib.values())
        if element.tag in (f"{SVG}text", f"{SVG}rect"):
            x, y = float(element.get("x", 0)), float(element.get("y", 0))
            assert 0 <= x < width
            assert 0 <= y < height
        if element.tag == f"{SVG}rect":
            assert float(element.get("width", 0)) > 0
            assert float(element.get("height", 0)) > 0
            assert float(element.get("x", 0)) + float(element.get("width", 0)) <= width


def test_a_picture_marks_findings_and_says_them(tmp_path: Path) -> None:
    root = svg(drawn.racing(), tmp_path)
    red = shown(root, picture.RED)
    assert "31 (1) copy a_ref to va" in red
    assert "34 (1) read va" in red
    assert "(1) race, lines 34, 31" in red
    assert "32 copy b_ref to vb" in shown(root, picture.INK)
    assert "two <copies> on one device: unsafe" in red
    assert any("a schedule that shows finding 1" in text for text in texts(root))


def test_a_picture_shows_who_never_goes_on(tmp_path: Path) -> None:
    root = svg(drawn.blocked_ring(3), tmp_path)
    red = shown(root, picture.RED)
    assert red.count("16 wait recv_sems[0] for 8,192, never ends") == 2
    assert red.count("16 (1) wait recv_sems[0] for 8,192, never ends") == 1


def test_of_a_long_protocol_a_part_is_drawn(tmp_path: Path) -> None:
    root = svg(drawn.safe_ring(2, steps=100), tmp_path)
    (about,) = (text for text in texts(root) if "(to_perfetto: all)" in text)
    assert re.search(r"; rows 1 to 150 of \d{3} ", about)
    assert float(root.get("height", 0)) < 3200


def test_of_a_long_protocol_the_part_with_the_finding_is_drawn(tmp_path: Path) -> None:
    report = drawn.safe_ring(2, steps=100)
    last = Where(0, len(report.program.cores[0]) - 2)  # type: ignore[union-attr]
    finding = Finding(FindingKind.RACE, (drawn.at(18),), Stated("A race."), (last,))
    root = svg(Report("unsafe", [finding], report.program, report.analysis), tmp_path)
    assert "18 (1) write x_ref" in shown(root, picture.RED)
    assert not any("12 signal" in text for text in texts(root))
