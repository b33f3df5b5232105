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


RIGHT = """# A page

<!--- invisible-code-block: python
import math

three = 3
-->

```python
print(three)
math.sqrt(-1)
```

It prints

<!--- output: shortened -->
```text
3
ValueError: ...
```

<!--- file: there/program.py -->
```python
import sys

print(sys.argv[1:])
raise SystemExit(2)
```

```console
$ python there/program.py a \\
    b
['a', 'b']
$ python -c "raise KeyError(1)"
Traceback (most recent call last):
  ...
KeyError: 1
```

```sh
pip install --quiet 'safepallas[tpu]' mypy && python -c "assert True"
test -f docs/tour/tour.py
```

```python
import pathlib

import jax

pathlib.Path("docs/pictures/two-copies.svg").touch()
print(len(jax.devices()), jax.devices()[0].platform)
```

<!--- output: jax<1 -->
```text
9 cpu
```

<!--- output: jax>=1 -->
```text
of another time
```

<!--- tested-by: tests/docs/test_blocks.py -->
```brainfuck
+[]
```
"""


def test_a_right_page_passes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(RIGHT)
    assert run(page) == (0, "")


# Blocks that are wrong, and what the runner says of each.
WRONG_BLOCKS = [
    ("```python\nprint(3)\n```\n```text\n4\n```", "shown\n4\n-- and printed\n3\n--"),
    ("```python\nx = 1\n```\n```text\nValueError: y\n```", "-- and printed\n(nothing)\n--"),
    ("```python\nimport jaxx\n```", "ModuleNotFoundError: No module named 'jaxx'"),
    ("```python\nprint(5)\n```", "printed or raised, and not shown:\n5"),
    ("```python\nraise SystemExit(0)\n```", "SystemExit: 0"),
    ("```python\n__import__('warnings').warn('w')\n```", "UserWarning: w"),
    ("<!--- invisible-code-block: python\n1 / 0\n-->", "ZeroDivisionError"),
    ("```console\n$ echo a\nb\n```", "shown\nb\n-- and printed\na\n--"),
    ("```console\n$ echo c\n```", "shown\n(nothing)\n-- and printed\nc\n--"),
    ("```console\n$ false\n```", "exit 1: false"),
    ("```sh\ntest -f no.py\n```", "exit 1: test -f no.py"),
    ("```python\nprint(9)\n```\n<!--- output: jax<1 -->\n```text\n8\n```", "shown\n8\n"),
    (
        "```sh\necho '<!-- -->' >> docs/pictures/two-copies.svg\n```",
        "docs/pictures/two-copies.svg is not what the page writes",
    ),
]


def test_every_wrong_block_is_reported(tmp_path: Path) -> None:
    """All on one page, as a process takes its time: each is a problem of its own."""
    page = tmp_path / "page.md"
    page.write_text("\n\n".join(block for block, _ in WRONG_BLOCKS))
    status, answer = run(page)
    assert status == 1
    problems = re.split(rf"^{re.escape(str(page))}: ", answer, flags=re.M)[1:]
    assert len(problems) == len(WRONG_BLOCKS), answer
    for problem, (_, said) in zip(problems, WRONG_BLOCKS, strict=True):
        assert said in problem


# What is put in place of something on the right page, and why it is not run then.
UNREADABLE = {
    "a second output": ("<!--- output: jax>=1 -->", "", "not each says of which JAX"),
    "text of no block": ("It prints", "```sh\ntrue\n```\n", "not the output of a python block"),
    "no language": ("It prints", "```\nx = 1\n```\n", "language '' does not run"),
    "another name of a language": ("It prints", "```py\nx\n```\n", "language 'py' does not run"),
    "a code directive": ("It prints", "```{code-block} python\nx\n```\n", "'{code-block} python'"),
    "tildes": ("It prints", "~~~bash\nx\n~~~\n", "language 'bash' does not run"),
    "an indented block": ("It prints", "And\n\n    x = 1\n", "indented block"),
    "a comment that is misspelt": ("<!--- file:", "<!--- flie:", "comment 'flie' is none of"),
    "a comment elsewhere": ("there/program.py -->", "p.py -->\n\nText.", "before something else"),
    "a comment at the end": ("```brainfuck\n+[]\n```", "", "before no block"),
    "a test that is gone": ("tests/docs/test_blocks.py", "tests/docs/no.py", "no tests/docs/no.py"),
    "hidden code of another language": ("block: python", "block: sh", "is python, not 'sh'"),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_page_that_would_not_run_is_refused(what: str, tmp_path: Path) -> None:
    old, new, said = UNREADABLE[what]
    assert old in RIGHT
    page = tmp_path / "page.md"
    page.write_text(RIGHT.replace(old, new, 1))
    with pytest.raises(blocks.PageError, match=re.escape(said)):
        blocks.read(page)
    if what == "no language":  # the command says it, too
        status, answer = run(page)
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
    page.write_text("```python\nimport threading\n\nthreading.Event().wait()\n```\n")
    status, answer = run(page, seconds=5)
    assert status == -1
    assert "no end in 5 s" in answer


def test_outputs_can_be_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(RIGHT.replace("9 cpu", "8 cpu").replace("['a', 'b']\n", ""))
    assert run(page, "--write")[0] == 1
    assert page.read_text() == RIGHT


def test_the_pages_are_found() -> None:
    found = pages()
    assert "README.md" in found
    assert "docs/verify.md" in found
    assert holds_a_block("Text.\n\n```\nx\n```\n")
    assert holds_a_block("Text.\n\n    x = 1\n")
    assert not holds_a_block("Text `x`.\n")
