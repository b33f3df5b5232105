"""The public names of safepallas, the parts of their docstrings, and what such a docstring needs.

That its first line is a sentence and its sections are well formed, ruff sees.
"""

import builtins
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from types import FunctionType
from typing import Any, NamedTuple

import safepallas as sp
import safepallas.errors
import safepallas.raw
import safepallas.testing
import safepallas.verification

ROOT = Path(__file__).resolve().parents[2]
# In the order in which a name that two of them have is looked up.
MODULES = (sp.errors, sp, sp.testing, sp.verification, sp.raw)

# What cannot refuse anything, and why. All else has a section `Raises:`.
NOTHING_RAISED = {
    "safepallas.InFlight.then": "an array or a tree of any kind is right",
    "safepallas.testing.Guard": "a record",
    "safepallas.verification.Finding": "a record",
    "safepallas.verification.Finding.text": "made from what it holds",
    "safepallas.verification.Note": "a record",
    "safepallas.verification.Note.text": "made from what it holds",
    "safepallas.SemaphoreArray.shape": "known from the request",
    "safepallas.SemaphoreArray.at": "what is indexed raises: the class says what",
    "safepallas.Spec.shape": "known from the request",
}
# Members of refs are Pallas's own, and so are their errors.
OF_REFS = ("safepallas.Ref.", "safepallas.raw.Ref.")
WIDTH = 84  # what a page shows of a line of code


class Example(NamedTuple):
    in_kernel: bool
    code: str


class Public(NamedTuple):
    """A public function, class, method or property."""

    name: str
    value: Any
    holder: str = ""  # the class of a member
    text: str = ""  # the docstring

    @property
    def is_error(self) -> bool:
        return isinstance(self.value, type) and issubclass(self.value, (Exception, Warning))

    @property
    def parameters(self) -> list[str]:
        if not isinstance(self.value, FunctionType):
            return []  # classes here are made by others than their reader
        names = list(inspect.signature(self.value).parameters)
        return names[1:] if self.holder else names

    @property
    def examples(self) -> list[Example]:
        return [Example(bool(m[1]), dedent(m[2]).strip()) for m in EXAMPLE.finditer(self.text)]

    def section(self, name: str) -> str:
        """The indented lines under ``name:``, or nothing."""
        found = re.search(rf"^{name}:\n((?:    .*\n|\n)+)", self.text, re.M)
        return found[1] if found else ""

    def entries(self, name: str) -> list[str]:
        """The names before the colons of a section: ``a, b: what they are``."""
        heads = re.findall(r"^    (\w[\w., ]*):(?: |$)", self.section(name), re.M)
        return [entry.strip() for head in heads for entry in head.split(",")]


EXAMPLE = re.compile(r"^Example(, in a kernel)?::\n\n((?:    .*\n|\n)+)", re.M)
SEE = re.compile(r"^Example: see (?:`([\w.]+)`|``([\w./-]+)``)\.$", re.M)


def public(name: str, value: Any, holder: str = "") -> Public:
    # Its own docstring, not that of a base.
    return Public(
        name, value, holder, inspect.cleandoc(getattr(value, "__doc__", None) or "") + "\n"
    )


def is_ours(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).partition(".")[0] == "safepallas"


def top_level() -> list[Public]:
    """The functions and classes of the public modules, each under the name that readers import."""
    found: dict[int, Public] = {}
    for module in MODULES:
        for key in getattr(module, "__all__", None) or list(vars(module)):
            value = vars(module)[key]
            if not key.startswith("_") and not inspect.ismodule(value) and is_ours(value):
                found.setdefault(id(value), public(f"{module.__name__}.{key}", value))
    return list(found.values())


def members(cls: Public) -> Iterator[Public]:
    """Methods and properties, those of bases of ours too."""
    seen = set()
    for base in filter(is_ours, cls.value.__mro__):
        for key, value in vars(base).items():
            if not key.startswith("_") and key not in seen:
                seen.add(key)
                if isinstance(value, (FunctionType, property)):
                    yield public(f"{cls.name}.{key}", value, cls.name)


def everything() -> dict[str, Public]:
    found = {}
    for one in top_level():
        found[one.name] = one
        if isinstance(one.value, type) and not one.is_error:
            found |= {member.name: member for member in members(one)}
    return found


