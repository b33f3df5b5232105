"""The words of every error.

A message says what was expected, what came, which semaphore it is, and what to do instead; the
code stands at its end in brackets. The functions take descriptions, not values, so that this
module stands at the bottom of the library.
"""

from typing import Any

from safepallas._errors import (
    INT32_MAX,
    AdoptError,
    AmountRangeError,
    AmountTypeError,
    AnnotationError,
    CopyMismatchError,
    CopyOptionError,
    DeviceIdError,
    DeviceIdTypeError,
    IndexRangeError,
    IndexTypeError,
    InterpretedReadError,
    MissingCollectiveIdError,
    NotARefError,
    NotASemaphoreError,
    NotScalarError,
    ScopeEndedError,
    SemaphoreLimitWarning,
    SpecError,
    UnusedCollectiveIdError,
    WrongKindError,
)


def short_type(x: Any) -> str:
    """Dtype and shape as JAX prints them: ``float32[8,128]``."""
    return f"{x.dtype}[{','.join(map(str, x.shape))}]"


def not_a_semaphore(op: str, arg: str, expected: str, got: str) -> NotASemaphoreError:
    return NotASemaphoreError(
        f"{op}: {arg} must be a {expected}, got {got}. Semaphores come from an allocator: "
        "scratch_shapes=, sp.run_scoped, or sp.adopt(ref, spec) for a raw Pallas ref."
    )


def scope_ended(op: str, sem: str, scope: str) -> ScopeEndedError:
    return ScopeEndedError(
        f"{op}: {sem} is used after its scope, {scope}, has ended. Use it inside that scope, "
        "or allocate it in the scope that uses it."
    )


def wrong_kind(op: str, arg: str, expected: str, got: str, mend: str) -> WrongKindError:
    return WrongKindError(f"{op}: {arg} must be a {expected}, got {got}. {mend}")


def not_scalar(op: str, arg: str, expected: str, got: str, index: str) -> NotScalarError:
    return NotScalarError(
        f"{op}: {arg} must be one {expected}, got {got}. Index it first: {index}."
    )


def index_type(array: str, got: str) -> IndexTypeError:
    return IndexTypeError(
        f"{array}: an index must be an int or a traced integer scalar, got {got}. "
        "Use one integer for each dimension."
    )


def index_range(array: str, axis: int, index: int, size: int) -> IndexRangeError:
    valid = f"{-size} to {size - 1}" if size else "none: it holds no semaphore"
    return IndexRangeError(
        f"{array}: index {index} is out of bounds for dimension {axis} of size {size}. "
        f"Valid indices are {valid}."
    )


def too_many_indices(array: str, rank: int, got: int) -> IndexRangeError:
    return IndexRangeError(
        f"{array}: {got} indices for {rank} dimension{'s' if rank > 1 else ''}. "
        "Use at most one for each dimension."
    )


def no_indices(array: str) -> IndexTypeError:
    return IndexTypeError(f"{array}: no index given. Use one integer for each dimension.")


def amount_type(op: str, arg: str, sem: str, got: str) -> AmountTypeError:
    return AmountTypeError(
        f"{op}: {arg} must be an int or a traced integer scalar, got {got}, on {sem}. "
        "Raw Pallas would truncate or wrap it; convert it yourself."
    )


def amount_range(op: str, arg: str, sem: str, got: int, low: int) -> AmountRangeError:
    return AmountRangeError(
        f"{op}: {arg} must be from {low} to {INT32_MAX} (int32), got {got}, on {sem}. "
        + (
            "A semaphore only counts up by signals and down by waits."
            if low == 0
            else "A wait takes at least one from the semaphore; leave out a wait for nothing."
        )
    )


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


def device_id_range(op: str, sem: str, axis: str, got: int, size: int) -> DeviceIdError:
    return DeviceIdError(
        f"{op}: device_id {got} is out of range for the axis {axis} of size {size}, for {sem}. "
        f"Use 0 to {size - 1}; for a ring take the remainder: (i + 1) % {size}."
    )


def not_a_ref(op: str, arg: str, got: str) -> NotARefError:
    return NotARefError(
        f"{op}: {arg} must be a ref that holds data, got {got}. Pass the ref itself or a view "
        "of it, ref.at[...]; ref[...] is already loaded."
    )


def copy_mismatch(op: str, src: str, dst: str, what: str, sem: str) -> CopyMismatchError:
    return CopyMismatchError(
        f"{op}: source and destination must have the same {what}, got {src} and {dst}, with {sem}. "
        "Take the view that fits: ref.at[...]."
    )


def copy_option(op: str, arg: str, expected: str, got: str, sem: str) -> CopyOptionError:
    return CopyOptionError(f"{op}: {arg} must be {expected}, got {got}, with {sem}.")


def missing_collective_id(kernel: str, line: str) -> MissingCollectiveIdError:
    return MissingCollectiveIdError(
        f"{kernel} uses the barrier semaphore ({line}) and has no collective_id. Pass "
        "compiler_params=pltpu.CompilerParams(collective_id=...): an int that all devices agree "
        "on and no other communication pattern uses."
    )


def unused_collective_id(kernel: str, got: Any) -> UnusedCollectiveIdError:
    return UnusedCollectiveIdError(
        f"{kernel} has collective_id={got} and never calls sp.get_barrier_semaphore(). Leave the "
        "id out, or set allow_collective_id_without_custom_barrier=True in CompilerParams."
    )


def interpreted_read(kernel: str, line: str) -> InterpretedReadError:
    return InterpretedReadError(
        f"{kernel} reads a semaphore ({line}), and JAX has no rule for that under "
        "interpret=pltpu.InterpretParams(...). Use interpret=True, or compile for a TPU."
    )


def annotation(kernel: str, parameter: str, expected: str, got: str) -> AnnotationError:
    return AnnotationError(
        f"{kernel}: parameter {parameter!r} is annotated {expected}, but it receives {got}. "
        "Change the annotation, or the request to the allocator."
    )


def spec(what: str, got: str, mend: str) -> SpecError:
    return SpecError(f"{what}, got {got}. {mend}")


def adopt(expected: str, got: str) -> AdoptError:
    return AdoptError(
        f"adopt: the ref is {got}, not {expected}. Adopt it with the spec of what it is."
    )


def semaphore_limit(kernel: str, count: int) -> str:
    return (
        f"{kernel} holds {count} semaphores at once. The TPU compiler has room for 512 of 4 bytes "
        "each (2.0 KiB on v5e, v5p and v6e), some of them its own: from 480 on expect 'Ran out of "
        f"memory in memory space sflag'. Let copies share semaphores. "
        f"[{SemaphoreLimitWarning.code}]"
    )


def constructed(handle: str, request: str) -> TypeError:
    return TypeError(
        f"{handle} cannot be constructed: probably you called {handle}(...), instead you want "
        f"{request} in scratch_shapes= or sp.run_scoped, or sp.adopt(ref, {request})."
    )


def constructed_elsewhere(name: str, instead: str) -> TypeError:
    return TypeError(
        f"{name} cannot be constructed: probably you called {name}(...), instead you want "
        f"{instead}."
    )


def subclassed(name: str) -> TypeError:
    return TypeError(f"{name} is final: it cannot be subclassed.")


def used_as_value(handle: str, what: str) -> TypeError:
    return TypeError(
        f"{handle} {what}: a semaphore is not a value. Read its count with sp.read(sem), or wait "
        "for it with sp.wait(sem, n)."
    )
