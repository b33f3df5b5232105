"""What a docstring must have, and which names there are: all that safepallas makes public."""

import builtins
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from types import FunctionType
from typing import Any, NamedTuple

import safepallas as sp
import safepallas.raw
import safepallas.testing
import safepallas.verification

ROOT = Path(__file__).resolve().parents[2]
MODULES = (sp, sp.testing, sp.verify, sp.raw)

# What cannot refuse anything, and why. All else has a section `Raises:`.
NOTHING_RAISED = {
    "safepallas.InFlight.then": "an array or a tree of any kind is right",
    "safepallas.testing.Guard": "a record",
    "safepallas.verification.Report": "a record",
    "safepallas.verification.Finding": "a record",
    "safepallas.SemaphoreArray.shape": "known from the request",
    "safepallas.SemaphoreArray.at": "what is indexed raises: the class says what",
    "safepallas.Spec.shape": "known from the request",
}
# Refs are Pallas's own objects; these classes name what they have.
_OF_REFS = ("at", "shape", "dtype")
_OF_RAW_REFS = (
    *("at", "shape", "dtype", "size", "ndim", "T"),
    *("bitcast", "reshape", "transpose", "get", "set", "swap", "addupdate"),
)
for _ref, _names in ("safepallas.Ref", _OF_REFS), ("safepallas.raw.Ref", _OF_RAW_REFS):
    NOTHING_RAISED |= {f"{_ref}.{name}": "Pallas's own, and its errors" for name in _names}


class Public(NamedTuple):
    """A public function, class, method, property or field."""

    name: str
    value: Any
    owner: type | None = None

    @property
    def text(self) -> str:
        # Its own, not that of a base.
        return inspect.cleandoc(getattr(self.value, "__doc__", None) or "")

    @property
    def is_error(self) -> bool:
        return isinstance(self.value, type) and issubclass(self.value, (Exception, Warning))

    @property
    def is_property(self) -> bool:
        return isinstance(self.value, property)

    @property
    def parameters(self) -> list[str]:
        if not isinstance(self.value, FunctionType):
            return []  # classes here are made by others than their reader
        names = list(inspect.signature(self.value).parameters)
        return names[1:] if self.owner else names


def _is_ours(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).partition(".")[0] == "safepallas"


def _members(name: str, cls: type) -> Iterator[Public]:
    """Methods and properties, those of bases of ours too."""
    for base in cls.__mro__:
        for key, value in vars(base).items() if _is_ours(base) else ():
            seen = getattr(cls, key, None) is not getattr(base, key, None)
            if key.startswith("_") or seen or not isinstance(value, (FunctionType, property)):
                continue
            yield Public(f"{name}.{key}", value, cls)


def fields(cls: type) -> list[str]:
    """Slots and fields of a record that readers may look at."""
    own = [key for base in cls.__mro__ if _is_ours(base) for key in getattr(base, "__slots__", ())]
    return sorted({key for key in own if not key.startswith("_")})


def top_level() -> Iterator[Public]:
    """The functions and classes of the public modules, each under the name that readers import."""
    for module in MODULES:
        for key in getattr(module, "__all__", None) or list(vars(module)):
            value = vars(module)[key]
            if key.startswith("_") or inspect.ismodule(value) or not _is_ours(value):
                continue
            yield Public(f"{module.__name__}.{key}", value)


def everything() -> list[Public]:
    found = []
    for public in top_level():
        found.append(public)
        if isinstance(public.value, type) and not public.is_error:
            found += _members(public.name, public.value)
    return found


# The parts of a docstring.

HEAD = re.compile(r"^(Args|Returns|Yields|Raises|Warns|Attributes):\n((?:    .*\n|\n)+)", re.M)
EXAMPLE = re.compile(r"^Example(, in a kernel)?::\n\n((?:    .*\n|\n)+)", re.M)
WIDTH = 84  # what a page shows of a line of code
BLOCK = re.compile(r"::\n\n    ")
SEE = re.compile(r"^Example: see (`([\w.]+)`|``([\w./-]+)``)\.$", re.M)


def section(text: str, name: str) -> str:
    """The indented lines under ``name:``, or nothing."""
    return next((m[2] for m in HEAD.finditer(f"{text}\n") if m[1] == name), "")


def entries(body: str) -> list[str]:
    """The names before the colons of a section: ``a, b: what they are``."""
    heads = re.findall(r"^    (\w[\w., ]*):(?: |$)", body, re.M)
    return [name.strip() for head in heads for name in head.split(",")]


class Example(NamedTuple):
    in_kernel: bool
    code: str


