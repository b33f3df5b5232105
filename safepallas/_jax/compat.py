"""What is private of JAX, and how versions differ: plain functions for the rest of the library.

Covers JAX 0.10.2 (Python 3.11) to 0.12.0.1 (Python 3.13). Nothing else imports ``jax._src``.
"""

import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
import numpy as np

# All of JAX that is not public: 7 names, which a test counts.
from jax._src.config import pallas_tpu_interpret_mode_context_manager as _forced_interpreter
from jax._src.config import traceback_in_locations_limit as _locations_limit
from jax._src.core import trace_ctx as _trace_ctx  # what is being traced, and the axes bound there
from jax._src.pallas.core import axis_frame as _axis_frame  # fails outside the body of a kernel
from jax._src.pallas.mosaic.pipeline import BufferedRefBase as _BufferedRefBase
from jax._src.source_info_util import user_frame as _user_frame
from jax._src.state.indexing import NDIndexer as _NDIndexer
from jax.core import ShapedArray as _ShapedArray
from jax.core import Tracer as _Tracer
from jax.experimental import pallas as pl
from jax.experimental.hijax import TransformedRef as _TransformedRef
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend import core as _core
from jax.extend import source_info_util as _source_info
from jax.ref import AbstractRef as _AbstractRef

_TAG = "safepallas"
# 0.12 has one class by two names, which its types do not know.
_JAXPRS: Any = (_core.Jaxpr, _core.__dict__["ClosedJaxpr"])
_INT32 = np.dtype(np.int32)
_Slice = pl.Slice

# How this version makes a mesh of TensorCores.
TENSOR_CORE_MESH = (
    "pltpu.TensorCoreMesh(...)"
    if hasattr(pltpu, "TensorCoreMesh")
    else "pltpu.create_tensorcore_mesh(...)"
)

# Whether several bodies of one kernel must be told apart by their names.
NAMES_MUST_DIFFER = not hasattr(pltpu, "TensorCoreMesh")

# Allocations of `emit_pipeline`. The public name of the base class warns under 0.12.
BUFFERED_REF: type = _BufferedRefBase


def _sorts(keys: dict[object, object]) -> bool:
    try:
        jax.tree_util.tree_structure(keys)
    except ValueError:
        return False
    return True


class RefType(NamedTuple):
    """Shape and dtype of a ref, as the kernel sees it while tracing."""

    shape: tuple[Any, ...]
    dtype: Any


def ref_type(x: Any) -> RefType | None:
    """Shape and dtype of a Pallas ref or of a view of one; None where `x` is not a ref.

    Shapes may hold traced sizes (``pl.ds(start, traced_size)``).
    """
    aval: Any
    if type(x) is not _TransformedRef:
        aval = getattr(x, "aval", None)  # of tracers, arrays and refs outside a kernel
        if type(aval) is not _AbstractRef:
            return None
        inner: Any = aval.inner_aval
        return RefType(inner.shape, inner.dtype)
    # The type of a view that was only indexed is read off the index: JAX's own computation takes
    # longer than starting a copy does, and 0.10.2 has none for a traced number of indices.
    transforms: tuple[Any, ...] = x.transforms
    if len(transforms) == 1 and type(transforms[0]) is _NDIndexer:
        index, ref = transforms[0], x.ref
        aval = None if type(ref) is _TransformedRef else getattr(ref, "aval", None)
        if not index.int_indexer_shape and type(aval) is _AbstractRef:
            inner = aval.inner_aval
            return RefType(tuple([i.size for i in index.indices if type(i) is _Slice]), inner.dtype)
        if type(aval) is _AbstractRef:  # gathered or scattered by arrays or refs of indices
            inner = aval.inner_aval
            return RefType(index.get_indexer_shape(), inner.dtype)
    aval = x.type  # no AbstractRef where a size is traced, but a ref all the same
    return RefType(aval.shape, aval.dtype)


def is_in_smem(ref: object) -> bool:
    """Whether a ref, or a view of one, lies in scalar memory."""
    space = getattr(getattr(ref, "aval", None), "memory_space", None)
    # Memory of the cores of a mesh (``pltpu.SMEM @ mesh``) names the space within.
    return getattr(space, "memory_space", space) is pltpu.SMEM


