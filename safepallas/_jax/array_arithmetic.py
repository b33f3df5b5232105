"""Small arrays of integers by NumPy, for the operations where it has JAX's semantics.

JAX would compile each of them for each shape first, which takes longer than all the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
from jax.extend.core import JaxprEqn

from safepallas._jax.jaxprs import dtype_of, shape_of

Array: TypeAlias = np.ndarray
Function: TypeAlias = Callable[..., Array | None]
Numbers: TypeAlias = Sequence[int | float | np.generic | Array]


def _remainder(a: Array, b: Array) -> Array | None:
    return None if np.any(b == 0) else np.fmod(a, b)


def _divide(a: Array, b: Array) -> Array | None:
    return None if np.any(b == 0) else (a - np.fmod(a, b)) // b


def _select(which: Array, *cases: Array) -> Array:
    result = cases[0]
    for i, case in enumerate(cases[1:], 1):
        result = np.where(which.astype(np.int32) == i, case, result)
    return result


_ELEMENTWISE: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "sign": np.sign,
    "abs": np.abs,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "div": _divide,
    "rem": _remainder,
    "select_n": _select,
}
_NO_BOOLEANS = {"add", "sub", "mul", "neg", "sign", "abs", "div", "rem"}


def _broadcast(a: Array, *, shape: Sequence[int], dims: Sequence[int]) -> Array:
    lengths = [1] * len(shape)
    for length, dim in zip(a.shape, dims, strict=True):
        lengths[dim] = length
    return np.broadcast_to(a.reshape(lengths), shape)


def _iota(*, shape: Sequence[int], dim: int) -> Array:
    lengths = [1] * len(shape)
    lengths[dim] = shape[dim]
    return np.broadcast_to(np.arange(shape[dim]).reshape(lengths), shape)


def _reshape(a: Array, *, shape: Sequence[int]) -> Array:
    return a.reshape(shape)


def _convert(a: Array, *, dtype: np.dtype) -> Array:
    return a != 0 if dtype.kind == "b" else a  # to fewer bits: the lowest


def _bitcast(a: Array, *, dtype: np.dtype, dim: int) -> Array:
    """Of TPUs: elements side by side along `dim` are packed into one, the first the lowest bits."""
    packed = np.ascontiguousarray(np.moveaxis(a, dim, -1)).view(dtype)
    return np.moveaxis(packed, -1, dim)


def _slice(
    a: Array, *, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None
) -> Array:
    steps = strides or [1] * len(begin)
    return a[tuple(slice(*part) for part in zip(begin, end, steps, strict=True))]


def _concatenate(*arrays: Array, dim: int) -> Array:
    return np.concatenate(arrays, dim)


def _function(
    equation: JaxprEqn, dtypes: Sequence[np.dtype], shape: tuple[int, ...], dtype: np.dtype
) -> Function | None:
    name, params = equation.primitive.name, equation.params
    if name in _ELEMENTWISE:
        if name in _NO_BOOLEANS and any(operand.kind == "b" for operand in dtypes):
            return None
        return _ELEMENTWISE[name]
    if name == "iota" and not dtypes:
        return partial(_iota, shape=shape, dim=params["dimension"])
    if name == "concatenate":
        return partial(_concatenate, dim=params["dimension"])
    if len(dtypes) != 1:  # shapes that are operands
        return None
    if name == "broadcast_in_dim":
        return partial(_broadcast, shape=shape, dims=params["broadcast_dimensions"])
    if name == "slice":
        begin, end = params["start_indices"], params["limit_indices"]
        return partial(_slice, begin=begin, end=end, strides=params["strides"])
    if name in ("reshape", "squeeze"):
        return partial(_reshape, shape=shape)
    if name == "bitcast" and "b" not in (dtypes[0].kind, dtype.kind):
        return partial(_bitcast, dtype=dtype, dim=params.get("dim", -2))
    if name == "convert_element_type":
        return partial(_convert, dtype=dtype)
    return None


def array_rule(equation: JaxprEqn) -> Callable[[Numbers], Array | None] | None:
    """How NumPy computes an equation; None where only JAX knows. The rule may return None too."""
    if len(equation.outvars) != 1:
        return None
    (out,) = equation.outvars
    found = [dtype_of(atom) for atom in (*equation.invars, out)]
    dtypes = [dtype for dtype in found if isinstance(dtype, np.dtype) and dtype.kind in "iub"]
    if len(dtypes) < len(found):
        return None
    *operand_dtypes, dtype = dtypes
    function = _function(equation, operand_dtypes, shape_of(out), dtype)
    if function is None:
        return None

    def compute(operands: Numbers) -> Array | None:
        with np.errstate(all="ignore"):
            arrays = [np.asarray(x, d) for x, d in zip(operands, operand_dtypes, strict=True)]
            result = function(*arrays)
            return None if result is None else np.asarray(result).astype(dtype)

    return compute
