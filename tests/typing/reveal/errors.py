"""Errors are ValueErrors with a code, and more where a caller would expect it."""

from typing import assert_type

import safepallas as sp


def caught(error: Exception) -> None:
    if isinstance(error, sp.SemaphoreError):
        assert_type(error, sp.SemaphoreError)
        assert_type(error.code, str)


value_error: type[ValueError] = sp.SemaphoreError
type_errors: list[type[TypeError]] = [
    sp.AdoptError,
    sp.AmountTypeError,
    sp.AnnotationError,
    sp.AxisTypeError,
    sp.CopyOptionError,
    sp.DeviceIdTypeError,
    sp.IndexTypeError,
    sp.NotARefError,
    sp.NotASemaphoreError,
    sp.NotScalarError,
    sp.SpecError,
    sp.WaitOptionError,
    sp.WrongKindError,
]
index_error: type[IndexError] = sp.IndexRangeError
assertion_error: type[AssertionError] = sp.UnsafeProtocolError
semaphore_errors: list[type[sp.SemaphoreError]] = [
    sp.AmountRangeError,
    sp.AxisError,
    sp.CopyMismatchError,
    sp.CountedCopyError,
    sp.DeviceIdError,
    sp.ForeignSemaphoreError,
    sp.InterpretedCopyError,
    sp.InterpretedReadError,
    sp.MissingCollectiveIdError,
    sp.MixedBarriersError,
    sp.NotInKernelError,
    sp.PictureError,
    sp.ScopeEndedError,
    sp.UnsafeProtocolError,
    sp.UnusedCollectiveIdError,
]
warning: type[UserWarning] = sp.SemaphoreLimitWarning
assert_type(sp.SemaphoreLimitWarning.code, str)