def is_traced_int32(x: object) -> bool:
    """Whether `x` is a traced int32 scalar: what most indices and ids are."""
    aval = getattr(x, "aval", None)
    return (
        type(aval) is _ShapedArray
        and not aval.shape
        and aval.dtype == _INT32
        and isinstance(x, _Tracer)
    )


def is_tracer(x: object) -> bool:
    return isinstance(x, _Tracer)


def axis_sizes() -> dict[object, int]:
    """Every axis name bound here (mesh axes, core axes, named grid axes) and its size."""
    sizes = mesh_axes()
    sizes.update({k: v for k, v in _trace_ctx.axis_env.axis_sizes.items() if k is not None})
    return sizes


def mesh_axes() -> dict[object, int]:
    """The axes of the device mesh, in order: what a tuple of device coordinates refers to."""
    return dict(jax.sharding.get_abstract_mesh().shape)


def bound_mesh_axes() -> dict[Any, int]:
    """The axes of the device mesh that `jax.shard_map` goes over, in the mesh's order."""
    bound = _trace_ctx.axis_env.axis_sizes
    return {axis: size for axis, size in mesh_axes().items() if axis in bound}


def core_axes() -> dict[object, int]:
    """The axes bound here that are none of the device mesh: those of core meshes."""
    mesh = mesh_axes()
    return {axis: size for axis, size in axis_sizes().items() if axis not in mesh}


def in_kernel() -> bool:
    """Whether the body of a kernel is being traced, ours or raw Pallas'."""
    try:
        _axis_frame()
    except AssertionError:
        return bool(core_axes())  # ``pl.kernel`` of JAX 0.10.2 has no such frame
    return True


def most_cores() -> int | None:
    """The most cores that a device can have here, as far as its kind and core meshes say."""
    device: Any = jax.sharding.get_abstract_mesh().abstract_device
    own = device.num_cores if device is not None and device.platform == "tpu" else None
    # An axis that belongs to no core mesh (of `jax.vmap`) only makes this more lenient; but alone
    # one of size 1 says nothing.
    most = max(own or 1, *core_axes().values(), 1)
    return most if own or most > 1 else None


# 0.10.2 cannot sort the keys of a dict that names axes both alone and joined.
KEYS_MUST_BE_ALIKE = not _sorts({"x": 0, ("x",): 0})


def as_int32(indices: tuple[object, ...]) -> tuple[object, ...]:
    """Checked indices as Pallas takes them: under x64 it would make int64 of an int."""
    if not x64_enabled():
        return indices
    return tuple([np.int32(i) if type(i) is int else i for i in indices])


def is_live(ref: object) -> bool:
    """Whether a ref, or a view of one, belongs to a trace that is still running."""
    base = ref.ref if type(ref) is _TransformedRef else ref
    own = getattr(base, "_trace", None)
    trace: object = _trace_ctx.trace
    while trace is not None:
        if trace is own:
            return True
        trace = getattr(trace, "parent_trace", None)
    return False


def taken_apart(ref: Any) -> tuple[Any, tuple[Any, ...]]:
    """The ref that a view is of, and the steps from it to the view."""
    steps: tuple[Any, ...] = ()
    while type(ref) is _TransformedRef:
        ref, steps = ref.ref, (*ref.transforms, *steps)
    return ref, steps


def base_of(ref: Any) -> Any:
    """The ref that a view is of."""
    return taken_apart(ref)[0]


def is_indexing(step: object) -> bool:
    """Whether a step of a view indexes it."""
    return type(step) is _NDIndexer


def has_ended(base: object) -> bool:
    """Whether the trace of a ref is over. A ref from outside all traces has none."""
    return getattr(base, "_trace", None) is not None and not is_live(base)


def indexing_of(view: object) -> list[tuple[tuple[object, ...], tuple[object, ...]]]:
    """How a view was indexed, step by step: a shape and an index for each of its dimensions.

    Raw Pallas makes arrays of all indices but slices; `static_value` knows their numbers.
    """
    return [(step.shape, step.indices) for step in taken_apart(view)[1] if is_indexing(step)]


def static_value(x: object) -> Any:
    """The number that an index is, also where a trace holds it as a constant; else None."""
    if isinstance(x, _Tracer):
        val = getattr(x, "val", None)  # of a tracer to a jaxpr: its variable, or its constant
        x = val.val if type(val) is _core.Literal else None
    return x.item() if isinstance(x, (jax.Array, np.ndarray, np.generic)) and not x.ndim else x


