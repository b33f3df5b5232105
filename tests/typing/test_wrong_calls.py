"""What each checker prints of a typical wrong call: how many lines, and what the first one says.

The calls are the last lines of reject/wrong_calls.py, named by the reasons that stand there.
"""

import re

import pytest

from .checkers import CHECKERS, HERE, Errors, Files, Line, require, run_ty

FILE = "reject/wrong_calls.py"
UNTYPED = "untyped/calls.py"
TEXT = (HERE / FILE).read_text().splitlines()
CALLS = {
    line.partition("  # E: ")[2]: number
    for number, line in enumerate(TEXT, 1)
    if number > TEXT.index("def calls(like: jax.ShapeDtypeStruct) -> None:") + 1
}

# The most lines that a checker may print, without mypy's count of errors at the end. pyrefly adds
# six or seven to its list of overloads, ty about 23, with the first one and the implementation.
MOST_LINES = {"mypy": 15, "pyright": 12, "pyrefly": 19, "ty": 35}
# What the first line says of each call: mypy, pyright, pyrefly and ty. Where a call fits no
# overload, pyright names it there, the argument in the next line; ty the function alone.
NO_OVERLOAD = "No overload of function `{}` matches arguments"
SAYS = {
    "pallas_call with a wrong handle": (
        'Argument "scratch_shapes" to "pallas_call" has incompatible type "tuple[Spec[Semaphore]]"',
        'to parameter "scratch_shapes" of type "ScratchThatFitsTheKernel"',
        "scratch_shapes=tuple[Spec[Semaphore]]",
        NO_OVERLOAD.format("pallas_call"),
    ),
    "pallas_call with a wrong Scratch": (
        'Argument 1 to "pallas_call" has incompatible type "Callable[[Ref, Ref, Ref, Buffers], ',
        'Argument of type "type[Others]" cannot be assigned to parameter "scratch_shapes"',
        "scratch_shapes=type[Others]",
        NO_OVERLOAD.format("pallas_call"),
    ),
    "a missing out_shape": (
        'No overload variant of "pallas_call" matches argument types',
        'No overloads for "pallas_call" match the provided arguments',
        "Missing argument `out_shape`",
        NO_OVERLOAD.format("pallas_call"),
    ),
    "a misspelt keyword": (
        'Unexpected keyword argument "scratch_shape" for overloaded function "pallas_call"; '
        'did you mean "scratch_shapes"',
        'No overloads for "pallas_call" match the provided arguments',
        "scratch_shape=type[Buffers]",
        NO_OVERLOAD.format("pallas_call"),
    ),
    "a misspelt out_shape": (
        'Unexpected keyword argument "out_shapes" for overloaded function "pallas_call"; '
        'did you mean "out_shape"',
        'No overloads for "pallas_call" match the provided arguments',
        "out_shapes=ShapeDtypeStruct",
        NO_OVERLOAD.format("pallas_call"),
    ),
    "an argument with an error of its own": (
        'Name "undefined" is not defined',
        '"undefined" is not defined',
        "Could not find name `undefined`",
        "Name `undefined` used when not defined",
    ),
    "the same beside a tuple": (
        'Name "undefined" is not defined',
        '"undefined" is not defined',
        "Could not find name `undefined`",
        "Name `undefined` used when not defined",
    ),
    "kernel with a wrong handle": (
        'Argument "scratch_types" to "kernel" has incompatible type "tuple[Spec[Semaphore]]"',
        'Argument of type "tuple[Spec[Semaphore]]" cannot be assigned to parameter "scratch_types"',
        "scratch_types=tuple[Spec[Semaphore]]",
        NO_OVERLOAD.format("kernel"),
    ),
    "kernel with a misspelt keyword": (
        'Unexpected keyword argument "scratch_shapes" for overloaded function "kernel"',
        'No overloads for "kernel" match the provided arguments',
        "scratch_shapes=tuple[Spec[DmaSemaphore]]",
        NO_OVERLOAD.format("kernel"),
    ),
    "run_scoped with a wrong handle": (
        'Argument 1 to "run_scoped" has incompatible type "Callable[[DmaSemaphore, Semaphore], ',
        'Argument of type "Spec[Semaphore]" cannot be assigned to parameter "a"',
        "Argument `Spec[Semaphore]` is not assignable to parameter `a`",
        "Argument to function `run_scoped` is incorrect",
    ),
    "run_scoped with a parameter too many": (
        'Argument 1 to "run_scoped" has incompatible type "Callable[[DmaSemaphore, Semaphore], ',
        'cannot be assigned to parameter "body" of type "(A@run_scoped) -> T@run_scoped"',
        "((sem: DmaSemaphore, done: Semaphore) -> None, Spec[DmaSemaphore])",
        NO_OVERLOAD.format("run_scoped"),
    ),
    "with_scoped with a wrong handle": (
        'Argument 1 to "__call__" of "WithScoped2" has incompatible type',
        'Argument of type "(sem: DmaSemaphore, done: Semaphore) -> None" cannot be assigned',
        "called with arguments: ((sem: DmaSemaphore, done: Semaphore) -> None)",
        "No overload matches arguments",
    ),
    "pallas_call_async with a wrong handle": (
        'Argument 3 to "pallas_call_async" has incompatible type "Callable[[Ref, Ref, Ref, Others]',
        'Argument of type "(x: Ref, y: Ref, o: Ref, s: Others) -> None" cannot be assigned',
        "(type[Buffers], (x: Ref, y: Ref, o: Ref, s: Buffers) -> None",
        NO_OVERLOAD.format("pallas_call_async"),
    ),
}


