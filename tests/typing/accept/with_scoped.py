"""The decorator form of a scope: functions that bring their own semaphores."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp


class Staging(sp.Scratch):
    buffer = sp.vmem((8, 128), jnp.float32)
    sems = sp.dma_semaphore(2)


@sp.with_scoped(sp.dma_semaphore())
def copy(src: sp.Ref, dst: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(src, dst, sem).wait()


@sp.with_scoped(Staging)
def copy_staged(src: sp.Ref, dst: sp.Ref, s: Staging) -> None:
    sp.async_copy(src, s.buffer, s.sems.at[0]).wait()
    sp.async_copy(s.buffer, dst, s.sems.at[1]).wait()


@sp.with_scoped(sp.semaphore(), sp.dma_semaphore())
def load(src: sp.Ref, done: sp.Semaphore, sem: sp.DmaSemaphore) -> jax.Array:
    sp.async_copy(src, src, sem).wait()
    sp.signal(done)
    sp.wait(done)
    return src[...]


def kernel(x: sp.Ref, o: sp.Ref) -> None:
    copy(x.at[0], o.at[0])
    copy_staged(x.at[1], o.at[1])
    o[2] = load(x.at[2]) + 1.0

    @sp.with_scoped(sp.dma_semaphore())
    def last(sem: sp.DmaSemaphore) -> None:
        sp.async_copy(x.at[3], o.at[3], sem).wait()

    last()


def main() -> None:
    x = jnp.arange(4 * 1024, dtype=jnp.float32).reshape(4, 8, 128)
    call = sp.pallas_call(
        kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=pltpu.InterpretParams()
    )
    np.testing.assert_array_equal(call(x), x.at[2].add(1.0))
