"""A semaphore that leaves one kernel and enters the next: start and done apart."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp


def start(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.make_async_copy(x, o, sem).start()


def done(x: sp.Ref, o_in: sp.Ref, sem: sp.DmaSemaphore, o: sp.Ref) -> None:
    del x, o
    sp.wait_bytes(sem, o_in)


def copy(x: jax.Array) -> jax.Array:
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    semaphores = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    begun, sem = sp.pallas_call(
        start,
        (like, sp.dma_semaphore()),
        in_specs=[hbm],
        out_specs=(hbm, semaphores),
    )(x)
    result: jax.Array = sp.pallas_call(
        done,
        like,
        in_specs=[hbm, hbm, semaphores],
        out_specs=hbm,
        input_output_aliases={1: 0},
    )(x, begun, sem)
    return result


def main() -> None:
    # No interpreter carries a semaphore from one kernel to the next: trace it, run it elsewhere.
    x = jnp.ones((8, 128), jnp.float32)
    out = jax.eval_shape(copy, x)
    assert (out.shape, out.dtype) == (x.shape, x.dtype)


if __name__ == "__main__":
    main()
