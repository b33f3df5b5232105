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
    examples,
    raised,
    top_level,
)

PUBLIC = {public.name: public for public in everything()}
MODULE_EXAMPLES = [
    Public(module.__name__, module) for module in MODULES if examples(module.__doc__ or "")
]
EXAMPLES: dict[str, tuple[str, Example]] = {
    f"{public.name} {number}" if number else public.name: (public.name, example)
    for public in [*PUBLIC.values(), *MODULE_EXAMPLES]
    for number, example in enumerate(examples(public.text))
}
API = ROOT / "docs" / "api"


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring(name: str) -> None:
    assert complaints(PUBLIC[name], PUBLIC) == []


def test_what_counts_as_public() -> None:
    """The enumeration finds what is known to be there, of each sort."""
    assert PUBLIC.keys() >= {
        *("safepallas.pallas_call", "safepallas.LocalCopy.start", "safepallas.Semaphore.ref"),
        *("safepallas.errors.SpecError", "safepallas.testing.Guard", "safepallas.verify.verify"),
        *(
            "safepallas.verification.Report.to_svg",
            "safepallas.raw.Ref.bitcast",
            "safepallas.Ref.at",
        ),
    }
    assert NOTHING_RAISED.keys() <= PUBLIC.keys()


# That a docstring without one of the parts is found out.


def _without(text: str, head: str) -> str:
    """A docstring without the section under one of its heads."""
    return re.sub(rf"^{head}\n((?:    .*\n|\n)+)", "", f"{text}\n", flags=re.M)


class Changed(Public):
    """A public name with another docstring."""

    new: str

    @property
    def text(self) -> str:
        return self.new


def _changed(name: str, text: str) -> list[str]:
    changed = Changed(*PUBLIC[name])
    changed.new = text
    return complaints(changed, PUBLIC)


SIGNAL = PUBLIC["safepallas.signal"].text
GONE = {
    "no docstring": ("", "no docstring"),
    "no sentence": (SIGNAL.replace(".\n", "\n", 1), "its first line is no sentence"),
    "no arguments": (_without(SIGNAL, "Args:"), "nothing on its parameter inc"),
    "an argument less": (SIGNAL.replace("    inc: ", "    by: "), "nothing on its parameter inc"),
    "an argument more": (
        SIGNAL.replace("    inc: ", "    by: "),
        "Args: describes by, which it does not take",
    ),
    "no errors": (_without(SIGNAL, "Raises:"), "no Raises:"),
    "an unknown error": (
        SIGNAL.replace("ScopeEndedError", "ScopeError"),
        "Raises: names ScopeError, which is no public error",
    ),
    "no example": (
        _without(SIGNAL, "Example, in a kernel::"),
        "no example, and no `Example: see ...`",
    ),
    "an example elsewhere": (
        f"{_without(SIGNAL, 'Example, in a kernel::')}\nExample: see `signals`.\n",
        "there is no example of signals",
    ),
    "an example nowhere": (
        f"{_without(SIGNAL, 'Example, in a kernel::')}\nExample: see ``docs/no.md``.\n",
        "there is no docs/no.md",
    ),
    "an example too wide": (
        f"{SIGNAL}\n    sp.signal(ready)  # {'wide ' * 14}",
        "a line of its example has 89 columns",
    ),
    "code by another name": (
        SIGNAL.replace("Example, in a kernel::", "For example::"),
        "code that is not under `Example::` or `Example, in a kernel::`",
    ),
}


@pytest.mark.parametrize("what", GONE)
def test_a_docstring_without_it_is_found_out(what: str) -> None:
    text, complaint = GONE[what]
    assert text != SIGNAL
    assert _changed("safepallas.signal", SIGNAL) == []
    assert complaint in _changed("safepallas.signal", text)


def test_a_function_without_its_result_is_found_out() -> None:
    text = _without(PUBLIC["safepallas.read"].text, "Returns:")
    assert _changed("safepallas.read", text) == ["no Returns:"]


def test_a_record_without_a_field_is_found_out() -> None:
    text = PUBLIC["safepallas.verification.Finding"].text.replace("`schedule`", "the schedule")
    assert _changed("safepallas.verification.Finding", text) == ["nothing on its field schedule"]


def test_a_method_in_no_example_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "safepallas.LocalCopy.start"
    owner = Changed(*PUBLIC["safepallas.LocalCopy"])
    owner.new = PUBLIC["safepallas.LocalCopy"].text.replace(".start(", ".begin(")
    monkeypatch.setitem(PUBLIC, owner.name, owner)
    assert complaints(PUBLIC[name], PUBLIC) == ["no example, and no `Example: see ...`"]


# Examples run.


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    public, example = EXAMPLES[name]
    if not docstring_examples.HAS_TPU_COMPILER and re.search("compile_for|tpu_mesh", example.code):
        pytest.skip("libtpu, the TPU compiler, is not installed")
    assert docstring_examples.left_unused(example.code) == set()
    run = docstring_examples.compile_in_kernel if example.in_kernel else docstring_examples.run
    run(example.code, public)


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
    for public in PUBLIC.values():
        function = public.value.fget if public.is_property else public.value
        if inspect.isfunction(function):
            found[inspect.unwrap(function).__code__] = public.name
        if isinstance(function, type):  # its operators: ``sems[i]``, ``spec @ mesh``
            methods = [value for cls in function.__mro__ for value in vars(cls).values()]
            for method in filter(inspect.isfunction, methods):
                found.setdefault(method.__code__, public.name)
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


def _told(public: Public) -> set[str]:
    """The errors that a docstring names: in its section, and of a class anywhere."""
    anywhere = re.findall(r"`(\w+Error)`", public.text) if isinstance(public.value, type) else []
    return raised(public, PUBLIC) | set(anywhere)


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
    for table, names in (outside, docstring_examples.outside()), (in_kernel, _names_inside()):
        rows = table.splitlines()[1:]
        assert {n for row in rows for n in re.findall(r"`(\w+)`", row.split("|")[1])} == set(names)


def _names_inside() -> tuple[str, ...]:
    return docstring_examples.INSIDE
