"""What is known of a value: a number, a small array of them, or nothing.

Integer and boolean scalars are Python numbers, small arrays are NumPy's, and all else is `UNKNOWN`:
what is computed from that is unknown as well, and never read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from jax.extend.core import JaxprEqn

from safepallas._jax.arithmetic import jax_rule
from safepallas._jax.array_arithmetic import array_rule

# Arrays above this size are data: no index is ever computed from them all.
MOST_ELEMENTS = 1 << 14
# Arguments of the function itself may be larger: tables, of which a kernel reads a part.
MOST_OF_ARGUMENT = 1 << 20
_MOST_CACHED = 10_000


class Unknown:
    """A value that is not known: `UNKNOWN`, or an array that is told from others by its mark."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


class Partial(Unknown):
    """An array of which some elements are known: what is picked from it may be."""

    __slots__ = ("is_known", "numbers")

    def __init__(self, numbers: np.ndarray, is_known: np.ndarray) -> None:
        self.numbers = numbers
        self.is_known = is_known


def partly(numbers: np.ndarray, is_known: np.ndarray) -> Known:
    """What is known of an array: all, some elements, or nothing."""
    if np.all(is_known):
        return known(np.array(numbers))
    if not np.any(is_known):
        return UNKNOWN
    return Partial(np.array(numbers), np.array(is_known))


Number: TypeAlias = int | np.floating | np.ndarray
Known: TypeAlias = Number | Unknown


def known(value: Any, limit: int = MOST_ELEMENTS) -> Known:
    """A value from outside, as it is held here."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return value if isinstance(value, int) else known(np.asarray(value), limit)
    if not isinstance(dtype, np.dtype) or dtype.kind not in "iubf" or np.size(value) > limit:
        return UNKNOWN
    array = np.asarray(value)
    if array.ndim:
        return array
    number: Known = array.item() if dtype.kind in "iub" else array[()]
    return number


# What only moves elements: which of the results are known goes the same way.
_MOVES = frozenset({"slice", "dynamic_slice", "squeeze", "reshape", "transpose", "rev"})


def moves_of(equation: JaxprEqn) -> Callable[[Partial, Sequence[Known]], Known] | None:
    """How an equation moves the elements of its first operand; None if it does anything else."""
    if equation.primitive.name not in _MOVES:
        return None
    rule = rule_of(equation)

    def move(first: Partial, rest: Sequence[Known]) -> Known:
        numbers = [one for one in rest if not isinstance(one, Unknown)]
        if len(numbers) < len(rest):
            return UNKNOWN
        (moved,) = rule([first.numbers, *numbers])
        (is_known,) = rule([first.is_known.astype(first.numbers.dtype), *numbers])
        if isinstance(moved, Unknown) or isinstance(is_known, Unknown):
            return UNKNOWN
        return partly(np.asarray(moved, first.numbers.dtype), np.asarray(is_known) != 0)

    return move


def _key(value: Number) -> object:
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else (value,)


def rule_of(equation: JaxprEqn) -> Callable[[Sequence[Number]], Sequence[Known]]:
    """How to compute an equation on numbers and small arrays, once for the same ones."""
    by_numpy, by_jax = array_rule(equation), jax_rule(equation)
    cache: dict[object, Sequence[Known]] = {}
    count = len(equation.outvars)

    def compute(operands: Sequence[Number]) -> Sequence[Known]:
        result = by_numpy(operands) if by_numpy is not None else None
        if result is not None:
            return [known(result)]
        key = tuple([_key(x) for x in operands])
        if key in cache:
            return cache[key]
        try:
            found = [known(x) for x in by_jax(operands)]
        except Exception:  # it needs more than numbers: a collective, a kernel's own state
            found = [UNKNOWN] * count
        if len(cache) > _MOST_CACHED:
            cache.clear()
        cache[key] = found
        return found

    return compute
