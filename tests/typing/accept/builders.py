"""Functions and decorators that build calls for any kernel and any Scratch."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

import safepallas as sp

G = TypeVar("G", bound=sp.Scratch)
X = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
LIKE = jax.ShapeDtypeStruct(X.shape, X.dtype)


class Buffers(sp.Scratch):
    acc = sp.vmem((8, 128), jnp.float32)
    sem = sp.dma_semaphore()


class Wide(Buffers):
    more = sp.semaphore(2)


def elementwise(
    kernel: Callable[[sp.Ref, sp.Ref, G], None], scratch: type[G]
) -> Callable[[jax.Array], jax.Array]:
    """A call for a kernel of one input and one output of the same shape."""

    def call(x: jax.Array) -> jax.Array:
        like = jax.ShapeDtypeStruct(x.shape, x.dtype)
        result: jax.Array = sp.pallas_call(kernel, like, scratch_shapes=scratch, interpret=True)(x)
        return result

    return call


def scoped(body: Callable[[G], jax.Array], scratch: type[G]) -> jax.Array:
    return sp.run_scoped(body, scratch)


def fetch(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, o, s.sem).wait()


def double(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    fetch(x, s.acc, s)
    o[...] = s.acc[...] * 2.0


def in_scope(x: sp.Ref, o: sp.Ref) -> None:
    def body(s: Wide) -> jax.Array:
        fetch(x, s.acc, s)
        return s.acc[...] + 1.0

    o[...] = scoped(body, Wide)


@functools.partial(
    sp.pallas_call, out_shape=LIKE, scratch_shapes=(sp.dma_semaphore(),), interpret=True
)
def decorated(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(x, o, sem).wait()


def looped(x: sp.Ref, o: sp.Ref, sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]) -> None:
    @pl.loop(0, 8)
    def _row(i: jax.Array) -> None:
        sp.async_copy(x.at[i], o.at[i], sems.at[jax.lax.rem(i, 2)]).wait()

    def again(carry: None, i: jax.Array) -> tuple[None, jax.Array]:
        sp.async_copy(x.at[i], o.at[i], sems.at[0]).wait()
        return carry, i

    jax.lax.scan(again, None, jnp.arange(2))


def wait_for(sem: sp.Semaphore | sp.DmaSemaphore, like: sp.Ref) -> None:
    match sem:
        case sp.Semaphore():
            sp.wait(sem)
        case sp.DmaSemaphore():
            sp.wait_bytes(sem, like)


def matched(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, done: sp.Semaphore) -> None:
    sp.make_async_copy(x, o, sem).start()
    sp.signal(done)
    for each in (sem, done):
        wait_for(each, o)


def main() -> None:
    np.testing.assert_array_equal(elementwise(double, Buffers)(X), X * 2)
    np.testing.assert_array_equal(elementwise(double, Wide)(X), X * 2)
    np.testing.assert_array_equal(sp.pallas_call(in_scope, LIKE, interpret=True)(X), X + 1)
    np.testing.assert_array_equal(decorated(X), X)
    kernels: dict[str, Callable[..., Any]] = {
        "looped": sp.pallas_call(
            looped, LIKE, scratch_shapes=(sp.dma_semaphore(2),), interpret=True
        ),
        "matched": sp.pallas_call(
            matched, LIKE, scratch_shapes=(sp.dma_semaphore(), sp.semaphore()), interpret=True
        ),
    }
    for call in kernels.values():
        np.testing.assert_array_equal(call(X), X)
