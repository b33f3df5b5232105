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
    *("not-a-semaphore", "scope-ended", "wrong-kind", "not-scalar", "index-type"),
    *("index-range", "amount-type", "amount-range", "device-id-type", "device-id", "axis-type"),
    *("axis", "not-in-kernel", "mixed-barriers", "foreign-semaphore", "not-a-ref"),
    *("copy-mismatch", "wait-option", "copy-option", "counted-copy", "missing-collective-id"),
    *("unused-collective-id", "missing-side-effects", "in-flight", "annotation", "spec"),
    *("adopt", "interpreted-read", "interpreted-copy", "interpreted-output", "unsafe-protocol"),
    *("picture", "semaphore-limit", "jax-version"),
]
CHANGED = (
    "Codes are promised to stay as they are. Say in the CHANGELOG (Changed, Removed or Added) "
    "which code is new, gone or renamed, and only then change the list in this test."
)
# No error that is shown is of the base alone; the index is about it.
BASE = sp.SemaphoreError.code

CLASSES: dict[str, type[Any]] = {
    cls.code: cls
    for cls in vars(sp.errors).values()
    if isinstance(cls, type) and hasattr(cls, "code")
}


def page(code: str) -> str:
    return (ERRORS / f"{code}.md").read_text(encoding="utf-8")


def summary(cls: type[Any]) -> str:
    """The first line of a docstring, with code as Markdown has it."""
    return str(cls.__doc__).partition("\n")[0].replace("``", "`")


def test_codes_are_stable() -> None:
    assert len(CODES) == len(set(CODES))
    had, has = {*CODES, BASE}, set(CLASSES)
    assert had == has, f"gone: {had - has}, new: {has - had}. {CHANGED}"


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    pages = {path.stem for path in ERRORS.iterdir()}
    assert pages == {*CLASSES, "index"} - {BASE}


@pytest.mark.parametrize("code", CODES)
def test_page(code: str) -> None:
    """Cause, an example that ends in the message with its code, and a fix that raises nothing."""
    text, cls = page(code), CLASSES[code]
    bases = ", ".join(base.__name__ for base in cls.__bases__)
    signature = f"`class safepallas.errors.{cls.__name__}({bases})`"
    assert text.startswith(f"# {code}\n\n{signature}\n\n{summary(cls)}\n\n## Cause\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Cause", "Example", "Fix"]
    start, end = (text.index(f"\n## {name}\n") for name in ("Example", "Fix"))

    found = blocks.read(ERRORS / f"{code}.md")  # what the runner runs and compares
    example = [block for block in found if start < block.region.start < end]
    assert [block.language for block in example].count("python") == 1
    (shown,) = [block for block in example if block.outputs or block.language == "console"]
    output = shown.source if shown.language == "console" else shown.outputs[0].source
    message = re.sub(r"\A\$ .*\nTraceback .*\n  \.\.\.\n", "", output).strip()
    assert message.startswith(f"safepallas.errors.{cls.__name__}: ")
    assert message.endswith(f" [{code}]")

    # A block that raises must show that, and none here does.
    fix = [block for block in found if block.region.start > end]
    assert "python" in {block.language for block in fix if not block.file}
    assert "tested-by" not in text
    outputs = "\n".join(output.source for block in fix for output in block.outputs)
    assert not re.search(r"^(\w+\.)*\w+(Error|Warning): ", outputs, re.MULTILINE)


def test_the_index_names_all() -> None:
    rows = re.findall(r"^\| \[(.*?)\]\((.*?)\) \| `(.*?)` \| (.*) \|$", page("index"), re.MULTILINE)
    wanted = [(code, f"{code}.md", cls.__name__, summary(cls)) for code, cls in CLASSES.items()]
    assert sorted(rows) == sorted(row for row in wanted if row[0] != BASE)


def test_every_error_and_warning_has_a_code() -> None:
    found = [
        cls
        for cls in vars(sp.errors).values()
        if isinstance(cls, type) and issubclass(cls, Exception) and cls not in CLASSES.values()
    ]
    assert found == []