def current_trace() -> Any:
    """The innermost trace that is running."""
    return _trace_ctx.trace


def x64_enabled() -> bool:
    config: Any = jax.config  # 0.10.2 does not declare its options
    return bool(config.jax_enable_x64)


def interprets_as_tpu(interpret: object) -> bool:
    """Whether a call would run under ``pltpu.InterpretParams``, given its `interpret` argument."""
    forced = _forced_interpreter.value
    return isinstance(forced or interpret, pltpu.InterpretParams)


def ids_are_assigned() -> bool:
    """Whether JAX itself assigns collective ids (off by default; 0.10.2 has no such setting)."""
    return getattr(jax.config, "jax_pallas_auto_assign_collective_ids", "no") != "no"


def equations_so_far() -> Iterator[Any]:
    """The equations that the innermost trace holds by now, outermost level only."""
    frame = getattr(_trace_ctx.trace, "frame", None)
    for held in frame.tracing_eqns if frame is not None else ():
        eqn = held() if type(held) is weakref.ref else held
        if eqn is not None:
            yield eqn


def equations_of(jaxpr: Any) -> Sequence[Any]:
    """The equations of a jaxpr, outermost level only."""
    equations: Sequence[Any] = getattr(jaxpr, "jaxpr", jaxpr).eqns
    return equations


def types_of(equation: Any) -> list[Any]:
    """JAX's types of all that an equation, or a jaxpr, takes."""
    return [var.aval for var in equation.invars]


def ref_types_of(equation: Any) -> list[Any]:
    """JAX's types of the refs that an equation takes, with the memory that they are in."""
    return [var.aval for var in equation.invars if is_ref_type(var.aval)]


def line_of(equation: Any) -> str:
    """Where the user wrote it, as ``file:line:column (function)``."""
    return str(_source_info.summarize(equation.source_info))


def is_ref_type(aval: Any) -> bool:
    """Whether JAX's type of a variable is that of a ref."""
    return isinstance(aval, _AbstractRef)


def is_literal(var: object) -> bool:
    """Whether an operand of an equation is a number, and no variable."""
    return isinstance(var, _core.Literal)


def is_dynamic(size: object) -> bool:
    """Whether the size of a grid's dimension is an operand of the call."""
    return not isinstance(size, (int, np.integer))


def is_logical(equation: Any) -> bool:
    """Whether a device id counts through the whole mesh."""
    return getattr(equation.params.get("device_id_type"), "name", "") == "LOGICAL"


def user_line_of(equation: Any) -> tuple[str, int, str] | None:
    """File, number and function of the user's line: not of JAX nor of safepallas."""
    frame = _user_frame(equation.source_info.traceback)
    return None if frame is None else (frame.file_name, frame.start_line, frame.function_name)


def this_line() -> Any:
    """The line that is being traced now, for `at_line`."""
    return _source_info.current().traceback


def at_line(traceback: object) -> AbstractContextManager[object]:
    """Trace as if on that line. JAX forgets, in the body of a scope, who opened the scope."""
    context: Any = _source_info.user_context(traceback)
    return context  # type: ignore[no-any-return]


def tagged(name: str) -> AbstractContextManager[Any]:
    """Within the context equations carry that tag, also where JAX takes their trace from a cache.

    It is neither printed with a jaxpr nor lowered for a TPU.
    """
    context: Any = set_xla_metadata(**{_TAG: name})
    return context  # type: ignore[no-any-return]


def tag_of(equation: Any) -> str | None:
    """The tag that an equation carries."""
    metadata: Mapping[str, Any] = equation.ctx.xla_metadata or {}
    return metadata.get(_TAG)


def jaxprs_in(params: Mapping[str, Any]) -> Iterator[Any]:
    """The jaxprs among an equation's parameters (bodies of loops, branches, scopes, calls)."""
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, _JAXPRS):
                yield item


def without_locations() -> AbstractContextManager[None]:
    """Write no source locations into modules, within the context and in this thread."""
    context: Any = _locations_limit(0)
    return context  # type: ignore[no-any-return]


def hide_from_locations(directory: str) -> None:
    """Keep the files of `directory` out of the locations that JAX writes into a module."""
    _source_info.register_exclusion(os.path.join(directory, ""))
