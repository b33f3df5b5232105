"""Meshes of cores: what `kernel` runs on, and what a request may name with ``@``."""

from collections.abc import Hashable, Mapping
from typing import Any, Protocol

from safepallas._errors import semaphore_errors
from safepallas._jax import compat
from safepallas._jax.core_types import CoreType
from safepallas._semaphores.lifetime import describe


class CoreMesh(Protocol):
    """A mesh of TPU cores, from ``jax.experimental.pallas``; no mesh of devices is one."""

    @property
    def core_type(self) -> Any: ...

    @property
    def shape(self) -> Mapping[Any, int]: ...


# What to do about something else.
FIX = (
    f"Take {compat.TENSOR_CORE_MESH} or, for SparseCores, plsc.VectorSubcoreMesh(...) or "
    "plsc.ScalarSubcoreMesh(...); a mesh of devices belongs to jax.shard_map."
)


def is_core_mesh(mesh: object) -> bool:
    return hasattr(mesh, "core_type") and hasattr(mesh, "shape")


def core_of(mesh: CoreMesh) -> CoreType:
    """The type of its cores."""
    return CoreType(mesh.core_type.name)


def mesh_of(request: object) -> CoreMesh | None:
    """The mesh that a raw Pallas request, or the type of a ref, names with ``@``."""
    mesh: CoreMesh | None = getattr(getattr(request, "memory_space", None), "mesh", None)
    return mesh


def cores_asked(mesh: CoreMesh | None) -> Hashable:
    """Equal for equal meshes. Those of JAX 0.10.2 hold an array, and cannot all be compared."""
    return None if mesh is None else (core_of(mesh), tuple(mesh.shape.items()))


def on_cores(raw: Any, mesh: Any, request: str) -> Any:
    """``raw @ mesh``, for a request of raw Pallas that messages call `request`."""
    if not is_core_mesh(mesh):
        raise semaphore_errors.spec(f"{request} @ mesh: needs a mesh of cores", describe(mesh), FIX)
    if mesh_of(raw) is not None:
        what = f"{request} @ mesh: a request names its cores once"
        raise semaphore_errors.spec(what, "another mesh", "Make a request for each mesh.")
    try:
        return raw @ mesh
    except ValueError:  # of JAX
        what = f"{request} @ mesh: the cores must have such memory"
        fix = "Take another kind of memory, or the mesh of the cores that have it."
        raise semaphore_errors.spec(what, f"cores of type {core_of(mesh)}", fix) from None
