"""Positional scratch: a tuple of requests, one parameter for each."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp


def one(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
    copy = sp.make_async_copy(x, o, sem)
    copy.start()
    copy.wait()


def two(x: sp.Ref, y: sp.Ref, o: sp.Ref, done: sp.Semaphore, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(x, o.at[0], sem).wait()
    sp.async_copy(y, o.at[1], sem).wait()
    sp.signal(done, 2)
    sp.wait(done, 2)


def six(
    x: sp.Ref,
    y: sp.Ref,
    total: sp.Ref,
    difference: sp.Ref,
    left: sp.Ref,
    right: sp.Ref,
    offsets: sp.Ref,
    fetched: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]],
    stored: sp.DmaSemaphore,
    ready: sp.Semaphore,
) -> None:
    offsets[0] = 1
    copies = [
        sp.async_copy(x, left, fetched.at[0]),
        sp.async_copy(y, right, fetched.at[1]),
    ]
    for copy in copies:
        copy.wait()
        sp.signal(ready)
    sp.wait(ready, len(copies))
    total[...] = left[...] + right[...] + offsets[0]
    left[...] -= right[...]
    sp.async_copy(left, difference, stored).wait()


def main() -> None:
    x = jnp.arange(1024, dtype=jnp.int32).reshape(8, 128)
    y = x[::-1]
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    pair = jax.ShapeDtypeStruct((2, *x.shape), x.dtype)

    copied = sp.pallas_call(one, like, scratch_shapes=(sp.dma_semaphore(),), interpret=True)(x)
    np.testing.assert_array_equal(copied, x)

    both = sp.pallas_call(
        two, pair, scratch_shapes=(sp.semaphore(), sp.dma_semaphore()), interpret=True
    )(x, y)
    np.testing.assert_array_equal(both, jnp.stack([x, y]))

    hbm = pl.BlockSpec(memory_space=pl.ANY)
    total, difference = sp.pallas_call(
        six,
        (like, like),
        in_specs=[hbm, hbm],
        out_specs=(pl.BlockSpec(), hbm),
        scratch_shapes=(
            sp.vmem(x.shape, x.dtype),
            sp.vmem(x.shape, x.dtype),
            sp.smem((1,), jnp.int32),
            sp.dma_semaphore(2),
            sp.dma_semaphore(),
            sp.semaphore(),
        ),
        interpret=pltpu.InterpretParams(),
    )(x, y)
    np.testing.assert_array_equal(total, x + y + 1)
    np.testing.assert_array_equal(difference, x - y)
