"""docs/verify.md quotes reports and shows pictures: they are what is printed and drawn today."""

from __future__ import annotations

import os
import re
import sys

import pytest

from safepallas.verify._model import Kind

from .docs_verify import BLOCK, PAGE, ROOT, renew

TEXT = PAGE.read_text(encoding="utf-8")


def any_jax(text: str) -> str:
    return re.sub(r"Traced with JAX \S+", "Traced with JAX", text)


def test_reports_and_pictures_are_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it fails: python tests/verify/docs_verify.py, and look at the pictures."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XLA_FLAGS", os.environ.get("XLA_FLAGS", ""))  # put back afterwards
    monkeypatch.setattr(sys, "path", [*sys.path])
    text, files = renew(TEXT)
    assert len(BLOCK.findall(TEXT)) == len(files) == 2
    assert any_jax(text) == any_jax(TEXT)
    for name, picture in files.items():
        assert (ROOT / name).read_text(encoding="utf-8") == picture
        assert f"]({name.removeprefix('docs/')})" in TEXT
        assert str(ROOT) not in picture  # it may be made anywhere


def test_it_would_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XLA_FLAGS", os.environ.get("XLA_FLAGS", ""))
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert renew(TEXT.replace("unsafe: kernel", "safe: kernel"))[0] != TEXT.replace(
        "unsafe: kernel", "safe: kernel"
    )


def test_the_page_names_every_kind_of_finding() -> None:
    assert re.findall(r"^\| `([a-z-]+)` \|", TEXT, re.M) == [kind.value for kind in Kind]
