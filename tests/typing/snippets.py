"""The snippets of docs/type-checkers.md that a user copies, by name, and a place to run them in."""

import re
import shutil
from pathlib import Path

from .page import PAGE

TEXT = PAGE.read_text()
DOCS = PAGE.parent
WRONG_LINES = {10, 11, 12, 13}  # of docs/tour/wrong_kernel.py

# The language of each, and how it begins.
SNIPPETS = {
    "mypy.ini": ("ini", "[mypy]"),
    ".pre-commit-config.yaml": ("yaml", "repos:"),
    ".github/workflows/types.yml": ("yaml", "name: types"),
    "pyrightconfig.json": ("json", "{"),
    "pyrefly.toml": ("toml", "project-includes"),
    "ruff.toml": ("toml", "[lint]"),
    "kernels/raw.py": ("python", "from jax.experimental import pallas as pl\n"),
    "what ruff says": ("text", "kernels/raw.py"),
}


def snippet(name: str) -> str:
    """The one block of the page that begins so."""
    language, first = SNIPPETS[name]
    found = re.findall(rf"^```{language}\n({re.escape(first)}.*?)^```$", TEXT, re.M | re.S)
    assert len(found) == 1, name
    return str(found[0])


def put(project: Path, name: str) -> None:
    """Write a snippet to where the page says it belongs."""
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(snippet(name))


def add_right(project: Path) -> None:
    kernels = project / "kernels"
    kernels.mkdir(exist_ok=True)
    shutil.copy(DOCS / "examples" / "ring_all_gather.py", kernels / "right.py")


def add_wrong(project: Path) -> None:
    shutil.copy(DOCS / "tour" / "wrong_kernel.py", project / "kernels" / "wrong.py")


def lines_of_wrong(output: str) -> set[int]:
    """The lines of the wrong kernel that an output complains of; the right one must not be."""
    assert "kernels/right.py" not in output, output
    return {int(number) for number in re.findall(r"wrong\.py:(\d+):", output)}
