"""Every code of an error has a page, with cause, example and fix, and stays what it is.

That the blocks of a page run and show what they print is for `test_blocks.py`.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

import safepallas as sp

from . import blocks

ERRORS = blocks.ROOT / "docs" / "errors"

# Users search for codes in logs, and filter warnings by them.
CODES = [
    "not-a-semaphore",
    "scope-ended",
    "wrong-kind",
    "not-scalar",
    "index-type",
    "index-range",
    "amount-type",
    "amount-range",
    "device-id-type",
    "device-id",
    "axis-type",
    "axis",
    "not-in-kernel",
    "mixed-barriers",
    "foreign-semaphore",
    "not-a-ref",
    "copy-mismatch",
    "wait-option",
    "copy-option",
    "counted-copy",
    "missing-collective-id",
    "unused-collective-id",
    "missing-side-effects",
    "in-flight",
    "annotation",
    "spec",
    "adopt",
    "interpreted-read",
    "interpreted-copy",
    "interpreted-output",
    "unsafe-protocol",
    "picture",
    "semaphore-limit",
    "jax-version",
]
CHANGED = (
    "Codes are promised to stay as they are. Say in the CHANGELOG (Changed, Removed or Added) "
    "which code came, went or has another name now, and only then change the list in this test."
)
# No error that is shown is of the base alone; the index is about it.
BASE = sp.SemaphoreError.code

CLASSES: dict[str, type[Any]] = {
    cls.code: cls for cls in vars(sp).values() if isinstance(cls, type) and hasattr(cls, "code")
}
SECTIONS = ["Cause", "Example", "Fix"]


def page(code: str) -> str:
    return (ERRORS / f"{code}.md").read_text(encoding="utf-8")


def summary(cls: type[Any]) -> str:
    """The first line of a docstring, with code as Markdown has it."""
    return str(cls.__doc__).partition("\n")[0].replace("``", "`")


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_codes_are_stable() -> None:
    assert len(CODES) == len(set(CODES))
    had, has = {*CODES, BASE}, set(CLASSES)
    assert had == has, f"gone: {had - has}, new: {has - had}. {CHANGED}"


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    pages = {path.stem for path in ERRORS.iterdir()}
    assert pages == {*CLASSES, "index"} - {BASE}


@pytest.mark.parametrize("code", CODES)
def test_page(code: str) -> None:
    text, cls = page(code), CLASSES[code]
    bases = ", ".join(base.__name__ for base in cls.__bases__)
    head = f"# {code}\n\n`class safepallas.{cls.__name__}({bases})`\n\n{summary(cls)}\n\n## Cause\n"
    assert text.startswith(head)
    assert list(sections(text)) == SECTIONS


def last_words(section: str) -> str:
    """The one block of output of a section, from the error on."""
    shown = re.findall(r"^```(?:text|console)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert len(shown) == 1
    return re.sub(r"\A\$ .*\nTraceback .*\n  \.\.\.\n", "", shown[0]).strip()


@pytest.mark.parametrize("code", CODES)
def test_its_example_raises_it(code: str) -> None:
    example = sections(page(code))["Example"]
    assert len(re.findall("^```python$", example, re.MULTILINE)) == 1
    words = last_words(example)
    assert words.startswith(f"safepallas.{CLASSES[code].__name__}: ")
    assert words.endswith(f" [{code}]")


@pytest.mark.parametrize("code", CODES)
def test_its_fix_runs_and_raises_nothing(code: str) -> None:
    """A block that raises must show that (see `blocks`), and none here does."""
    fix = sections(page(code))["Fix"]
    assert "```python\n" in fix
    assert "tested-by" not in page(code)
    assert "file:" not in fix
    assert not re.search(r"^(\w+\.)*\w+(Error|Warning): ", fix, re.MULTILINE)


def test_the_runner_reads_them_as_they_are_meant() -> None:
    """Each example is one block whose output is what this file looks at."""
    for code in CODES:
        example, fix = (page(code).index(f"## {name}") for name in SECTIONS[1:])
        found = blocks.read(ERRORS / f"{code}.md")
        inside = [block for block in found if example < block.region.start < fix]
        (shown,) = [b for b in inside if b.outputs or b.language == "console"]
        output = shown.source if shown.language == "console" else shown.outputs[0].source
        assert f"[{code}]" in output


def test_the_index_names_all() -> None:
    rows = re.findall(r"^\| \[(.*?)\]\((.*?)\) \| `(.*?)` \| (.*) \|$", page("index"), re.MULTILINE)
    wanted = [(code, f"{code}.md", cls.__name__, summary(cls)) for code, cls in CLASSES.items()]
    assert sorted(rows) == sorted(row for row in wanted if row[0] != BASE)


def test_every_error_and_warning_has_a_code() -> None:
    found = [
        cls
        for cls in vars(sp).values()
        if isinstance(cls, type) and issubclass(cls, Exception) and cls not in CLASSES.values()
    ]
    assert found == []
