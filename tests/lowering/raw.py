"""Raw Pallas by the names of safepallas: a kernel written for a module `m` is built from either.

What differs by more than names, its test writes twice.
"""

from typing import Any

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

pallas_call: Any = pl.pallas_call
kernel: Any = pl.kernel
run_scoped: Any = pl.run_scoped
with_scoped: Any = pl.with_scoped
signal: Any = pl.semaphore_signal
wait: Any = pl.semaphore_wait
read: Any = pl.semaphore_read
get_barrier_semaphore: Any = pltpu.get_barrier_semaphore
make_async_copy: Any = pltpu.make_async_copy
async_copy: Any = pltpu.async_copy
make_async_remote_copy: Any = pltpu.make_async_remote_copy
async_remote_copy: Any = pltpu.async_remote_copy
sync_copy: Any = pltpu.sync_copy
core_barrier: Any = pltpu.core_barrier


def wait_bytes(sem: Any, like: Any) -> None:
    pltpu.make_async_copy(like, like, sem).wait()


def async_copy_counted(src: Any, dst: Any, sem: Any) -> None:
    pltpu.make_async_copy(src, dst, sem).start()


def async_remote_copy_counted(src: Any, dst: Any, send: Any, recv: Any, device_id: Any) -> None:
    pltpu.make_async_remote_copy(src, dst, send, recv, device_id).start()


def semaphore(*shape: int) -> Any:
    return pltpu.SemaphoreType.REGULAR(shape)


def barrier_semaphore(*shape: int) -> Any:
    return pltpu.SemaphoreType.BARRIER(shape)


def dma_semaphore(*shape: int) -> Any:
    return pltpu.SemaphoreType.DMA(shape)


def vmem(shape: tuple[int, ...], dtype: Any = jnp.float32) -> Any:
    return pltpu.VMEM(shape, dtype)


def smem(shape: tuple[int, ...], dtype: Any) -> Any:
    return pltpu.SMEM(shape, dtype)


def adopt(ref: Any, spec: Any) -> Any:
    return ref
