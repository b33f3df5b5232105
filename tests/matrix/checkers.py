"""What each type checker says about a directory of programs, in one process each."""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECONDS = 300  # for one checker over all programs, with a cold cache

Errors = dict[str, set[int]]  # the lines with an error, by file relative to the directory


def library_parent() -> Path:
    """The directory from which safepallas is imported: a source tree or site-packages."""
    spec = importlib.util.find_spec("safepallas")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).resolve().parents[1]


def search_path() -> list[str]:
    """Where a checker must look besides site-packages to find the same safepallas."""
    installed = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    parent = library_parent()
    return [] if parent in installed else [str(parent)]


def _run(work: Path, command: list[str], **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=work,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def _collect(work: Path, found: list[tuple[str, int]]) -> Errors:
    errors: Errors = {}
    for file, line in found:
        name = Path(work, file).resolve().relative_to(work.resolve()).as_posix()
        errors.setdefault(name, set()).add(line)
    return errors


def mypy(work: Path) -> Errors:
    config = work / "mypy.ini"
    config.write_text(
        "[mypy]\nstrict = True\nwarn_unreachable = True\nexplicit_package_bases = True\n"
        "untyped_calls_exclude = jax\n"  # only partly annotated
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), "--output", "json"]
    command += ["--cache-dir", str(work / "mypy"), "--python-executable", sys.executable]
    out = _run(work, [*command, "raw", "ours"], MYPYPATH=os.pathsep.join(search_path()))
    found = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return _collect(work, [(e["file"], e["line"]) for e in found if e["severity"] == "error"])


def pyright(work: Path) -> Errors:
    settings: dict[str, Any] = {
        "include": ["raw", "ours"],
        "typeCheckingMode": "strict",
        "extraPaths": search_path(),
        # JAX and Pallas are only partly annotated.
        "reportMissingTypeStubs": False,
        "reportUnknownArgumentType": False,
        "reportUnknownLambdaType": False,
        "reportUnknownMemberType": False,
        "reportUnknownVariableType": False,
        # Every program imports the same.
        "reportUnusedImport": False,
        "reportUnusedExpression": False,
    }
    (work / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--project", "pyrightconfig.json"]
    command += ["--pythonpath", sys.executable, "--outputjson"]
    report = json.loads(_run(work, command, PYRIGHT_PYTHON_IGNORE_WARNINGS="1"))
    return _collect(
        work,
        [
            (e["file"], e["range"]["start"]["line"] + 1)
            for e in report["generalDiagnostics"]
            if e["severity"] in ("error", "warning")
        ],
    )


def pyrefly(work: Path) -> Errors:
    paths = json.dumps([str(work), *search_path()])
    config = work / "pyrefly.toml"  # without one it reports nothing
    config.write_text(
        f'project-includes = ["raw/*.py", "ours/*.py"]\nsearch-path = {paths}\n'
        f"python-interpreter-path = {json.dumps(sys.executable)}\n"
    )
    command = [_script("pyrefly"), "check", "--config", str(config), "--output-format", "json"]
    report = json.loads(_run(work, command))
    return _collect(
        work, [(e["path"], e["line"]) for e in report["errors"] if e["severity"] == "error"]
    )


def ty(work: Path) -> Errors:
    command = [_script("ty"), "check", "--output-format", "gitlab", "--python", sys.executable]
    for path in search_path():
        command += ["--extra-search-path", path]
    report = json.loads(_run(work, [*command, "raw", "ours"]))
    return _collect(
        work,
        [
            (e["location"]["path"], e["location"]["positions"]["begin"]["line"])
            for e in report
            if e["severity"] in ("major", "critical", "blocker")
        ],
    )


def _script(name: str) -> str:
    return str(Path(sysconfig.get_path("scripts"), name))


def missing() -> list[str]:
    """The checkers that are not installed."""
    return [name for name in CHECKERS if importlib.util.find_spec(name) is None]


CHECKERS: dict[str, Callable[[Path], Errors]] = {
    "mypy": mypy,
    "pyright": pyright,
    "pyrefly": pyrefly,
    "ty": ty,
}
