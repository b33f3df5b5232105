"""One version everywhere; the changelog, the citation and the licence are of their forms."""

import importlib
import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import safepallas as sp

from . import tree
from .test_workflows import validate

CHANGELOG = (tree.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

# Keep a Changelog 1.1.0: the kinds of change in this order, each with entries.
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
CHANGES = "".join(rf"(\n### {kind}\n\n(- .+\n(  .+\n)*)+)?" for kind in KINDS)
RELEASE = r"\n## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)\n"
FORM = re.compile(
    rf"# Changelog\n\n.*keepachangelog\.com/en/1\.1\.0.*\n.*semver\.org.*\n"
    rf"\n## \[Unreleased\]\n{CHANGES}({RELEASE}(?=\n###){CHANGES})*"
)


def releases(text: str) -> list[tuple[tuple[int, ...], date]]:
    """Versions and days, newest first; fails where the form is another."""
    assert FORM.fullmatch(text), "not of the form of Keep a Changelog"
    found = [(number(m[1]), date.fromisoformat(m[2])) for m in re.finditer(RELEASE, text)]
    for column in zip(*found, strict=True):
        assert list(column) == sorted(column, reverse=True), "not the newest first"
    assert len({version for version, _ in found}) == len(found), "a version twice"
    return found


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_the_version_is_the_newest_or_the_next() -> None:
    """Of what is being worked on, or of what is just released: then nothing is unreleased."""
    released = [version for version, _ in releases(CHANGELOG)]
    assert number(sp.__version__) >= max(released, default=(0, 0, 0))
    assert "[Unreleased]\n\n###" in CHANGELOG or number(sp.__version__) in released


RIGHT = CHANGELOG.partition("## ")[0] + (
    "## [Unreleased]\n\n## [0.2.0] - 2026-02-01\n\n### Added\n\n- A thing,\n  on two lines.\n"
    "- Another.\n\n### Fixed\n\n- A fault.\n\n## [0.1.0] - 2026-01-01\n\n### Added\n\n- All.\n"
)
WRONG = [
    ("## [Unreleased]\n\n", ""),
    ("[0.2.0] - 2026-02-01", "[0.2.0]"),
    ("2026-02-01", "2026-02-30"),  # no such day
    ("[0.2.0]", "[0.0.2]"),  # the oldest first
    ("2026-02-01", "2025-02-01"),
    ("[0.2.0]", "[0.1.0]"),  # twice
    ("### Fixed", "### Repaired"),
    ("### Added\n\n- A thing", "### Security\n\n- A thing"),  # another order
    ("### Fixed", "### Added"),
    ("- A fault.\n", ""),
    ("- Another.\n", "Another.\n"),
    ("# Changelog\n", "# News\n"),
]


@pytest.mark.parametrize(("old", "new"), WRONG)
def test_a_changelog_of_another_form_would_be_seen(old: str, new: str) -> None:
    assert releases(RIGHT) == [((0, 2, 0), date(2026, 2, 1)), ((0, 1, 0), date(2026, 1, 1))]
    assert old in RIGHT
    with pytest.raises((AssertionError, ValueError)):
        releases(RIGHT.replace(old, new, 1))


def citation() -> dict[str, Any]:
    tree.require("yaml")
    text = (tree.ROOT / "CITATION.cff").read_text(encoding="utf-8")
    found: dict[str, Any] = importlib.import_module("yaml").safe_load(text)
    return found


def test_the_citation_is_of_this_version() -> None:
    days = {version: str(day) for version, day in releases(CHANGELOG)}
    cited = citation()
    assert cited["version"] == sp.__version__
    assert str(cited.get("date-released", "")) == days.get(number(sp.__version__), "")
    assert validate("vendor.citation-file-format", tree.ROOT / "CITATION.cff") == ""


def projects() -> dict[str, dict[str, Any]]:
    paths = [tree.ROOT / "pyproject.toml", tree.ROOT / "stubs" / "pyproject.toml"]
    loaded = [tomllib.loads(path.read_text()) for path in paths]
    return {project["project"]["name"]: project for project in loaded}


def test_the_version_stands_in_one_place() -> None:
    sources = {n: p["tool"]["hatch"]["version"]["path"] for n, p in projects().items()}
    assert sources == {
        "safepallas": "safepallas/_version.py",
        "safepallas-stubs": "../safepallas/_version.py",
    }
    for project in projects().values():
        assert project["project"]["dynamic"] == ["version"]
    text = (tree.LIBRARY / "_version.py").read_text()
    assert re.findall(r'^__version__ = "(.*)"$', text, re.MULTILINE) == [sp.__version__]


def test_one_licence_and_no_headers(tmp_path: Path) -> None:
    """Nowhere: a header in some files only would ask what holds for the others."""
    licences = [tree.ROOT / name for name in ("LICENSE", "stubs/LICENSE")]
    assert len({path.read_bytes() for path in licences}) == 1
    for project in (*(p["project"] for p in projects().values()), citation()):
        assert project["license"] == "Apache-2.0"
    header = re.compile(r"^\W*(SPDX-|Licensed under|Copyright)", re.MULTILINE)
    with_header = []
    for name in tree.files(tmp_path):
        path = (tree.LIBRARY.parent if name.startswith("safepallas/") else tree.ROOT) / name
        if not name.endswith("LICENSE") and header.search(path.read_text(encoding="utf-8")):
            with_header.append(name)
    assert with_header == []
    assert header.search("# Copyright 2026 The safepallas authors\n")
