"""What docs/verify.md says of findings. Its commands and pictures are of tests/docs/."""

from __future__ import annotations

import re
from pathlib import Path

from safepallas._verify.diagnostics.finding import FindingKind

PAGE = Path(__file__).resolve().parents[2] / "docs" / "verify.md"


def test_the_page_names_every_kind_of_finding() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z-]+)` \|", text, re.M) == [kind.value for kind in FindingKind]
