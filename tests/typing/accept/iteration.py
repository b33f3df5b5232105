"""Iterating over arrays of semaphores: elements of rank 1, rows of higher ranks."""

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp


def kernel(
    x: sp.Ref,
    o: sp.Ref,
    sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]],
    grid: sp.SemaphoreArray[sp.Semaphore, tuple[int, int]],
) -> None:
    copies = [sp.async_copy(x.at[i], o.at[i], sem) for i, sem in enumerate(sems)]
    for copy, sem in zip(copies, sems, strict=True):
        copy.wait()
        sp.make_async_copy(x.at[0], o.at[0], sem).start()
        sp.wait_bytes(sem, o.at[0])

    for row in grid:
        for count in row:
            sp.signal(count, 2)
    rows, cols = grid.shape
    for i in range(rows):
        for j in range(cols):
            sp.wait(grid.at[i, j])
    left, right = grid.at[0]
    sp.wait(left)
    sp.wait(right)
    (_, last), *_ = grid
    sp.signal(last, len(grid))
    sp.wait(last, 1)
    for count in grid[0]:
        sp.signal(count, 0)


def main() -> None:
    x = jnp.arange(3 * 128, dtype=jnp.float32).reshape(3, 128)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=(sp.dma_semaphore(3), sp.semaphore(1, 2)),
        interpret=True,
    )
    np.testing.assert_array_equal(call(x), x)
