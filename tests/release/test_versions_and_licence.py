"""One version everywhere; the changelog, the citation and the licence are of their forms."""

import importlib
import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import safepallas as sp

from . import tree
from .test_workflows import validate

CHANGELOG = (tree.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def number(version: str) -> tuple[int, ...]:
    assert re.fullmatch(r"\d+\.\d+\.\d+", version), version
    return tuple(map(int, version.split(".")))


class Section(NamedTuple):
    version: str  # "" for what is not released
    day: str
    entries: dict[str, list[str]]  # by kind of change


class ChangelogError(Exception):
    """What is not as Keep a Changelog 1.1.0 wants it."""


def demand(fulfilled: bool, what: str) -> None:
    if not fulfilled:
        raise ChangelogError(what)


def parse(text: str) -> list[Section]:
    """The sections, newest first; fails where the form is another."""
    head, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    demand(head.startswith("# Changelog\n"), "the title")
    for word in ("keepachangelog.com/en/1.1.0", "semver.org"):
        demand(word in head, f"{word} in the head")
    sections = []
    for part in parts:
        heading, _, body = part.partition("\n")
        match = re.fullmatch(r"\[(Unreleased|\d+\.\d+\.\d+)\](?: - (\d{4}-\d\d-\d\d))?", heading)
        demand(match is not None, f"the heading {heading!r}")
        assert match is not None
        demand((match[1] == "Unreleased") is (match[2] is None), f"the day of {heading!r}")
        between, *changes = re.split(r"^### ", body, flags=re.MULTILINE)
        demand(not between.strip(), f"text below {heading!r} and above its first kind of change")
        entries = {}
        for change in changes:
            kind, _, items = change.partition("\n")
            demand(kind in KINDS, f"{kind!r} is no kind of change")
            demand(kind not in entries, f"{kind!r} twice in {heading!r}")
            entries[kind] = re.findall(r"^- .+(?:\n  .+)*$", items, re.MULTILINE)
            rest = re.sub(r"^- .+(?:\n  .+)*$", "", items, flags=re.MULTILINE)
            demand(bool(entries[kind]) and not rest.strip(), f"{kind!r}: {rest.strip()!r}")
        demand(list(entries) == sorted(entries, key=KINDS.index), f"the order in {heading!r}")
        sections.append(Section(match[1].replace("Unreleased", ""), match[2] or "", entries))
    demand(bool(sections) and not sections[0].version, "Unreleased comes first")
    released = [(number(s.version), date.fromisoformat(s.day)) for s in sections[1:]]
    demand(len({v for v, _ in released}) == len(released), "a version twice")
    demand(released == sorted(released, reverse=True), "the newest comes first")
    demand([d for _, d in released] == sorted((d for _, d in released), reverse=True), "the days")
    return sections


SECTIONS = parse(CHANGELOG)


def test_the_version_is_the_newest_or_the_next() -> None:
    """Of what is being worked on, or of what is just released: then nothing is unreleased."""
    released = [number(section.version) for section in SECTIONS[1:]]
    assert number(sp.__version__) >= max(released, default=(0, 0, 0))
    assert SECTIONS[0].entries or number(sp.__version__) in released


HEAD = CHANGELOG.partition("## ")[0]
RIGHT = HEAD + (
    "## [Unreleased]\n\n## [0.2.0] - 2026-02-01\n\n### Added\n\n- A thing,\n  on two lines.\n"
    "- Another.\n\n### Fixed\n\n- A fault.\n\n## [0.1.0] - 2026-01-01\n\n### Added\n\n- All.\n"
)
WRONG = {
    "no unreleased": ("## [Unreleased]\n\n", ""),
    "no day": ("[0.2.0] - 2026-02-01", "[0.2.0]"),
    "a day that is none": ("2026-02-01", "2026-02-30"),
    "the oldest first": ("[0.2.0]", "[0.0.2]"),
    "days that go back": ("2026-02-01", "2025-02-01"),
    "a version twice": ("[0.2.0]", "[0.1.0]"),
    "a kind of its own": ("### Fixed", "### Repaired"),
    "another order": ("### Added\n\n- A thing", "### Security\n\n- A thing"),
    "a kind twice": ("### Fixed", "### Added"),
    "an empty kind": ("- A fault.\n", ""),
    "text": ("- Another.\n", "Another.\n"),
    "no title": ("# Changelog\n", "# News\n"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_changelog_of_another_form_would_be_seen(name: str) -> None:
    assert [section.version for section in parse(RIGHT)] == ["", "0.2.0", "0.1.0"]
    old, new = WRONG[name]
    assert old in RIGHT
    with pytest.raises((ChangelogError, ValueError)):
        parse(RIGHT.replace(old, new, 1))


def citation() -> dict[str, Any]:
    tree.require("yaml")
    text = (tree.ROOT / "CITATION.cff").read_text(encoding="utf-8")
    found: dict[str, Any] = importlib.import_module("yaml").safe_load(text)
    return found


def test_the_citation_is_of_this_version() -> None:
    days = {section.version: section.day for section in SECTIONS}
    cited = citation()
    assert cited["version"] == sp.__version__
    assert str(cited.get("date-released", "")) == days.get(sp.__version__, "")


def test_the_citation_is_of_its_form(tmp_path: Path) -> None:
    path = tree.ROOT / "CITATION.cff"
    assert validate("vendor.citation-file-format", path) == ""
    spoiled = tmp_path / "CITATION.cff"
    spoiled.write_text(path.read_text(encoding="utf-8").replace("authors:", "author:"))
    assert "'authors' is a required property" in validate("vendor.citation-file-format", spoiled)


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
