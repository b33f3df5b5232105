"""Kernels that are methods and callable objects."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp


class Buffers(sp.Scratch):
    acc = sp.vmem((8, 128), jnp.float32)
    sem = sp.dma_semaphore()


@dataclasses.dataclass(frozen=True)
class Scale:
    by: float

    def kernel(self, x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
        sp.async_copy(x, s.acc, s.sem).wait()
        o[...] = s.acc[...] * self.by

    def __call__(self, x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
        sp.async_copy(x, o, sem).wait()
        o[...] *= self.by

    @staticmethod
    def copy(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
        sp.async_copy(x, o, sem).wait()


def main() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    scale = Scale(3.0)
    one = (sp.dma_semaphore(),)
    bound = sp.pallas_call(scale.kernel, like, scratch_shapes=Buffers, interpret=True)
    np.testing.assert_array_equal(bound(x), x * 3)
    called = sp.pallas_call(scale, like, scratch_shapes=one, interpret=True)
    np.testing.assert_array_equal(called(x), x * 3)
    static = sp.pallas_call(Scale.copy, like, scratch_shapes=one, interpret=True)
    np.testing.assert_array_equal(static(x), x)