# What is wrong with a docstring, among all that are known.


def complaints(one: Public, known: dict[str, Public]) -> list[str]:
    if not one.text.strip():
        return ["no docstring"]
    rules = (about_arguments, about_results, about_errors, about_examples)
    return [wrong for rule in rules for wrong in rule(one, known)]


def about_arguments(one: Public, known: dict[str, Public]) -> Iterator[str]:
    in_prose = " ".join(re.findall(r"`+([^`]+)`", one.text)) if one.holder else ""
    for name in one.parameters:
        if name not in one.entries("Args") and not re.search(rf"\b{name}\b", in_prose):
            yield f"nothing on its parameter {name}"
    for name in one.entries("Args"):
        if name not in one.parameters:
            yield f"Args: describes {name}, which it does not take"
    if isinstance(one.value, type) and not one.is_error:
        for base in filter(is_ours, one.value.__mro__):
            for name in getattr(base, "__slots__", ()):
                if name[0] != "_" and not re.search(rf"`{name}`|^    {name}: ", one.text, re.M):
                    yield f"nothing on its field {name}"


def about_results(one: Public, known: dict[str, Public]) -> Iterator[str]:
    results = [one.section(name) for name in ("Returns", "Yields")]
    is_function = isinstance(one.value, FunctionType) and not one.holder
    annotation = inspect.signature(one.value).return_annotation if is_function else None
    if annotation not in (None, "None") and not any(results):
        yield "no Returns:"
    # Sphinx would take what stands before a colon for a type.
    if any(":" in re.sub(r"`[^`]*`", "", text.partition("\n")[0]) for text in results):
        yield "a colon in the first line of Returns:"


def about_errors(one: Public, known: dict[str, Public]) -> Iterator[str]:
    names = one.entries("Raises")
    nothing = one.name in NOTHING_RAISED or one.name.startswith(OF_REFS)
    if nothing and names:
        yield "it raises, and NOTHING_RAISED says that it does not"
    if not (nothing or names or isinstance(one.value, type)):
        yield "no Raises:"
    for name in [*names, *one.entries("Warns")]:
        cls = getattr(sp.errors, name, None) or getattr(builtins, name, None)
        if not (isinstance(cls, type) and issubclass(cls, Exception)):
            yield f"Raises: names {name}, which is no public error"


def about_examples(one: Public, known: dict[str, Public]) -> Iterator[str]:
    if len(one.examples) != one.text.count("::\n\n    "):
        yield "code that is not under `Example::` or `Example, in a kernel::`"
    for line in "\n".join(example.code for example in one.examples).splitlines():
        if len(line) > WIDTH:
            yield f"a line of its example has {len(line)} columns"
    if one.examples or (one.is_error and (ROOT / f"docs/errors/{one.value.code}.md").exists()):
        return
    if see := SEE.search(one.text):
        if see[2] and not (ROOT / see[2]).exists():
            yield f"there is no {see[2]}"
        elif see[1] and not shown(see[1], known):
            yield f"there is no example of {see[1]}"
        return
    if one.holder:
        holder, member = known[one.holder], one.name.rpartition(".")[2]
        see = SEE.search(holder.text)
        codes = [example.code for example in holder.examples] + shown(see and see[1], known)
        if any(re.search(rf"\.{member}\b", code) for code in codes):
            return
    yield "no example, and no `Example: see ...`"


def shown(name: str | None, known: dict[str, Public]) -> list[str]:
    """The examples of what is called so."""
    found = [one for one in known.values() if name and one.name.endswith(f".{name}")]
    return [example.code for one in found for example in one.examples]


def raised(one: Public, known: dict[str, Public], below: tuple[str, ...] = ()) -> set[str]:
    """The names of the errors that ``Raises:`` tells of, those of "as `signal`" too."""
    found = set(one.entries("Raises"))
    for name in re.findall(
        r"`([\w.]+)`", " ".join(re.findall(r": as (.*)", one.section("Raises")))
    ):
        other = known.get(f"safepallas.{name}")
        if other is not None and other.name not in below:
            found |= raised(other, known, (*below, one.name))
    return found
