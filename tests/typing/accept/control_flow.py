"""Handles as operands of JAX's control flow: they are pytrees, as refs are."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

ROWS = 4


class Pair(NamedTuple):
    sem: sp.DmaSemaphore
    credit: sp.Semaphore


def kernel(
    x: sp.Ref,
    o: sp.Ref,
    sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]],
    count: sp.Semaphore,
) -> None:
    def even(sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]], count: sp.Semaphore) -> None:
        sp.async_copy(x.at[0], o.at[0], sems.at[0]).wait()
        sp.signal(count)

    def odd(sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]], count: sp.Semaphore) -> None:
        sp.async_copy(x.at[0], o.at[0], sems.at[1]).wait()
        sp.signal(count)

    jax.lax.cond(x[0, 0] > 0, even, odd, sems, count)

    def take(pair: Pair) -> None:
        sp.async_copy(x.at[1], o.at[1], pair.sem).wait()
        sp.wait(pair.credit)

    jax.lax.switch(jnp.int32(1), [take, take], Pair(sems.at[1], count))

    def body(i: jax.Array, total: jax.Array) -> jax.Array:
        sp.async_copy(x.at[i], o.at[i], sems.at[jax.lax.rem(i, 2)]).wait()
        return total + 1

    total = jax.lax.fori_loop(2, ROWS, body, jnp.int32(0))
    sp.signal(count, total)
    sp.wait(count, ROWS - 2)

    def more(carry: tuple[jax.Array, jax.Array]) -> jax.Array:
        return carry[0] < 3

    def step(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        i, sent = carry
        sp.signal(count)
        return i + 1, sent + 1

    _, sent = jax.lax.while_loop(more, step, (jnp.int32(0), jnp.int32(0)))
    sp.wait(count, sent)


def main() -> None:
    x = jnp.arange(1, ROWS * 128 + 1, dtype=jnp.float32).reshape(ROWS, 128)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=(sp.dma_semaphore(2), sp.semaphore()),
        interpret=pltpu.InterpretParams(),
    )
    np.testing.assert_array_equal(call(x), x)
