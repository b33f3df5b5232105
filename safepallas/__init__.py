"""safepallas: a typed DSL over Pallas TPU that makes bad semaphore dtypes impossible.

Semaphores come only from a scoped allocator, as handles of three types; operations accept only
those. Type checkers reject misuse before anything runs, and what they cannot see is refused while
the kernel is traced. What reaches the TPU is what raw Pallas would have sent.

Use it as ``import safepallas as sp``.
"""

import os as _os

from safepallas import _compat
from safepallas._arrays import SemaphoreArray as SemaphoreArray
from safepallas._barriers import get_barrier_semaphore as get_barrier_semaphore
from safepallas._copies import LocalCopy as LocalCopy
from safepallas._copies import RemoteCopy as RemoteCopy
from safepallas._copies import async_copy as async_copy
from safepallas._copies import async_remote_copy as async_remote_copy
from safepallas._copies import make_async_copy as make_async_copy
from safepallas._copies import make_async_remote_copy as make_async_remote_copy
from safepallas._copies import sync_copy as sync_copy
from safepallas._copies import wait_bytes as wait_bytes
from safepallas._errors import AdoptError as AdoptError
from safepallas._errors import AmountRangeError as AmountRangeError
from safepallas._errors import AmountTypeError as AmountTypeError
from safepallas._errors import AnnotationError as AnnotationError
from safepallas._errors import CopyMismatchError as CopyMismatchError
from safepallas._errors import CopyOptionError as CopyOptionError
from safepallas._errors import DeviceIdError as DeviceIdError
from safepallas._errors import DeviceIdTypeError as DeviceIdTypeError
from safepallas._errors import IndexRangeError as IndexRangeError
from safepallas._errors import IndexTypeError as IndexTypeError
from safepallas._errors import InterpretedReadError as InterpretedReadError
from safepallas._errors import MissingCollectiveIdError as MissingCollectiveIdError
from safepallas._errors import NotARefError as NotARefError
from safepallas._errors import NotASemaphoreError as NotASemaphoreError
from safepallas._errors import NotScalarError as NotScalarError
from safepallas._errors import ScopeEndedError as ScopeEndedError
from safepallas._errors import SemaphoreError as SemaphoreError
from safepallas._errors import SemaphoreLimitWarning as SemaphoreLimitWarning
from safepallas._errors import SpecError as SpecError
from safepallas._errors import UnusedCollectiveIdError as UnusedCollectiveIdError
from safepallas._errors import WrongKindError as WrongKindError
from safepallas._handles import BarrierSemaphore as BarrierSemaphore
from safepallas._handles import DmaSemaphore as DmaSemaphore
from safepallas._handles import Semaphore as Semaphore
from safepallas._ops import read as read
from safepallas._ops import signal as signal
from safepallas._ops import wait as wait
from safepallas._refs import Ref as Ref
from safepallas._scopes import adopt as adopt
from safepallas._signatures import pallas_call as pallas_call
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
