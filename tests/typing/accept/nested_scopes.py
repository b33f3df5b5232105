"""run_scoped in a kernel, and run_scoped inside it; the result of the body comes out."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp


class Inner(sp.Scratch):
    buffer = sp.vmem((8, 128), jnp.float32)
    sem = sp.dma_semaphore()


def kernel(x: sp.Ref, o: sp.Ref) -> None:
    def outer(ready: sp.Semaphore, sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]) -> None:
        sp.signal(ready)

        def inner(buffer: sp.Ref, sem: sp.DmaSemaphore) -> jax.Array:
            sp.async_copy(x, buffer, sem).wait()
            sp.wait(ready)
            return buffer[...] * 2.0

        doubled = sp.run_scoped(inner, sp.vmem((8, 128), jnp.float32), sp.dma_semaphore())

        def store(s: Inner) -> None:
            s.buffer[...] = doubled + 1.0
            sp.async_copy(s.buffer, o, s.sem).wait()

        sp.run_scoped(store, Inner)
        sp.async_copy(o, o, sems.at[1]).wait()

    sp.run_scoped(outer, sp.semaphore(), sp.dma_semaphore(2))


def main() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    call = sp.pallas_call(
        kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=pltpu.InterpretParams()
    )
    np.testing.assert_array_equal(call(x), x * 2 + 1)
