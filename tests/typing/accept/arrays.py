"""Arrays of semaphores: indexed, iterated over, printed."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

equal = np.testing.assert_array_equal
DmaSemaphores = sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]
SIMULATED = pltpu.InterpretParams()


def shaped(x: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


# Arrays of semaphores of ranks 1 to 4, indexed by ints and by traced indices.
class Sems(sp.Scratch):
    line = sp.dma_semaphore(4)
    plane = sp.dma_semaphore(2, 2)
    cube = sp.dma_semaphore(2, 2, 2)
    tesseract = sp.dma_semaphore(2, 1, 2, 2)
    counts = sp.semaphore(2, 2)


def kernel(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    def start(i: jax.Array, carry: None) -> None:
        sp.make_async_copy(x.at[0, i], o.at[0, i], s.line.at[i]).start()
        row, col = i // 2, jax.lax.rem(i, 2)
        sp.make_async_copy(x.at[1, i], o.at[1, i], s.plane.at[row, col]).start()
        # In two steps, and with a Python int in between.
        sp.make_async_copy(x.at[2, i], o.at[2, i], s.cube.at[1].at[row, col]).start()
        sp.make_async_copy(x.at[3, i], o.at[3, i], s.tesseract.at[row, 0].at[1].at[col]).start()
        sp.signal(s.counts.at[row, col], i + 1)
        return carry

    def wait(i: jax.Array, carry: jax.Array) -> jax.Array:
        row, col = i // 2, jax.lax.rem(i, 2)
        sp.make_async_copy(x.at[0, i], o.at[0, i], s.line[i]).wait()
        sp.make_async_copy(x.at[1, i], o.at[1, i], s.plane[row][col]).wait()
        sp.make_async_copy(x.at[2, i], o.at[2, i], s.cube[1, row, col]).wait()
        sp.make_async_copy(x.at[3, i], o.at[3, i], s.tesseract[row, 0, 1, col]).wait()
        sp.wait(s.counts[row, col], i + 1)
        return carry + 1

    jax.lax.fori_loop(0, 4, start, None)
    jax.lax.fori_loop(0, 4, wait, jnp.int32(0))

    # NumPy integers and negative ints are indices, too.
    last = s.line.at[-1]
    for i in np.arange(2):
        sp.async_copy(x.at[0, 0], o.at[0, 0], s.plane.at[i, -1]).wait()
    sp.async_copy(x.at[0, 3], o.at[0, 3], last).wait()


def check_array_ranks() -> None:
    x = jnp.arange(4 * 4 * 128, dtype=jnp.float32).reshape(4, 4, 128)
    call = sp.pallas_call(kernel, shaped(x), scratch_shapes=Sems, interpret=SIMULATED)
    equal(call(x), x)


# Iterating over arrays of semaphores: elements of rank 1, rows of higher ranks.
def iteration(
    x: sp.Ref,
    o: sp.Ref,
    sems: DmaSemaphores,
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


def check_iteration() -> None:
    x = jnp.arange(3 * 128, dtype=jnp.float32).reshape(3, 128)
    call = sp.pallas_call(
        iteration,
        shaped(x),
        scratch_shapes=(sp.dma_semaphore(3), sp.semaphore(1, 2)),
        interpret=True,
    )
    equal(call(x), x)


# Reading counts, printing handles, asking which is which: what debugging looks like.
def report(sem: sp.Semaphore | sp.BarrierSemaphore | sp.DmaSemaphore) -> str:
    if isinstance(sem, sp.DmaSemaphore):
        return f"bytes on {sem}"
    return f"count on {sem!r}"


def debugging(x: sp.Ref, o: sp.Ref, count: sp.Semaphore, sems: DmaSemaphores) -> None:
    sp.signal(count, 5)
    before = sp.read(count)
    sp.wait(count, 2)
    copy = sp.async_copy(x, x, sems.at[0])
    copy.wait()
    o[0] = before + sp.read(count)
    o[1] = jnp.where(sp.read(sems.at[1]) == 0, 1, 0)
    sp.wait(count, 3)
    names = {report(count), report(sems.at[0]), str(sems), repr(copy)}
    assert len(names) == 4
    chosen = sems.at[0]
    assert chosen is not None
    assert count in (count,)
    assert sems.shape == (2,)


def check_debugging() -> None:
    x = jnp.ones((8, 128), jnp.float32)
    call = sp.pallas_call(
        debugging,
        jax.ShapeDtypeStruct((2,), jnp.int32),
        scratch_shapes=(sp.semaphore(), sp.dma_semaphore(2)),
        interpret=True,
    )
    equal(call(x), [8, 1])
