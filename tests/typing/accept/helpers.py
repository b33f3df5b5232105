"""Helper functions that take handles, arrays and copies, and give them back."""

from collections.abc import Callable, Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

ROWS = 4


def start_all(copies: Sequence[sp.LocalCopy], priority: int = 0) -> None:
    for copy in copies:
        copy.start(priority)


def wait_all(copies: Iterable[sp.LocalCopy | sp.RemoteCopy]) -> None:
    for copy in copies:
        copy.wait()


def row_copies(
    src: sp.Ref, dst: sp.Ref, sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]
) -> list[sp.LocalCopy]:
    return [sp.make_async_copy(src.at[i], dst.at[i], sems.at[i]) for i in range(len(sems))]


def arrive(sem: sp.Semaphore | sp.BarrierSemaphore, times: int = 1) -> None:
    for _ in range(times):
        sp.signal(sem)


def pick(sems: sp.SemaphoreArray[sp.Semaphore, tuple[int]], i: int | jax.Array) -> sp.Semaphore:
    return sems.at[i]


def once(action: Callable[[sp.Semaphore], None], sem: sp.Semaphore) -> None:
    action(sem)


def kernel(
    x: sp.Ref,
    o: sp.Ref,
    sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]],
    counts: sp.SemaphoreArray[sp.Semaphore, tuple[int]],
) -> None:
    copies = row_copies(x, o, sems)
    start_all(copies)
    wait_all(copies)
    arrive(pick(counts, 0), times=2)
    once(arrive, pick(counts, -1))
    once(sp.wait, counts.at[1])
    sp.wait(pick(counts, 0), 2)


def main() -> None:
    x = jnp.arange(ROWS * 128, dtype=jnp.int32).reshape(ROWS, 128)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=(sp.dma_semaphore(ROWS), sp.semaphore(2)),
        interpret=pltpu.InterpretParams(),
    )
    np.testing.assert_array_equal(call(x), x)
