"""What the request functions give, at every rank."""

from typing import assert_type

import jax.numpy as jnp

import safepallas as sp

assert_type(sp.semaphore(), sp.Spec[sp.Semaphore])
assert_type(sp.semaphore(2), sp.Spec[sp.SemaphoreArray[sp.Semaphore, tuple[int]]])
assert_type(sp.semaphore(2, 3), sp.Spec[sp.SemaphoreArray[sp.Semaphore, tuple[int, int]]])
assert_type(sp.semaphore(2, 3, 4), sp.Spec[sp.SemaphoreArray[sp.Semaphore, tuple[int, int, int]]])
assert_type(
    sp.semaphore(2, 3, 4, 5),
    sp.Spec[sp.SemaphoreArray[sp.Semaphore, tuple[int, int, int, int]]],
)

assert_type(sp.barrier_semaphore(), sp.Spec[sp.BarrierSemaphore])
assert_type(sp.barrier_semaphore(2), sp.Spec[sp.SemaphoreArray[sp.BarrierSemaphore, tuple[int]]])
assert_type(
    sp.barrier_semaphore(2, 3),
    sp.Spec[sp.SemaphoreArray[sp.BarrierSemaphore, tuple[int, int]]],
)
assert_type(
    sp.barrier_semaphore(2, 3, 4),
    sp.Spec[sp.SemaphoreArray[sp.BarrierSemaphore, tuple[int, int, int]]],
)
assert_type(
    sp.barrier_semaphore(2, 3, 4, 5),
    sp.Spec[sp.SemaphoreArray[sp.BarrierSemaphore, tuple[int, int, int, int]]],
)

assert_type(sp.dma_semaphore(), sp.Spec[sp.DmaSemaphore])
assert_type(sp.dma_semaphore(2), sp.Spec[sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]])
assert_type(sp.dma_semaphore(2, 3), sp.Spec[sp.SemaphoreArray[sp.DmaSemaphore, tuple[int, int]]])
assert_type(
    sp.dma_semaphore(2, 3, 4),
    sp.Spec[sp.SemaphoreArray[sp.DmaSemaphore, tuple[int, int, int]]],
)
assert_type(
    sp.dma_semaphore(2, 3, 4, 5),
    sp.Spec[sp.SemaphoreArray[sp.DmaSemaphore, tuple[int, int, int, int]]],
)

assert_type(sp.vmem((8, 128), jnp.float32), sp.Spec[sp.Ref])
assert_type(sp.vmem([8, 128], "float32"), sp.Spec[sp.Ref])
assert_type(sp.smem((1,), jnp.int32), sp.Spec[sp.Ref])
assert_type(sp.semaphore().shape, tuple[int, ...])
