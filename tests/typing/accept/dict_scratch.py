"""Scratch by keyword: a dict of requests, a keyword-only parameter for each."""

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp


def kernel(x: sp.Ref, o: sp.Ref, *, acc: sp.Ref, sem: sp.DmaSemaphore, done: sp.Semaphore) -> None:
    sp.async_copy(x, acc, sem).wait()
    sp.signal(done)
    o[...] = acc[...] * 3.0
    sp.wait(done)


def main() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes={
            "acc": sp.vmem((8, 128), jnp.float32),
            "sem": sp.dma_semaphore(),
            "done": sp.semaphore(),
        },
        interpret=True,
    )
    np.testing.assert_array_equal(call(x), x * 3)
