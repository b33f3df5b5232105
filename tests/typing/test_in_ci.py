"""The pre-commit hook and the GitHub workflow of docs/type-checkers.md, run; nothing is downloaded.

The hook runs in git, on commits. Of the workflow, every ``run:`` step runs in a shell, in order, in
a virtual environment of its own, which sees what is installed here; pip takes safepallas from a
wheel. Its ``uses:`` steps stand for the checkout and that environment.
"""

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest

from .checkers import CHECK_SECONDS, HERE, Errors, library_parent, require, search_path
from .snippets import WRONG_LINES, add_right, add_wrong, lines_of_wrong, put, snippet

ROOT = HERE.parents[1]
MESSAGE = 'Argument 3 to "async_copy" has incompatible type "Semaphore"; expected "DmaSemaphore"'
# A user's project: hatchling, as that is here.
PYPROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "ring"
version = "1"

[tool.hatch.build.targets.wheel]
packages = ["kernels"]
"""


def shim(directory: Path, name: str, *command: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    (directory / name).chmod(0o755)


def execute(
    project: Path, command: list[str], path: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    """A command in the project, with nothing of the caller's Python or git settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "PYTHON", "MYPY", "PIP_", "PRE_COMMIT"))
    }
    return subprocess.run(
        command,
        cwd=project,
        env=kept | {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}"} | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=CHECK_SECONDS,
        check=False,
    )


def test_the_hook_lets_right_kernels_pass_and_stops_wrong_ones(
    tmp_path: Path, caches: Path, reports: dict[str, Errors]
) -> None:
    for tool in ("mypy", "pre_commit"):
        require(tool)
    assert "mypy" in reports  # and so the cache holds what JAX is
    project, tools = tmp_path / "project", tmp_path / "bin"
    project.mkdir()
    shim(tools, "mypy", sys.executable, "-m", "mypy")
    environment = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
        "MYPYPATH": search_path(),
        "MYPY_CACHE_DIR": str(caches / "mypy"),
        "PRE_COMMIT_HOME": str(tmp_path / "home"),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # where pre-commit may be
    }

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return execute(project, list(command), tools, **environment)

    put(project, "mypy.ini")
    put(project, ".pre-commit-config.yaml")
    add_right(project)
    for command in (
        ["git", "init", "--quiet"],
        [sys.executable, "-m", "pre_commit", "install"],
        ["git", "add", "--all"],
    ):
        done = run(*command)
        assert done.returncode == 0, done.stdout
    right = run("git", "commit", "--message", "right")
    assert right.returncode == 0, right.stdout
    assert re.search(r"^mypy\.+Passed$", right.stdout, re.MULTILINE), right.stdout
    add_wrong(project)
    run("git", "add", "--all")
    wrong = run("git", "commit", "--message", "wrong")
    assert wrong.returncode == 1, wrong.stdout
    assert re.search(r"^mypy\.+Failed$", wrong.stdout, re.MULTILINE), wrong.stdout
    assert lines_of_wrong(wrong.stdout) == WRONG_LINES
    assert MESSAGE in wrong.stdout
    assert run("git", "log", "--format=%s").stdout == "right\n"


def workflow() -> dict[Any, Any]:
    require("yaml")  # it comes with pre-commit
    found: dict[Any, Any] = importlib.import_module("yaml").safe_load(
        snippet(".github/workflows/types.yml")
    )
    return found


def steps() -> list[dict[str, Any]]:
    (job,) = workflow()["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def test_the_workflow_is_made_as_github_wants_it() -> None:
    loaded = workflow()
    assert set(loaded) == {"name", True, "jobs"}  # `on` is a bool in YAML 1.1, though not there
    assert set(loaded[True]) == {"push", "pull_request"}
    for job in loaded["jobs"].values():
        assert set(job) == {"runs-on", "steps"}
        assert re.fullmatch(r"(ubuntu|macos|windows)-latest", job["runs-on"])
    for step in steps():
        assert len(step.keys() & {"uses", "run"}) == 1, step
        assert step.keys() <= {"name", "uses", "run", "with"}, step
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]), step
        else:
            assert "with" not in step
    used = [step["uses"].partition("@")[0] for step in steps() if "uses" in step]
    assert used == ["actions/checkout", "actions/setup-python"]
    assert "uses" in steps()[0]
    assert "uses" in steps()[1]  # before anything runs


def test_the_workflow_takes_a_python_that_safepallas_supports() -> None:
    (version,) = (s["with"]["python-version"] for s in steps() if "python" in s.get("uses", ""))
    assert isinstance(version, str)  # 3.10 without quotes is 3.1
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    assert f"Programming Language :: Python :: {version}" in classifiers


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A directory with a wheel of safepallas, from which pip may install."""
    for tool in ("hatchling", "pip"):
        require(tool)
    directory, source = tmp_path / "wheels", tmp_path / "source"
    # The library under test, and in CI there is no other: see .ci/run.
    library = library_parent() / "safepallas"
    shutil.copytree(library, source / "safepallas", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    build += ["--no-build-isolation", "--no-cache-dir", "--wheel-dir", str(directory), str(source)]
    done = execute(tmp_path, build, tmp_path)
    assert done.returncode == 0, done.stdout
    return directory


@pytest.fixture
def fresh_python(tmp_path: Path) -> Path:
    """The ``bin`` of a new environment that sees the packages of this one, and its own first."""
    home = tmp_path / "venv"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(home)], check=True, timeout=60
    )
    python = str(home / "bin" / "python")
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    around = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    lines = [f"import site; site.addsitedir({path!r})\n" for path in sorted(around)]
    Path(own.stdout.strip(), "around.pth").write_text("".join(lines))
    for tool in ("pip", "mypy"):
        shim(home / "bin", tool, python, "-m", tool)
    return home / "bin"


def test_the_steps_of_the_workflow_run(
    tmp_path: Path,
    caches: Path,
    reports: dict[str, Errors],
    wheels: Path,
    fresh_python: Path,
) -> None:
    require("mypy")
    assert "mypy" in reports  # and so the cache holds what JAX is
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(PYPROJECT)
    put(project, "mypy.ini")
    put(project, ".github/workflows/types.yml")
    add_right(project)
    environment = {
        "MYPY_CACHE_DIR": str(caches / "mypy"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_BUILD_ISOLATION": "0",  # no isolation, that is: pip reads it backwards
        "PIP_NO_CACHE_DIR": "1",
        "PIP_NO_INDEX": "1",
    }

    def run(step: str) -> subprocess.CompletedProcess[str]:
        return execute(project, ["bash", "-e", "-c", step], fresh_python, **environment)

    *before, last = [step["run"] for step in steps() if "run" in step]
    assert before
    for step in before:
        done = run(step)
        assert done.returncode == 0, done.stdout
    there = run("cd / && python -c 'import kernels.right, safepallas; print(safepallas.__file__)'")
    assert there.returncode == 0, there.stdout
    right = run(last)
    assert right.returncode == 0, right.stdout
    assert "Success: no issues found" in right.stdout
    add_wrong(project)
    wrong = run(last)
    assert wrong.returncode == 1, wrong.stdout
    assert lines_of_wrong(wrong.stdout) == WRONG_LINES
    assert MESSAGE in wrong.stdout
