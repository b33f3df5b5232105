"""The misuse matrix is what it would be if it were written now, and shows what is promised."""

import importlib.util
import json
import os
import re
from pathlib import Path

import pytest

import safepallas as sp

from ..typing.checkers import CHECKERS, INSTALLED
from . import generate, render
from .misuses import CORRECT, MISUSES, Misuse

CI = bool(os.environ.get("CI"))


def lacking() -> list[str]:
    """What is not installed, and is needed to fill the matrix."""
    missing = [name for name in CHECKERS if name not in INSTALLED]
    return missing + ([] if importlib.util.find_spec("libtpu") else ["libtpu"])


def demand(absent: list[str], ci: bool) -> None:
    """Skip the test where something is not installed; in CI that is a failure."""
    if absent:
        (pytest.fail if ci else pytest.skip)(f"not installed: {', '.join(absent)}")


def by_name(programs: list[Misuse]) -> dict[str, Misuse]:
    return {misuse.name: misuse for misuse in programs}


@pytest.fixture(scope="module")
def stored() -> dict[str, render.Results]:
    return generate.load()


def test_page_is_rendered_from_the_results(stored: dict[str, render.Results]) -> None:
    assert generate.PAGE.read_text() == render.render(stored), (
        "python -m tests.matrix.generate writes the page again"
    )


def test_results_are_what_a_fresh_run_gives(stored: dict[str, render.Results]) -> None:
    demand(lacking(), CI)
    if generate.version() not in stored:
        pytest.skip(f"no results are kept for jax {generate.version()}")
    fresh, kept = generate.fresh(), stored[generate.version()]
    differences = [
        f"{name}, {side}, {stage}: {kept.get(name, {}).get(side, {}).get(stage)} -> {cell}"
        for name, sides in fresh.items()
        for side, row in sides.items()
        for stage, cell in row.items()
        if kept.get(name, {}).get(side, {}).get(stage) != cell
    ]
    assert not differences, "\n".join(differences)
    assert fresh == kept


def test_what_is_not_installed_is_said() -> None:
    demand([], True)
    with pytest.raises(pytest.skip.Exception, match="not installed: ty, libtpu"):
        demand(["ty", "libtpu"], False)
    with pytest.raises(pytest.fail.Exception, match="not installed: ty"):
        demand(["ty"], True)


def test_there_are_enough_classes() -> None:
    assert len(MISUSES) >= 50
    assert len(by_name([*CORRECT, *MISUSES])) == len(CORRECT) + len(MISUSES), "two of one name"


@pytest.mark.parametrize("version", render.VERSIONS)
def test_results_are_of_these_misuses(version: str, stored: dict[str, render.Results]) -> None:
    assert list(stored[version]) == [misuse.name for misuse in generate.programs()]


@pytest.mark.parametrize("version", render.VERSIONS)
@pytest.mark.parametrize("name", by_name(MISUSES))
def test_no_misuse_survives(name: str, version: str, stored: dict[str, render.Results]) -> None:
    """Checkers refuse what types can express, and tracing everything, with our error or Python's.

    What has become visible to all checkers must lose its excuse.
    """
    row, misuse = stored[version][name]["safepallas"], by_name(MISUSES)[name]
    refused = [checker for checker in CHECKERS if row[checker] == "refused"]
    assert (refused == list(CHECKERS)) is not bool(misuse.limit)
    error = getattr(sp.errors, row["trace"], None)
    assert error is not None or row["trace"] in ("TypeError", "AttributeError")
    assert {row[stage] for stage in generate.STAGES} == {"-"}


@pytest.mark.parametrize("version", render.VERSIONS)
@pytest.mark.parametrize("name", by_name(CORRECT))
def test_what_surrounds_a_misuse_is_right(
    name: str, version: str, stored: dict[str, render.Results]
) -> None:
    """All checkers, tracing, the TPU interpreter and compiler accept it, in both columns."""
    for row in stored[version][name].values():
        assert {row[stage] for stage in (*CHECKERS, "trace", "v5e", "v6e")} == {"accepted"}
        assert row["InterpretParams"] == "silent"


def test_an_unknown_entry_in_a_cell_is_seen() -> None:
    assert render.entries("TypeError; v5e bug report, v6e accepted") == {
        "TypeError",
        "bug report",
        "accepted",
    }
    assert render.entries("mypy, ty refuse; accepted") == {"all refuse", "accepted"}
    with pytest.raises(AssertionError, match="melts"):
        render.legend({"melts"})


def test_pages_hold_nothing_of_the_machine(stored: dict[str, render.Results]) -> None:
    text = render.render(stored) + json.dumps(stored)
    assert not re.search(r"/tmp|/home|0x[0-9a-f]{4}|\.py:\d", text)


PROGRAM = "import os, time\n\n\ndef call(interpret):\n    {}\n"


def test_hangs_and_crashes_are_seen(tmp_path: Path) -> None:
    """And do not keep those that follow from being run."""
    jobs = {}
    for name, line in {
        "first": "raise ValueError",
        "hang": "time.sleep(60)",
        "crash": "os._exit(1)",
        "last": "raise KeyError",
        "bug": "raise ValueError('Please file a bug')",
    }.items():
        path = tmp_path / f"{name}.py"
        path.write_text(PROGRAM.format(line))
        jobs[name] = str(path)
    expected = {"first": "ValueError", "crash": "crashes", "last": "KeyError", "bug": "bug report"}
    traced = [(name, jobs[name], "trace", "", False) for name in expected]
    assert generate.run(traced, tmp_path, "trace") == expected
    every = [(name, path, "InterpretParams", "", False) for name, path in jobs.items()]
    assert generate.run(every, tmp_path, "runs", seconds=3) == expected | {"hang": "hangs"}


def test_a_process_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(PROGRAM.format("os._exit(1)"))
    with pytest.raises(AssertionError):
        generate.run([("ends", str(tmp_path / "ends.py"), "trace", "", False)], tmp_path, "trace")
