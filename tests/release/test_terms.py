"""Every name, message and page uses the terms of Pallas and of the literature.

A retired word is looked for as a whole word, whatever its case, in names of files and in all text;
``snake_case`` and ``CamelCase`` are taken apart.
"""

import re
from pathlib import Path

from . import tree

# As regular expressions of words, with what is said instead.
RETIRED = {
    "mend(s|ed|ing)?": "fix",
    "words": "message, text",
    r"house|(?<!jnp\.)floors?|doors?|wings?|rooms": "architecture, layer, public API, package",
    "honest gaps?": "limitations",
    "looked at": "analysed, checked, read",
    "meet(s|ing)?": "barrier, overlap",
    r"(?<!\.)touch(es|ed|ing)?": "access",
    "owners|births?": "lifetime",
    "came": "recv; was given",
    # As a name; what was sent may be said.
    r"\.sent|[\"'`(]sent(?=\W)|sent(?= = |: (sp|jax|Any)|=|\[|\.\w|, (came|received))": "send",
    "together": "lockstep (of execution), shared (of memory)",
    "nothing orders": "no happens-before order",
    "unwaited": "unawaited",
    "twins?": "reference kernel",
    "copies that count": "counting copies",
    "halves|(start|done) half": "start kernel, done kernel",
    "(?<!-)quiet(ly)?|loud(ly)?": "what it means",
    "in a circle": "circular wait",
}
PATTERN = re.compile(rf"(?<![a-z])({'|'.join(RETIRED)})(?![a-z])", re.IGNORECASE)
HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|_")

# Where one may stand, and why: the beginning of a path, and what the line must have in it.
ALLOWED = {
    ("tests/release/test_terms.py", ""): "this list",
    ("LICENSE", ""): "the text of the Apache License",
    ("stubs/LICENSE", ""): "the same",
    ("docs/examples/collective_matmul.py", "alves"): "of the rows of an operand",
    ("docs/examples.md", "in two halves, one in each direction"): "of the rows of an operand",
    ("docs/verified-kernels.md", "`ag_kernel` halves its block"): "a verb",
    ("stubs/jax-stubs/experimental/pallas/tpu.pyi", "import touch as touch"): "a name of Pallas",
    ("safepallas/_verify/report/report.py", "break_long_words="): "a name of textwrap",
}


def retired(text: str) -> list[str]:
    return [found[0] for found in PATTERN.finditer(HUMP.sub(" ", text))]


def test_no_retired_word_is_used(tmp_path: Path) -> None:
    found = []
    for name in tree.files(tmp_path):
        root = tree.LIBRARY.parent if name.startswith("safepallas/") else tree.ROOT
        lines = (root / name).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate([name, *lines]):
            allowed = any(name.startswith(path) and part in line for path, part in ALLOWED)
            found += [] if allowed else [f"{name}:{number}: {word}" for word in retired(line)]
    assert found == []


def test_a_retired_word_would_be_found() -> None:
    for text in ("mended", "Twin", "raw_twin", "RawTwin", "docs/twins/x.py", "nothing orders it"):
        assert len(retired(text)) == 1, text
    for text in (
        "s.sent[0]",
        "sent = sp.dma_semaphore()",
        "f(x, o, sent, came)",
        "DmaSemaphore 'sent'",
    ):
        assert retired(text), text
    assert retired("amend twinkle housed, pip --quiet, jnp.floor: what is sent to it") == []
