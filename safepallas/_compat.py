"""The only place that knows JAX's private parts, and how they differ between versions.

Covers JAX 0.10.2 (Python 3.11) to 0.12.0.1 (Python 3.13). Everything here is a plain function that
the rest of the library calls; nothing else imports ``jax._src``.
"""

import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
from jax._src import config as _config
from jax._src import core as _core
from jax._src import source_info_util as _source_info
from jax._src.state import types as _state
from jax.experimental.pallas import tpu as pltpu

# 0.12 has one class where 0.10.2 has two.
_JAXPRS = tuple(getattr(_core, n) for n in ("Jaxpr", "ClosedJaxpr") if hasattr(_core, n))


class RefType(NamedTuple):
    """Shape and dtype of a ref, as the kernel sees it while tracing."""

    shape: tuple[Any, ...]
    dtype: Any


def ref_type(x: Any) -> RefType | None:
    """Shape and dtype of a Pallas ref or of a view of one; None where `x` is not a ref.

    Shapes may hold traced sizes (``pl.ds(start, traced_size)``).
    """
    aval: Any
    if isinstance(x, _state.TransformedRef):
        aval = x.type  # no AbstractRef where a size is traced, but a ref all the same
        return RefType(aval.shape, aval.dtype)
    if isinstance(x, (_core.Tracer, _core.Ref)):
        aval = _core.typeof(x)
        if isinstance(aval, _state.AbstractRef):
            return RefType(aval.shape, aval.dtype)
    return None


def is_tracer(x: Any) -> bool:
    return isinstance(x, _core.Tracer)


def axis_sizes() -> dict[Any, int]:
    """Every axis name bound here (mesh axes, core axes, named grid axes) and its size."""
    sizes = mesh_axes()
    env: Any = _core.get_axis_env()  # type: ignore[no-untyped-call, unused-ignore]
    sizes.update({k: v for k, v in env.axis_sizes.items() if k is not None})
    return sizes


def mesh_axes() -> dict[Any, int]:
    """The axes of the device mesh, in order: what a tuple of device coordinates refers to."""
    return dict(jax.sharding.get_abstract_mesh().shape)


def x64_enabled() -> bool:
    return bool(_config.enable_x64.value)


def interprets_as_tpu(interpret: Any) -> bool:
    """Whether a call would run under ``pltpu.InterpretParams``, given its `interpret` argument."""
    forced = _config.pallas_tpu_interpret_mode_context_manager.value
    return isinstance(forced or interpret, pltpu.InterpretParams)


def collective_ids_are_assigned() -> bool:
    """Whether JAX itself assigns collective ids (0.11 and later, off by default)."""
    state = getattr(_config, "jax_pallas_auto_assign_collective_ids", None)
    return state is not None and state.value != "no"


class Equation(NamedTuple):
    """One traced equation: the primitive's name, its parameters, and how to find its line."""

    primitive: str
    params: Mapping[str, Any]
    source_info: Any

    def line(self) -> str:
        """Where the user wrote it, as ``file:line:column (function)``."""
        return str(_source_info.summarize(self.source_info))


def equations_so_far() -> Iterator[Equation]:
    """The equations that the innermost trace holds by now, outermost level only."""
    frame = getattr(_core.trace_ctx.trace, "frame", None)
    for held in frame.tracing_eqns if frame is not None else ():
        eqn = held() if isinstance(held, weakref.ref) else held
        if eqn is not None:
            yield Equation(eqn.primitive.name, eqn.params, eqn.source_info)


def equations_of(jaxpr: Any) -> Iterator[Equation]:
    """The equations of a jaxpr, outermost level only."""
    for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield Equation(eqn.primitive.name, eqn.params, eqn.source_info)


def jaxprs_in(params: Mapping[str, Any]) -> Iterator[Any]:
    """The jaxprs among an equation's parameters (bodies of loops, branches, scopes, calls)."""
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, _JAXPRS):
                yield item


def allocated_by(jaxpr: Any) -> list[RefType]:
    """The refs that a ``run_scoped`` body receives."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return [RefType(v.aval.shape, v.aval.dtype) for v in inner.invars]


def without_locations() -> AbstractContextManager[None]:
    """Write no source locations into modules, within the context and in this thread."""
    context: Any = _config.traceback_in_locations_limit(0)
    return context  # type: ignore[no-any-return]


def hide_from_locations(directory: str) -> None:
    """Keep the files of `directory` out of the locations that JAX writes into a module."""
    _source_info.register_exclusion(os.path.join(directory, ""))
