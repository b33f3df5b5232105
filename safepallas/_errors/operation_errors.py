"""Errors about the arguments of operations: class, code and text in one place."""

from safepallas._errors.base import INT32_MAX, SemaphoreError


class AmountTypeError(SemaphoreError, TypeError):
    """The amount of a signal or wait is not an integer scalar.

    Raw Pallas makes 1 of ``inc=1.9``, and the wait for the rest hangs (measured). Give an int or a
    traced integer scalar; convert anything else yourself.
    """

    code = "amount-type"


def amount_type(op: str, arg: str, sem: str, got: str) -> AmountTypeError:
    return AmountTypeError(
        f"{op}: {arg} must be an int or a traced integer scalar, got {got}, on {sem}. "
        "Raw Pallas would truncate or wrap it; convert it yourself."
    )


def core_index(sem: str, got: str) -> AmountTypeError:
    return AmountTypeError(
        f"signal: core_index must be a non-negative int or a traced integer scalar, got {got}, "
        f"on {sem}. Give the index of the core to signal, or leave it out for this core."
    )


class AmountRangeError(SemaphoreError):
    """The amount of a signal or wait is out of range.

    A semaphore counts up by signals and down by waits, in int32: `inc` is at least 0, `value` at
    least 1. Leave out a wait for nothing. A `core_index` is less than the number of cores.
    """

    code = "amount-range"


def amount_range(op: str, arg: str, sem: str, got: int, low: int) -> AmountRangeError:
    return AmountRangeError(
        f"{op}: {arg} must be from {low} to {INT32_MAX} (int32), got {got}, on {sem}. "
        + (
            "A semaphore only counts up by signals and down by waits."
            if low == 0
            else "A wait takes at least one from the semaphore; leave out a wait for nothing."
        )
    )


def core_range(sem: str, got: int, count: int) -> AmountRangeError:
    return AmountRangeError(
        f"signal: core_index {got} is out of range for {sem}: a device has {count} "
        f"core{'' if count == 1 else 's'} here. Count from 0, or leave it out for this core."
    )


class DeviceIdTypeError(SemaphoreError, TypeError):
    """A device id has a type that cannot name a device.

    A device is named by its place in the mesh: ``{"x": i}``, a tuple with one number for each axis,
    or one int on a mesh of one axis. Each number is an int or a traced integer scalar.
    """

    code = "device-id-type"


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


class DeviceIdError(SemaphoreError):
    """A device id does not name a device of the mesh.

    Raw Pallas traces such an id; the interpreter and the TPU compiler fail later, and name no
    semaphore. Name axes of the mesh around the kernel, each once: ``{"x": (i + 1) % n}``.
    """

    code = "device-id"


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


def device_id_range(op: str, sem: str, axis: str, got: int, size: int) -> DeviceIdError:
    return DeviceIdError(
        f"{op}: device_id {got} is out of range for the axis {axis} of size {size}, for {sem}. "
        f"Use 0 to {size - 1}; for a ring take the remainder: (i + 1) % {size}."
    )


class AxisTypeError(SemaphoreError, TypeError):
    """Something that is no axis name was passed to a barrier.

    Name axes as the mesh does: ``barrier_neighbors("x")``, ``barrier_all(("x", "y"))``.
    """

    code = "axis-type"


def axis_type(op: str, arg: str, expected: str, got: str) -> AxisTypeError:
    return AxisTypeError(
        f"{op}: {arg} must be {expected}, got {got}. Name axes as the mesh does: 'x'."
    )


class AxisError(SemaphoreError):
    """A barrier names axes that it cannot go over.

    A barrier goes over axes of the device mesh of `jax.shard_map`, at least one and each once;
    `core_barrier` over the axis of cores of the kernel's own mesh.
    """

    code = "axis"


def axis_none(op: str, arg: str) -> AxisError:
    return AxisError(f"{op}: {arg} names no axis. Name those whose devices are to wait.")


