"""Errors about a kernel as a whole, and warnings. Class, code and text in one place."""

from typing import Any, ClassVar, NamedTuple

from safepallas._errors.base import SemaphoreError


class MissingCollectiveIdError(SemaphoreError):
    """A kernel uses the barrier semaphore and has no `collective_id`.

    The id says which barrier semaphore that is; without one the TPU compiler gives up. Pass
    ``compiler_params=pltpu.CompilerParams(collective_id=n)``, the same n on all devices.
    """

    code = "missing-collective-id"


def missing_collective_id(kernel: str, line: str) -> MissingCollectiveIdError:
    return MissingCollectiveIdError(
        f"{kernel} uses the barrier semaphore ({line}) and has no collective_id. Pass "
        "compiler_params=pltpu.CompilerParams(collective_id=...): an int that all devices agree "
        "on and no other communication pattern uses."
    )


class UnusedCollectiveIdError(SemaphoreError):
    """A kernel has a `collective_id` and does not use the barrier semaphore.

    The TPU compiler refuses an id that nothing uses. Leave it out, or set
    ``allow_collective_id_without_custom_barrier=True`` in ``pltpu.CompilerParams``.
    """

    code = "unused-collective-id"


def unused_collective_id(kernel: str, got: Any) -> UnusedCollectiveIdError:
    return UnusedCollectiveIdError(
        f"{kernel} has collective_id={got} and never calls sp.get_barrier_semaphore(). Leave the "
        "id out, or set allow_collective_id_without_custom_barrier=True in CompilerParams."
    )


class MixedBarriersError(SemaphoreError):
    """A kernel uses its one barrier semaphore for patterns that do not mix.

    A semaphore does not know who has signalled it: a signal of one barrier lets a device through
    the other. Keep to one pattern in a kernel, or use another kernel and `collective_id`.
    """

    code = "mixed-barriers"


def mixed_barriers(kernel: str, first: str, second: str) -> MixedBarriersError:
    return MixedBarriersError(
        f"{kernel} uses its barrier semaphore in two ways: {first}, and {second}. A signal of the "
        "one can stand in for a signal of the other. Keep to one, or move one to a kernel with "
        "another collective_id."
    )


class ForeignSemaphoreError(SemaphoreError):
    """A core waits for, reads or copies with a semaphore that cores of another type hold.

    A core may signal the semaphores of others, and waits for its own alone. Allocate it for the
    body that waits: ``sp.semaphore() @ mesh``, with the mesh of that body.
    """

    code = "foreign-semaphore"


def foreign_semaphore(kernel: str, line: str) -> ForeignSemaphoreError:
    return ForeignSemaphoreError(
        f"{kernel} waits, reads or copies with a semaphore of other cores ({line}). A core waits "
        "for semaphores of its own, and may signal those of others: allocate it @ the mesh of this "
        "body."
    )


class InterpretedReadError(SemaphoreError):
    """A kernel that reads a semaphore was asked to run under ``pltpu.InterpretParams``.

    JAX 0.10.2 and 0.12.0.1 have no rule for it there. Use ``interpret=True``, or compile for a TPU;
    or leave the `read` out where the kernel is interpreted.
    """

    code = "interpreted-read"


def interpreted_read(kernel: str, line: str) -> InterpretedReadError:
    return InterpretedReadError(
        f"{kernel} reads a semaphore ({line}), and JAX has no rule for that under "
        "interpret=pltpu.InterpretParams(...). Use interpret=True, or compile for a TPU."
    )


class InterpretedCopyError(SemaphoreError):
    """A copy that ``pltpu.InterpretParams`` does not run as a TPU does was to run under it.

    It is one that counts, adds or takes rows by indices. Where the message says so,
    ``interpret=True`` runs it; `safepallas.testing.compile_for_tpu` compiles it without a TPU.
    """

    code = "interpreted-copy"


