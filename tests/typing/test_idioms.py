"""Every idiom of real kernels has accepted files that are about it, and that check what they ran.

The idioms are those that a survey of public Pallas kernels found semaphores to travel in. That the
checkers say nothing of these files, and that they run, is seen to in test_typing.py.
"""

import ast
import re

import pytest

from .checkers import HERE, files

# What the idiom is called: the files that show it, and what none of them can do without.
IDIOMS: dict[str, tuple[tuple[str, ...], str]] = {
    "closures": (("closures",), r"@pl\.when\(.*\)\n    def _\w+\(\) -> None:\n        sp\.signal"),
    "helpers": (("helpers", "generic_helpers"), r"def \w+\([^)]*sems: sp\.SemaphoreArray"),
    "dataclasses": (("containers", "carried_groups"), r"@dataclasses\.dataclass.*\nclass \w+:"),
    "NamedTuples": (
        ("control_flow", "containers", "carried_groups"),
        r"\(NamedTuple\):\n    \w+: ",
    ),
    "dicts": (("containers", "carried_groups"), r"dict\[str, sp\.Semaphore\]"),
    "None fields": (("optional_handles", "carried_groups"), r"    \w+: sp\.Semaphore \| None"),
    "unions of scalar and array": (
        ("scalar_or_array", "rank_by_flag"),
        r"sp\.DmaSemaphore \| (Many|sp\.SemaphoreArray\[sp\.DmaSemaphore, tuple\[int\]\])",
    ),
    "*refs": (("star_refs",), r"def \w+\(\*refs: Any\) -> None:"),
    "partials": (("partial_kernels", "optional_handles"), r"functools\.partial\(\w+, [^)]*=.*\)"),
    "one semaphore for several copies": (
        ("shared_semaphore",),
        r"s\.copies\) for row in [\s\S]* s\.copies, \{\"x\": other\}",
    ),
    "wait without the starting object": (
        ("wait_elsewhere", "between_kernels"),
        r"sp\.wait_bytes\(",
    ),
    "scratch rank chosen by a flag": (
        ("rank_by_flag",),
        r"dma_semaphore\(\w+\) if \w+ else sp\.dma_",
    ),
    "tuples of scalar semaphores": (
        ("semaphore_tuples",),
        r"sems: tuple\[sp\.DmaSemaphore, \.\.\.\]",
    ),
}


@pytest.mark.parametrize("idiom", IDIOMS)
def test_every_idiom_is_shown(idiom: str) -> None:
    names, essence = IDIOMS[idiom]
    for name in names:
        path = HERE / "accept" / f"{name}.py"
        assert path.is_file(), f"no accepted file shows {idiom}: {path.name} is gone"
        assert re.search(essence, path.read_text()), f"{path.name} is no longer about {idiom}"


def test_every_accepted_file_checks_its_result() -> None:
    for path in files("accept"):
        mains = [
            node
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.FunctionDef) and node.name == "main"
        ]
        assert len(mains) == 1, f"{path.name} has no main()"
        assert re.search(r"\bassert\b|\bassert_\w+\(", ast.unparse(mains[0])), path.name
