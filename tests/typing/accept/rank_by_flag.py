"""A flag that decides how many semaphores there are: one for all rows, or one for each."""

from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp

ROWS = 4
Many: TypeAlias = sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]


def request(per_row: bool) -> sp.Spec[sp.DmaSemaphore | Many]:
    return sp.dma_semaphore(ROWS) if per_row else sp.dma_semaphore()


def copy_rows(x: sp.Ref, o: sp.Ref, sems: sp.DmaSemaphore | Many) -> None:
    def copy(row: int) -> sp.LocalCopy:
        sem = sems if isinstance(sems, sp.DmaSemaphore) else sems.at[row]
        return sp.make_async_copy(x.at[row], o.at[row], sem)

    for row in range(ROWS):
        copy(row).start()
    for row in range(ROWS):
        copy(row).wait()


def by_tuple(x: jax.Array, per_row: bool) -> jax.Array:
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = sp.pallas_call(copy_rows, like, scratch_shapes=(request(per_row),), interpret=True)
    result: jax.Array = call(x)
    return result


def by_class(x: jax.Array, per_row: bool) -> jax.Array:
    class Sems(sp.Scratch):
        rows = request(per_row)

    def kernel(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
        copy_rows(x, o, s.rows)

    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    result: jax.Array = sp.pallas_call(kernel, like, scratch_shapes=Sems, interpret=True)(x)
    return result


def by_scope(x: jax.Array, per_row: bool) -> jax.Array:
    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        def body(sems: sp.DmaSemaphore | Many) -> None:
            copy_rows(x, o, sems)

        sp.run_scoped(body, request(per_row))

    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    result: jax.Array = sp.pallas_call(kernel, like, interpret=True)(x)
    return result


def main() -> None:
    x = jnp.arange(ROWS * 128, dtype=jnp.float32).reshape(ROWS, 128)
    for per_row in (False, True):
        for copy in (by_tuple, by_class, by_scope):
            np.testing.assert_array_equal(copy(x, per_row), x)
