"""Every error of safepallas: its class and its stable code. Their words stand in `_messages.py`."""

from typing import ClassVar, Final

INT32_MAX: Final = 2**31 - 1


class SemaphoreError(ValueError):
    """A misuse of a semaphore, refused while the kernel was traced.

    A `ValueError`, as in JAX. Each subclass has a stable `code`; some are also `TypeError` or
    `IndexError`, where a caller would expect that.

    Example::

        try:
            jax.eval_shape(call, x)
        except sp.SemaphoreError as error:
            print(error.code)
    """

    code: ClassVar[str] = "semaphore-error"

    def __init__(self, message: str) -> None:
        # What is unpickled or copied has it already.
        mark = f" [{self.code}]"
        super().__init__(message.removesuffix(mark) + mark)


class NotASemaphoreError(SemaphoreError, TypeError):
    """Something that is no semaphore handle was passed where one is expected.

    Raw Pallas takes any ref there: an int16 buffer passes for a semaphore up to the TPU compiler.
    Pass the handle that `pallas_call`, `kernel` or `run_scoped` hands out; `adopt` a raw ref.
    """

    code = "not-a-semaphore"


class ScopeEndedError(SemaphoreError):
    """A semaphore was used after the scope that allocated it had ended.

    A semaphore is freed at the end of its scope; raw Pallas traces what comes after, and fails when
    it runs or compiles. Use it inside the scope, or allocate it in one that encloses every use.
    """

    code = "scope-ended"


class WrongKindError(SemaphoreError, TypeError):
    """A semaphore of one kind was passed to an operation of another.

    Copies add bytes to DMA semaphores; signals and waits count on regular and barrier ones. Give a
    copy `dma_semaphore()` and wait with ``copy.wait()`` or `wait_bytes`; signal a `semaphore()`.
    """

    code = "wrong-kind"


class NotScalarError(SemaphoreError, TypeError):
    """A semaphore array was passed where one semaphore is expected.

    An operation takes one semaphore, and an array holds several: index it, ``sems.at[i]``.
    """

    code = "not-scalar"


class IndexTypeError(SemaphoreError, TypeError):
    """A semaphore array was indexed with something that is not one integer per dimension.

    Raw Pallas traces ``sems.at[0.5]`` and ``sems.at[True]``; the TPU compiler asks to file a bug.
    Give an int or a traced integer scalar for each dimension: ``sems.at[i, j]``.
    """

    code = "index-type"


class IndexRangeError(SemaphoreError, IndexError):
    """A semaphore array was indexed out of its bounds, or with too many indices.

    Raw Pallas checks no index. The TPU interpreter clamps it, so that two roles share a semaphore
    (measured). Count from 0 to n - 1, or from -1 down to -n.
    """

    code = "index-range"


class AmountTypeError(SemaphoreError, TypeError):
    """The amount of a signal or wait is not an integer scalar.

    Raw Pallas makes 1 of ``inc=1.9``, and the wait for the rest hangs (measured). Give an int or a
    traced integer scalar; convert anything else yourself.
    """

    code = "amount-type"


class AmountRangeError(SemaphoreError):
    """The amount of a signal or wait is out of range.

    A semaphore counts up by signals and down by waits, in int32: `inc` is at least 0, `value` at
    least 1. Leave out a wait for nothing. A `core_index` is less than the number of cores.
    """

    code = "amount-range"


class DeviceIdTypeError(SemaphoreError, TypeError):
    """A device id has a type that cannot name a device.

    A device is named by its place in the mesh: ``{"x": i}``, a tuple with one number for each axis,
    or one int on a mesh of one axis. Each number is an int or a traced integer scalar.
    """

    code = "device-id-type"


class DeviceIdError(SemaphoreError):
    """A device id does not name a device of the mesh.

    Raw Pallas traces such an id; the interpreter and the TPU compiler fail later, and name no
    semaphore. Name axes of the mesh around the kernel, each once: ``{"x": (i + 1) % n}``.
    """

    code = "device-id"


