"""The arguments that pallas_call passes on, and what may stand around a call."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp


class Buffers(sp.Scratch):
    sem = sp.dma_semaphore()


def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, o, s.sem).wait()


def pair(x: sp.Ref, first: sp.Ref, second: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, first, s.sem).wait()
    second[...] = first[...] + 1.0


@functools.partial(jax.jit, static_argnames="interpret")
def copy(x: jax.Array, *, interpret: bool = False) -> jax.Array:
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(2,),
        in_specs=[pl.BlockSpec((4, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((4, 128), lambda i: (i, 0)),
        scratch_shapes=Buffers,
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
        interpret=interpret,
        name="copy",
        cost_estimate=pl.CostEstimate(flops=0, bytes_accessed=8192, transcendentals=0),
        metadata={"owner": "typing"},
        debug=False,
    )
    result: jax.Array = call(x)
    return result


def main() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    np.testing.assert_array_equal(copy(x, interpret=True), x)
    for out_shape in ((like, like), [like, like]):
        first, second = sp.pallas_call(pair, out_shape, scratch_shapes=Buffers, interpret=True)(x)
        np.testing.assert_array_equal(first, x)
        np.testing.assert_array_equal(second, x + 1)
    in_place = sp.pallas_call(
        kernel, like, scratch_shapes=Buffers, input_output_aliases={0: 0}, interpret=True
    )
    np.testing.assert_array_equal(jax.jit(in_place)(x), x)
    batched = jax.vmap(sp.pallas_call(kernel, like, scratch_shapes=Buffers, interpret=True))
    np.testing.assert_array_equal(batched(jnp.stack([x, -x])), jnp.stack([x, -x]))
