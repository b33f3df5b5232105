"""docs/type-checkers.md: its lists are what the checkers print, and its snippets work."""

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

from . import page
from .checkers import CHECK_SECONDS, CHECKERS, Errors, marked, require, run, search_path
from .snippets import (
    SNIPPETS,
    TEXT,
    WRONG_LINES,
    add_right,
    add_wrong,
    lines_of_wrong,
    put,
    snippet,
)


def recorded(checker: str) -> str:
    found = re.search(rf"^\| {checker} \| (\S+) \|", TEXT, re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_limits_are_those_of_the_data_files() -> None:
    assert page.rewrite(TEXT, {"limits": page.limits()}) == TEXT, "python -m tests.typing.page"
    table = TEXT.partition("<!-- generated: limits -->")[2]
    assert len(re.findall(r"^\| `", table, re.MULTILINE)) == len(marked("limits"))


def test_the_messages_are_what_the_checkers_print(reports: dict[str, Errors]) -> None:
    for checker in CHECKERS:
        require(checker)
    for checker in CHECKERS:
        installed = importlib.metadata.version(checker)
        if installed != recorded(checker):
            pytest.skip(
                f"the page records {checker} {recorded(checker)}, and {installed} is installed: "
                "see what changed with python -m tests.typing.page"
            )
    sections = {"versions": page.versions(), "messages": page.messages(reports)}
    assert page.rewrite(TEXT, sections) == TEXT, "python -m tests.typing.page"


def test_ten_misuses_are_shown() -> None:
    shown = TEXT.partition("<!-- generated: messages -->")[2].partition("<!-- end of")[0]
    assert shown.count("\n### ") == 10
    for checker in CHECKERS:
        assert len(re.findall(rf"^{checker}: \S", shown, re.MULTILINE)) == 10


def test_a_stale_section_is_seen() -> None:
    stale = TEXT.replace("`AmountRangeError`", "`AmountTypeError`", 1)
    assert page.rewrite(stale, {"limits": page.limits()}) == TEXT != stale


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's code base: a right kernel and a wrong one."""
    add_right(tmp_path)
    add_wrong(tmp_path)
    return tmp_path


def check(project: Path, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """A command that the page gives, run in the project with the tools of this environment."""
    module, *arguments = command
    path = {"MYPYPATH": search_path(), "PYTHONPATH": search_path()} if search_path() else {}
    return run(
        [sys.executable, "-m", module, *arguments],
        CHECK_SECONDS,
        directory=project,
        PYRIGHT_PYTHON_IGNORE_WARNINGS="1",
        **path,
    )


def test_every_snippet_is_known() -> None:
    """And so has a test that runs it: here, or in test_in_ci.py."""
    section = TEXT.partition("\n## In CI\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```\w+\n(.*?)^```$", section, re.M | re.S)
    assert sorted(blocks) == sorted(map(snippet, SNIPPETS))
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for name in SNIPPETS:
        assert f'snippet("{name}")' in tests or f', "{name}")' in tests, name


def test_the_ini_file_of_mypy(
    project: Path, caches: Path, reports: dict[str, Errors], monkeypatch: pytest.MonkeyPatch
) -> None:
    require("mypy")
    assert "mypy" in reports  # and so the cache holds what JAX is
    monkeypatch.setenv("MYPY_CACHE_DIR", str(caches / "mypy"))
    assert "for `mypy` alone on the command line" in TEXT
    put(project, "mypy.ini")
    answer = check(project, ["mypy"])
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert lines_of_wrong(answer.stdout) == WRONG_LINES


def test_the_settings_of_pyright(project: Path) -> None:
    require("pyright")
    put(project, "pyrightconfig.json")
    answer = check(project, ["pyright", "--pythonpath", sys.executable])
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert lines_of_wrong(answer.stdout) == WRONG_LINES


def test_the_settings_of_pyrefly(project: Path) -> None:
    require("pyrefly")
    settings = f"search-path = [{search_path()!r}]\n" if search_path() else ""
    settings += f"python-interpreter-path = {sys.executable!r}\n"
    (project / "pyrefly.toml").write_text(settings + snippet("pyrefly.toml"))
    answer = check(project, ["pyrefly", "check", "--output-format", "min-text"])
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert lines_of_wrong(answer.stdout) == WRONG_LINES


def test_ty_needs_no_settings(project: Path) -> None:
    require("ty")
    assert "`ty check kernels`" in TEXT
    extra = ["--extra-search-path", search_path()] if search_path() else []
    command = ["ty", "check", "kernels", "--python", sys.executable, "--output-format", "concise"]
    answer = check(project, [*command, *extra])
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert lines_of_wrong(answer.stdout) == WRONG_LINES


def ruff(project: Path, source: str) -> subprocess.CompletedProcess[str]:
    put(project, "ruff.toml")
    (project / "kernels" / "raw.py").write_text(source)
    command = "ruff check --output-format concise"
    assert f"`{command}`" in TEXT
    return check(project, [*command.split(), "--no-cache", "kernels/raw.py"])


def test_ruff_finds_raw_calls(project: Path) -> None:
    require("ruff")
    answer = ruff(project, snippet("kernels/raw.py"))
    assert answer.stdout == snippet("what ruff says")
    assert answer.returncode == 1


def test_each_raw_name_is_banned_and_has_its_replacement(project: Path) -> None:
    require("ruff")
    banned = re.findall(r'^"(jax\.\S+)"\.msg = "Use (.*)\."$', snippet("ruff.toml"), re.M)
    for name, replacements in banned:
        module = pltpu if ".tpu." in name else pl
        assert hasattr(module, name.rpartition(".")[2]), name
        for replacement in replacements.split(", "):
            assert hasattr(sp, replacement.removeprefix("sp.")), replacement
    imports = "".join(
        "from {} import {}\n".format(*name.rpartition(".")[::2]) for name, _ in banned
    )
    answer = ruff(project, imports)
    assert answer.stdout.count(" is banned: Use sp.") == len(banned)
