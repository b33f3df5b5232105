"""Every public name has a docstring with its arguments, its errors and an example that runs."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jax.experimental import pallas as pl

import safepallas as sp

from ..unit import test_messages
from . import docstring_examples
from .docstrings import (
    MODULES,
    NOTHING_RAISED,
    ROOT,
    Example,
    Public,
    complaints,
    everything,
    public,
    raised,
    top_level,
)

PUBLIC = everything()
EXAMPLES: dict[str, tuple[str, Example]] = {
    f"{one.name} {number}" if number else one.name: (one.name, example)
    for one in [*PUBLIC.values(), *(public(module.__name__, module) for module in MODULES)]
    for number, example in enumerate(one.examples)
}
API = ROOT / "docs" / "api"


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring(name: str) -> None:
    assert complaints(PUBLIC[name], PUBLIC) == []


def test_what_counts_as_public() -> None:
    """The enumeration finds what is known to be there, of each sort."""
    assert PUBLIC.keys() >= {
        *("safepallas.pallas_call", "safepallas.LocalCopy.start", "safepallas.Semaphore.ref"),
        *("safepallas.errors.SpecError", "safepallas.testing.Guard", "safepallas.verify"),
        *("safepallas.verification.Report.to_svg", "safepallas.raw.Ref.bitcast"),
        *("safepallas.Ref.at", "safepallas.errors.SemaphoreError"),
        *NOTHING_RAISED,
    }


IN_KERNEL = "Example, in a kernel::"
WITHOUT_EXAMPLE = r"Example, in a kernel::\n((?:    .*\n|\n)+)"
# Of a name: what is replaced in its docstring, by what, and what is then complained of.
SPOILED = {
    "no docstring": ("signal", r"(?s).*", "", "no docstring"),
    "an argument less": ("signal", "    inc: ", "    by: ", "nothing on its parameter inc"),
    "an argument more": ("signal", "    inc: ", "    by: ", "describes by, which it does not"),
    "no results": ("read", r"Returns:\n(    .*\n)+", "", "no Returns:"),
    "a type in a result": ("read", r"Returns:\n    ", r"\g<0>it: ", "a colon in the first line"),
    "no errors": ("signal", r"Raises:\n((?:    .*\n|\n)+)", "", "no Raises:"),
    "an unknown error": (
        "signal",
        "ScopeEndedError",
        "ScopeError",
        "ScopeError, which is no public",
    ),
    "no example": ("signal", WITHOUT_EXAMPLE, "", "no example, and no `Example: see ...`"),
    "an example elsewhere": (
        *("signal", WITHOUT_EXAMPLE, "Example: see `signals`.\n", "there is no example of signals"),
    ),
    "an example nowhere": (
        *("signal", WITHOUT_EXAMPLE, "Example: see ``docs/no.md``.\n", "there is no docs/no.md"),
    ),
    "an example too wide": (
        *("signal", rf"{IN_KERNEL}\n\n", rf"\g<0>    sp.read(ready)  # {'wide ' * 14}\n"),
        "a line of its example has",
    ),
    "code by another name": ("signal", IN_KERNEL, "For example::", "code that is not under"),
    "a field": (
        "verification.Finding",
        "`schedule`",
        "the schedule",
        "nothing on its field schedule",
    ),
}


@pytest.mark.parametrize("what", SPOILED)
def test_a_docstring_without_it_is_found_out(what: str) -> None:
    name, old, new, complaint = SPOILED[what]
    one = PUBLIC[f"safepallas.{name}"]
    text = re.sub(old, new, one.text, count=1)
    assert text != one.text
    assert any(complaint in found for found in complaints(one._replace(text=text), PUBLIC))


def test_a_method_in_no_example_is_found_out() -> None:
    holder = PUBLIC["safepallas.LocalCopy"]
    text = holder.text.replace(".start(", ".begin(")
    known = PUBLIC | {holder.name: holder._replace(text=text)}
    wrong = complaints(PUBLIC["safepallas.LocalCopy.start"], known)
    assert wrong == ["no example, and no `Example: see ...`"]


# Examples run.


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    of, example = EXAMPLES[name]
    if not docstring_examples.HAS_TPU_COMPILER and re.search("compile_for|tpu_mesh", example.code):
        pytest.skip("libtpu, the TPU compiler, is not installed")
    assert docstring_examples.left_unused(example.code) == set()
    run = docstring_examples.compile_in_kernel if example.in_kernel else docstring_examples.run
    run(example.code, of)


@pytest.mark.parametrize(
    ("example", "error"),
    [
        (Example(True, "sp.signal(sem)"), sp.errors.WrongKindError),
        (Example(True, "sp.wait(nothing)"), NameError),
        (Example(False, "sp.pallas_call(lambda x, o: sp.sync_copy(x, x.at[0]), like)(x)"), None),
    ],
)
def test_an_example_that_is_wrong_fails(example: Example, error: type[Exception] | None) -> None:
    run = docstring_examples.compile_in_kernel if example.in_kernel else docstring_examples.run
    with pytest.raises(error or sp.errors.CopyMismatchError):
        run(example.code, "a mutation")


def test_an_unused_function_of_an_example_is_found_out() -> None:
    assert docstring_examples.left_unused("def f(): pass\ndef g(): f()") == {"g"}


# The errors that the project's own tests raise are those that Raises: names.


def _entry_points() -> dict[Any, str]:
    """The public functions and methods by their code."""
    found = {}
    for one in PUBLIC.values():
        function = one.value.fget if isinstance(one.value, property) else one.value
        if inspect.isfunction(function):
            found[inspect.unwrap(function).__code__] = one.name
        if isinstance(function, type):  # its operators: ``sems[i]``, ``spec @ mesh``
            methods = [value for cls in function.__mro__ for value in vars(cls).values()]
            for method in filter(inspect.isfunction, methods):
                found.setdefault(method.__code__, one.name)
    return found


def _called_by_the_user(error: BaseException) -> Iterator[Any]:
    """The code of the functions of safepallas that code outside of it has called, innermost last"""
    outside, traceback = True, error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        module = traceback.tb_frame.f_globals.get("__name__", "")
        ours = module.partition(".")[0] == "safepallas"
        if ours and outside:
            yield code
        outside, traceback = not ours, traceback.tb_next


def _observed() -> Iterator[tuple[str, type[BaseException]]]:
    entry_points = _entry_points()
    for message in test_messages.MESSAGES:
        try:
            message.misuse()
        except BaseException as error:
            codes = list(_called_by_the_user(error))
            if codes and codes[-1] in entry_points:
                yield entry_points[codes[-1]], type(error)


def _told(one: Public) -> set[str]:
    """The errors that a docstring names: in its section, and of a class anywhere."""
    anywhere = re.findall(r"`(\w+Error)`", one.text) if isinstance(one.value, type) else []
    return raised(one, PUBLIC) | set(anywhere)


def test_errors_that_tests_raise_are_told_of() -> None:
    seen = set(_observed())
    assert len({name for name, _ in seen}) >= 20, "the tracebacks are not understood any more"
    untold = [
        f"{name} raises {error.__name__}"
        for name, error in sorted(seen, key=str)
        if error.__name__ not in _told(PUBLIC[name])
    ]
    assert untold == []


# The pages.

DIRECTIVE = re.compile(r"^\.\. auto(?:function|class|exception):: ([\w.]+)(\(.*)?$", re.M)


def directives() -> list[tuple[str, str]]:
    """The name of each, and the signature where it is written by hand."""
    pages = sorted(API.glob("*.md"))
    return [entry for page in pages for entry in DIRECTIVE.findall(page.read_text())]


def test_every_public_name_stands_on_one_page() -> None:
    assert sorted(name for name, _ in directives()) == sorted(p.name for p in top_level())


def test_signatures_written_by_hand_have_the_parameters_of_the_functions() -> None:
    by_hand = {name: text for name, text in directives() if text and PUBLIC[name].parameters}
    assert len(by_hand) >= 10
    for name, text in by_hand.items():
        (function,) = ast.parse(f"def f{text}: ...").body
        assert isinstance(function, ast.FunctionDef)
        names: dict[str, Any] = {"no_block_spec": None}
        arguments = function.args
        for argument in ast.walk(arguments):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        function.returns = None
        exec(compile(ast.Module([ast.fix_missing_locations(function)], []), name, "exec"), names)
        shown = inspect.signature(names["f"]).parameters.values()
        real = inspect.signature(PUBLIC[name].value).parameters.values()
        assert [(p.name, p.kind) for p in shown] == [(p.name, p.kind) for p in real], name
        for ours, theirs in zip(shown, real, strict=True):
            known = ours.default is not None and theirs.default not in (pl.no_block_spec, None)
            assert not known or ours.default == theirs.default, f"{name}: {ours.name}"


def test_the_names_of_examples_are_those_that_the_index_promises() -> None:
    index = (API / "index.md").read_text()
    block = re.search(r"```python\n(.*?)```", index, re.S)
    assert block
    imported = {
        alias.asname or alias.name
        for node in ast.parse(block[1]).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    assert imported == set(docstring_examples.IMPORTS)
    outside, in_kernel = re.findall(r"^\| name \| is \|\n(.*?)\n\n", index, re.M | re.S)
    for table, names in (
        (outside, docstring_examples.outside()),
        (in_kernel, docstring_examples.INSIDE),
    ):
        rows = table.splitlines()[1:]
        assert {n for row in rows for n in re.findall(r"`(\w+)`", row.split("|")[1])} == set(names)
