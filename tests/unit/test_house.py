"""The map of the house in CONTRIBUTING.md: every module stands on one floor, and imports go down.

The tables there are the declaration; this file only reads them.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import safepallas as sp

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(sp.__file__).resolve().parent
MAP = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
WING = "verify"
# What the wing may use of the house, and who in the house may use the wing.
SHARED = ("words", "ground")
DOORS = "doors"

Floors = dict[str, list[str]]


def table(header: str) -> list[list[str]]:
    """The rows of the table whose first cell has that text, cell by cell."""
    lines = MAP.partition(f"\n| {header} |")[2].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    assert rows, f"CONTRIBUTING.md has no table of the {header}"
    return rows


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


HOUSE: Floors = {floor: names_in(modules) for floor, modules, _ in table("floor")}
OF_WING: Floors = {
    floor: [f"{WING}.{name}" for name in names_in(modules)]
    for floor, modules, _ in table(f"floor of `{WING}/`")
}
FLOORS = {module: floor for floor, modules in HOUSE.items() for module in modules}
HOUSE_ORDER = [module for modules in HOUSE.values() for module in modules]
WING_ORDER = [module for modules in OF_WING.values() for module in modules]


def name_of(path: Path) -> str:
    """``_ops``, ``__init__``, ``verify._report``, ``verify.__init__``."""
    return ".".join(path.relative_to(LIBRARY).with_suffix("").parts)


SOURCES = {name_of(path): path.read_text("utf-8") for path in sorted(LIBRARY.rglob("*.py"))}


def imports(source: str) -> Iterator[str]:
    """The modules of the library that a module imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "import it from safepallas"
            package, _, module = (node.module or "").partition(".")
            if package != "safepallas":
                continue
            for alias in node.names:
                candidates = [f"{module}.{alias.name}", module, f"{module}.__init__", "__init__"]
                yield next(name for c in candidates if (name := c.lstrip(".")) in SOURCES)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                assert alias.name.partition(".")[0] != "safepallas", "import it from safepallas"


GRAPH = {name: sorted(set(imports(source))) for name, source in SOURCES.items()}


def in_wing(module: str) -> bool:
    return module.startswith(f"{WING}.")


def test_every_module_stands_on_one_floor() -> None:
    for where, order in (("the first", HOUSE_ORDER), (f"that of {WING}/", WING_ORDER)):
        there = [name for name in SOURCES if in_wing(name) == (order is WING_ORDER)]
        twice = {name for name in order if order.count(name) > 1}
        assert not twice, f"CONTRIBUTING.md names twice: {twice}"
        assert sorted(order) == sorted(there), (
            f"the map in CONTRIBUTING.md, {where} table, does not name "
            f"{sorted(set(there) - set(order))}, and names {sorted(set(order) - set(there))}, "
            "which are not there"
        )


@pytest.mark.parametrize("name", SOURCES)
def test_imports_go_down(name: str) -> None:
    """To a floor below, or to the right on the same floor: so there is no ring either."""
    order = WING_ORDER if in_wing(name) else HOUSE_ORDER
    assert name in order, f"{name} has no place on the map in CONTRIBUTING.md"
    below = set(order[order.index(name) + 1 :])
    for imported in GRAPH[name]:
        if in_wing(name) == in_wing(imported):
            assert imported in below, f"{name} imports {imported}, which does not stand below it"
        elif in_wing(name):
            assert FLOORS.get(imported) in SHARED, f"{name} imports {imported}: not for the wing"
        else:
            assert FLOORS.get(name) == DOORS, (
                f"{name} imports {imported}: only the doors open to it"
            )


def test_it_would_see_what_goes_up() -> None:
    """`imports` finds them in every form, also where they stand in a function."""
    source = """
from safepallas import _compat, __version__
from safepallas._kinds import DMA
from safepallas.verify import verify, _model
def late() -> None:
    from safepallas.verify._report import Report
"""
    expected = {"_compat", "__init__", "_kinds", "verify.__init__", "verify._model"}
    assert set(imports(source)) == {*expected, "verify._report"}
    for wrong in ("import safepallas._kinds", "from . import _kinds"):
        with pytest.raises(AssertionError, match="import it from safepallas"):
            list(imports(wrong))


def test_the_ground_is_the_ground() -> None:
    assert {"_kinds", "_errors", "_compat"} <= set(HOUSE["ground"])
    assert next(iter(HOUSE)) == DOORS
    assert [*HOUSE][-1] == "ground"
    assert all(GRAPH[name] == [] for name in ("_kinds", "_errors", "_compat"))


def test_the_other_rooms() -> None:
    """Every directory that the map names is there, and every directory of tests is named."""
    named = {name for cell, _ in table("directory") for name in names_in(cell)}
    assert all(name.endswith("/") and (ROOT / name).is_dir() for name in named), named
    # In a tree from which the library was taken away, so that the tests see the wheel.
    tests = {f"tests/{path.parent.name}/" for path in ROOT.glob("tests/*/*.py")}
    assert tests <= named, f"CONTRIBUTING.md does not name {sorted(tests - named)}"
