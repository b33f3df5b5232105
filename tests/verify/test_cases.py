"""Every case of `cases/`: the verdict, the kind and the line; and no false alarm on a safe one.

The verdicts of the cases were found by an exhaustive search over interleavings, not by `verify`.
"""

import linecache
from pathlib import Path
from types import ModuleType

import pytest

from safepallas import verify
from safepallas._verify.program import Line
from safepallas.verification import Report

from ..loading import load

CASES = sorted(Path(__file__).with_name("cases").glob("*.py"))

# How many devices a faulty kernel must have to be at fault, where fewer are safe.
SAFE_BELOW = {
    "a2a_barrier_bad": [2, 3],
    "barrier_twice_bad": [2, 3],
    "barrier_two_calls_bad": [2, 3],
    "neighbour_barrier_bad": [2],
    "ring_credit_bad": [2],
}


def judge(module: ModuleType, devices: int) -> Report:
    fn, args = module.build(devices)
    return verify(fn, *args, calls=1)


def source(line: Line) -> str:
    return linecache.getline(line.file, line.number)


SIZES = [
    pytest.param(path, devices, id=f"{path.stem}-{devices}")
    for path in CASES
    for devices in load(path).CASE["devices"]
]


@pytest.mark.parametrize(("path", "devices"), SIZES)
def test_the_verdict_is_right(path: Path, devices: int) -> None:
    module = load(path)
    case = module.CASE
    report = judge(module, devices)
    expected = case["expect"].replace("_", "-")
    if expected == "safe":
        assert report.verdict == "safe", str(report)
        return
    assert report.verdict == "unsafe"
    right = {expected, *(kind.replace("_", "-") for kind in case["also"])}
    kinds = {finding.kind.value for finding in report.findings}
    assert expected in kinds
    assert kinds <= right
    pointed = [
        line
        for finding in report.findings
        if finding.kind.value == expected
        for line in finding.lines
    ]
    assert any(case["line_hint"] in source(line) for line in pointed), str(report)
    # Only the user's own lines.
    assert {Path(line.file).name for line in pointed if line.number} <= {path.name}


@pytest.mark.parametrize(
    ("name", "devices"), [(name, n) for name, sizes in SAFE_BELOW.items() for n in sizes]
)
def test_a_faulty_kernel_on_fewer_devices_is_safe(name: str, devices: int) -> None:
    (path,) = (p for p in CASES if p.stem == name)
    module = load(path)
    assert devices < min(module.CASE["devices"])
    report = judge(module, devices)
    assert report.verdict == "safe", str(report)


def test_all_cases_are_there() -> None:
    assert len(CASES) == 53
    names = {path.stem for path in CASES}
    assert set(SAFE_BELOW) <= names
    faulty = {name.removesuffix("_bad") for name in names if name.endswith("_bad")}
    assert all(f"{name}_good" in names for name in faulty)


@pytest.mark.parametrize("name", ["barrier_skip_good", "neighbour_barrier_good"])
def test_two_calls_may_race_where_one_is_safe(name: str) -> None:
    """A neighbour barrier of one phase: a signal of the next call stands in for one of this."""
    (path,) = (p for p in CASES if p.stem == name)
    fn, args = load(path).build(5)
    assert verify(fn, *args, calls=1).verdict == "safe"
    twice = verify(fn, *args)
    assert {finding.kind.value for finding in twice.findings} == {"race"}
    assert verify(fn, *args, calls=2).findings == twice.findings
