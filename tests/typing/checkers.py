"""The four type checkers, each over all data files in one process, and what their marks mean."""

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
CHECKED = (*FOLDERS, "untyped")  # as JAX is to mypy without configuration
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


def all_files() -> list[Path]:
    return [path for folder in CHECKED for path in files(folder)]


def run(
    command: list[str], seconds: int, directory: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=directory or HERE,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def require(name: str) -> None:
    """Skip a test whose checker is not installed; where CI is set, fail it."""
    if importlib.util.find_spec(name):
        return
    reason = f"{name} is not installed: pip install 'safepallas[dev]'"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def collect(found: list[tuple[str, int, str]]) -> Errors:
    errors: Errors = {}
    for file, number, message in found:
        path = Path(HERE, file).resolve().relative_to(HERE)
        errors.setdefault(Line(path.as_posix(), number), []).append(message)
    return errors


MYPY = """[mypy]
strict = True
warn_unreachable = True
# accept/copies.py is not reject/copies.py
explicit_package_bases = True
# only partly annotated
untyped_calls_exclude = jax

[mypy-*.without_any]
disallow_any_expr = True

[mypy-untyped.*]
disallow_untyped_defs = False
"""


def mypy(work: Path, cache: Path) -> Errors:
    """What ``mypy --strict`` says about all data files."""
    config = work / "mypy.ini"
    config.write_text(MYPY)
    command = [sys.executable, "-m", "mypy", "--config-file", str(config)]
    command += ["--cache-dir", str(cache), "--python-executable", sys.executable]
    command += ["--output", "json", *CHECKED]
    done = run(command, CHECK_SECONDS, MYPYPATH=search_path())
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return collect(
        [
            (e["file"], e["line"], "\n".join(filter(None, (e["message"], e["hint"]))))
            for e in found
            if e["severity"] == "error"
        ]
    )


def pyright(work: Path, cache: Path) -> Errors:
    """What pyright says about all data files, in its strict mode."""
    del cache
    config = work / "pyrightconfig.json"
    settings: dict[str, Any] = {
        # It takes relative paths only, and looks from where the config is.
        "include": [os.path.relpath(HERE / folder, work.resolve()) for folder in CHECKED],
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
    assert report["summary"]["filesAnalyzed"] == len(all_files()), report["summary"]
    return collect(
        [
            (e["file"], e["range"]["start"]["line"] + 1, e["message"])
            for e in report["generalDiagnostics"]
            if e["severity"] in ("error", "warning")
        ]
    )


def pyrefly(work: Path, cache: Path) -> Errors:
    """What pyrefly says about all data files, with its strict preset."""
    del cache
    config = work / "pyrefly.toml"  # without one it reports next to nothing
    settings = {
        "project-includes": [str(HERE / folder / "*.py") for folder in CHECKED],
        "python-interpreter-path": sys.executable,
        "search-path": [search_path()] if search_path() else [],
        "preset": "strict",
        "enabled-ignores": [],  # not even its own
        "use-ignore-files": False,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    # JAX is only partly annotated: its BlockSpec does not say what its function takes.
    lines += ["[errors]", 'implicit-any-lambda = "ignore"']
    config.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "pyrefly", "check", "--config", str(config)]
    output = work / "pyrefly.json"
    command += ["--output", f"json:{output}", "--summary=full"]
    done = run(command, CHECK_SECONDS)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    checked = re.search(r"([\d,]+) modules \(", done.stderr)
    assert checked is not None, done.stderr
    assert int(checked[1].replace(",", "")) == len(all_files()), done.stderr
    report = json.loads(output.read_text())
    return collect(
        [
            (e["path"], e["line"], e["description"])
            for e in report["errors"]
            if e["severity"] in ("error", "warn")
        ]
    )


def run_ty(work: Path, output: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One run of ty over files or folders, with this form of output."""
    config = work / "ty.toml"
    config.write_text("[analysis]\nrespect-type-ignore-comments = false\n")
    command = [sys.executable, "-m", "ty", "check", "--config-file", str(config)]
    command += ["--python", sys.executable, "--color", "never"]
    if search_path():
        command += ["--extra-search-path", search_path()]
    command += ["--output-format", output, "--no-progress", "--no-respect-ignore-files"]
    return run([*command, *arguments], CHECK_SECONDS)


def ty(work: Path, cache: Path) -> Errors:
    """What ty says about all data files, at its default level."""
    del cache
    done = run_ty(work, "gitlab", "-v", *CHECKED)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    checked = re.search(r"Indexed (\d+) file\(s\)", done.stderr)
    assert checked is not None, done.stderr
    assert int(checked[1]) == len(all_files()), done.stderr
    return collect(
        [
            (e["location"]["path"], e["location"]["positions"]["begin"]["line"], e["description"])
            for e in json.loads(done.stdout)
        ]
    )


CHECKERS: Mapping[str, Callable[[Path, Path], Errors]] = {
    "mypy": mypy,
    "pyright": pyright,
    "pyrefly": pyrefly,
    "ty": ty,
}
INSTALLED = tuple(name for name in CHECKERS if importlib.util.find_spec(name))


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
