"""CONTRIBUTING.md: its commands work, what it names is there, and its steps were followed."""

import itertools
import os
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from safepallas._semaphores.kinds import OPERATIONS

from . import tree

PAGE = (tree.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
README = (tree.ROOT / "README.md").read_text(encoding="utf-8")
CI = (tree.ROOT / ".ci" / "run").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```sh\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [line.strip() for block in BLOCKS for line in block.splitlines()]
SET_UP = COMMANDS[0]
# Of no distribution of their own, or made by a command above.
MADE = {"build/site", "dist/safepallas", "dist/safepallas-stubs", "dist/*/*"}


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def test_every_block_is_of_commands_or_is_run_elsewhere() -> None:
    fences = re.findall(r"^ *```(\w*)$", PAGE, re.MULTILINE)
    assert fences == ["sh", ""] * len(BLOCKS)
    assert PAGE.count("<!--- tested-by: tests/release/test_contributing.py -->\n") == len(BLOCKS)


def test_the_set_up_is_that_of_the_readme_but_for_being_editable() -> None:
    install, _, last = SET_UP.rpartition(" && ")
    assert last == ".venv/bin/python -m pre_commit install"
    second = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[1].strip()
    assert install.replace("--editable ", "") == second.rpartition(" && ")[0]


def test_the_set_up_works(tmp_path: Path) -> None:
    """Without a network: all but safepallas is what is installed here. .ci/run lets pip find it."""
    tree.require("hatchling", "pre_commit")
    project = tree.copy(tmp_path)
    tree.succeed(["git", "init", "--quiet"], project)
    packages, shim = tmp_path / "packages", tmp_path / "bin"
    packages.mkdir()
    for path in (Path(path) for path in sys.path if path.endswith("site-packages")):
        for package in path.iterdir():
            link = packages / package.name
            if not package.name.startswith("safepallas") and not link.exists():
                link.symlink_to(package)
    environment = {
        "PYTHONPATH": str(packages),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # no isolation, that is: pip reads it backwards
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
    }
    shim.mkdir()
    (shim / "python3").symlink_to(tree.python()[0])
    path = os.pathsep.join([str(shim), os.environ["PATH"]])
    tree.succeed(["bash", "-e", "-c", SET_UP], project, PATH=path, **environment)
    assert (project / ".git" / "hooks" / "pre-commit").is_file()
    code = "import safepallas; print(safepallas.__file__)"
    python = str(project / ".venv" / "bin" / "python")
    found = tree.succeed([python, "-P", "-c", code], tmp_path, PYTHONPATH=str(packages))
    assert found.strip() == str(project / "safepallas" / "__init__.py")


def test_the_commands_name_what_is_there() -> None:
    project = tomllib.loads((tree.ROOT / "pyproject.toml").read_text())["project"]
    listed = " ".join(project["optional-dependencies"]["dev"])
    tools = {"pip", "python", "lint-imports", *re.findall(r"[\w-]+", listed)}
    for command in COMMANDS:
        parts = shlex.split(command)
        for word in parts:
            if word.startswith(".venv/bin/"):
                assert word.removeprefix(".venv/bin/") in tools, command
            elif "/" in word and word not in MADE:
                assert (tree.ROOT / word).exists(), command
        for _, module in filter(lambda pair: pair[0] == "-m", itertools.pairwise(parts)):
            if module.startswith("tests."):
                assert (tree.ROOT / f"{module.replace('.', '/')}.py").is_file(), command
            else:
                assert module.replace("_", "-") in {"venv", *tools}, command


def test_what_is_picked_by_name_is_there() -> None:
    picked = [c for c in COMMANDS if c.startswith(".venv/bin/pytest") and " -k " in c]
    assert len(picked) == 2
    for command in picked:
        _, place, _, expression = shlex.split(command)
        here = tree.ROOT / place
        text = "".join(
            p.read_text("utf-8") for p in ([here] if here.is_file() else here.glob("*.py"))
        )
        for name in set(re.findall(r"\w+", expression)) - {"and", "or", "not"}:
            assert re.search(rf"def test_{name}\b|\"{name}\"", text), command


def test_ci_runs_the_checks_that_the_page_names() -> None:
    (block,) = [block for block in BLOCKS if "ruff check" in block]
    of_page = [line for line in block.splitlines() if "pre-commit" not in line]
    of_ci = re.findall(r'^ +"\$bin/(.*)$', CI, re.MULTILINE)
    of_ci = [".venv/bin/" + line.replace('"$bin/python"', ".venv/bin/python") for line in of_ci]
    assert of_page == [line.replace('"', "", 1) for line in of_ci]


def test_ci_takes_the_library_out_of_the_tests_reach() -> None:
    away, tests, back = (CI.index(x) for x in ("mv safepallas", '"$tests"', "mv ../library"))
    assert CI.index('"$install"') < away < tests < back < CI.index("$bin/ruff")


def test_every_path_that_the_page_names_is_there() -> None:
    there = ("safepallas/", "tests/", "docs/", "stubs/", ".github/", ".ci/")
    names = {name for name in re.findall(r"`([^`\s]+)`", PAGE) if name.startswith(there)}
    names |= set(re.findall(r"\]\(([^)#:]+)\)", PAGE))
    assert len(names) > 40
    for name in names:
        root = tree.LIBRARY.parent if name.startswith("safepallas/") else tree.ROOT
        assert (root / name).exists(), name


def test_the_packages_of_the_page_are_those_of_the_library() -> None:
    """In the order of the contract that import-linter checks."""
    named = re.findall(r"^\| `(_\w+)/` \|", section("Architecture"), re.MULTILINE)
    packages = {path.parent.name for path in tree.LIBRARY.glob("_*/__init__.py")}
    assert set(named) == packages
    contract = tomllib.loads((tree.ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = " ".join(contract["contracts"][0]["layers"])
    assert [name for name in re.findall(r"\b_[a-z]\w*", layers) if name in packages] == named


@pytest.mark.parametrize(
    "files",
    [
        "tests/lowering/*.py",
        "tests/typing/accept/*.py",
        "tests/typing/reject/*.py",
        "tests/typing/reveal/*.py",
        "tests/unit/test_backstop*.py",
    ],
)
def test_every_operation_was_added_like_that(files: str) -> None:
    """A use of each in each of these. That docs/api/ names it, tests/docs/ checks.

    In tests/lowering/ `m` is safepallas or raw Pallas.
    """
    text = "".join(path.read_text(encoding="utf-8") for path in tree.ROOT.glob(files))
    missing = [op for op, _ in OPERATIONS if not re.search(rf"\b(sp|m)\.{op}\b", text)]
    assert missing == []


def test_the_canary_says_what_the_page_says() -> None:
    steps = section("Support a new JAX")
    text = (tree.ROOT / "tests" / "unit" / "test_versions.py").read_text(encoding="utf-8")
    assert "`pltpu.sync_copy has changed in JAX ...`" in steps
    assert 'f"{name} has changed in JAX {jax.__version__}' in text
    (test,) = re.findall(r"`(test_\w+)`\s+is\s+red", steps)
    assert f"def {test}(" in text
