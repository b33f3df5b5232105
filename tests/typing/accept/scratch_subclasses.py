"""A Scratch that extends another, and helpers that take any Scratch with the base's fields."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp


class Fetch(sp.Scratch):
    """What every kernel of the family needs."""

    page = sp.vmem((8, 128), jnp.float32)
    arrived = sp.dma_semaphore()

    def fetch(self, src: sp.Ref) -> jax.Array:
        sp.async_copy(src, self.page, self.arrived).wait()
        return self.page[...]


class FetchAndStore(Fetch):
    result = sp.vmem((8, 128), jnp.float32)
    stored = sp.dma_semaphore()
    steps = sp.semaphore()


def bare(s: Fetch, x: sp.Ref) -> jax.Array:
    return s.fetch(x)


def read_only(x: sp.Ref, o: sp.Ref, s: Fetch) -> None:
    o[...] = bare(s, x)


def both(x: sp.Ref, o: sp.Ref, s: FetchAndStore) -> None:
    s.result[...] = bare(s, x) + 1.0
    sp.signal(s.steps)
    sp.async_copy(s.result, o, s.stored).wait()
    sp.wait(s.steps)


def main() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    params = pltpu.InterpretParams()
    small = sp.pallas_call(read_only, like, in_specs=[hbm], scratch_shapes=Fetch, interpret=params)
    np.testing.assert_array_equal(small(x), x)
    large = sp.pallas_call(
        both, like, in_specs=[hbm], out_specs=hbm, scratch_shapes=FetchAndStore, interpret=params
    )
    np.testing.assert_array_equal(large(x), x + 1)
    # A kernel written for the base takes the subclass.
    wide = sp.pallas_call(
        read_only, like, in_specs=[hbm], scratch_shapes=FetchAndStore, interpret=params
    )
    np.testing.assert_array_equal(wide(x), x)
