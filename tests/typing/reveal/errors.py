"""Errors are ValueErrors with a code, and more where a caller would expect it."""

from typing import assert_type

import safepallas as sp


def caught(error: Exception) -> None:
    if isinstance(error, sp.SemaphoreError):
        assert_type(error, sp.SemaphoreError)
        assert_type(error.code, str)


value_error: type[ValueError] = sp.SemaphoreError
type_errors: list[type[TypeError]] = [
    sp.errors.AdoptError,
    sp.errors.AmountTypeError,
    sp.errors.AnnotationError,
    sp.errors.AxisTypeError,
    sp.errors.CopyOptionError,
    sp.errors.DeviceIdTypeError,
    sp.errors.IndexTypeError,
    sp.errors.NotARefError,
    sp.errors.NotASemaphoreError,
    sp.errors.NotScalarError,
    sp.errors.SpecError,
    sp.errors.WaitOptionError,
    sp.errors.WrongKindError,
]
index_error: type[IndexError] = sp.errors.IndexRangeError
assertion_error: type[AssertionError] = sp.errors.UnsafeProtocolError
semaphore_errors: list[type[sp.SemaphoreError]] = [
    sp.errors.AmountRangeError,
    sp.errors.AxisError,
    sp.errors.CopyMismatchError,
    sp.errors.CountedCopyError,
    sp.errors.DeviceIdError,
    sp.errors.ForeignSemaphoreError,
    sp.errors.InterpretedCopyError,
    sp.errors.InterpretedReadError,
    sp.errors.MissingCollectiveIdError,
    sp.errors.MixedBarriersError,
    sp.errors.NotInKernelError,
    sp.errors.PictureError,
    sp.errors.ScopeEndedError,
    sp.errors.UnsafeProtocolError,
    sp.errors.UnusedCollectiveIdError,
]
warning: type[UserWarning] = sp.errors.SemaphoreLimitWarning
assert_type(sp.errors.SemaphoreLimitWarning.code, str)
