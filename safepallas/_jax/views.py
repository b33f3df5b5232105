"""Views of refs as an equation has them: which of its operands, and the steps from there."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from jax.experimental import pallas as pl
from jax.extend.core import JaxprEqn

from safepallas._jax import compat, jaxprs


class Slot:
    """An operand of an equation, by its place among them."""

    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at


Number: TypeAlias = int | Slot


class Span(NamedTuple):
    """A slice of one dimension."""

    start: Number
    size: Number
    stride: int


class Index(NamedTuple):
    """A number, a span or a view of a ref of indices for each dimension of `shape`."""

    parts: tuple[Number | Span | View, ...]
    shape: tuple[int, ...]
    gathered: tuple[Number, ...]  # the shape of the arrays of indices, if there are any


class Reshape(NamedTuple):
    shape: tuple[int, ...]


class Bitcast(NamedTuple):
    dtype: object


class Transpose(NamedTuple):
    order: tuple[int, ...]


class OtherStep(NamedTuple):
    """A step that is not understood."""

    name: str


ViewStep: TypeAlias = Index | Reshape | Bitcast | Transpose | OtherStep


class View(NamedTuple):
    """A ref, and the steps from it."""

    ref: Slot
    steps: tuple[ViewStep, ...]
    # Of `pl.select_ref`: it is one of these, by a number.
    choices: tuple[View, ...] = ()
    which: Number = 0


def slots_of(equation: JaxprEqn) -> list[Slot]:
    return [Slot(i) for i in range(len(equation.invars))]


def view_of(ref: object, transforms: Sequence[object] = ()) -> View:
    """The view of a slot, or of what JAX makes of it and transforms.

    Raises:
        TypeError: it is a view of something else.
    """
    base, steps = compat.taken_apart(ref)
    if isinstance(base, tuple) and len(steps) == 1 and not transforms:
        chosen = getattr(steps[0], "idx", None)
        if isinstance(chosen, (Slot, int)):
            choices = tuple(view_of(one) for one in base)
            return View(choices[0].ref, (), choices, chosen)
    if not isinstance(base, Slot):
        raise TypeError(f"expected a view of an operand, but got one of {base!r}")
    return View(base, tuple(_step(t) for t in (*steps, *transforms)))


def view_if_any(ref: object) -> View | None:
    return None if ref is None else view_of(ref)


def _step(transform: Any) -> ViewStep:
    if compat.is_indexing(transform):
        return _index(transform)
    name = type(transform).__name__
    if name == "ReshapeTransform":
        return Reshape(tuple(transform.shape))
    if name == "BitcastTransform":
        return Bitcast(transform.dtype)
    if name == "TransposeTransform":
        return Transpose(tuple(transform.permutation))
    return OtherStep(name)


def _index(transform: Any) -> Index | OtherStep:
    parts: list[Number | Span | View] = []
    for part in transform.indices:
        if isinstance(part, pl.Slice):
            start, size = cast(Number, part.start), cast(Number, part.size)
            parts.append(Span(start, size, part.stride))
        elif isinstance(part, (Slot, int)):
            parts.append(part)
        else:  # a view of a ref of indices, perhaps with one of them to be ignored
            base, _ = compat.taken_apart(getattr(part, "values", part))
            if not isinstance(base, Slot):
                return OtherStep("an index")
            parts.append(view_of(getattr(part, "values", part)))
    return Index(tuple(parts), tuple(transform.shape), tuple(transform.int_indexer_shape))


def indices_of(equation: JaxprEqn, view: View) -> list[View]:
    """The refs of indices that a view gathers or scatters by."""
    found: list[View] = [index for one in view.choices for index in indices_of(equation, one)]
    for step in view.steps:
        for part in step.parts if isinstance(step, Index) else ():
            if isinstance(part, View):
                found.append(part)
            elif isinstance(part, Slot) and jaxprs.is_ref(equation.invars[part.at]):
                found.append(View(part, ()))
    return found


def slots_in(view: View) -> list[Slot]:
    """The operands by which a view indexes."""
    found: list[Slot] = []
    for step in view.steps:
        if isinstance(step, Index):
            for part in (*step.parts, *step.gathered):
                ends = (part.start, part.size) if isinstance(part, Span) else (part,)
                found += [end for end in ends if isinstance(end, Slot)]
    return found


@functools.cache  # asked for with every view
def bits_of(dtype: Any) -> int:
    """The bits of one element of an array."""
    name = str(dtype)
    digits = "".join(c for c in name.partition("_")[0] if c.isdigit())
    if name.startswith(("int", "uint")) and digits in ("2", "4"):
        return int(digits)
    if name.startswith(("float4", "float6")):
        return int(name[5])
    return int(dtype.itemsize) * 8
