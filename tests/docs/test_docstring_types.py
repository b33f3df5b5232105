"""The examples of docstrings are correct programs for mypy too, ``--strict``."""

import ast
import sys
from pathlib import Path
from textwrap import indent

from ..typing import checkers
from .docstring_examples import INSIDE
from .docstrings import MODULES, Example, everything, public

HEAD = """\
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp
import safepallas.raw
from safepallas import testing
"""

REFS = dict.fromkeys(("x", "o"), "safepallas.raw.Ref")
SEMS = "sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]"
IN_KERNEL = {
    **REFS,
    "sem": "sp.DmaSemaphore",
    "sems": SEMS,
    **dict.fromkeys(("ready", "send", "recv"), "sp.Semaphore"),
    **dict.fromkeys(("left", "right"), "jax.Array"),
}
OUTSIDE = {
    "x": "jax.Array",
    "like": "jax.ShapeDtypeStruct",
    **dict.fromkeys(("mesh", "call", "fn", "raw_fn"), "Any"),
}
ASSIGNMENTS = (ast.Assign, ast.AnnAssign)


def as_function(name: str, example: Example) -> str:
    """An example as the body of a function that takes the names which it uses and does not make."""
    nodes = list(ast.walk(ast.parse(example.code)))
    assigned = [node for node in ast.parse(example.code).body if isinstance(node, ASSIGNMENTS)]
    stored = (node for statement in assigned for node in ast.walk(statement))
    made = {n.id for n in stored if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    used = {node.id for node in nodes if isinstance(node, ast.Name)} - made
    types = IN_KERNEL if example.in_kernel else OUTSIDE
    parameters = ", ".join(f"{key}: {types[key]}" for key in types if key in used)
    return f"def {name}({parameters}) -> None:\n{indent(example.code, '    ')}\n"


def check(functions: list[str], work: Path) -> str:
    checkers.require("mypy")
    file, config = work / "shown.py", work / "mypy.ini"
    file.write_text("\n\n".join([HEAD, *functions]))
    config.write_text(checkers.MYPY)
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), str(file)]
    command += ["--cache-dir", str(work / "cache"), "--python-executable", sys.executable]
    done = checkers.run(command, checkers.CHECK_SECONDS, work, MYPYPATH=checkers.search_path())
    assert done.returncode in (0, 1), done.stdout + done.stderr
    # Only what is said of the examples: the library is checked elsewhere.
    return "\n".join(line for line in done.stdout.splitlines() if line.startswith("shown.py"))


def test_examples_pass_mypy(tmp_path: Path) -> None:
    names = [*everything().values(), *(public(module.__name__, module) for module in MODULES)]
    shown = [(one.name.replace(".", "_"), example) for one in names for example in one.examples]
    assert IN_KERNEL.keys() == set(INSIDE)
    wrong = Example(True, "sp.signal(sem)")
    text = check(
        [*(as_function(*one) for one in shown), as_function("it_would_be_found_out", wrong)],
        tmp_path,
    )
    (complaint,) = [line for line in text.splitlines() if ": error: " in line]
    assert 'Argument 1 to "signal"' in complaint
