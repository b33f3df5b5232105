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
    AxisError,
    AxisTypeError,
    CopyMismatchError,
    CopyOptionError,
    CountedCopyError,
    ForeignSemaphoreError,
    IndexRangeError,
    IndexTypeError,
    InFlightError,
    InterpretedCopyError,
    InterpretedOutputError,
    InterpretedReadError,
    JaxVersionWarning,
    MissingCollectiveIdError,
    MissingSideEffectsError,
    MixedBarriersError,
    NotARefError,
    NotASemaphoreError,
    NotInKernelError,
    NotScalarError,
    ScopeEndedError,
    SemaphoreLimitWarning,
    SpecError,
    UnusedCollectiveIdError,
    WaitOptionError,
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


def raw_index_range(array: str, axis: int, index: int, size: int) -> IndexRangeError:
    valid = f"use 0 to {size - 1}" if size else "it holds no semaphore"
    # Below zero (JAX 0.10.2 and 0.12.0.1) InterpretParams does, and the TPU's module says -1.
    return IndexRangeError(
        f"{array}: index {index} is out of bounds for dimension {axis} of size {size}. Raw Pallas "
        f"checks no index of a semaphore, and a TPU counts none from the end: {valid}."
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


def wait_option(sem: str, got: str) -> WaitOptionError:
    return WaitOptionError(
        f"wait: decrement must be True, got {got}, with {sem}. The TPU lowering drops the flag and "
        "takes all the same: wait as usual, and signal what must stay."
    )


def axis_type(op: str, arg: str, expected: str, got: str) -> AxisTypeError:
    return AxisTypeError(
        f"{op}: {arg} must be {expected}, got {got}. Name axes as the mesh does: 'x'."
    )


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


def not_in_kernel(op: str) -> NotInKernelError:
    return NotInKernelError(
        f"{op} is called outside a kernel. Call it in the body of one, and that inside "
        "jax.shard_map."
    )


def mixed_barriers(kernel: str, first: str, second: str) -> MixedBarriersError:
    return MixedBarriersError(
        f"{kernel} uses its barrier semaphore in two ways: {first}, and {second}. A signal of the "
        "one can stand in for a signal of the other. Keep to one, or move one to a kernel with "
        "another collective_id."
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


def counted_in_smem(op: str, arg: str, got: str, sem: str) -> CountedCopyError:
    return CountedCopyError(
        f"{op}: {arg} must not be in SMEM, got {got}, with {sem}. The TPU compiler counts no copy "
        "that touches SMEM: copy on sp.dma_semaphore() instead."
    )


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


def interpreted_output(op: str, request: str, version: str) -> InterpretedOutputError:
    return InterpretedOutputError(
        f"{op}: out_shape holds a semaphore ({request}), and JAX {version} cannot carry one out of "
        "a kernel in an interpreter. Compile for a TPU, or use sp.pallas_call_async, whose halves "
        "an interpreter runs as one kernel."
    )


def missing_side_effects(kernel: str, parameter: str, got: str) -> MissingSideEffectsError:
    return MissingSideEffectsError(
        f"{kernel}: parameter {parameter!r} is {got}, an input or output of the call, and XLA may "
        "drop a call without side effects: its semaphores would be left over. Pass "
        "compiler_params=pltpu.CompilerParams(has_side_effects=True), or use sp.pallas_call_async."
    )


def not_in_flight(call: str, got: str) -> InFlightError:
    return InFlightError(
        f"done: the argument must be what start of the same call returned ({call}), got {got}. "
        "Keep what start returns, and pass it to done of the same sp.pallas_call_async."
    )


def done_twice(call: str) -> InFlightError:
    return InFlightError(
        f"done: it has been done already ({call}): a second wait would never end. Call done once "
        "for each start."
    )


def interpreted_copy(
    kernel: str, line: str, what: str, instead: str, mend: str
) -> InterpretedCopyError:
    return InterpretedCopyError(
        f"{kernel} starts a copy ({line}) that {what}, and interpret=pltpu.InterpretParams(...) "
        f"{instead}. {mend}"
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


def foreign_semaphore(kernel: str, line: str) -> ForeignSemaphoreError:
    return ForeignSemaphoreError(
        f"{kernel} waits, reads or copies with a semaphore of other cores ({line}). A core waits "
        "for semaphores of its own, and may signal those of others: allocate it @ the mesh of this "
        "body."
    )


def semaphore_limit(kernel: str, count: int, core: str, room: int, warn_at: int) -> str:
    chip, space = "2.0 KiB on v5e, v5p and v6e", "sflag"
    if core == "SC_VECTOR_SUBCORE":
        chip, space = "128 bytes on a vector subcore of v5p and v6e", "sparse_core_tile_sflag"
    elif core == "SC_SCALAR_SUBCORE":
        chip = "28 KiB on a scalar subcore of v5p and v6e"
        space = "sparse_core_sequencer_sflag"
    return (
        f"{kernel} holds {count} semaphores at once. The TPU compiler has room for {room} of "
        f"4 bytes each ({chip}), some of them its own: from {warn_at} on expect 'Ran out of "
        f"memory in memory space {space}'. Let copies share semaphores. "
        f"[{SemaphoreLimitWarning.code}]"
    )


def jax_version(version: str, oldest: str, newest: str) -> str:
    return (
        f"safepallas is tested with JAX {oldest} to {newest}, and this is JAX {version}: it may "
        "not import, or may check less than it says. Install a JAX in that range, or a newer "
        f"safepallas. [{JaxVersionWarning.code}]"
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
