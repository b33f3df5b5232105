"""No Any of safepallas in the accepted kernels: mypy's ``disallow_any_expr``, line by line.

A kernel may hold an Any only on a line that names where it is from: JAX, NumPy or functools, each
only partly annotated. Functions that declare an Any themselves, or handle the results of calls
(``Callable[..., Any]``, as in Pallas), are left out.
"""

import ast
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from .checkers import CHECK_SECONDS, MYPY, Errors, files, require, run, search_path

OUTSIDE = re.compile(r"\b(jax|jnp|np|pl|pltpu|plsc|functools|dataclasses|dtype|lambda|Any)\b")
OF_CALLS = re.compile(r"\bAny\b|\bsp\.(pallas_call|kernel)\b|def check_")
LEAKY = """import json

import safepallas as sp


def kernel(x: sp.Ref, o: sp.Ref) -> None:
    sem = json.loads("a semaphore of unknown type")
    sp.async_copy(x, o, sem).wait()
"""


def check(work: Path, cache: Path) -> Iterator[tuple[str, int]]:
    """The lines of the files in ``work/programs`` on which mypy sees an Any."""
    (work / "mypy.ini").write_text(MYPY + "\n[mypy-programs.*]\ndisallow_any_expr = True\n")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "programs"]
    command += ["--cache-dir", str(cache), "--python-executable", sys.executable]
    command += ["--output", "json"]
    done = run(command, CHECK_SECONDS, directory=work, MYPYPATH=search_path())
    assert done.returncode in (0, 1), done.stdout + done.stderr
    for error in map(json.loads, done.stdout.splitlines()):
        yield Path(error["file"]).name, error["line"]


def unexplained(text: str, lines: set[int]) -> set[int]:
    """Those of a program that neither name a source of Any nor handle calls."""
    source = text.splitlines()
    found = {line for line in lines if not OUTSIDE.search(source[line - 1])}
    for node in ast.parse(text).body:
        inside = range(node.lineno, (node.end_lineno or 0) + 1)
        if OF_CALLS.search("\n".join(source[line - 1] for line in inside)):
            found -= set(inside)
    return found


def test_accepted_kernels_hold_no_any_of_safepallas(
    tmp_path: Path, caches: Path, reports: dict[str, Errors]
) -> None:
    require("mypy")
    assert "mypy" in reports  # and so the cache holds what JAX is
    programs = tmp_path / "programs"
    programs.mkdir()
    for path in files("accept"):
        shutil.copy(path, programs)
    (programs / "leaky.py").write_text(LEAKY)
    found: dict[str, set[int]] = {path.name: set() for path in programs.iterdir()}
    for name, line in check(tmp_path, caches / "mypy"):
        found[name].add(line)
    wrong = {
        f"{name}:{line}"
        for name, lines in found.items()
        for line in unexplained((programs / name).read_text(), lines)
    }
    assert wrong == {"leaky.py:7", "leaky.py:8"}
