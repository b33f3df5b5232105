"""Helpers that keep the kind of what they are given: type variables over handles."""

from collections.abc import Callable
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp

S = TypeVar("S", bound=sp.Semaphore | sp.BarrierSemaphore | sp.DmaSemaphore)
K = TypeVar("K", sp.Semaphore, sp.DmaSemaphore)
C = TypeVar("C", bound=sp.LocalCopy | sp.RemoteCopy)
T = TypeVar("T")


def slot(sems: sp.SemaphoreArray[S, tuple[int]], i: int | jax.Array, size: int) -> S:
    """The semaphore for step `i` in a window of `size`."""
    return sems.at[jax.lax.rem(i, size) if isinstance(i, jax.Array) else i % size]


def first(sems: sp.SemaphoreArray[K, tuple[int, int]]) -> sp.SemaphoreArray[K, tuple[int]]:
    return sems.at[0]


def corner(sems: sp.SemaphoreArray[K, tuple[int, int]]) -> K:
    return sems.at[0, 0]


def started(copy: C) -> C:
    copy.start()
    return copy


class Window(Generic[S]):
    """A ring of semaphores and the position in it."""

    def __init__(self, sems: sp.SemaphoreArray[S, tuple[int]]) -> None:
        self.sems = sems
        self.position = 0

    def advance(self) -> S:
        sem = slot(self.sems, self.position, len(self.sems))
        self.position += 1
        return sem


def each(sems: sp.SemaphoreArray[S, tuple[int]], action: Callable[[S], T]) -> list[T]:
    return [action(sem) for sem in sems]


def kernel(
    x: sp.Ref,
    o: sp.Ref,
    sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]],
    counts: sp.SemaphoreArray[sp.Semaphore, tuple[int, int]],
) -> None:
    window = Window(sems)
    for i in range(x.shape[0]):
        started(sp.make_async_copy(x.at[i], o.at[i], window.advance())).wait()
    row = first(counts)
    each(row, sp.signal)
    each(row, lambda sem: sp.wait(sem, 1))
    sp.signal(slot(row, 3, 2))
    sp.signal(corner(counts), 0)
    sp.wait(row.at[1])


def main() -> None:
    x = jnp.arange(4 * 128, dtype=jnp.float32).reshape(4, 128)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=(sp.dma_semaphore(2), sp.semaphore(1, 2)),
        interpret=True,
    )
    np.testing.assert_array_equal(call(x), x)