@pytest.fixture(scope="module")
def printed(
    reports: dict[str, Errors], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[int, list[str]]]:
    """The lines that each checker prints for each line of the file, in its own format."""
    found: dict[str, dict[int, list[str]]] = {}
    for name, errors in reports.items():
        found[name] = {
            number: "\n".join(errors.get(Line(FILE, number), [])).splitlines()
            for number in CALLS.values()
        }
    for lines in found.get("pyrefly", {}).values():
        lines += ["  --> place", "   |", "source", "   |    ^"]  # what its JSON leaves out
    if "ty" in found:
        work = tmp_path_factory.mktemp("ty-full")
        done = run_ty(Files(HERE, [FILE], work, work), "full")
        found["ty"] = {number: [] for number in CALLS.values()}
        for block in re.split(r"\n(?=error\[)", f"\n{done.stdout}"):
            place = re.search(rf"--> {FILE}:(\d+):", block)
            if place and int(place[1]) in found["ty"]:
                found["ty"][int(place[1])] += block.split("\nFound ")[0].rstrip().splitlines()
    return found


def test_every_call_is_judged() -> None:
    assert CALLS.keys() == SAYS.keys()


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("call", CALLS)
def test_the_first_line_is_true_and_few_follow(
    call: str, checker: str, printed: dict[str, dict[int, list[str]]]
) -> None:
    require(checker)
    lines = printed[checker][CALLS[call]]
    said = SAYS[call][list(CHECKERS).index(checker)]
    # pyright heads what it says of the best overload with the name of the function.
    beginning = lines[:2] if checker == "pyright" else lines[:1]
    assert said in "\n".join(beginning)
    assert len(lines) <= MOST_LINES[checker], "\n".join(lines)


def test_mypy_reports_an_untyped_argument_as_what_it_is(reports: dict[str, Errors]) -> None:
    """``mypy --strict`` alone reports `jax.ShapeDtypeStruct`, and no overload fits for that."""
    require("mypy")
    text = (HERE / UNTYPED).read_text().splitlines()
    said = {
        name: [
            errors.get(Line(UNTYPED, number), [])
            for number, line in enumerate(text, 1)
            if line.startswith("    sp.pallas_call(")
        ]
        for name, errors in reports.items()
    }
    with_scratch, with_tuple = said.pop("mypy")
    assert all(found == [[], []] for found in said.values())
    untyped = 'Call to untyped function "like" in typed context'
    assert with_scratch == [untyped]
    # Beside a tuple mypy adds the overload that nothing fits, whose name says so.
    assert with_tuple[0] == untyped
    assert len(with_tuple) == 2
    assert "FitsTheKernelWhereTheRestIsRight" in with_tuple[1]


def test_each_bound_is_close(printed: dict[str, dict[int, list[str]]]) -> None:
    """So the lines are counted: of each checker one call comes near its bound."""
    for checker, calls in printed.items():
        assert MOST_LINES[checker] - 2 <= max(map(len, calls.values()))
