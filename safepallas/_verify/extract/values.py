"""What is known of a value, and how one is computed from others, with JAX's own semantics.

Integer and boolean scalars are Python numbers, small arrays are NumPy's, and all else is `UNKNOWN`:
what is computed from that is unknown as well, and never looked at. The common operations on
integers are done here; every other is JAX's, on the numbers, once for the same ones.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from safepallas._verify.extract.array_values import array_rule

# Arrays above this size are data: no index is ever computed from them all.
MOST_ELEMENTS = 1 << 14


class Unknown:
    """A value that is not known. There is one: `UNKNOWN`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()

Fast: TypeAlias = Callable[..., Any]


def is_whole(dtype: Any) -> bool:
    """Whether a dtype is one of integers or booleans."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iub"


def known(value: Any, limit: int = MOST_ELEMENTS) -> Any:
    """A value from outside, as it is held here."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return value if isinstance(value, (bool, int)) else known(np.asarray(value), limit)
    if not isinstance(dtype, np.dtype) or dtype.kind not in "iubf" or np.size(value) > limit:
        return UNKNOWN
    array = np.asarray(value)
    if array.ndim == 0:
        return array.item() if dtype.kind in "iub" else array[()]
    return array


def _divide(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _remainder(a: int, b: int) -> int:
    r = abs(a) % abs(b)
    return -r if a < 0 else r


def _sign(a: int) -> int:
    return (a > 0) - (a < 0)


def _clamp(low: int, a: int, high: int) -> int:
    return min(max(a, low), high)


def _select(which: int, *cases: Any) -> Any:
    return cases[int(which)]


def _same(a: Any) -> Any:
    return a


_ARITHMETIC: dict[str, Fast] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "max": max,
    "min": min,
    "neg": operator.neg,
    "abs": abs,
    "sign": _sign,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "clamp": _clamp,
}
_BY_DIVISOR: dict[str, Fast] = {"div": _divide, "rem": _remainder}
_COMPARISONS: dict[str, Fast] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
# Those that hand a scalar on as it is.
_SAME = {
    "broadcast_in_dim",
    "copy",
    "copy_p",
    "multiple_of",
    "pvary",
    "pcast",
    "reshape",
    "squeeze",
    "stop_gradient",
}


def _wrapped(function: Fast, dtype: np.dtype[Any]) -> Fast:
    """With the result as that dtype holds it: what is above wraps around."""
    mask = (1 << dtype.itemsize * 8) - 1
    half = (mask + 1) // 2 if dtype.kind == "i" else 0

    def wrap(*operands: Any) -> Any:
        result = function(*operands)
        if -half <= result <= mask - half:
            return result
        return ((result + half) & mask) - half

    return wrap


def _unless_zero(function: Fast) -> Fast:
    def divide(a: int, b: int) -> int | None:
        return function(a, b) if b else None

    return divide


def fast_rule(equation: Any) -> Fast | None:
    """How to compute an equation from Python numbers; None where only JAX knows.

    The rule may return None: then JAX must be asked after all.
    """
    name = equation.primitive.name
    avals = [v.aval for v in equation.invars]
    outs = [v.aval for v in equation.outvars]
    if len(outs) != 1 or getattr(outs[0], "shape", None) != ():
        return None
    if not all(getattr(a, "shape", None) == () and is_whole(a.dtype) for a in avals):
        return None
    dtype = outs[0].dtype
    if not is_whole(dtype):
        return None
    if name in _SAME and len(avals) == 1 and avals[0].dtype == dtype:
        return _same
    if name in _COMPARISONS:
        return _COMPARISONS[name]
    if name == "select_n":
        return _select
    if name == "not":
        return operator.not_ if dtype.kind == "b" else _wrapped(operator.invert, dtype)
    if name == "convert_element_type":
        return bool if dtype.kind == "b" else _wrapped(int, dtype)
    if name in _ARITHMETIC:
        if dtype.kind == "b":  # no sum of booleans: that would be an int
            return _ARITHMETIC[name] if name in ("and", "or", "xor", "max", "min") else None
        return _wrapped(_ARITHMETIC[name], dtype)
    if name in _BY_DIVISOR and dtype.kind in "iu":
        return _unless_zero(_wrapped(_BY_DIVISOR[name], dtype))
    return None


def is_worth_knowing(aval: Any) -> bool:
    """Whether a result may be computed at all: small, and a number."""
    dtype, shape = getattr(aval, "dtype", None), getattr(aval, "shape", None)
    if not isinstance(dtype, np.dtype) or dtype.kind not in "iubf" or shape is None:
        return False
    size = 1
    for length in shape:
        if not isinstance(length, int):
            return False
        size *= length
    return size <= MOST_ELEMENTS


def _key(value: Any) -> Any:
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else (value,)


def slow_rule(equation: Any) -> Callable[[Sequence[Any]], list[Any]]:
    """How to compute an equation by JAX, on numbers and small arrays."""
    avals = [v.aval for v in equation.invars]
    cache: dict[Any, list[Any]] = {}
    count = len(equation.outvars)
    by_numpy = array_rule(equation)

    def compute(operands: Sequence[Any]) -> list[Any]:
        result = by_numpy(operands) if by_numpy is not None else None
        if result is not None:
            return [known(result)]
        key = tuple(_key(x) for x in operands)
        if key in cache:
            return cache[key]
        try:
            with jax.ensure_compile_time_eval():
                arrays = [
                    jax.numpy.asarray(x, dtype=a.dtype)
                    for x, a in zip(operands, avals, strict=True)
                ]
                results = equation.primitive.bind(*arrays, **equation.params)
            if not equation.primitive.multiple_results:
                results = [results]
            found = [known(x) for x in results]
        except Exception:  # it needs more than numbers: a collective, a kernel's own state
            found = [UNKNOWN] * count
        if len(cache) > 10_000:
            cache.clear()
        cache[key] = found
        return found

    return compute
