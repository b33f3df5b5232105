"""The hooks of .pre-commit-config.yaml, run by git. On the whole tree .ci/run runs the same."""

import importlib
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from . import tree

TOOLS = ("ruff", "mypy")
UNTIDY = "def f(x:int)->int:\n    return x\n"
UNUSED = "import os\n"
TYPED = '"""A module."""\n\n\ndef f(x: int) -> int:\n    """Give it back."""\n    return x\n'
WRONGLY_TYPED = TYPED.replace("-> int", "-> str")


def outcomes(said: str) -> dict[str, str]:
    """What became of each hook."""
    return dict(re.findall(r"^(ruff|ruff format|mypy)\.+.*?(Passed|Failed|Skipped)$", said, re.M))


class Repository(NamedTuple):
    path: Path
    home: str  # of pre-commit

    def run(self, *command: str, **more: str) -> tuple[int, str]:
        """With a network that leads nowhere."""
        nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
        done = tree.run([*command], self.path, PRE_COMMIT_HOME=self.home, **nowhere, **more)
        return done.returncode, done.stdout

    def succeed(self, *command: str, **more: str) -> str:
        code, said = self.run(*command, **more)
        assert code == 0, said
        return said

    def commit(self, files: dict[str, str]) -> dict[str, str]:
        """Commit files, named after the first; what became of the hooks. A refusal leaves none."""
        for name, text in files.items():
            (self.path / name).write_text(text)
        self.succeed("git", "add", "--all")
        code, said = self.run("git", "commit", "-m", next(iter(files)))
        found = outcomes(said)
        assert code == ("Failed" in found.values()), said
        if code:
            self.succeed("git", "reset", "--quiet", "--hard")
        return found


def test_the_hooks_run_what_the_set_up_installs() -> None:
    tree.require("yaml")
    text = (tree.ROOT / ".pre-commit-config.yaml").read_text()
    (repository,) = importlib.import_module("yaml").safe_load(text)["repos"]
    assert repository["repo"] == "local"  # others would be fetched
    assert [hook["id"] for hook in repository["hooks"]] == ["ruff", "ruff-format", "mypy"]
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].split()[0].removeprefix(".venv/bin/") in TOOLS


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty repository with our configuration and, in its ``.venv/bin``, the tools of here."""
    tree.require(*TOOLS, "pre_commit")
    found = Repository(tmp_path / "project", str(tmp_path / "home"))
    tools = found.path / ".venv" / "bin"
    tools.mkdir(parents=True)
    for name in TOOLS:
        command = " ".join(f"'{word}'" for word in tree.python("-m", name))
        (tools / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (tools / name).chmod(0o755)
    for name in (".gitignore", ".pre-commit-config.yaml", "mypy.ini", "pyproject.toml"):
        shutil.copy(tree.ROOT / name, found.path)
    found.succeed("git", "init", "--quiet")
    found.succeed(*tree.python("-m", "pre_commit", "install"))
    return found


def test_a_commit_of_a_bad_file_is_refused(repository: Repository) -> None:
    for folder in ("safepallas", "docs/examples", "tests/typing/reject"):
        (repository.path / folder).mkdir(parents=True)
    right = {"safepallas/__init__.py": TYPED, "docs/examples/ring.py": TYPED}
    # What is laid out by hand stays as it is.
    assert repository.commit({**right, "tests/typing/reject/kinds.py": UNTIDY}) == {
        "ruff": "Passed",
        "ruff format": "Passed",
        "mypy": "Passed",
    }
    assert repository.commit({"tests/unused.py": UNUSED})["ruff"] == "Failed"
    assert repository.commit({"tests/untidy.py": UNTIDY})["ruff format"] == "Failed"
    assert repository.commit({"page.md": f"```python\n{UNTIDY}```\n"})["ruff format"] == "Failed"
    for folder in ("safepallas", "docs/examples"):
        assert repository.commit({f"{folder}/untyped.py": WRONGLY_TYPED}) == {
            "ruff": "Passed",
            "ruff format": "Passed",
            "mypy": "Failed",
        }
    # mypy looks at the library and the examples, as mypy.ini says.
    assert repository.commit({"tests/untyped.py": WRONGLY_TYPED})["mypy"] == "Skipped"
    log = repository.succeed("git", "log", "--format=%s")
    assert log.split() == ["tests/untyped.py", "safepallas/__init__.py"]
