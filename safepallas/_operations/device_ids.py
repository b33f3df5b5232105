"""Device ids: mesh coordinates by axis name, as a tuple, or one int on a mesh of one axis."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias

import jax
import numpy as np

from safepallas._errors import operation_errors
from safepallas._errors.base import INT32_MAX
from safepallas._jax import compat
from safepallas._semaphores.lifetime import describe, kernel_scope

Coordinate: TypeAlias = int | np.integer[Any] | jax.Array


class ByAxis(Protocol):
    """A dict from axis names, or tuples of them, to coordinates.

    A protocol, as the key of a Mapping is invariant: a ``dict[str, jax.Array]`` would not be one.
    """

    def items(self) -> Iterable[tuple[str | tuple[str, ...], Coordinate]]: ...


DeviceId: TypeAlias = Coordinate | tuple[Coordinate, ...] | ByAxis


def coordinate(value: object, op: str, sem: object, axis: object, size: int, whole: object) -> Any:
    """One coordinate along `axis`, as int32."""
    if compat.is_traced_int32(value):
        return value
    if isinstance(value, jax.Array):
        if value.ndim or not np.issubdtype(value.dtype, np.integer):
            raise operation_errors.device_id_type(op, str(sem), describe(whole))
        if compat.is_tracer(value):
            return value if value.dtype == np.int32 else value.astype(np.int32)
        number = int(value)
    elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        number = int(value)
    else:
        raise operation_errors.device_id_type(op, str(sem), describe(whole))
    if not 0 <= number < size:
        raise operation_errors.device_id_range(op, str(sem), repr(axis), number, size)
    # Pallas refuses every integer but an int32, and takes an int for an int64 under x64.
    return value if type(value) is int and not compat.x64_enabled() else np.int32(number)


def _mesh_text(mesh: Mapping[object, int]) -> str:
    return "(" + ", ".join(f"{name!r}: {size}" for name, size in mesh.items()) + ")"


def _by_name(ids: Mapping[object, object], op: str, sem: object) -> dict[object, object]:
    sizes = compat.axis_sizes()
    for axis in kernel_scope().grid_axes:
        sizes.pop(axis, None)  # JAX 0.10.2 would take it for the axis of a core mesh
    seen: set[object] = set()
    resolved = {}
    if not ids or () in ids:
        raise operation_errors.device_id_empty(op, str(sem), repr(dict(ids)))
    for key, value in ids.items():
        axes = key if isinstance(key, tuple) else (key,)
        for axis in axes:
            if axis not in sizes:
                known = ", ".join(map(repr, sizes)) or "none: there is no mesh here"
                raise operation_errors.device_id_axis(op, str(sem), repr(axis), known)
            if axis in seen:
                raise operation_errors.device_id_twice(op, str(sem), repr(axis))
            seen.add(axis)
        if isinstance(key, tuple):
            for axis in compat.core_axes().keys() & set(axes):
                raise operation_errors.device_id_joint(op, str(sem), repr(key), repr(axis))
        size = math.prod(sizes[axis] for axis in axes)
        resolved[key] = coordinate(value, op, sem, key, size, ids)
    if compat.KEYS_MUST_BE_ALIKE and len({isinstance(key, tuple) for key in ids}) > 1:
        return _taken_apart(resolved, sizes)
    return resolved


def _taken_apart(ids: Mapping[Any, Any], sizes: Mapping[Any, int]) -> dict[Any, Any]:
    """A coordinate for each axis by itself, the last of joined axes counting fastest."""
    apart: dict[object, object] = {}
    for key, rest in ids.items():
        first, *others = key if isinstance(key, tuple) else (key,)
        for axis in reversed(others):
            size = np.int32(sizes[axis])
            if compat.is_tracer(rest):
                rest, apart[axis] = jax.lax.div(rest, size), jax.lax.rem(rest, size)
            else:
                rest, apart[axis] = map(np.int32, divmod(int(rest), int(size)))
        apart[first] = rest
    return apart


def core_named_by(device_id: object) -> Any:
    """The core axis that a resolved device id names, or None."""
    if isinstance(device_id, Mapping):
        for axis in compat.core_axes():
            if axis in device_id:
                return axis
    return None


def resolve(device_id: Any, op: str, sem: Any) -> Any:
    """`device_id` as raw Pallas takes it, after checking it against the mesh.

    Args:
        device_id: what the user gave.
        op: the operation, for messages.
        sem: the semaphore, for messages.

    Raises:
        DeviceIdTypeError, DeviceIdError
    """
    if isinstance(device_id, Mapping):
        return _by_name(device_id, op, sem)
    is_tuple = isinstance(device_id, tuple)
    ids = device_id if is_tuple else (device_id,)
    mesh = compat.mesh_axes()
    if not mesh:
        for value in ids:  # a wrong type is the more telling fault
            coordinate(value, op, sem, None, INT32_MAX, device_id)
        raise operation_errors.device_id_no_mesh(op, str(sem))
    if len(ids) != len(mesh):
        for value in ids:
            coordinate(value, op, sem, None, INT32_MAX, device_id)
        raise operation_errors.device_id_length(op, str(sem), len(ids), _mesh_text(mesh))
    resolved = tuple(
        coordinate(value, op, sem, axis, size, device_id)
        for value, (axis, size) in zip(ids, mesh.items(), strict=True)
    )
    return resolved if is_tuple else resolved[0]
