"""Every code block of README, CONTRIBUTING and docs/ runs, and prints what the page shows.

`blocks` runs them and states the convention. Pages are found, not listed: a new one is taken too.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from . import blocks

ROOT = blocks.ROOT
PAGE_SECONDS = 600
# Pages whose generator writes and compares them as a whole, by the test that does so.
GENERATED = {
    "docs/misuse-matrix.md": "tests/matrix/test_matrix.py::test_page_is_rendered_from_the_results",
    "docs/type-checkers.md": "tests/typing/test_type_checkers_page.py::test_every_snippet_is_known",
}


def pages() -> list[str]:
    """The pages that hold a block, from the root."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return [
        path.relative_to(ROOT).as_posix()
        for path in found
        if path.is_file() and holds_a_block(path.read_text(encoding="utf-8"))
    ]


def holds_a_block(text: str) -> bool:
    """Rather too many than too few: an indented block counts, and so does a directive."""
    return re.search(r"^ *(```|~~~)|^(    |\t)\S", text, re.MULTILINE) is not None


def run(path: Path, *options: str, seconds: float = PAGE_SECONDS) -> tuple[int, str]:
    """The exit code of the runner for a page, and what it says; -1 when it does not end."""
    child = subprocess.Popen(
        [sys.executable, "-W", "error", blocks.__file__, str(path), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        said, _ = child.communicate()
        return -1, f"{path.name}: no end in {seconds} s\n{said}"
    return child.returncode, said


@pytest.mark.parametrize("page", [page for page in pages() if page not in GENERATED])
def test_blocks_run_and_print_what_is_shown(
    page: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What mypy knows of JAX is kept from page to page.
    monkeypatch.setenv("MYPY_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "mypy_of_pages"))
    status, said = run(ROOT / page)  # libtpu may have said something too
    assert status == 0, said


@pytest.mark.parametrize(("page", "test"), GENERATED.items())
def test_generated_pages_are_compared_by_their_generators(page: str, test: str) -> None:
    assert page in pages()
    file, _, name = test.partition("::")
    assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8")


FENCE = "```"
RIGHT = f"""# A page

<!--- invisible-code-block: python
import math

three = 3
-->

{FENCE}python
print(three)
math.sqrt(-1)
{FENCE}

It prints

<!--- output: shortened -->
{FENCE}text
3
ValueError: ...
{FENCE}

<!--- file: there/program.py -->
{FENCE}python
import sys

print(sys.argv[1:])
raise SystemExit(2)
{FENCE}

{FENCE}console
$ python there/program.py a \\
    b
['a', 'b']
$ python -c "raise KeyError(1)"
Traceback (most recent call last):
  ...
KeyError: 1
{FENCE}

{FENCE}sh
pip install --quiet 'safepallas[tpu]' mypy && python -c "assert True"
test -f docs/tour/tour.py
{FENCE}

{FENCE}python
import jax

print(len(jax.devices()), jax.devices()[0].platform)
{FENCE}

<!--- output: jax<1 -->
{FENCE}text
9 cpu
{FENCE}

<!--- output: jax>=1 -->
{FENCE}text
of another time
{FENCE}

<!--- tested-by: tests/docs/test_blocks.py -->
{FENCE}brainfuck
+[]
{FENCE}
"""


def test_a_right_page_passes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(RIGHT)
    assert run(page) == (0, "")


RUN_WRONG = {
    "an output that is not printed": ("3\nValueError", "4\nValueError", "-- and printed\n3\n"),
    "an error that is not raised": ("math.sqrt(-1)", "math.sqrt(1)", "-- and printed\n3\n--"),
    "an error that is not shown": ("import jax\n", "import jaxx\n", "ModuleNotFoundError"),
    "a hidden block that fails": ("three = 3", "three = 1 / 0", "ZeroDivisionError"),
    "a print that is not shown": ("three = 3", "three = 3\nprint(5)", "and not shown:\n5"),
    "an exit": ("three = 3", "raise SystemExit(0)", "SystemExit: 0"),
    "a warning": ("print(three)", "__import__('warnings').warn('w')", "UserWarning: w"),
    "a command that prints something else": ("['a', 'b']", "['a']", "['a', 'b']\n--"),
    "a command that fails and shows nothing": ("['a', 'b']\n", "", "(nothing)"),
    "a command that fails silently": ('python -c "raise', 'false\n$ python -c "raise', "exit 1"),
    "a command in sh that fails": ("test -f docs/tour/tour.py", "test -f no.py", "exit 1: test"),
    "an output of this version": ("9 cpu", "8 cpu", "-- and printed\n9 cpu"),
}
READ_WRONG = {
    "a second output": ("<!--- output: jax>=1 -->", "", "not each says of which JAX"),
    "text of no block": ("It prints", "```sh\ntrue\n```\n", "not the output of a python block"),
    "no language": ("It prints", "```\nx = 1\n```\n", "language '' does not run"),
    "another name of a language": ("It prints", "```py\nx\n```\n", "language 'py' does not run"),
    "a code directive": ("It prints", "```{code-block} python\nx\n```\n", "'{code-block} python'"),
    "tildes": ("It prints", "~~~bash\nx\n~~~\n", "language 'bash' does not run"),
    "an indented block": ("It prints", "And\n\n    x = 1\n", "indented block"),
    "a comment that is misspelt": ("<!--- file:", "<!--- flie:", "comment 'flie' is none of"),
    "a comment elsewhere": ("there/program.py -->", "p.py -->\n\nWords.", "before something else"),
    "a comment at the end": ("```brainfuck\n+[]\n```", "", "before no block"),
    "a test that is gone": ("tests/docs/test_blocks.py", "tests/docs/no.py", "no tests/docs/no.py"),
    "hidden code of another language": ("block: python", "block: sh", "is python, not 'sh'"),
}


def changed(what: tuple[str, str, str], path: Path) -> str:
    """Write the page with something changed, and say what the runner should say."""
    old, new, said = what
    assert old in RIGHT
    path.write_text(RIGHT.replace(old, new, 1))
    return said


@pytest.mark.parametrize("what", RUN_WRONG)
def test_a_wrong_page_fails(what: str, tmp_path: Path) -> None:
    said = changed(RUN_WRONG[what], tmp_path / "page.md")
    status, answer = run(tmp_path / "page.md")
    assert status == 1
    assert said in answer


@pytest.mark.parametrize("what", READ_WRONG)
def test_a_page_that_would_not_run_is_refused(what: str, tmp_path: Path) -> None:
    said = changed(READ_WRONG[what], tmp_path / "page.md")
    with pytest.raises(blocks.PageError, match=re.escape(said)):
        blocks.read(tmp_path / "page.md")


def test_a_refusal_is_said(tmp_path: Path) -> None:
    said = changed(READ_WRONG["no language"], tmp_path / "page.md")
    status, answer = run(tmp_path / "page.md")
    assert status == 1
    assert said in answer


def test_what_installs_is_of_a_known_form() -> None:
    assert blocks.installs("python3 -m venv .venv")
    assert blocks.installs("pip install 'safepallas[tpu]'")
    assert blocks.installs(".venv/bin/pip install --quiet '.[dev,tpu]' ./stubs mypy")
    assert not blocks.installs("python -m mypy")
    for command in ("pip install mypi", "pip install 'safepallas[gpu]'", "pip install 'ty[tpu]'"):
        with pytest.raises(blocks.PageError, match="pip is told to install"):
            blocks.installs(command)


def test_a_page_that_hangs_is_ended(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{FENCE}python\nimport threading\n\nthreading.Event().wait()\n{FENCE}\n")
    status, answer = run(page, seconds=5)
    assert status == -1
    assert "no end in 5 s" in answer


def test_a_picture_that_is_stale_is_seen(tmp_path: Path) -> None:
    write = 'open("docs/pictures/two-copies.svg", "a").write({!r})'
    page = tmp_path / "page.md"
    for added, status in ("", 0), ("<!-- -->", 1):
        page.write_text(f"{FENCE}python\n_ = {write.format(added)}\n{FENCE}\n")
        answer = run(page)
        assert answer[0] == status
        assert ("docs/pictures/two-copies.svg is not what the page writes" in answer[1]) == status


def test_outputs_can_be_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    stale = RIGHT.replace("9 cpu", "8 cpu").replace("['a', 'b']\n", "")
    page.write_text(stale)
    assert run(page, "--write")[0] == 1
    assert page.read_text() == RIGHT
    assert run(page) == (0, "")


def test_the_pages_are_found() -> None:
    found = pages()
    assert "README.md" in found
    assert "docs/verify.md" in found
    assert holds_a_block("Words.\n\n```\nx\n```\n")
    assert holds_a_block("Words.\n\n    x = 1\n")
    assert not holds_a_block("Words `x`.\n")
