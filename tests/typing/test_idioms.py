"""Every idiom of real kernels is in the accepted files, and each of them checks what it ran.

The idioms are those that a survey of public Pallas kernels found semaphores to travel in. That the
checkers say nothing of these files, and that they run, is seen to in test_typing.py.
"""

import ast
import re

import pytest

from .checkers import HERE, files

# What the idiom is called: a file that shows it, and what it cannot do without.
IDIOMS = {
    "closures": ("scopes", r"@pl\.when\(.*\)\n    def _\w+\(\) -> None:\n        sp\.signal"),
    "helpers": ("helpers", r"def \w+\([^)]*sems: sp\.SemaphoreArray"),
    "dataclasses": ("containers", r"@dataclasses\.dataclass.*\nclass \w+:"),
    "NamedTuples": ("containers", r"\(NamedTuple\):\n    \w+: "),
    "dicts": ("containers", r"dict\[str, sp\.Semaphore\]"),
    "None fields": ("containers", r"    \w+: sp\.Semaphore \| None"),
    "unions of scalar and array": ("helpers", r"sems: sp\.DmaSemaphore \| Many"),
    "*refs": ("kernels", r"def \w+\(\*refs: Any\) -> None:"),
    "partials": ("kernels", r"functools\.partial\(\w+, [^)]*=.*\)"),
    "one semaphore for several copies": (
        "copies",
        r"s\.copies\) for row in [\s\S]* s\.copies, \{\"x\": other\}",
    ),
    "wait without the starting object": ("copies", r"sp\.wait_bytes\("),
    "a semaphore between kernels": ("apart", r"sp\.wait_bytes\("),
    "scratch rank chosen by a flag": ("helpers", r"dma_semaphore\(\w+\) if \w+ else sp\.dma_"),
    "tuples of scalar semaphores": ("containers", r"sems: tuple\[sp\.DmaSemaphore, \.\.\.\]"),
}


@pytest.mark.parametrize("idiom", IDIOMS)
def test_every_idiom_is_shown(idiom: str) -> None:
    name, essence = IDIOMS[idiom]
    assert re.search(essence, (HERE / "accept" / f"{name}.py").read_text())


def test_every_accepted_file_checks_its_results() -> None:
    for path in files("accept"):
        functions = [n for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)]
        checks = [node for node in functions if node.name.startswith("check_")]
        assert checks, path.name
        for check in checks:
            assert re.search(r"\bassert\b|\bequal\(|\bassert_\w+\(", ast.unparse(check)), check.name
