"""docs/quickstart.md keeps its word: five commands from a fresh environment to a refused kernel.

They are taken off the page and run in a new environment in a folder of its own. Only the checkout
is named by its path, as the folder holds nothing but what the reader writes.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

from ..release import tree
from .blocks import JAX_NOTE, ROOT, STACK, commands, read

PAGE = ROOT / "docs" / "quickstart.md"
MOST = 5
END = "-- exit "


def session() -> list[tuple[str, str | None]]:
    """The commands of the page up to the one that is refused while tracing, and what each shows."""
    found: list[tuple[str, str | None]] = []
    for block in read(PAGE):
        if block.language in ("sh", "console"):
            silent = block.language == "sh"
            found += [(command, None if silent else shown) for command, shown in commands(block)]
    first = [command for command, _ in found].index("python wrong.py")
    return found[: first + 1]


SESSION = session()


def test_there_are_at_most_five() -> None:
    """The one after them shows the same refusal once more, by the trace."""
    counted = [command for command, _ in SESSION[:-1]]
    assert len(counted) <= MOST
    assert "python double.py" in counted
    assert counted[-1].startswith("mypy ")
    assert "Five commands" in PAGE.read_text(encoding="utf-8")
    assert not any(re.search(r"&&|;|\|", command) for command in counted)  # each is one


def test_they_do_what_the_page_shows(tmp_path: Path) -> None:
    source = tree.copy(tmp_path / "source")
    for block in read(PAGE):
        if block.file:
            (tmp_path / block.file).write_text(block.source, encoding="utf-8")

    script = []
    for command, _ in SESSION:
        if command.startswith("pip install "):
            assert " . " in command
            command = command.replace(" . ", f" '{source}' ")
        script += [command, f'echo "{END}$?"']
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )

    parts = re.split(rf"^{END}(\d+)\n", done.stdout, flags=re.M)
    printed, codes = parts[0:-1:2], [int(code) for code in parts[1::2]]
    assert len(codes) == len(SESSION), done.stdout
    for (command, shown), output in zip(SESSION, printed, strict=True):
        if shown is None:  # an index may have something to say
            continue
        got = JAX_NOTE.sub("", STACK.sub(r"\1  ...\n", output.replace(f"{tmp_path}/", "")))
        assert got.rstrip() == shown.rstrip(), command
    refused = [command for (command, _), code in zip(SESSION, codes, strict=True) if code]
    assert refused == [command for command, _ in SESSION[-2:]]
    # What ran was installed there, and not this tree.
    assert list(tmp_path.glob(".venv/lib/*/site-packages/safepallas/py.typed"))


def environment(folder: Path) -> dict[str, str]:
    """That of a shell that knows this Python, pip's settings, and nothing of this tree.

    The versions are those of the tests, so that the outputs are.
    """
    ours = re.compile(r"PYTHON|MYPY|XLA_|VIRTUAL_ENV|COV_|PYTEST")
    found = {name: value for name, value in os.environ.items() if not ours.match(name)}
    pinned = folder / "constraints.txt"
    names = ("jax", "jaxlib", "mypy", "numpy")
    pinned.write_text("".join(f"{name}=={importlib.metadata.version(name)}\n" for name in names))
    return {
        **found,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PIP_CONSTRAINT": str(pinned),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "JAX_PLATFORMS": "cpu",
        "NO_COLOR": "1",
    }
