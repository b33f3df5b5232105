"""Kernels with options: functools.partial over keyword-only parameters, with and without defaults.

The options may stand before the refs, too, bound by position.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp


class Buffers(sp.Scratch):
    acc = sp.vmem((8, 128), jnp.float32)
    sem = sp.dma_semaphore()


def scaled(
    x: sp.Ref, o: sp.Ref, acc: sp.Ref, sem: sp.DmaSemaphore, *, scale: float, shift: float = 0.0
) -> None:
    sp.async_copy(x, acc, sem).wait()
    o[...] = acc[...] * scale + shift


def rows_first(rows: int, x: sp.Ref, o: sp.Ref, s: Buffers, *, negate: bool = False) -> None:
    o[...] = jnp.zeros(o.shape, o.dtype)
    sp.async_copy(x.at[:rows], s.acc.at[:rows], s.sem).wait()
    part = s.acc[:rows]
    o[:rows] = -part if negate else part


def main() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)

    for scale in (1.0, 3.0):
        call = sp.pallas_call(
            functools.partial(scaled, scale=scale),
            like,
            scratch_shapes=(sp.vmem((8, 128), jnp.float32), sp.dma_semaphore()),
            interpret=True,
        )
        np.testing.assert_array_equal(call(x), x * scale)

    shifted = sp.pallas_call(
        functools.partial(scaled, scale=2.0, shift=1.0),
        like,
        scratch_shapes=(sp.vmem((8, 128), jnp.float32), sp.dma_semaphore()),
        interpret=True,
    )
    np.testing.assert_array_equal(shifted(x), x * 2 + 1)

    first = sp.pallas_call(
        functools.partial(rows_first, 4, negate=True), like, scratch_shapes=Buffers, interpret=True
    )
    np.testing.assert_array_equal(first(x), -x.at[4:].set(0.0))

    # A default after the scratch, left alone.
    def halved(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, by: float = 0.5) -> None:
        sp.async_copy(x, o, sem).wait()
        o[...] *= by

    at_half = sp.pallas_call(halved, like, scratch_shapes=(sp.dma_semaphore(),), interpret=True)
    np.testing.assert_array_equal(at_half(x), x / 2)
