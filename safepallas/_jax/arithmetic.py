"""How an equation is computed from known numbers, with JAX's own semantics.

The common operations on integers are done here, on Python's; those on small arrays of them in
`array_arithmetic`, by NumPy; every other is JAX's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeGuard

import jax
import numpy as np
from jax.extend.core import JaxprEqn

from safepallas._jax.array_arithmetic import Numbers
from safepallas._jax.jaxprs import dtype_of, shape_of

Rule: TypeAlias = Callable[..., Any]


def is_integer(dtype: object) -> TypeGuard[np.dtype]:
    """Whether a dtype is one of integers or booleans."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iub"


def gives_numbers(equation: JaxprEqn, most: int) -> bool:
    """Whether a result is a number, or an array of not more of them than that."""
    for var in equation.outvars:
        dtype, size = dtype_of(var), 1
        if not isinstance(dtype, np.dtype) or dtype.kind not in "iubf":
            continue
        for length in shape_of(var):
            size *= length if type(length) is int else most + 1  # of a size that is traced
        if size <= most:
            return True
    return False


def selects(equation: JaxprEqn) -> bool:
    """Whether it gives one of its operands, whatever the others are: the first tells which."""
    return equation.primitive.name == "select_n"


# By Python


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


def _select(which: int, *cases: int) -> int:
    return cases[int(which)]


def _same(a: int) -> int:
    return a


_ARITHMETIC: dict[str, Rule] = {
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
_BY_DIVISOR: dict[str, Rule] = {"div": _divide, "rem": _remainder}
_COMPARISONS: dict[str, Rule] = {
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


def _wrapped(function: Rule, dtype: np.dtype) -> Rule:
    """With the result as that dtype holds it: what is above wraps around."""
    mask = (1 << dtype.itemsize * 8) - 1
    half = (mask + 1) // 2 if dtype.kind == "i" else 0

    def wrap(*operands: int) -> int:
        result: int = function(*operands)
        if -half <= result <= mask - half:
            return result
        return ((result + half) & mask) - half

    return wrap


def _unless_zero(function: Rule) -> Rule:
    def divide(a: int, b: int) -> int | None:
        return function(a, b) if b else None

    return divide


def scalar_rule(equation: JaxprEqn) -> Rule | None:
    """How to compute an equation from Python numbers; None where only JAX knows.

    The rule may return None: then JAX must be asked after all.
    """
    if len(equation.outvars) != 1:
        return None
    (out,) = equation.outvars
    for atom in (*equation.invars, out):
        if getattr(atom.aval, "shape", None) != () or not is_integer(dtype_of(atom)):
            return None
    dtype = dtype_of(out)
    return _scalar_rule(equation, dtype) if is_integer(dtype) else None


def _scalar_rule(equation: JaxprEqn, dtype: np.dtype) -> Rule | None:
    name, operands = equation.primitive.name, equation.invars
    if name in _SAME and len(operands) == 1 and dtype_of(operands[0]) == dtype:
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


# By JAX


def jax_rule(equation: JaxprEqn) -> Callable[[Numbers], Sequence[jax.Array]]:
    """How JAX computes it; the rule raises what JAX raises where it needs more than numbers."""
    dtypes: list[Any] = [dtype_of(atom) for atom in equation.invars]
    primitive, params = equation.primitive, equation.params

    def compute(operands: Numbers) -> Sequence[jax.Array]:
        with jax.ensure_compile_time_eval():
            arrays = [
                jax.numpy.asarray(x, dtype=dtype) for x, dtype in zip(operands, dtypes, strict=True)
            ]
            results = primitive.bind(*arrays, **params)
        return results if primitive.multiple_results else [results]

    return compute
