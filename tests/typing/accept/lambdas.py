"""Lambdas as kernels, bodies and callbacks: their parameters take the types of the requests."""

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp


class Buffers(sp.Scratch):
    sem = sp.dma_semaphore()
    acc = sp.vmem((8, 128), jnp.float32)


def nothing(x: sp.Ref, o: sp.Ref) -> None:
    sp.run_scoped(lambda sem: sp.async_copy(x, o, sem).wait(), sp.dma_semaphore())
    sp.run_scoped(lambda s: sp.async_copy(x, s.acc, s.sem).wait(), Buffers)


def main() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    positional = sp.pallas_call(
        lambda x, o, sem: sp.async_copy(x, o, sem).wait(),
        like,
        scratch_shapes=(sp.dma_semaphore(),),
        interpret=True,
    )
    np.testing.assert_array_equal(positional(x), x)
    named = sp.pallas_call(
        lambda x, o, s: sp.async_copy(x, o, s.sem).wait(),
        like,
        scratch_shapes=Buffers,
        interpret=True,
    )
    np.testing.assert_array_equal(named(x), x)
    scoped = sp.pallas_call(nothing, like, interpret=True)
    np.testing.assert_array_equal(scoped(x), x)
