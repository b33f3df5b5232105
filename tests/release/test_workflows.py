"""The GitHub workflows: of the right form, with the right versions, and their commands work."""

import importlib
import itertools
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from safepallas._jax import versions

from . import tree

WORKFLOWS = tree.ROOT / ".github" / "workflows"
NAMES = sorted(path.name for path in WORKFLOWS.glob("*"))
Job = dict[str, Any]


def load(name: str) -> dict[Any, Any]:
    tree.require("yaml")  # it comes with pre-commit
    found: dict[Any, Any] = importlib.import_module("yaml").safe_load(
        (WORKFLOWS / name).read_text()
    )
    return found


def jobs() -> dict[str, Job]:
    """Every job of every workflow."""
    return {f"{name}: {key}": job for name in NAMES for key, job in load(name)["jobs"].items()}


def steps() -> list[dict[str, Any]]:
    return list(itertools.chain.from_iterable(job.get("steps", []) for job in jobs().values()))


def validate(schema: str, path: Path) -> str:
    """What check-jsonschema says, by a schema that it brings along."""
    tree.require("check_jsonschema")
    command = tree.python("-m", "check_jsonschema", "--builtin-schema", schema, str(path))
    done = tree.run(command, tree.ROOT)
    return "" if done.returncode == 0 else done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_github_would_take_it(name: str) -> None:
    assert NAMES == ["publish.yml", "tests.yml"]
    assert validate("vendor.github-workflows", WORKFLOWS / name) == ""


def test_every_job_ends_and_may_do_little() -> None:
    for name in NAMES:
        assert load(name)["permissions"] == {"contents": "read"}
    for name, job in jobs().items():
        assert "uses" in job or 0 < job["timeout-minutes"] <= 60, name
        publishes = any("pypi-publish" in step.get("uses", "") for step in job.get("steps", []))
        assert job.get("permissions") == ({"id-token": "write"} if publishes else None), name
        assert ("environment" in job) == publishes, name


def test_actions_are_pinned_to_a_major_version() -> None:
    for step in steps():
        if "uses" in step:
            pinned = r"actions/[a-z-]+@v\d+|pypa/gh-action-pypi-publish@release/v1"
            assert re.fullmatch(pinned, step["uses"]), step


def matrix() -> list[dict[str, str]]:
    found: list[dict[str, str]] = load("tests.yml")["jobs"]["tests"]["strategy"]["matrix"][
        "include"
    ]
    return found


def test_the_matrix_is_both_ends_of_the_range() -> None:
    ends = [versions.text_of(end) for end in (versions.OLDEST, versions.NEWEST)]
    assert [row["jax"] for row in matrix()] == ends
    project = tomllib.loads((tree.ROOT / "pyproject.toml").read_text())["project"]
    oldest, newest = (row["python"] for row in matrix())
    assert project["requires-python"] == f">={oldest}"
    supported = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert (supported[0], supported[-1]) == (oldest, newest)


def test_the_readme_and_ci_name_the_same_versions() -> None:
    pairs = [(row["python"], row["jax"]) for row in matrix()]
    readme = (tree.ROOT / "README.md").read_text()
    assert re.findall(r"^\| Python ([\d.]+) \| JAX ([\d.]+) \|$", readme, re.MULTILINE) == pairs
    ci = (tree.ROOT / ".ci" / "run").read_text()
    (of_ci,) = re.findall(r"^for version in (.*); do$", ci, re.MULTILINE)
    assert of_ci.split() == [python for python, _ in pairs]


def test_the_commands_name_files_that_are_there() -> None:
    made = {"dist", "build"}  # by the commands before
    for step in steps():
        for word in shlex.split(step.get("run", ""), comments=True):
            name = word.strip("'\"();|&").partition("[")[0]
            if re.match(r"[\w.-]+/[\w./-]+$", name) and name.split("/")[0] not in made:
                there = name.startswith("safepallas/") or (tree.ROOT / name).exists()
                assert there, f"{name} in {step}"
        for tool in re.findall(r"python -m (\w+)", step.get("run", "")):
            listed = re.findall(r'"([\w-]+)', (tree.ROOT / "pyproject.toml").read_text())
            assert tool in (*listed, "pip", "zipfile"), f"{tool} in {step}"


def test_the_runs_of_a_week_take_the_newest_jax() -> None:
    """So that the canary is asked before a user is."""
    workflow = load("tests.yml")
    assert "schedule" in workflow[True]  # `on`, a bool in YAML 1.1
    (pin,) = [step for step in workflow["jobs"]["tests"]["steps"] if "PIP_CONST" in str(step)]
    assert pin["if"] == "github.event_name != 'schedule'"
    last = workflow["jobs"]["tests"]["steps"][-1]["run"]
    assert last == "bash .ci/run"


def test_jax_is_pinned(tmp_path: Path) -> None:
    (pin,) = [step["run"] for step in steps() if "PIP_CONST" in str(step)]
    script = pin.replace("${{ matrix.jax }}", "0.12.0.1")
    tree.succeed(
        ["bash", "-e", "-c", script],
        tmp_path,
        RUNNER_TEMP=str(tmp_path),
        GITHUB_ENV=str(tmp_path / "env"),
    )
    constraints = tmp_path / "constraints.txt"
    assert constraints.read_text() == "jax==0.12.0.1\n"
    assert (tmp_path / "env").read_text() == f"PIP_CONSTRAINT={constraints}\n"


def test_a_release_is_published_after_its_tests() -> None:
    workflow = load("publish.yml")
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    assert workflow["jobs"]["tests"]["uses"] == "./.github/workflows/tests.yml"
    assert "workflow_call" in load("tests.yml")[True]
    assert workflow["jobs"]["safepallas"]["needs"] == ["tests", "build"]
    assert workflow["jobs"]["stubs"]["needs"] == ["safepallas"]
    packages = [s["with"]["packages-dir"] for s in steps() if "pypi-publish" in s.get("uses", "")]
    assert packages == ["dist/safepallas", "dist/safepallas-stubs"]
    (build,) = [s["run"] for s in workflow["jobs"]["build"]["steps"] if "-m build" in str(s)]
    assert build.split("\n")[:-1] == [
        "python -m build --outdir dist/safepallas .",
        "python -m build --outdir dist/safepallas-stubs stubs",
    ]


@pytest.mark.parametrize(
    ("tag", "section", "cited", "right"),
    [
        ("v1.2.3", "[1.2.3] - 2026-12-31", "1.2.3 2026-12-31", True),
        ("v1.2.4", "[1.2.3] - 2026-12-31", "1.2.3 2026-12-31", False),
        ("v1.2.3", "[1.2.2] - 2026-12-31", "1.2.3 2026-12-31", False),
        ("v1.2.3", "[1.2.3] - 2026-12-31", "1.2.3 2026-12-30", False),
        ("v1.2.3", "[1.2.3] - 2026-12-31", "1.2.2 2026-12-31", False),
    ],
)
def test_a_tag_must_name_what_the_tree_says(
    tmp_path: Path, tag: str, section: str, cited: str, right: bool
) -> None:
    (tmp_path / "safepallas").mkdir()
    (tmp_path / "safepallas" / "_version.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"## [Unreleased]\n\n## {section}\n")
    version, day = cited.split()
    (tmp_path / "CITATION.cff").write_text(f"version: {version}\ndate-released: {day}\n")
    (check,) = [step["run"] for step in steps() if "GITHUB_REF_NAME" in step.get("run", "")]
    done = tree.run(["bash", "-e", "-c", check], tmp_path, GITHUB_REF_NAME=tag)
    assert (done.returncode == 0) is right, done.stdout
