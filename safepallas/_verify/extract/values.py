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
