"""The four type checkers, each over many files in one process, and what marks in them mean."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
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
# JAX and Pallas are only partly annotated.
PYRIGHT = {
    "typeCheckingMode": "strict",
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


class Files(NamedTuple):
    """What a checker is to look at, and how."""

    root: Path  # in which it runs; the paths of its errors are relative to it
    folders: Sequence[str]
    work: Path  # for configuration
    cache: Path  # of mypy
    python: str = sys.executable
    search: str | None = None  # None: where this safepallas is
    pyright: Mapping[str, object] = PYRIGHT
    pyrefly: str | None = "strict"  # its preset
    warnings: bool = True  # whether they count as errors

    @property
    def paths(self) -> list[str]:
        """Where a checker looks besides site-packages."""
        return list(filter(None, [search_path() if self.search is None else self.search]))

    def collect(self, found: Iterable[tuple[str, int, str]]) -> Errors:
        """Errors by line."""
        errors: Errors = {}
        for file, number, message in found:
            path = Path(self.root, file).resolve().relative_to(self.root.resolve())
            errors.setdefault(Line(path.as_posix(), number), []).append(message)
        return errors

    def count(self) -> int:
        """The number of files, which a checker must not pass over."""
        return sum(len([*(self.root / folder).rglob("*.py")]) for folder in self.folders)


def data_files(work: Path, cache: Path) -> Files:
    """Those of these tests."""
    return Files(HERE, CHECKED, work, cache)


def mypy(files: Files) -> Errors:
    """What ``mypy --strict`` says."""
    config = files.work / "mypy.ini"
    config.write_text(MYPY)
    command = [sys.executable, "-m", "mypy", "--config-file", str(config)]
    command += ["--cache-dir", str(files.cache), "--python-executable", files.python]
    command += ["--output", "json", *files.folders]
    done = run(command, CHECK_SECONDS, files.root, MYPYPATH=os.pathsep.join(files.paths))
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return files.collect(
        (e["file"], e["line"], "\n".join(filter(None, (e["message"], e["hint"]))))
        for e in found
        if e["severity"] == "error"
    )


def pyright(files: Files) -> Errors:
    """What pyright says."""
    config = files.work / "pyrightconfig.json"
    settings: dict[str, Any] = {
        # It takes relative paths only, and looks from where the config is.
        "include": [
            os.path.relpath(files.root / folder, files.work.resolve()) for folder in files.folders
        ],
        "extraPaths": files.paths,
        "enableTypeIgnoreComments": False,
        **files.pyright,
    }
    config.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--project", str(config)]
    command += ["--pythonpath", files.python, "--outputjson"]
    done = run(command, CHECK_SECONDS, files.root, PYRIGHT_PYTHON_IGNORE_WARNINGS="1")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == files.count(), report["summary"]
    return files.collect(
        (e["file"], e["range"]["start"]["line"] + 1, e["message"])
        for e in report["generalDiagnostics"]
        if e["severity"] == "error" or (files.warnings and e["severity"] == "warning")
    )


def pyrefly(files: Files) -> Errors:
    """What pyrefly says."""
    config = files.work / "pyrefly.toml"  # without one it reports next to nothing
    settings = {
        "project-includes": [str(files.root / folder / "**/*.py") for folder in files.folders],
        "python-interpreter-path": files.python,
        "search-path": [*files.paths, *([] if files.root == HERE else [str(files.root)])],
        **({"preset": files.pyrefly} if files.pyrefly else {}),
        "enabled-ignores": [],  # not even its own
        "use-ignore-files": False,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    # JAX is only partly annotated: its BlockSpec does not say what its function takes.
    lines += ["[errors]", 'implicit-any-lambda = "ignore"']
    config.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "pyrefly", "check", "--config", str(config)]
    output = files.work / "pyrefly.json"
    command += ["--output", f"json:{output}", "--summary=full"]
    done = run(command, CHECK_SECONDS, files.root)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    checked = re.search(r"([\d,]+) modules \(", done.stderr)
    assert checked is not None, done.stderr
    assert int(checked[1].replace(",", "")) == files.count(), done.stderr
    report = json.loads(output.read_text())
    return files.collect(
        (e["path"], e["line"], e["description"])
        for e in report["errors"]
        if e["severity"] == "error" or (files.warnings and e["severity"] == "warn")
    )


def run_ty(files: Files, output: str) -> subprocess.CompletedProcess[str]:
    """One run of ty, at its default level, with this form of output."""
    config = files.work / "ty.toml"
    config.write_text("[analysis]\nrespect-type-ignore-comments = false\n")
    command = [sys.executable, "-m", "ty", "check", "--config-file", str(config)]
    command += ["--python", files.python, "--color", "never"]
    for path in files.paths:
        command += ["--extra-search-path", path]
    command += ["--output-format", output, "--no-progress", "--no-respect-ignore-files"]
    if output == "gitlab":
        command += ["-v"]
    return run([*command, *files.folders], CHECK_SECONDS, files.root)


def ty(files: Files) -> Errors:
    """What ty says."""
    done = run_ty(files, "gitlab")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    checked = re.search(r"Indexed (\d+) file\(s\)", done.stderr)
    assert checked is not None, done.stderr
    assert int(checked[1]) == files.count(), done.stderr
    return files.collect(
        (e["location"]["path"], e["location"]["positions"]["begin"]["line"], e["description"])
        for e in json.loads(done.stdout)
        if files.warnings or e["severity"] in ("major", "critical", "blocker")
    )


CHECKERS: Mapping[str, Callable[[Files], Errors]] = {
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
