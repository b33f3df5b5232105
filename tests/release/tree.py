"""The tree of the project, without what git ignores, and what the tests of a release need of it."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import safepallas as sp

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(sp.__file__).resolve().parent
SECONDS = 300  # for one command


def require(*modules: str) -> None:
    """Skip the test where a tool is not installed; in CI that is a failure."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"not installed: {missing}")


def run(
    command: list[str], directory: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A command, its output and errors as one, with nothing of the caller's git or tools."""
    mine = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "MYPY", "PRE_COMMIT"))}
    return subprocess.run(
        command,
        cwd=directory,
        env=mine | NO_SETTINGS | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )


NO_SETTINGS = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": "a@example.org"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    },
}


def succeed(command: list[str], directory: Path, **environment: str) -> str:
    """The output of a command that ends well."""
    done = run(command, directory, **environment)
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def files(work: Path) -> list[str]:
    """Every file of the project, by git's own rules, whether or not the tree is a repository.

    The library is the one under test: in CI the tree has none, so that the tests see the wheel.
    """
    git = ["git", f"--git-dir={work / 'rules.git'}", f"--work-tree={ROOT}"]
    succeed(["git", "init", "--quiet", "--bare", str(work / "rules.git")], work)
    found = succeed([*git, "ls-files", "--others", "--exclude-standard", "-z"], ROOT)
    others = [name for name in found.split("\0") if name and not name.startswith("safepallas/")]
    library = [
        path.relative_to(LIBRARY.parent).as_posix()
        for path in LIBRARY.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    return sorted([*others, *library])


def copy(work: Path) -> Path:
    """A copy of the project in ``work/project``."""
    work.mkdir(exist_ok=True)
    project = work / "project"
    for name in files(work):
        source = LIBRARY.parent if name.startswith("safepallas/") else ROOT
        target = project / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / name, target)
    return project


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]
