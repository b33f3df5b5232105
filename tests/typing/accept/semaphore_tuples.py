"""Tuples of scalar semaphores: one parameter for all of them, indexed and zipped in Python."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

ROWS, SLOTS = 4, 2


def copy_row(src: sp.Ref, dst: sp.Ref, row: int, sems: tuple[sp.DmaSemaphore, ...]) -> sp.LocalCopy:
    return sp.make_async_copy(src.at[row], dst.at[row], sems[row % len(sems)])


def kernel(
    x: sp.Ref,
    o: sp.Ref,
    sems: tuple[sp.DmaSemaphore, ...],
    turns: tuple[sp.Semaphore, sp.Semaphore],
) -> None:
    assert len(sems) == SLOTS
    for row in range(ROWS):
        copy_row(x, o, row, sems).start()
        sp.signal(turns[row % 2])
    for row in range(ROWS):
        copy_row(x, o, row, sems).wait()
    even, odd = turns
    sp.wait(even, ROWS // 2)
    sp.wait(odd, ROWS // 2)

    # The tuple as an operand of JAX's loops, and one made here, of elements of an array.
    def again(row: jax.Array, sems: tuple[sp.DmaSemaphore, ...]) -> tuple[sp.DmaSemaphore, ...]:
        for sem in sems:
            sp.async_copy(x.at[row], o.at[row], sem).wait()
        return sems

    last = jax.lax.fori_loop(0, ROWS, again, sems)[-1]

    def body(more: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]) -> None:
        pair = (more.at[0], more.at[1])
        for row, sem in enumerate((*pair, last)):
            sp.async_copy(x.at[row], o.at[row], sem).wait()

    sp.run_scoped(body, sp.dma_semaphore(2))


def main() -> None:
    x = jnp.arange(ROWS * 128, dtype=jnp.float32).reshape(ROWS, 128)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=((sp.dma_semaphore(),) * SLOTS, (sp.semaphore(), sp.semaphore())),
        interpret=pltpu.InterpretParams(),
    )
    np.testing.assert_array_equal(call(x), x)