class AxisTypeError(SemaphoreError, TypeError):
    """Something that is no axis name was passed to a barrier.

    Name axes as the mesh does: ``barrier_neighbors("x")``, ``barrier_all(("x", "y"))``.
    """

    code = "axis-type"


class AxisError(SemaphoreError):
    """A barrier names axes that it cannot go over.

    A barrier goes over axes of the device mesh of `jax.shard_map`, at least one and each once;
    `core_barrier` over the axis of cores of the kernel's own mesh.
    """

    code = "axis"


class NotInKernelError(SemaphoreError):
    """A barrier was called outside a kernel.

    Signals and waits are part of a kernel. Call it in the body, and the kernel in `jax.shard_map`.
    """

    code = "not-in-kernel"


class MixedBarriersError(SemaphoreError):
    """A kernel uses its one barrier semaphore for patterns that do not go together.

    A semaphore does not know who has signalled it: a signal of one barrier lets a device through
    the other. Keep to one pattern in a kernel, or use another kernel and `collective_id`.
    """

    code = "mixed-barriers"


class NotARefError(SemaphoreError, TypeError):
    """An end of a copy is not a ref that holds data.

    A copy needs a place: ``ref[...]`` is already loaded. Pass the ref, or a view ``ref.at[...]``.
    """

    code = "not-a-ref"


class CopyMismatchError(SemaphoreError):
    """The two ends of a copy differ in shape or dtype.

    Raw Pallas traces such a copy, and the TPU compiler asks to file a bug. Take the view that fits,
    ``ref.at[...]``; convert a dtype in VMEM, not by a copy.
    """

    code = "copy-mismatch"


class WaitOptionError(SemaphoreError, TypeError):
    """A wait of raw Pallas that does not do what it says, found by `guard_raw_pallas`.

    With ``decrement=False`` the TPU lowering drops the flag and takes all the same (measured, JAX
    0.10.2 and 0.12.0.1). Wait as usual, and signal what must stay.
    """

    code = "wait-option"


class CopyOptionError(SemaphoreError, TypeError):
    """`priority` or `add` of a copy has a value that means nothing.

    JAX lowers `priority` 0 or 1 for a local copy and 0 for a remote one, no others (measured, JAX
    0.10.2 and 0.12.0.1). `add` is a bool.
    """

    code = "copy-option"


class ForeignSemaphoreError(SemaphoreError):
    """A core waits for, reads or copies with a semaphore that cores of another type hold.

    A core may signal the semaphores of others, and waits for its own alone. Allocate it for the
    body that waits: ``sp.semaphore() @ mesh``, with the mesh of that body.
    """

    code = "foreign-semaphore"


class CountedCopyError(SemaphoreError):
    """A copy that counts on a regular semaphore, where none can be.

    The TPU compiler of JAX 0.10.2 counts no copy that touches SMEM (0.12.0.1 does). Copy on a
    `dma_semaphore()` there, with `async_copy`.
    """

    code = "counted-copy"


class MissingCollectiveIdError(SemaphoreError):
    """A kernel uses the barrier semaphore and has no `collective_id`.

    The id says which barrier semaphore that is; without one the TPU compiler gives up. Pass
    ``compiler_params=pltpu.CompilerParams(collective_id=n)``, the same n on all devices.
    """

    code = "missing-collective-id"


class UnusedCollectiveIdError(SemaphoreError):
    """A kernel has a `collective_id` and does not use the barrier semaphore.

    The TPU compiler refuses an id that nothing uses. Leave it out, or set
    ``allow_collective_id_without_custom_barrier=True`` in ``pltpu.CompilerParams``.
    """

    code = "unused-collective-id"


