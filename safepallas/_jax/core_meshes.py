"""The cores that a mesh names, and the memory that a ref lies in: whose it is."""

from __future__ import annotations

import enum
import math
from collections.abc import Hashable
from typing import Any, NamedTuple

from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.extend.core import Jaxpr

from safepallas._jax import jaxprs
from safepallas._jax.core_types import CoreType

# 0.10.2 leaves out the core axes of a device id that stays on SparseCores of the same type.
KEEPS_CORE_AXES = hasattr(pltpu, "TensorCoreMesh")


class Cores(NamedTuple):
    """The cores of one type that a device has, along the axes of their mesh."""

    core_type: CoreType
    axes: tuple[tuple[Hashable, int], ...]

    @property
    def size(self) -> int:
        return math.prod(size for _, size in self.axes)


def cores_of(mesh: Any) -> Cores | None:
    """The cores of one of Pallas' meshes; None where they are of no type that is known."""
    name = str(getattr(getattr(mesh, "core_type", None), "name", ""))
    if name not in {*CoreType}:
        return None
    return Cores(CoreType(name), tuple(mesh.shape.items()))


class Sharing(enum.Enum):
    """Which cores have the same memory where a kernel names it."""

    CORE = enum.auto()  # each has its own
    SPARSE_CORE = enum.auto()  # the subcores of a SparseCore
    DEVICE = enum.auto()  # all cores of a device
    UNCLEAR = enum.auto()


_IN_PLACE = {pl.ANY, pltpu.HBM, pltpu.SEMAPHORE}
_SHARING = {
    None: Sharing.DEVICE,
    pl.ANY: Sharing.DEVICE,
    pltpu.HBM: Sharing.DEVICE,
    pltpu.VMEM_SHARED: Sharing.SPARSE_CORE,
    pltpu.VMEM: Sharing.CORE,
    pltpu.SMEM: Sharing.CORE,
    pltpu.SEMAPHORE: Sharing.CORE,
}


def stays_on_core(aval: Any) -> bool:
    """Whether an array lies in a core's own memory between kernels."""
    return getattr(aval, "memory_space", None) in {pltpu.VMEM, pltpu.SMEM}


class Memory(NamedTuple):
    """What a ref is a ref to."""

    shape: tuple[int, ...]
    dtype: object
    sharing: Sharing
    is_in_place: bool  # handed to the kernel as it lies, and not block by block
    core_type: CoreType | None  # of the cores that it names (``SEMAPHORE @ mesh``), if any
    space: str  # its name


def memory_of(aval: Any) -> Memory:
    """Of JAX's type of a ref."""
    named = getattr(aval, "memory_space", None)
    mesh, space = getattr(named, "mesh", None), getattr(named, "memory_space", named)
    cores = None if mesh is None else cores_of(mesh)
    return Memory(
        tuple(aval.shape),
        aval.dtype,
        _SHARING.get(space, Sharing.UNCLEAR),
        space in _IN_PLACE,
        None if cores is None else cores.core_type,
        str(space),
    )


class Argument(NamedTuple):
    """An argument of the body of a kernel or of a scope."""

    name: str  # the user's, "" where that is not known
    memory: Memory | None  # None for what is no ref


def arguments_of(jaxpr: Jaxpr) -> list[Argument]:
    """Those of an open jaxpr, what it closes over first."""
    names = [""] * len(jaxpr.constvars) + jaxprs.argument_names(jaxpr)
    variables = (*jaxpr.constvars, *jaxpr.invars)
    return [
        Argument(name, memory_of(var.aval) if jaxprs.is_ref(var) else None)
        for name, var in zip(names, variables, strict=True)
    ]