def interpreted_copy(
    kernel: str, line: str, what: str, instead: str, fix: str
) -> InterpretedCopyError:
    return InterpretedCopyError(
        f"{kernel} starts a copy ({line}) that {what}, and interpret=pltpu.InterpretParams(...) "
        f"{instead}. {fix}"
    )


class InterpretedOutputError(SemaphoreError):
    """A semaphore is to leave a kernel that an interpreter runs.

    No interpreter of JAX 0.10.2 or 0.12.0.1 carries one out. Compile for a TPU, or use
    `pallas_call_async`, whose two kernels an interpreter runs as one.
    """

    code = "interpreted-output"


def interpreted_output(op: str, request: str, version: str) -> InterpretedOutputError:
    return InterpretedOutputError(
        f"{op}: out_shape holds a semaphore ({request}), and JAX {version} cannot carry one out of "
        "a kernel in an interpreter. Compile for a TPU, or use sp.pallas_call_async, whose two "
        "kernels an interpreter runs as one."
    )


class MissingSideEffectsError(SemaphoreError):
    """A semaphore goes between kernels that XLA may drop.

    XLA drops a call whose results nobody uses, and the count on its semaphore stays behind. Pass
    ``pltpu.CompilerParams(has_side_effects=True)`` to both calls, or use `pallas_call_async`.
    """

    code = "missing-side-effects"


def missing_side_effects(kernel: str, parameter: str, got: str) -> MissingSideEffectsError:
    return MissingSideEffectsError(
        f"{kernel}: parameter {parameter!r} is {got}, an input or output of the call, and XLA may "
        "drop a call without side effects: its semaphores would be left over. Pass "
        "compiler_params=pltpu.CompilerParams(has_side_effects=True), or use sp.pallas_call_async."
    )


class InFlightError(SemaphoreError):
    """The done kernel of a `pallas_call_async` was given what its start kernel did not begin.

    Each `start` is finished once, by `done` of the same call: another one, or a second time, would
    wait for bytes that never come. Keep what `start` returns, and pass it on once.
    """

    code = "in-flight"


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


class SemaphoreLimitWarning(UserWarning):
    """A kernel allocates so many semaphores that the TPU compiler may refuse it.

    A TensorCore has room for 512 of 4 bytes. The compiler takes 72 to 76 for itself, and more for
    operands that it copies block by block over a grid: 4 for 2 of them, 8 for 5, 12 for 9. So 436
    to 440 compile without such operands, 424 to 428 with 9 (v5e, v5p, v6e). Of the 32 of a vector
    subcore 24 compile, of the 7168 of a scalar one 7018 (v5p, v6e). All measured with libtpu under
    JAX 0.10.2 and 0.12.0.1; the warning comes from 400, 25 and 7000 on. Let copies share
    semaphores.
    """

    code: ClassVar[str] = "semaphore-limit"


class Room(NamedTuple):
    """The semaphores of 4 bytes of a core, as measured: see `SemaphoreLimitWarning`."""

    all: int
    compile: str  # how many the compiler leaves to a kernel
    warn_at: int
    where: str
    space: str  # as the compiler calls it


def semaphore_limit(kernel: str, count: int, room: Room) -> str:
    return (
        f"{kernel} holds {count} semaphores at once. The TPU compiler has room for {room.all} of "
        f"4 bytes each ({room.where}) and takes some of them for itself: {room.compile} compiled. "
        f"With more expect 'Ran out of memory in memory space {room.space}'. Let copies share "
        f"semaphores. [{SemaphoreLimitWarning.code}]"
    )


class JaxVersionWarning(UserWarning):
    """safepallas was imported with a version of JAX that it is not tested with.

    It may not import, or may check less than it says. Install a JAX in the range that the warning
    names, or a newer safepallas.
    """

    code: ClassVar[str] = "jax-version"


def jax_version(version: str, oldest: str, newest: str) -> str:
    return (
        f"safepallas is tested with JAX {oldest} to {newest}, and this is JAX {version}: it may "
        "not import, or may check less than it says. Install a JAX in that range, or a newer "
        f"safepallas. [{JaxVersionWarning.code}]"
    )