def examples(text: str) -> list[Example]:
    return [Example(bool(m[1]), dedent(m[2]).strip()) for m in EXAMPLE.finditer(f"{text}\n")]


# The rules: each yields what is wrong.


def about_text(public: Public, known: dict[str, Public]) -> Iterator[str]:
    first = public.text.partition("\n")[0]
    if not first.endswith((".", "?")):
        yield "its first line is no sentence"
    for name in ("Returns", "Yields"):
        # Sphinx would take what stands before a colon for a type.
        line = section(public.text, name).partition("\n")[0]
        if ":" in re.sub(r"`[^`]*`", "", line):
            yield f"a colon in the first line of {name}:"
    if len(examples(public.text)) != len(BLOCK.findall(public.text)):
        yield "code that is not under `Example::` or `Example, in a kernel::`"
    lines = [line for example in examples(public.text) for line in example.code.splitlines()]
    for line in lines:
        if len(line) > WIDTH:
            yield f"a line of its example has {len(line)} columns"


def about_arguments(public: Public, known: dict[str, Public]) -> Iterator[str]:
    described = entries(section(public.text, "Args"))
    in_prose = " ".join(re.findall(r"`+([^`]+)`", public.text))
    for name in public.parameters:
        said = public.owner is not None and re.search(rf"\b{name}\b", in_prose)
        if name not in described and not said:
            yield f"nothing on its parameter {name}"
    for name in described:
        if name not in public.parameters:
            yield f"Args: describes {name}, which it does not take"
    if isinstance(public.value, type) and not public.is_error:
        for name in fields(public.value):
            if not re.search(rf"`{name}`|^    {name}: ", public.text, re.M):
                yield f"nothing on its field {name}"


def about_results(public: Public, known: dict[str, Public]) -> Iterator[str]:
    if isinstance(public.value, FunctionType) and public.owner is None:
        result = inspect.signature(public.value).return_annotation
        if result not in (None, "None") and not re.search(
            r"^(Returns|Yields):$", public.text, re.M
        ):
            yield "no Returns:"


def raised(public: Public, known: dict[str, Public], below: tuple[str, ...] = ()) -> set[str]:
    """The names of the errors that ``Raises:`` tells of, those of "as `signal`" too."""
    body = section(public.text, "Raises")
    found = set(entries(body))
    for name in re.findall(r"`([\w.]+)`", " ".join(re.findall(r": as (.*)", body))):
        other = known.get(f"safepallas.{name}")
        if other is not None and other.name not in below:
            found |= raised(other, known, (*below, public.name))
    return found


def about_errors(public: Public, known: dict[str, Public]) -> Iterator[str]:
    names = entries(section(public.text, "Raises"))
    if public.is_error or (isinstance(public.value, type) and not names):
        return
    if public.name in NOTHING_RAISED:
        if names:
            yield "it raises, and NOTHING_RAISED says that it does not"
    elif not names:
        yield "no Raises:"
    for name in [*names, *entries(section(public.text, "Warns"))]:
        cls = getattr(sp, name, None) or getattr(builtins, name, None)
        if not (isinstance(cls, type) and issubclass(cls, Exception)):
            yield f"Raises: names {name}, which is no public error"


def about_examples(public: Public, known: dict[str, Public]) -> Iterator[str]:
    if public.is_error:
        page = f"docs/errors/{public.value.code}.md"
        if not examples(public.text) and not (ROOT / page).exists():
            yield f"no example, and no page {page}"
        return
    if examples(public.text):
        return
    see = SEE.search(public.text)
    if see is not None:
        if see[3] and not (ROOT / see[3]).exists():
            yield f"there is no {see[3]}"
        elif see[2] and not any(examples(other.text) for other in _called(see[2], known)):
            yield f"there is no example of {see[2]}"
        return
    if public.owner is not None:
        owner = known[public.name.rpartition(".")[0]]
        places = [owner, *_called((SEE.search(owner.text) or [""] * 3)[2], known)]
        member = public.name.rpartition(".")[2]
        codes = [example.code for place in places for example in examples(place.text)]
        if any(re.search(rf"\.{member}\b", code) for code in codes):
            return
    yield "no example, and no `Example: see ...`"


def _called(name: str, known: dict[str, Public]) -> list[Public]:
    return [p for p in known.values() if name and p.name.endswith(f".{name}")]


RULES: list[Callable[[Public, dict[str, Public]], Iterator[str]]] = [
    about_text,
    about_arguments,
    about_results,
    about_errors,
    about_examples,
]


def complaints(public: Public, known: dict[str, Public]) -> list[str]:
    """All that a docstring lacks."""
    if not public.text:
        return ["no docstring"]
    return [wrong for rule in RULES for wrong in rule(public, known)]
