"""One helper for a semaphore of its own and for one per slot."""

from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp

Sems: TypeAlias = sp.DmaSemaphore | sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]


def at_slot(sems: Sems, slot: int | jax.Array) -> sp.DmaSemaphore:
    if isinstance(sems, sp.DmaSemaphore):
        return sems
    return sems.at[slot]


def copy_rows(src: sp.Ref, dst: sp.Ref, sems: Sems) -> None:
    for row in range(src.shape[0]):
        sp.async_copy(src.at[row], dst.at[row], at_slot(sems, row % 2)).wait()


def finish(sem: sp.Semaphore | sp.DmaSemaphore, like: sp.Ref) -> None:
    """Wait for whatever this kind of semaphore counts."""
    if isinstance(sem, sp.Semaphore):
        sp.wait(sem)
    else:
        sp.wait_bytes(sem, like)


def kernel(
    x: sp.Ref,
    o: sp.Ref,
    one: sp.DmaSemaphore,
    slots: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]],
    done: sp.Semaphore,
) -> None:
    copy_rows(x.at[:2], o.at[:2], one)
    copy_rows(x.at[2:], o.at[2:], slots)
    sp.signal(done)
    sp.make_async_copy(x, o, one).start()
    for sem in (done, one):
        finish(sem, o)


def main() -> None:
    x = jnp.arange(512, dtype=jnp.float32).reshape(4, 128)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=(sp.dma_semaphore(), sp.dma_semaphore(2), sp.semaphore()),
        interpret=True,
    )
    np.testing.assert_array_equal(call(x), x)
