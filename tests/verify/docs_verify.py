"""What docs/verify.md shows, made anew: the reports that it quotes and its pictures.

Run this file to write them.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "verify.md"
BLOCK = re.compile(r"```text\n\$ python -m safepallas (verify [^\n]*)\n(.*?)```", re.DOTALL)


def renew(page: str) -> tuple[str, dict[str, str]]:
    """The page with what its commands print now, and the files that they write, by their paths."""
    from safepallas.verify._command import main

    files: dict[str, str] = {}

    def run(match: re.Match[str]) -> str:
        arguments = shlex.split(match[1])
        path = arguments[arguments.index("--svg") + 1]
        with tempfile.TemporaryDirectory() as folder:
            arguments[arguments.index(path)] = str(Path(folder, "picture.svg"))
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                main(arguments)
            files[path] = Path(folder, "picture.svg").read_text(encoding="utf-8")
        return f"```text\n$ python -m safepallas {match[1]}\n{out.getvalue().rstrip()}\n```"

    return BLOCK.sub(run, page), files


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    text, written = renew(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")
    for name, picture in written.items():
        (ROOT / name).write_text(picture, encoding="utf-8")
        print("wrote", name)
