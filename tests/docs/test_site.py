"""The site builds without a warning, all pages are in its navigation, all links lead somewhere.

Links are checked twice: by Sphinx, and in the Markdown, which is read on GitHub.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
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
    navigation = "".join(re.findall(r'<div class="sidebar-tree">(.*?)</div>', start, re.S))
    linked = set(re.findall(r'href="([^"#]+)', navigation))
    wanted = {path.with_suffix(".html").as_posix() for path in sources(ROOT / "docs")}
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert len(wanted) > 10
    assert wanted <= built
    assert built - wanted <= GENERATED
    assert wanted - linked == {"index.html"}, "not in the navigation"
    assert f"<title>safepallas {safepallas.__version__}</title>" in start


def test_pages_fetch_nothing_and_hold_nothing_of_the_machine(site: Path) -> None:
    """They work from a disk: no font, script or picture of another host."""
    fetched = re.compile(
        r"<(?:script|img|iframe|object)\b[^>]*\b(?:src|data)=\"(?:https?:)?//"
        r'|<link\b[^>]*rel="stylesheet"[^>]*href="(?:https?:)?//'
    )
    for path in sorted(site.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        assert not fetched.search(text), path
        assert str(ROOT) not in text, path
        assert sys.prefix not in text, path


WRONG = {
    "no-such-page.md": "[x](no-such-page.md)",
    "no-such-heading": "[x](other.md#no-such-heading)",
    "no-such.svg": "![x](pictures/no-such.svg)",
    "no-such-file.py": "[x](examples/no-such-file.py)",
    "no_such_name": "```{eval-rst}\n:py:func:`safepallas.no_such_name`\n```",
    "no_such'": "```{eval-rst}\n.. autofunction:: safepallas.no_such\n```",
    "orphan.md: WARNING: document isn't included in any toctree": "",
}


def test_a_broken_link_stops_the_build(tmp_path: Path) -> None:
    """All faults in one site of three pages, built as ours is."""
    docs = tmp_path / "docs"
    for name in ("_ext", "_static"):
        shutil.copytree(ROOT / "docs" / name, docs / name)
    shutil.copy(ROOT / "docs" / "conf.py", docs)
    faults = "\n\n".join(WRONG.values())
    contents = "```{toctree}\nother\n```"
    (docs / "index.md").write_text(f"# Index\n\n{contents}\n\n{faults}\n")
    (docs / "other.md").write_text("# Other\n\n[x](index.md) and [y](other.md#other)\n")
    (docs / "orphan.md").write_text("# In no table of contents\n")
    status, warnings = build(docs, tmp_path / "out")
    assert status != 0
    assert [fault for fault in WRONG if fault not in warnings] == []
    assert warnings.count("WARNING") == len(WRONG), warnings


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


def test_links_lead_somewhere_on_github_too() -> None:
    pages = [ROOT / name for name in ROOT_PAGES] + [*(ROOT / "docs").rglob("*.md")]
    assert {
        page.relative_to(ROOT).as_posix(): dangling(page) for page in pages if dangling(page)
    } == {}


def test_a_link_that_leads_nowhere_in_markdown_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One `two`: three\n\n[a](#one-two-three) [b](#no) [c](page.md#no) [d](no.md) "
        "[e](https://x)\n\n| a |\n|---|\n| [f](no.py) ![g](no.svg) |\n"
    )
    assert dangling(page) == ["#no", "page.md#no", "no.md", "no.py", "no.svg"]
