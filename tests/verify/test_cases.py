"""Every case of `cases/`, right and wrong: the verdict, the kind and the line; no false alarm."""

from __future__ import annotations

import importlib
import linecache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from safepallas import verify
from safepallas._verify.program import Line
from safepallas.verification import Report

from .cases import Form

MODULES = sorted(path.stem for path in Path(__file__).with_name("cases").glob("[!_]*.py"))


class Case(NamedTuple):
    module: ModuleType
    form: Form

    @property
    def is_right(self) -> bool:
        return self.form is self.module.RIGHT

    @property
    def name(self) -> str:
        return f"{self.module.__name__.rpartition('.')[2]}_{'good' if self.is_right else 'bad'}"

    def build(self, devices: int) -> tuple[Any, Any]:
        fn, args = self.module.build(devices, self.is_right)
        return fn, args


def _cases() -> list[Case]:
    modules = [importlib.import_module(f".cases.{name}", __package__) for name in MODULES]
    return [
        Case(module, vars(module)[form])
        for module in modules
        for form in ("RIGHT", "WRONG")
        if form in vars(module)
    ]


CASES = _cases()


def judge(case: Case, devices: int) -> Report:
    fn, args = case.build(devices)
    return verify(fn, *args, calls=1)


def source(line: Line) -> str:
    return linecache.getline(line.file, line.number)


@pytest.mark.parametrize(
    ("case", "devices"),
    [
        pytest.param(case, devices, id=f"{case.name}-{devices}")
        for case in CASES
        for devices in case.form.devices
    ],
)
def test_the_verdict_is_right(case: Case, devices: int) -> None:
    form = case.form
    report = judge(case, devices)
    if form.expect == "safe":
        assert report.verdict == "safe", str(report)
        return
    assert report.verdict == "unsafe"
    kinds = {finding.kind.value for finding in report.findings}
    assert form.expect in kinds
    assert kinds <= {form.expect, *form.also}
    pointed = [
        line
        for finding in report.findings
        if finding.kind.value == form.expect
        for line in finding.lines
    ]
    assert any(form.line in source(line) for line in pointed), str(report)
    # Only the user's own lines.
    own = {case.module.__file__, str(Path(__file__).parent / "cases" / "__init__.py")}
    assert {line.file for line in pointed if line.number} <= own


@pytest.mark.parametrize(
    ("case", "devices"),
    [
        pytest.param(case, devices, id=f"{case.name}-{devices}")
        for case in CASES
        for devices in case.form.safe_on
    ],
)
def test_a_wrong_kernel_on_fewer_devices_is_safe(case: Case, devices: int) -> None:
    assert devices < min(case.form.devices)
    report = judge(case, devices)
    assert report.verdict == "safe", str(report)


def test_all_cases_are_there() -> None:
    assert len(CASES) == 53
    assert len({case.name for case in CASES}) == 53
    wrong = [case.form for case in CASES if not case.is_right]
    assert len(wrong) == 25
    assert sum(len(form.safe_on) for form in wrong) == 8
    assert all(form.expect != "safe" and form.line for form in wrong)
    assert all(case.form.expect == "safe" for case in CASES if case.is_right)


@pytest.mark.parametrize("name", ["barrier_skip_good", "neighbour_barrier_good"])
def test_two_calls_may_race_where_one_is_safe(name: str) -> None:
    """A neighbour barrier of one phase: a signal of the next call stands in for one of this."""
    (case,) = (case for case in CASES if case.name == name)
    fn, args = case.build(5)
    assert verify(fn, *args, calls=1).verdict == "safe"
    twice = verify(fn, *args)
    assert {finding.kind.value for finding in twice.findings} == {"race"}
    assert verify(fn, *args, calls=2).findings == twice.findings
