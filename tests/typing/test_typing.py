"""Static typing, tested by data files, in the manner of NumPy's.

accept/  realistic kernels: no checker says anything, and each also runs and checks its result
reject/  every line marked ``# E: <why>`` is an error in every checker, and no other line in any
reveal/  ``assert_type``: what the public API yields is what it says, in every checker
limits/  misuse that some checker cannot see. ``# L: <why>`` marks a line that no checker sees,
         ``# L(mypy): <why>`` one that mypy alone does not; a checker that comes to see it fails
         the test, and the line moves to reject/. Each is refused while tracing: see LIMITS there.
         They are listed in docs/type-checkers.md.

No checker heeds another's ignore comments, and no data file holds one.
"""

import concurrent.futures
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from . import checkers
from .checkers import (
    CHECKERS,
    FOLDERS,
    Errors,
    Line,
    disagreements,
    files,
    library_parent,
    marked,
    require,
    run,
)

SECONDS = 180  # for one program that runs kernels


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("checker", CHECKERS)
def test_checkers_say_what_they_should(
    checker: str, folder: str, reports: dict[str, Errors]
) -> None:
    require(checker)
    wrong = disagreements(marked(folder), {checker: reports[checker]}, f"{folder}/")
    assert not wrong, "\n" + "\n".join(wrong)


def test_a_missing_checker_is_skipped_here_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="pytype is not installed"):
        require("pytype")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="pytype is not installed"):
        require("pytype")


def test_there_is_enough_of_it() -> None:
    assert len(files("accept")) >= 10
    assert len(marked("reject")) >= 480
    assert len(files("reveal")) >= 5
    assert not marked("accept")
    assert not marked("reveal")


def test_no_file_silences_a_checker() -> None:
    silencer = re.compile(r"#\s*(type|pyright|mypy|pyrefly|ty):|\bcast\b|TYPE_CHECKING")
    for folder in FOLDERS:
        for path in files(folder):
            assert not silencer.search(path.read_text()), f"{path} silences a checker"


@pytest.mark.parametrize("checker", CHECKERS)
def test_no_checker_heeds_what_another_is_told(
    checker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(checker)
    monkeypatch.setattr(checkers, "HERE", tmp_path)
    for folder in checkers.CHECKED:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}_file.py").touch()
    told = ["type: ignore", "pyright: ignore", "pyrefly: ignore", "ty: ignore", "none"]
    lines = [f"inverse('one')  # {comment}\n" for comment in told]
    function = "def inverse(number: int) -> float:\n    return 1 / number\n\n\n"
    (tmp_path / "reject" / "told.py").write_text(function + "".join(lines))
    seen = {
        line.number for line in CHECKERS[checker](checkers.data_files(tmp_path, tmp_path / "cache"))
    }
    own = {"mypy": {5}, "pyright": {6}, "pyrefly": set[int](), "ty": {8}}[checker]
    assert seen == {5, 6, 7, 8, 9} - own


def test_a_missing_mark_is_seen(reports: dict[str, Errors]) -> None:
    """The comparison can fail: take any one mark away, and every checker contradicts it."""
    expected = marked("reject")
    for line in expected:
        rest = {other: checkers for other, checkers in expected.items() if other != line}
        wrong = disagreements(rest, reports, "reject/")
        assert [w.split(": ")[1] for w in wrong if w.startswith(f"{line}:")] == list(reports)


def test_a_mark_too_many_is_seen(reports: dict[str, Errors]) -> None:
    correct = Line("accept/requests.py", 1)
    wrong = disagreements({correct: frozenset(CHECKERS)}, reports, "accept/")
    assert wrong == [f"{correct}: {name} sees no error" for name in reports]


