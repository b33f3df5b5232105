"""Kernels over meshes of cores, in plain words, for `safepallas.verify`. See `_compat_verify`."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas._jax.jaxprs import (
    Slot,
    View,
    collective_id_of,
    function_of,
    open_jaxpr,
    slots_of,
    space_of,
    view_of,
)

TENSOR, SCALAR, VECTOR = "TC", "SC_SCALAR_SUBCORE", "SC_VECTOR_SUBCORE"

# 0.10.2 leaves out the core axes of a device id that stays on SparseCores of the same kind.
KEEPS_CORE_AXES = hasattr(pltpu, "TensorCoreMesh")


class Cores(NamedTuple):
    """The cores of one kind that a device has, along the axes of their mesh."""

    kind: str  # TENSOR, SCALAR or VECTOR
    axes: tuple[tuple[Any, int], ...]

    @property
    def size(self) -> int:
        return math.prod(size for _, size in self.axes)


class CoreCall(NamedTuple):
    """A kernel over meshes of cores (``pl.kernel``, ``pl.core_map``): whole operands, no grid."""

    bodies: tuple[tuple[Cores, Any], ...]  # all with the same arguments
    name: str
    aliases: tuple[tuple[int, int], ...]  # operand, output
    collective_id: Any


def core_call_parts(equation: Any) -> CoreCall | None:
    """Of ``mpmd_map``, and of the ``core_map`` of JAX 0.10.2; None where the cores are not known.

    The constants of a body (refs that it closes over) are the first of its arguments.
    """
    params = equation.params
    if equation.primitive.name == "core_map":
        meshes, jaxprs = [params["mesh"]], [params["jaxpr"]]
    else:
        meshes, jaxprs = params.get("meshes", ()), params.get("jaxprs", ())
    kinds = [str(getattr(getattr(mesh, "core_type", None), "name", "")) for mesh in meshes]
    if params.get("external_meshes") or not {*kinds} <= {TENSOR, SCALAR, VECTOR}:
        return None
    opened = [open_jaxpr(jaxpr)[0] for jaxpr in jaxprs]
    return CoreCall(
        tuple(
            (Cores(kind, tuple(mesh.shape.items())), jaxpr)
            for kind, mesh, jaxpr in zip(kinds, meshes, opened, strict=True)
        ),
        str(params.get("name") or function_of(opened[0])),
        tuple(dict(params.get("input_output_aliases") or {}).items()),
        collective_id_of(params.get("compiler_params")),
    )


def cores_named_by(aval: Any) -> str:
    """The kind of cores that a ref names as those that it lies on (``SEMAPHORE @ mesh``)."""
    mesh = getattr(getattr(aval, "memory_space", None), "mesh", None)
    return str(mesh.core_type.name) if mesh is not None else ""


# Who has memory together.
OWN, SPARSE_CORE, DEVICE, UNCLEAR = "own", "SparseCore", "device", "unclear"

_SHARED = {None: DEVICE, pl.ANY: DEVICE, pltpu.HBM: DEVICE, pltpu.VMEM_SHARED: SPARSE_CORE}
_OWN = {pltpu.VMEM, pltpu.SMEM, pltpu.SEMAPHORE}


def sharing_of(aval: Any) -> str:
    """Whether a core has that memory alone, with the others of its SparseCore or its device."""
    space = space_of(aval)
    return OWN if space in _OWN else _SHARED.get(space, UNCLEAR)


# SparseCores


class VectorAccess(NamedTuple):
    """A load or a store of a vector subcore."""

    view: View
    is_write: bool
    is_partial: bool  # some of the view only, or elsewhere in it than it looks


def vector_access(equation: Any) -> VectorAccess:
    """Of ``load``, ``swap``, ``gather`` and ``scatter`` of SparseCores."""
    params, slots, name = equation.params, slots_of(equation), equation.primitive.name
    if name in ("gather", "scatter"):
        ref, transforms, *_ = jax.tree_util.tree_unflatten(params["tree"], slots)
        return VectorAccess(view_of(ref, transforms), name == "scatter", True)
    masked, is_write = params["has_mask"], name == "swap"
    rest = slots[2 if is_write else 1 : len(slots) - masked]
    transforms = jax.tree_util.tree_unflatten(params["tree"], rest)
    return VectorAccess(view_of(slots[0], transforms), is_write, masked)


class ParallelLoop(NamedTuple):
    """A ``parallel_loop``: slots all. Its body takes constants, the number of the turn, carries."""

    ends: tuple[Slot, Slot, Slot]  # lower, upper, step
    consts: Sequence[Slot]
    carried: Sequence[Slot]
    body: Any


def parallel_loop_parts(equation: Any) -> ParallelLoop:
    slots = slots_of(equation)
    lower, upper, step, consts, carried = equation.params["tree"].unflatten(slots)
    return ParallelLoop((lower, upper, step), consts, carried, equation.params["jaxpr"])
