"""safepallas: a typed DSL over Pallas TPU that makes bad semaphore dtypes impossible.

Semaphores come only from a scoped allocator, as handles of three types; operations accept only
those. Type checkers reject misuse before anything runs, and what they cannot see is refused while
the kernel is traced. What reaches the TPU is what raw Pallas would have sent.

Use it as ``import safepallas as sp``.
"""

import os as _os

from safepallas import errors as errors
from safepallas._jax import versions as _versions

# Before all else: with an untested JAX the imports below may fail.
_versions.warn_if_untested()

# ruff: noqa: E402
from safepallas._errors.base import SemaphoreError as SemaphoreError
from safepallas._jax import compat as _compat
from safepallas._kernels.async_call import AsyncCall as AsyncCall
from safepallas._kernels.async_call import InFlight as InFlight
from safepallas._kernels.overloads import kernel as kernel
from safepallas._kernels.overloads import pallas_call as pallas_call
from safepallas._kernels.overloads import pallas_call_async as pallas_call_async
from safepallas._kernels.overloads import run_scoped as run_scoped
from safepallas._kernels.overloads import with_scoped as with_scoped
from safepallas._kernels.scopes import adopt as adopt
from safepallas._operations.barriers import barrier_all as barrier_all
from safepallas._operations.barriers import barrier_neighbors as barrier_neighbors
from safepallas._operations.barriers import core_barrier as core_barrier
from safepallas._operations.barriers import get_barrier_semaphore as get_barrier_semaphore
from safepallas._operations.copies import LocalCopy as LocalCopy
from safepallas._operations.copies import RemoteCopy as RemoteCopy
from safepallas._operations.copies import async_copy as async_copy
from safepallas._operations.copies import async_copy_counted as async_copy_counted
from safepallas._operations.copies import async_remote_copy as async_remote_copy
from safepallas._operations.copies import (
    async_remote_copy_counted as async_remote_copy_counted,
)
from safepallas._operations.copies import make_async_copy as make_async_copy
from safepallas._operations.copies import make_async_remote_copy as make_async_remote_copy
from safepallas._operations.copies import sync_copy as sync_copy
from safepallas._operations.copies import wait_bytes as wait_bytes
from safepallas._operations.signal_wait import read as read
from safepallas._operations.signal_wait import signal as signal
from safepallas._operations.signal_wait import wait as wait
from safepallas._semaphores.arrays import SemaphoreArray as SemaphoreArray
from safepallas._semaphores.handles import BarrierSemaphore as BarrierSemaphore
from safepallas._semaphores.handles import DmaSemaphore as DmaSemaphore
from safepallas._semaphores.handles import Semaphore as Semaphore
from safepallas._semaphores.scratch import Scratch as Scratch
from safepallas._semaphores.specs import Ref as Ref
from safepallas._semaphores.specs import Spec as Spec
from safepallas._semaphores.specs import barrier_semaphore as barrier_semaphore
from safepallas._semaphores.specs import dma_semaphore as dma_semaphore
from safepallas._semaphores.specs import semaphore as semaphore
from safepallas._semaphores.specs import smem as smem
from safepallas._semaphores.specs import vmem as vmem
from safepallas._verify.entry import verify as verify
from safepallas._version import __version__ as __version__

_compat.hide_from_locations(_os.path.dirname(__file__))
