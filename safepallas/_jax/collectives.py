"""Collectives between kernels, on numbers that are known on all devices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jax.extend.core import JaxprEqn

from safepallas._jax.jaxprs import dtype_of

Array: TypeAlias = np.ndarray
# From what each device along the axes has, and which of them this one is.
_Of: TypeAlias = Callable[[Sequence[Array], int], Array]


class Collective(NamedTuple):
    """What devices along mesh axes, the last one going fastest, make of an array of each."""

    axes: tuple[Hashable, ...]
    compute: _Of | None  # None where that is not known


def collective(equation: JaxprEqn) -> Collective:
    """Of ``all_gather``, ``psum``, ``ppermute`` and the like; of integers."""
    params = equation.params
    named = params.get("axes", params.get("axis_name"))
    axes = named if isinstance(named, tuple) else (named,)
    dtype = dtype_of(equation.invars[0])
    is_known = (
        isinstance(dtype, np.dtype)
        and dtype.kind in "iu"
        and params.get("axis_index_groups") is None
        and not any(isinstance(axis, int) for axis in axes)
    )
    return Collective(axes, _rule(equation.primitive.name, params) if is_known else None)


def _rule(name: str, params: dict[str, Any]) -> _Of | None:
    if name == "all_gather":
        return partial(_gather, dim=params["all_gather_dimension"], tiled=params["tiled"])
    if name in _REDUCTIONS:
        return partial(_reduced, by=_REDUCTIONS[name])
    if name == "ppermute":
        return partial(_permuted, source={to: start for start, to in params["perm"]})
    if name == "all_to_all":
        ends = params["split_axis"], params["concat_axis"]
        return partial(_exchanged, split=ends[0], concat=ends[1], tiled=params["tiled"])
    if name == "reduce_scatter":
        return partial(_scattered, dim=params["scatter_dimension"], tiled=params["tiled"])
    return None


_REDUCTIONS: dict[str, Any] = {"psum": np.add, "pmax": np.maximum, "pmin": np.minimum}


def _gather(given: Sequence[Array], me: int, *, dim: int, tiled: bool) -> Array:
    return np.concatenate(given, dim) if tiled else np.stack(given, dim)


def _reduced(given: Sequence[Array], me: int, *, by: Any) -> Array:
    return np.asarray(reduce(by, given))


def _permuted(given: Sequence[Array], me: int, *, source: dict[int, int]) -> Array:
    return given[source[me]] if me in source else np.zeros_like(given[me])


def _part(array: Array, count: int, me: int, dim: int, tiled: bool) -> Array:
    return np.split(array, count, dim)[me] if tiled else np.take(array, me, dim)


def _exchanged(given: Sequence[Array], me: int, *, split: int, concat: int, tiled: bool) -> Array:
    parts = [_part(array, len(given), me, split, tiled) for array in given]
    return _gather(parts, me, dim=concat, tiled=tiled)


def _scattered(given: Sequence[Array], me: int, *, dim: int, tiled: bool) -> Array:
    return _part(_reduced(given, me, by=np.add), len(given), me, dim, tiled)
