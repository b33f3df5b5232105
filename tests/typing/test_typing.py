"""Static typing, tested by data files, in the manner of NumPy's.

accept/  realistic kernels: no checker says anything, and each also runs and checks its result
reject/  every line marked ``# E: <why>`` is an error in every checker, and no other line in any
reveal/  ``assert_type``: what the public API yields is what it says, in every checker
limits/  misuse that some checker cannot see. ``# L: <why>`` marks a line that no checker sees,
         ``# L(mypy): <why>`` one that mypy alone does not; a checker that comes to see it fails
         the test, and the line moves to reject/. Each is refused while tracing: see LIMITS there.

No checker heeds another's ignore comments, and no data file holds one.
"""

import concurrent.futures
import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

HERE = Path(__file__).resolve().parent
FOLDERS = ("accept", "reject", "reveal", "limits")
SECONDS = 180  # for one program that runs kernels
CHECK_SECONDS = 300  # for one checker over all files, with a cold cache

MARK = re.compile(r"#\s*(?P<letter>[EL])(?:\((?P<blind>[a-z, ]+)\))?: \S")


class Line(NamedTuple):
    """A line of a data file: ``reject/kinds.py:12``."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


Errors = dict[Line, list[str]]


def library_parent() -> Path:
    """The directory from which the tests import safepallas: a source tree or site-packages."""
    spec = importlib.util.find_spec("safepallas")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).resolve().parents[1]


def search_path() -> str:
    """Where a checker must look besides site-packages to find the same safepallas."""
    installed = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    parent = library_parent()
    return "" if parent in installed else str(parent)


def files(folder: str) -> list[Path]:
    return sorted((HERE / folder).glob("*.py"))


def run(command: list[str], seconds: int, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=HERE,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def collect(found: list[tuple[str, int, str]]) -> Errors:
    errors: Errors = {}
    for file, number, message in found:
        path = Path(HERE, file).resolve().relative_to(HERE)
        errors.setdefault(Line(path.as_posix(), number), []).append(message)
    return errors


def mypy(work: Path, cache: Path) -> Errors:
    """What ``mypy --strict`` says about all data files."""
    config = work / "mypy.ini"
    config.write_text(
        "[mypy]\n"
        "strict = True\n"
        "warn_unreachable = True\n"
        "explicit_package_bases = True\n"  # accept/copies.py is not reject/copies.py
        "untyped_calls_exclude = jax\n"  # only partly annotated
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(config)]
    command += ["--cache-dir", str(cache), "--python-executable", sys.executable]
    command += ["--output", "json", *FOLDERS]
    done = run(command, CHECK_SECONDS, MYPYPATH=search_path())
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return collect(
        [(e["file"], e["line"], e["message"]) for e in found if e["severity"] == "error"]
    )


def pyright(work: Path, cache: Path) -> Errors:
    """What pyright says about all data files, in its strict mode."""
    del cache
    config = work / "pyrightconfig.json"
    settings: dict[str, Any] = {
        # It takes relative paths only, and looks from where the config is.
        "include": [os.path.relpath(HERE / folder, work.resolve()) for folder in FOLDERS],
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": False,
        # JAX and Pallas are only partly annotated.
        "reportMissingTypeStubs": False,
        "reportPrivateUsage": False,
        "reportUnknownArgumentType": False,
        "reportUnknownLambdaType": False,
        "reportUnknownMemberType": False,
        "reportUnknownVariableType": False,
        # In a file of mistakes these would hide that nothing else was seen.
        "reportUnusedClass": False,
        "reportUnusedExpression": False,
        "reportUnusedFunction": False,
        "reportUnusedVariable": False,
    }
    if search_path():
        settings["extraPaths"] = [search_path()]
    config.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--project", str(config)]
    command += ["--pythonpath", sys.executable, "--outputjson"]
    done = run(command, CHECK_SECONDS, PYRIGHT_PYTHON_IGNORE_WARNINGS="1")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout)
    expected = sum(len(files(folder)) for folder in FOLDERS)
    assert report["summary"]["filesAnalyzed"] == expected, report["summary"]
    return collect(
        [
            (e["file"], e["range"]["start"]["line"] + 1, e["message"])
            for e in report["generalDiagnostics"]
            if e["severity"] in ("error", "warning")
        ]
    )


CHECKERS: Mapping[str, Callable[[Path, Path], Errors]] = {"mypy": mypy, "pyright": pyright}


@pytest.fixture(scope="session")
def reports(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> dict[str, Errors]:
    """The errors of every checker over all files: one process each, side by side."""
    kept = getattr(pytestconfig, "cache", None)  # from one run of the tests to the next
    with concurrent.futures.ThreadPoolExecutor() as pool:
        started = {}
        for name, check in CHECKERS.items():
            work = tmp_path_factory.mktemp(name)
            cache = kept.mkdir(f"typing-{name}") if kept else work / "cache"
            started[name] = pool.submit(check, work, cache)
        return {name: report.result() for name, report in started.items()}


def marked(folder: str, text: Mapping[str, str] | None = None) -> dict[Line, frozenset[str]]:
    """The marked lines of a folder, each with the checkers that must report an error there."""
    if text is None:
        text = {f"{folder}/{path.name}": path.read_text() for path in files(folder)}
    letter = "L" if folder == "limits" else "E"
    lines = {}
    for file, content in text.items():
        for number, line in enumerate(content.splitlines(), 1):
            mark = MARK.search(line)
            if mark is None or mark["letter"] != letter:
                continue
            blind = set(re.findall("[a-z]+", mark["blind"] or ""))
            assert blind <= set(CHECKERS), f"{file}:{number}: no such checker"
            if letter == "L" and not blind:
                blind = set(CHECKERS)
            assert letter == "L" or not blind, f"{file}:{number}: that is for limits/"
            lines[Line(file, number)] = frozenset(CHECKERS) - blind
    return lines


def disagreements(
    expected: Mapping[Line, frozenset[str]], reports: Mapping[str, Errors], folder: str
) -> list[str]:
    """Where a checker is silent and should not be, or says what it should not."""
    found = []
    for name, errors in reports.items():
        here = {line: messages for line, messages in errors.items() if line.file.startswith(folder)}
        wanted = {line for line, checkers in expected.items() if name in checkers}
        found += [f"{line}: {name} sees no error" for line in sorted(wanted - here.keys())]
        found += [
            f"{line}: {name}: {'; '.join(here[line])}" for line in sorted(here.keys() - wanted)
        ]
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_checkers_say_what_they_should(folder: str, reports: dict[str, Errors]) -> None:
    wrong = disagreements(marked(folder), reports, f"{folder}/")
    assert not wrong, "\n" + "\n".join(wrong)


def test_there_is_enough_of_it() -> None:
    assert len(files("accept")) >= 14
    assert len(marked("reject")) >= 75
    assert len(files("reveal")) >= 3
    assert not marked("accept")
    assert not marked("reveal")


def test_no_file_silences_a_checker() -> None:
    silencer = re.compile(r"#\s*(type|pyright|mypy|pyrefly|ty):|\bcast\b|TYPE_CHECKING")
    for folder in FOLDERS:
        for path in files(folder):
            assert not silencer.search(path.read_text()), f"{path} silences a checker"


def test_a_missing_mark_is_seen(reports: dict[str, Errors]) -> None:
    """The comparison can fail: take any one mark away, and every checker contradicts it."""
    expected = marked("reject")
    for line in expected:
        rest = {other: checkers for other, checkers in expected.items() if other != line}
        wrong = disagreements(rest, reports, "reject/")
        assert [w.split(": ")[1] for w in wrong if w.startswith(f"{line}:")] == list(CHECKERS)


def test_a_mark_too_many_is_seen(reports: dict[str, Errors]) -> None:
    correct = Line("accept/scratch_class.py", 1)
    wrong = disagreements({correct: frozenset(CHECKERS)}, reports, "accept/")
    assert wrong == [f"{correct}: {name} sees no error" for name in CHECKERS]


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
import importlib.util, sys, traceback
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
                assert issubclass(error, (SemaphoreError, TypeError, AttributeError)), error
                try:
                    misuse()
                except Exception as raised:
                    if type(raised) is not error:
                        raise
                else:
                    raise AssertionError(f"{misuse.__name__} raised nothing")
        else:
            module.main()
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
    bad.write_text("def main():\n    raise ValueError('found me')\n")
    assert "found me" in (execute(RUN_FILES, str(bad)) or "")
    bad.write_text("LIMITS = {print: TypeError}\n")
    assert "print raised nothing" in (execute(RUN_FILES, str(bad)) or "")


def test_every_limit_has_its_error() -> None:
    """As many runtime cases as marked lines, file by file."""
    for path in files("limits"):
        text = path.read_text()
        marks = marked("limits", {f"limits/{path.name}": text})
        cases = re.findall(r"^    \w+: (?:sp\.)?\w+Error,$", text, re.MULTILINE)
        assert len(marks) == len(cases) > 0, path
