"""Kernels over any number of refs, and kernels that take everything in one ``*refs``."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp


class Buffers(sp.Scratch):
    sem = sp.dma_semaphore()


def everything(*refs: Any) -> None:
    *inputs, o, sem = refs
    for i, x in enumerate(inputs):
        sp.async_copy(x, o.at[i], sem).wait()


def data_then_scratch(x: sp.Ref, *rest: Any) -> None:
    *others, o, s = rest
    for i, ref in enumerate((x, *others)):
        sp.async_copy(ref, o.at[i], s.sem).wait()


def only_data(*refs: sp.Ref) -> None:
    *inputs, o = refs
    for i, x in enumerate(inputs):
        sp.sync_copy(x, o.at[i])


def main() -> None:
    xs = [jnp.full((8, 128), float(i)) for i in range(3)]
    like = jax.ShapeDtypeStruct((3, 8, 128), jnp.float32)
    wanted = jnp.stack(xs)
    one = (sp.dma_semaphore(),)
    np.testing.assert_array_equal(
        sp.pallas_call(everything, like, scratch_shapes=one, interpret=True)(*xs), wanted
    )
    np.testing.assert_array_equal(
        sp.pallas_call(data_then_scratch, like, scratch_shapes=Buffers, interpret=True)(*xs), wanted
    )
    np.testing.assert_array_equal(sp.pallas_call(only_data, like, interpret=True)(*xs), wanted)
