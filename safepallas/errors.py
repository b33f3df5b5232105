"""Every error and warning of safepallas, each with a stable `code`.

`SemaphoreError` is the base of all errors; ``python -m safepallas explain CODE`` says what a code
means.
"""

from safepallas._errors.base import SemaphoreError as SemaphoreError
from safepallas._errors.kernel_errors import ForeignSemaphoreError as ForeignSemaphoreError
from safepallas._errors.kernel_errors import InFlightError as InFlightError
from safepallas._errors.kernel_errors import InterpretedCopyError as InterpretedCopyError
from safepallas._errors.kernel_errors import InterpretedOutputError as InterpretedOutputError
from safepallas._errors.kernel_errors import InterpretedReadError as InterpretedReadError
from safepallas._errors.kernel_errors import JaxVersionWarning as JaxVersionWarning
from safepallas._errors.kernel_errors import MissingCollectiveIdError as MissingCollectiveIdError
from safepallas._errors.kernel_errors import MissingSideEffectsError as MissingSideEffectsError
from safepallas._errors.kernel_errors import MixedBarriersError as MixedBarriersError
from safepallas._errors.kernel_errors import SemaphoreLimitWarning as SemaphoreLimitWarning
from safepallas._errors.kernel_errors import UnusedCollectiveIdError as UnusedCollectiveIdError
from safepallas._errors.operation_errors import AmountRangeError as AmountRangeError
from safepallas._errors.operation_errors import AmountTypeError as AmountTypeError
from safepallas._errors.operation_errors import AxisError as AxisError
from safepallas._errors.operation_errors import AxisTypeError as AxisTypeError
from safepallas._errors.operation_errors import CopyMismatchError as CopyMismatchError
from safepallas._errors.operation_errors import CopyOptionError as CopyOptionError
from safepallas._errors.operation_errors import CountedCopyError as CountedCopyError
from safepallas._errors.operation_errors import DeviceIdError as DeviceIdError
from safepallas._errors.operation_errors import DeviceIdTypeError as DeviceIdTypeError
from safepallas._errors.operation_errors import NotARefError as NotARefError
from safepallas._errors.operation_errors import NotInKernelError as NotInKernelError
from safepallas._errors.operation_errors import WaitOptionError as WaitOptionError
from safepallas._errors.semaphore_errors import AdoptError as AdoptError
from safepallas._errors.semaphore_errors import AnnotationError as AnnotationError
from safepallas._errors.semaphore_errors import IndexRangeError as IndexRangeError
from safepallas._errors.semaphore_errors import IndexTypeError as IndexTypeError
from safepallas._errors.semaphore_errors import NotASemaphoreError as NotASemaphoreError
from safepallas._errors.semaphore_errors import NotScalarError as NotScalarError
from safepallas._errors.semaphore_errors import ScopeEndedError as ScopeEndedError
from safepallas._errors.semaphore_errors import SpecError as SpecError
from safepallas._errors.semaphore_errors import WrongKindError as WrongKindError
from safepallas._errors.verification_errors import PictureError as PictureError
from safepallas._errors.verification_errors import UnsafeProtocolError as UnsafeProtocolError


def _name_by_this_module() -> None:
    """As users and tracebacks do."""
    for value in globals().values():
        if isinstance(value, type):
            value.__module__ = __name__


_name_by_this_module()
