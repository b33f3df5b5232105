"""The site builds without a warning, all pages are in its navigation, all links lead somewhere.

Links are checked twice: in the HTML that was built, and in the Markdown, which is read on GitHub.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt

import safepallas

ROOT = Path(__file__).resolve().parents[2]
ROOT_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
BUILD_SECONDS = 600
# Sphinx' own; they are nobody's page.
GENERATED = {"genindex.html", "search.html", "py-modindex.html"}


def build(docs: Path, out: Path) -> tuple[int, str]:
    """The exit code of a strict build, and its warnings."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html"]
    done = subprocess.run(
        [*command, "-d", str(out / ".doctrees"), str(docs), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout


class Links(HTMLParser):
    """What a page of HTML links to and shows, and what may be linked to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.names |= {found[name] for name in ("id", "name") if name in found}
        self.links += [found[name] for name in ("href", "src", "data") if name in found]


def read(site: Path) -> dict[Path, Links]:
    return {path: Links(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def broken(site: Path) -> list[str]:
    """Every link within the site that leads nowhere."""
    pages = read(site)
    found = []
    for page, links in pages.items():
        for link in links.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = page.parent / unquote(parts.path) if parts.path else page
            if there.is_dir():
                there /= "index.html"
            there = there.resolve()
            names = pages[there].names if there in pages else {""}
            if not (there.is_file() and there.is_relative_to(site)) or (
                there in pages and unquote(parts.fragment) not in names
            ):
                found.append(f"{page.relative_to(site)}: {link}")
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site").resolve()
    status, warnings = build(ROOT / "docs", out)
    assert (status, warnings) == (0, ""), warnings
    return out


def sources(docs: Path) -> list[Path]:
    return [path.relative_to(docs) for path in sorted(docs.rglob("*.md"))]


def test_every_page_is_built_and_in_the_navigation(site: Path) -> None:
    start = (site / "index.html").read_text(encoding="utf-8")
    navigation = re.findall(r'<div class="sidebar-tree">(.*?)</div>', start, re.S)
    linked = {urlsplit(link).path for text in navigation for link in Links(text).links}
    wanted = {path.with_suffix(".html").as_posix() for path in sources(ROOT / "docs")}
    built = {path.relative_to(site).as_posix() for path in read(site)}
    assert len(wanted) > 10
    assert wanted <= built
    assert built - wanted <= GENERATED
    assert wanted - linked == {"index.html"}, "not in the navigation"


def test_every_link_and_picture_is_there(site: Path) -> None:
    assert broken(site) == []
    assert any(link.endswith(".svg") for page in read(site).values() for link in page.links)


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    """The pages work from a disk: no font, script or picture of another host."""
    pattern = re.compile(
        r"<(?:script|img|iframe|object)\b[^>]*\b(?:src|data)=\"(?:https?:)?//[^\"]*"
    )
    for path in sorted(site.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        assert not pattern.findall(text), path
        assert not re.findall(r'<link\b[^>]*rel="stylesheet"[^>]*href="(?:https?:)?//', text), path


def test_the_version_is_that_of_the_package(site: Path) -> None:
    assert f"<title>safepallas {safepallas.__version__}</title>" in (site / "index.html").read_text(
        encoding="utf-8"
    )


def test_pages_hold_nothing_of_the_machine(site: Path) -> None:
    for path in sorted(site.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        assert str(ROOT) not in text, path
        assert sys.prefix not in text, path


WRONG = {
    "a page that is not there": "[x](no-such-page.md)",
    "a heading that is not there": "[x](verify.md#no-such-heading)",
    "a picture that is not there": "![x](pictures/no-such.svg)",
    "a name that is not there": "```{eval-rst}\n:py:func:`safepallas.no_such_name`\n```",
    "an object that is not there": "```{eval-rst}\n.. autofunction:: safepallas.no_such\n```",
}


def test_a_broken_link_stops_the_build(tmp_path: Path) -> None:
    """All faults in one copy of the tree, as a build takes its time."""
    copy = tmp_path / "tree"
    ignore = shutil.ignore_patterns("__pycache__", ".*")
    shutil.copytree(ROOT / "docs", copy / "docs", ignore=ignore)
    for name in ROOT_PAGES:
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, copy)
    page = copy / "docs" / "theory.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    for fault in WRONG.values():
        lines += ["", *fault.splitlines()]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (copy / "docs" / "orphan.md").write_text("# In no table of contents\n")
    status, warnings = build(copy / "docs", tmp_path / "out")
    assert status != 0
    assert "orphan.md: WARNING: document isn't included in any toctree" in warnings
    for name in ("no-such-page.md", "no-such-heading", "no-such.svg", "no_such_name", "no_such'"):
        assert name in warnings, name
    assert warnings.count("WARNING") >= len(WRONG) + 1


def test_a_link_that_leads_nowhere_in_html_is_seen(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "index.html").write_text('<p id="a b"><a href="../page.html#top">x</a>')
    good = (
        '<h1 id="top"></h1><a href="#top"></a><a href="there/#a%20b"></a><a href="https://x"></a>'
    )
    (tmp_path / "page.html").write_text(good)
    assert broken(tmp_path.resolve()) == []
    wrong = ["#no", "no.html", "there/#no", "there/index.html#no", "../outside.html", "no.svg"]
    (tmp_path / "page.html").write_text(
        good + "".join(f'<a href="{link}"></a>' for link in wrong[:-1]) + f'<img src="{wrong[-1]}">'
    )
    (tmp_path.parent / "outside.html").write_text("not of the site")
    assert broken(tmp_path.resolve()) == [f"page.html: {link}" for link in wrong]


# --- The same pages as Markdown


def headings(text: str) -> set[str]:
    """The anchors of a page on GitHub."""
    tokens = MarkdownIt("commonmark").parse(text)
    found: set[str] = set()
    for token, inline in itertools.pairwise(tokens):
        if token.type == "heading_open":
            plain = "".join(c.content for c in inline.children or ())
            slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
            number = 0
            while (name := f"{slug}-{number}" if number else slug) in found:
                number += 1
            found.add(name)
    return found


def links(text: str) -> Iterator[str]:
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if target:
                yield str(target)


def dangling(page: Path) -> list[str]:
    """Relative links of a page that lead nowhere where the tree is browsed."""
    found = []
    for link in links(page.read_text(encoding="utf-8")):
        parts = urlsplit(link)
        if parts.scheme:
            continue
        there = page.parent / unquote(parts.path) if parts.path else page
        if not there.exists() or (
            parts.fragment
            and there.suffix == ".md"
            and parts.fragment not in headings(there.read_text(encoding="utf-8"))
        ):
            found.append(link)
    return found


MARKDOWN = [ROOT / name for name in ROOT_PAGES] + [
    ROOT / "docs" / path for path in sources(ROOT / "docs")
]


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere_on_github_too(page: Path) -> None:
    assert dangling(page) == []


def test_a_link_that_leads_nowhere_in_markdown_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One `two`: three\n\n[a](#one-two-three) [b](#no) [c](page.md#no) [d](no.md) "
        "[e](https://x)\n\n| a |\n|---|\n| [f](no.py) ![g](no.svg) |\n"
    )
    assert dangling(page) == ["#no", "page.md#no", "no.md", "no.py", "no.svg"]