def test_marks_are_read_as_meant() -> None:
    text = {
        "limits/a.py": "x = 1\nf()  # L: none\ng()  # L(mypy): one\n# E: no\n# L:\n",
    }
    assert marked("limits", text) == {
        Line("limits/a.py", 2): frozenset(),
        Line("limits/a.py", 3): frozenset(CHECKERS) - {"mypy"},
    }
    assert marked("reject", {"reject/b.py": "f()  # E: why"}) == {
        Line("reject/b.py", 1): frozenset(CHECKERS)
    }


def execute(code: str, *arguments: str) -> str | None:
    """What went wrong in a Python program with simulated devices, or None."""
    paths = [str(library_parent()), os.environ.get("PYTHONPATH", "")]
    environment = {
        "JAX_PLATFORMS": "cpu",
        # Two for the kernels; with none idle the simulator of jax 0.10 can hang.
        "XLA_FLAGS": "--xla_force_host_platform_device_count=3",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    try:
        done = run(command, SECONDS, **environment)
    except subprocess.TimeoutExpired as late:
        return f"no end after {SECONDS} s: a deadlock? {late.stdout!r} {late.stderr!r}"
    return None if done.returncode == 0 else done.stdout + done.stderr


# Several files in one process: importing JAX takes longer than most of them. What is printed
# last, when one hangs or dies, is its name.
RUN_FILES = """
import functools, importlib.util, inspect, sys, traceback
failed = []
for path in sys.argv[1:]:
    print(path, flush=True)
    try:
        spec = importlib.util.spec_from_file_location("data_file", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["data_file"] = module
        spec.loader.exec_module(module)
        if hasattr(module, "LIMITS"):
            from safepallas import SemaphoreError
            assert module.LIMITS
            for misuse, error in module.LIMITS.items():
                name = misuse.__name__
                if "o" in inspect.signature(misuse).parameters:  # a kernel
                    misuse = functools.partial(module.trace, misuse)
                if error is None:  # harmless
                    misuse()
                    continue
                assert issubclass(error, (SemaphoreError, TypeError, AttributeError)), error
                try:
                    misuse()
                except Exception as raised:
                    if type(raised) is not error:
                        raise
                else:
                    raise AssertionError(f"{name} raised nothing")
        else:
            checks = [name for name in vars(module) if name.startswith("check_")]
            assert checks
            for name in checks:
                getattr(module, name)()
    except Exception:
        failed.append(path)
        traceback.print_exc()
        from jax.experimental.pallas import tpu as pltpu
        pltpu.reset_tpu_interpret_mode_state()
sys.exit(f"failed: {failed}" if failed else 0)
"""
GROUPS = 4


def groups(folder: str, count: int) -> list[list[str]]:
    paths = [str(path) for path in files(folder)]
    return [paths[i::count] for i in range(count)]


@pytest.fixture(scope="session")
def runs() -> list[str | None]:
    """What went wrong in running each group of accepted files, and in the limits; two at a time."""
    batches = [*groups("accept", GROUPS), *groups("limits", 1)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda paths: execute(RUN_FILES, *paths), batches))


@pytest.mark.parametrize("group", range(GROUPS))
def test_accepted_files_run(group: int, runs: list[str | None]) -> None:
    assert runs[group] is None, runs[group]


def test_limits_are_refused_while_tracing(runs: list[str | None]) -> None:
    assert runs[GROUPS] is None, runs[GROUPS]


def test_a_failing_file_is_seen(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def check_it():\n    raise ValueError('found me')\n")
    assert "found me" in (execute(RUN_FILES, str(bad)) or "")
    bad.write_text("def nothing(): pass\nLIMITS = {nothing: TypeError}\n")
    assert "nothing raised nothing" in (execute(RUN_FILES, str(bad)) or "")


def test_every_limit_has_its_error() -> None:
    """As many runtime cases as marked lines, file by file."""
    for path in files("limits"):
        text = path.read_text()
        marks = marked("limits", {f"limits/{path.name}": text})
        cases = re.findall(r"^    \w+: (?:(?:sp\.errors\.)?\w+Error|None),", text, re.MULTILINE)
        assert len(marks) == len(cases) > 0, path
