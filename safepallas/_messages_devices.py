"""The words of errors about devices and cores. See `_messages.py`."""

from safepallas._errors import AmountRangeError, AmountTypeError, DeviceIdError, DeviceIdTypeError


def core_index(sem: str, got: str) -> AmountTypeError:
    return AmountTypeError(
        f"signal: core_index must be a non-negative int or a traced integer scalar, got {got}, "
        f"on {sem}. Give the index of the core to signal, or leave it out for this core."
    )


def device_id_type(op: str, sem: str, got: str) -> DeviceIdTypeError:
    return DeviceIdTypeError(
        f"{op}: device_id must be mesh coordinates (by axis name as in {{'x': i}}, a tuple, or one "
        f"int on a mesh of one axis), got {got}, for {sem}. Each coordinate is an int or a traced "
        "integer scalar."
    )


def device_id_logical(op: str, sem: str, got: str) -> DeviceIdTypeError:
    return DeviceIdTypeError(
        f"{op}: device_id must be one int or traced integer scalar with DeviceIdType.LOGICAL, got "
        f"{got}, for {sem}. For mesh coordinates leave device_id_type out."
    )


def device_id_empty(op: str, sem: str, got: str) -> DeviceIdError:
    return DeviceIdError(
        f"{op}: device_id {got} names no axis, for {sem}. Name one, {{'axis': i}}, or leave "
        "device_id out for this device."
    )


def device_id_no_mesh(op: str, sem: str) -> DeviceIdError:
    return DeviceIdError(
        f"{op}: device_id is given for {sem}, but there is no mesh here. Call the kernel inside "
        "jax.shard_map."
    )


def device_id_length(op: str, sem: str, got: int, mesh: str) -> DeviceIdError:
    return DeviceIdError(
        f"{op}: device_id has {got} coordinate{'' if got == 1 else 's'} for {sem}, but the mesh "
        f"is {mesh}. Give one for each axis in that order, or name axes: {{'axis': i}}."
    )


def device_id_axis(op: str, sem: str, axis: str, known: str) -> DeviceIdError:
    return DeviceIdError(
        f"{op}: device_id names the axis {axis} for {sem}, which is not bound here. "
        f"The axes are {known}."
    )


def device_id_twice(op: str, sem: str, axis: str) -> DeviceIdError:
    return DeviceIdError(
        f"{op}: device_id names the axis {axis} twice for {sem}. Give each axis one coordinate."
    )


def device_id_joint(op: str, sem: str, axes: str, core: str) -> DeviceIdError:
    return DeviceIdError(
        f"{op}: device_id joins the axes {axes} for {sem}, but {core} is no axis of the device "
        f"mesh: only those can be joined. Give it a coordinate of its own: {{{core}: i}}."
    )


def core_twice(sem: str, axis: str) -> DeviceIdError:
    return DeviceIdError(
        f"signal: core_index is given for {sem}, and device_id names a core by the axis {axis}. "
        "Name the core once."
    )


def core_range(sem: str, got: int, count: int) -> AmountRangeError:
    return AmountRangeError(
        f"signal: core_index {got} is out of range for {sem}: a device has {count} "
        f"core{'' if count == 1 else 's'} here. Count from 0, or leave it out for this core."
    )


def device_id_range(op: str, sem: str, axis: str, got: int, size: int) -> DeviceIdError:
    return DeviceIdError(
        f"{op}: device_id {got} is out of range for the axis {axis} of size {size}, for {sem}. "
        f"Use 0 to {size - 1}; for a ring take the remainder: (i + 1) % {size}."
    )