class InterpretedReadError(SemaphoreError):
    """A kernel that reads a semaphore was asked to run under ``pltpu.InterpretParams``.

    JAX 0.10.2 and 0.12.0.1 have no rule for it there. Use ``interpret=True``, or compile for a TPU;
    or leave the `read` out where the kernel is interpreted.
    """

    code = "interpreted-read"


class InterpretedOutputError(SemaphoreError):
    """A semaphore is to leave a kernel that an interpreter runs.

    No interpreter of JAX 0.10.2 or 0.12.0.1 carries one out. Compile for a TPU, or use
    `pallas_call_async`, whose halves an interpreter runs as one kernel.
    """

    code = "interpreted-output"


class MissingSideEffectsError(SemaphoreError):
    """A semaphore goes between kernels that XLA may drop.

    XLA drops a call whose results nobody uses, and the count on its semaphore stays behind. Pass
    ``pltpu.CompilerParams(has_side_effects=True)`` to both calls, or use `pallas_call_async`.
    """

    code = "missing-side-effects"


class InFlightError(SemaphoreError):
    """The done half of an asynchronous call was given what its start half did not begin.

    Each `start` is finished once, by `done` of the same call: another one, or a second time, would
    wait for bytes that never come. Keep what `start` returns, and pass it on once.
    """

    code = "in-flight"


class InterpretedCopyError(SemaphoreError):
    """A copy that ``pltpu.InterpretParams`` does not run as a TPU does was to run under it.

    It is one that counts, adds or takes rows by indices. Where the message says so,
    ``interpret=True`` runs it; `safepallas.testing.compile_for_tpu` compiles it without a TPU.
    """

    code = "interpreted-copy"


class AnnotationError(SemaphoreError, TypeError):
    """A kernel was handed something else than its own annotation promises.

    mypy sees no further than a `functools.partial`, and untyped code not at all: here the same is
    asked while tracing. Change the annotation, or the request in the scratch.
    """

    code = "annotation"


class SpecError(SemaphoreError, TypeError):
    """A request to the allocator that cannot be met.

    The message says which: a size, a container, a mesh of cores, a field. Scratch is a tuple or a
    dict of `semaphore()`, `dma_semaphore()`, `vmem(...)` and the like, or a `Scratch` class.
    """

    code = "spec"


class AdoptError(SemaphoreError, TypeError):
    """A raw ref was adopted as something it is not.

    A raw ref says its kind only while tracing, and kind, rank and shape must be those of the spec.
    Adopt it with the spec of what it is.
    """

    code = "adopt"


class UnsafeProtocolError(SemaphoreError, AssertionError):
    """`verify` did not find a protocol safe: there are findings, or it could not decide.

    The message is the report: each finding with its lines. Mend what it names; where it could not
    decide, pass the data that it lacks. An `AssertionError` too, as tests raise.
    """

    code = "unsafe-protocol"


class PictureError(SemaphoreError):
    """The report of a verification cannot be drawn.

    Nothing ran that could be drawn, or more than 8 cores did. ``str(report)`` says what was found;
    `to_perfetto` takes any number of cores.
    """

    code = "picture"


class SemaphoreLimitWarning(UserWarning):
    """A kernel allocates so many semaphores that the TPU compiler may refuse it.

    A TensorCore has room for 512, a vector subcore for 32, a scalar subcore for 7168, less what the
    compiler takes for itself (measured, v5e, v5p, v6e). Let copies share semaphores.
    """

    code: ClassVar[str] = "semaphore-limit"


class JaxVersionWarning(UserWarning):
    """safepallas was imported with a version of JAX that it is not tested with.

    It may not import, or may check less than it says. Install a JAX in the range that the warning
    names, or a newer safepallas.
    """

    code: ClassVar[str] = "jax-version"


# Tracebacks name each as users do, `safepallas.WrongKindError`.
for _class in list(vars().values()):
    if isinstance(_class, type) and _class.__module__ == __name__:
        _class.__module__ = "safepallas"
