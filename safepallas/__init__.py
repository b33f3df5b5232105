"""safepallas: a typed DSL over Pallas TPU that makes bad semaphore dtypes impossible.

Semaphores come only from a scoped allocator, as handles of three types; operations accept only
those. Type checkers reject misuse before anything runs, and what they cannot see is refused while
the kernel is traced. What reaches the TPU is what raw Pallas would have sent.

Use it as ``import safepallas as sp``.
"""

import importlib as _importlib
import os as _os
from typing import TYPE_CHECKING

from safepallas import _versions

# Before all else: with an untested JAX the imports below may fail.
_versions.warn_if_untested()

# ruff: noqa: E402
from safepallas import _compat
from safepallas._arrays import SemaphoreArray as SemaphoreArray
from safepallas._barriers import core_barrier as core_barrier
from safepallas._barriers import get_barrier_semaphore as get_barrier_semaphore
from safepallas._copies import LocalCopy as LocalCopy
from safepallas._copies import RemoteCopy as RemoteCopy
from safepallas._copies import async_copy as async_copy
from safepallas._copies import async_remote_copy as async_remote_copy
from safepallas._copies import make_async_copy as make_async_copy
from safepallas._copies import make_async_remote_copy as make_async_remote_copy
from safepallas._copies import sync_copy as sync_copy
from safepallas._copies import wait_bytes as wait_bytes
from safepallas._counted import async_copy_counted as async_copy_counted
from safepallas._counted import async_remote_copy_counted as async_remote_copy_counted
from safepallas._errors import AdoptError as AdoptError
from safepallas._errors import AmountRangeError as AmountRangeError
from safepallas._errors import AmountTypeError as AmountTypeError
from safepallas._errors import AnnotationError as AnnotationError
from safepallas._errors import AxisError as AxisError
from safepallas._errors import AxisTypeError as AxisTypeError
from safepallas._errors import CopyMismatchError as CopyMismatchError
from safepallas._errors import CopyOptionError as CopyOptionError
from safepallas._errors import CountedCopyError as CountedCopyError
from safepallas._errors import DeviceIdError as DeviceIdError
from safepallas._errors import DeviceIdTypeError as DeviceIdTypeError
from safepallas._errors import ForeignSemaphoreError as ForeignSemaphoreError
from safepallas._errors import IndexRangeError as IndexRangeError
from safepallas._errors import IndexTypeError as IndexTypeError
from safepallas._errors import InFlightError as InFlightError
from safepallas._errors import InterpretedCopyError as InterpretedCopyError
from safepallas._errors import InterpretedOutputError as InterpretedOutputError
from safepallas._errors import InterpretedReadError as InterpretedReadError
from safepallas._errors import JaxVersionWarning as JaxVersionWarning
from safepallas._errors import MissingCollectiveIdError as MissingCollectiveIdError
from safepallas._errors import MissingSideEffectsError as MissingSideEffectsError
from safepallas._errors import MixedBarriersError as MixedBarriersError
from safepallas._errors import NotARefError as NotARefError
from safepallas._errors import NotASemaphoreError as NotASemaphoreError
from safepallas._errors import NotInKernelError as NotInKernelError
from safepallas._errors import NotScalarError as NotScalarError
from safepallas._errors import PictureError as PictureError
from safepallas._errors import ScopeEndedError as ScopeEndedError
from safepallas._errors import SemaphoreError as SemaphoreError
from safepallas._errors import SemaphoreLimitWarning as SemaphoreLimitWarning
from safepallas._errors import SpecError as SpecError
from safepallas._errors import UnsafeProtocolError as UnsafeProtocolError
from safepallas._errors import UnusedCollectiveIdError as UnusedCollectiveIdError
from safepallas._errors import WaitOptionError as WaitOptionError
from safepallas._errors import WrongKindError as WrongKindError
from safepallas._handles import BarrierSemaphore as BarrierSemaphore
from safepallas._handles import DmaSemaphore as DmaSemaphore
from safepallas._handles import Semaphore as Semaphore
from safepallas._ops import read as read
from safepallas._ops import signal as signal
from safepallas._ops import wait as wait
from safepallas._pairs import AsyncCall as AsyncCall
from safepallas._pairs import InFlight as InFlight
from safepallas._refs import Ref as Ref
from safepallas._rings import barrier_all as barrier_all
from safepallas._rings import barrier_neighbors as barrier_neighbors
from safepallas._scopes import adopt as adopt
from safepallas._signatures import kernel as kernel
from safepallas._signatures import pallas_call as pallas_call
from safepallas._signatures import pallas_call_async as pallas_call_async
from safepallas._signatures import run_scoped as run_scoped
from safepallas._signatures import with_scoped as with_scoped
from safepallas._specs import Scratch as Scratch
from safepallas._specs import Spec as Spec
from safepallas._specs import barrier_semaphore as barrier_semaphore
from safepallas._specs import dma_semaphore as dma_semaphore
from safepallas._specs import semaphore as semaphore
from safepallas._specs import smem as smem
from safepallas._specs import vmem as vmem
from safepallas._version import __version__ as __version__

_compat.hide_from_locations(_os.path.dirname(__file__))
_compat.hide_pallas_in_tracebacks()

if TYPE_CHECKING:
    from safepallas.verify import verify as verify
else:
    del TYPE_CHECKING

    def __getattr__(name):
        """`verify` is imported when it is first asked for: few programs that run need it."""
        if name == "verify":
            return _importlib.import_module("safepallas.verify")  # a package that can be called
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