def axis_unknown(op: str, arg: str, axis: str, known: str) -> AxisError:
    return AxisError(
        f"{op}: {arg} names the axis {axis}, which is no axis of the device mesh here. The axes "
        f"are {known}. Call the kernel inside jax.shard_map over a mesh with that axis."
    )


def axis_twice(op: str, arg: str, axis: str) -> AxisError:
    return AxisError(f"{op}: {arg} names the axis {axis} twice. Name each axis once.")


def core_axis(sem: str, axis: str, known: str) -> AxisError:
    return AxisError(
        f"core_barrier: core_axis_name {axis} is no axis of cores here, for {sem}. The axes of "
        f"cores are {known}. For devices use sp.barrier_all."
    )


class NotInKernelError(SemaphoreError):
    """A barrier was called outside a kernel.

    Signals and waits are part of a kernel. Call it in the body, and the kernel in `jax.shard_map`.
    """

    code = "not-in-kernel"


def not_in_kernel(op: str) -> NotInKernelError:
    return NotInKernelError(
        f"{op} is called outside a kernel. Call it in the body of one, and that inside "
        "jax.shard_map."
    )


class NotARefError(SemaphoreError, TypeError):
    """An end of a copy is not a ref that holds data.

    A copy needs a place: ``ref[...]`` is already loaded. Pass the ref, or a view ``ref.at[...]``.
    """

    code = "not-a-ref"


def not_a_ref(op: str, arg: str, got: str) -> NotARefError:
    return NotARefError(
        f"{op}: {arg} must be a ref that holds data, got {got}. Pass the ref itself or a view "
        "of it, ref.at[...]; ref[...] is already loaded."
    )


class CopyMismatchError(SemaphoreError):
    """The two ends of a copy differ in shape or dtype.

    Raw Pallas traces such a copy, and the TPU compiler asks to file a bug. Take the view that fits,
    ``ref.at[...]``; convert a dtype in VMEM, not by a copy.
    """

    code = "copy-mismatch"


def copy_mismatch(op: str, src: str, dst: str, what: str, sem: str) -> CopyMismatchError:
    return CopyMismatchError(
        f"{op}: source and destination must have the same {what}, got {src} and {dst}, with {sem}. "
        "Take the view that fits: ref.at[...]."
    )


class CopyOptionError(SemaphoreError, TypeError):
    """`priority` or `add` of a copy has a value that means nothing.

    JAX lowers `priority` 0 or 1 for a local copy and 0 for a remote one, no others (measured, JAX
    0.10.2 and 0.12.0.1). `add` is a bool.
    """

    code = "copy-option"


def copy_option(op: str, arg: str, expected: str, got: str, sem: str) -> CopyOptionError:
    return CopyOptionError(f"{op}: {arg} must be {expected}, got {got}, with {sem}.")


class CountedCopyError(SemaphoreError):
    """A copy that counts on a regular semaphore, where none can be.

    The TPU compiler of JAX 0.10.2 counts no copy from or to SMEM (0.12.0.1 does). Copy on a
    `dma_semaphore()` there, with `async_copy`.
    """

    code = "counted-copy"


def counted_in_smem(op: str, arg: str, got: str, sem: str) -> CountedCopyError:
    return CountedCopyError(
        f"{op}: {arg} must not be in SMEM, got {got}, with {sem}. The TPU compiler counts no copy "
        "from or to SMEM: copy on sp.dma_semaphore() instead."
    )


class WaitOptionError(SemaphoreError, TypeError):
    """A wait of raw Pallas that does not do what it says, found by `guard_raw_pallas`.

    With ``decrement=False`` the TPU lowering drops the flag and takes all the same (measured, JAX
    0.10.2 and 0.12.0.1). Wait as usual, and signal what must stay.
    """

    code = "wait-option"


def wait_option(sem: str, got: str) -> WaitOptionError:
    return WaitOptionError(
        f"wait: decrement must be True, got {got}, with {sem}. The TPU lowering drops the flag and "
        "takes all the same: wait as usual, and signal what must stay."
    )
