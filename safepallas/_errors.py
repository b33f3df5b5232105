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
        super().__init__(f"{message} [{self.code}]")


class NotASemaphoreError(SemaphoreError, TypeError):
    """Something that is no semaphore handle was passed where one is expected."""

    code = "not-a-semaphore"


class ScopeEndedError(SemaphoreError):
    """A semaphore was used after the scope that allocated it had ended."""

    code = "scope-ended"


class WrongKindError(SemaphoreError, TypeError):
    """A semaphore of one kind was passed to an operation of another."""

    code = "wrong-kind"


class NotScalarError(SemaphoreError, TypeError):
    """A semaphore array was passed where one semaphore is expected."""

    code = "not-scalar"


class IndexTypeError(SemaphoreError, TypeError):
    """A semaphore array was indexed with something that is not one integer per dimension."""

    code = "index-type"


class IndexRangeError(SemaphoreError, IndexError):
    """A semaphore array was indexed out of its bounds, or with too many indices."""

    code = "index-range"


class AmountTypeError(SemaphoreError, TypeError):
    """The amount of a signal or wait is not an integer scalar."""

    code = "amount-type"


class AmountRangeError(SemaphoreError):
    """The amount of a signal or wait is out of range."""

    code = "amount-range"


class DeviceIdTypeError(SemaphoreError, TypeError):
    """A device id has a type that cannot name a device."""

    code = "device-id-type"


class DeviceIdError(SemaphoreError):
    """A device id does not name a device of the mesh."""

    code = "device-id"


class AxisTypeError(SemaphoreError, TypeError):
    """Something that is no axis name was passed to a barrier."""

    code = "axis-type"


class AxisError(SemaphoreError):
    """A barrier names axes that it cannot go over."""

    code = "axis"


class NotInKernelError(SemaphoreError):
    """A barrier was called outside a kernel."""

    code = "not-in-kernel"


class MixedBarriersError(SemaphoreError):
    """A kernel uses its one barrier semaphore for patterns that do not go together."""

    code = "mixed-barriers"


class NotARefError(SemaphoreError, TypeError):
    """An end of a copy is not a ref that holds data."""

    code = "not-a-ref"


class CopyMismatchError(SemaphoreError):
    """The two ends of a copy differ in shape or dtype."""

    code = "copy-mismatch"


class WaitOptionError(SemaphoreError, TypeError):
    """A wait of raw Pallas that does not do what it says, found by `guard_raw_pallas`."""

    code = "wait-option"


class CopyOptionError(SemaphoreError, TypeError):
    """`priority` or `add` of a copy has a value that means nothing."""

    code = "copy-option"


class ForeignSemaphoreError(SemaphoreError):
    """A core waits for, reads or copies with a semaphore that cores of another type hold."""

    code = "foreign-semaphore"


class CountedCopyError(SemaphoreError):
    """A copy that counts on a regular semaphore, where none can be."""

    code = "counted-copy"


class MissingCollectiveIdError(SemaphoreError):
    """A kernel uses the barrier semaphore and has no `collective_id`."""

    code = "missing-collective-id"


class UnusedCollectiveIdError(SemaphoreError):
    """A kernel has a `collective_id` and does not use the barrier semaphore."""

    code = "unused-collective-id"


class InterpretedReadError(SemaphoreError):
    """A kernel that reads a semaphore was asked to run under ``pltpu.InterpretParams``."""

    code = "interpreted-read"


class InterpretedOutputError(SemaphoreError):
    """A semaphore is to leave a kernel that an interpreter runs."""

    code = "interpreted-output"


class MissingSideEffectsError(SemaphoreError):
    """A semaphore goes between kernels that XLA may drop."""

    code = "missing-side-effects"


class InFlightError(SemaphoreError):
    """The done half of an asynchronous call was given what its start half did not begin."""

    code = "in-flight"


class InterpretedCopyError(SemaphoreError):
    """A copy that ``pltpu.InterpretParams`` does not run as a TPU does was to run under it."""

    code = "interpreted-copy"


class AnnotationError(SemaphoreError, TypeError):
    """A kernel was handed something else than its own annotation promises."""

    code = "annotation"


class SpecError(SemaphoreError, TypeError):
    """A request to the allocator that cannot be met."""

    code = "spec"


class AdoptError(SemaphoreError, TypeError):
    """A raw ref was adopted as something it is not."""

    code = "adopt"


class UnsafeProtocolError(SemaphoreError, AssertionError):
    """`verify` did not find a protocol safe: there are findings, or it could not decide.

    An `AssertionError` too, as it is raised for what a test asserts.
    """

    code = "unsafe-protocol"


class PictureError(SemaphoreError):
    """The report of a verification cannot be drawn."""

    code = "picture"


class SemaphoreLimitWarning(UserWarning):
    """A kernel allocates so many semaphores that the TPU compiler may refuse it."""

    code: ClassVar[str] = "semaphore-limit"


class JaxVersionWarning(UserWarning):
    """safepallas was imported with a version of JAX that it is not tested with."""

    code: ClassVar[str] = "jax-version"
