"""Helper functions that take handles, arrays and copies, and give them back."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

equal = np.testing.assert_array_equal
X = jnp.arange(512, dtype=jnp.float32).reshape(4, 128)
LIKE = jax.ShapeDtypeStruct(X.shape, X.dtype)
Semaphores = sp.SemaphoreArray[sp.Semaphore, tuple[int]]
SIMULATED = pltpu.InterpretParams()


# Helper functions that take handles, arrays and copies, and give them back.
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


def pick(sems: Semaphores, i: int | jax.Array) -> sp.Semaphore:
    return sems.at[i]


def once(action: Callable[[sp.Semaphore], None], sem: sp.Semaphore) -> None:
    action(sem)


def kernel(
    x: sp.Ref, o: sp.Ref, sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]], counts: Semaphores
) -> None:
    copies = row_copies(x, o, sems)
    start_all(copies)
    wait_all(copies)
    arrive(pick(counts, 0), times=2)
    once(arrive, pick(counts, -1))
    once(sp.wait, counts.at[1])
    sp.wait(pick(counts, 0), 2)


def check_helpers() -> None:
    call = sp.pallas_call(
        kernel, LIKE, scratch_shapes=(sp.dma_semaphore(ROWS), sp.semaphore(2)), interpret=SIMULATED
    )
    equal(call(X), X)


# Helpers that keep the kind of what they are given: type variables over handles.
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


def generic_helpers(
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


def check_generic_helpers() -> None:
    call = sp.pallas_call(
        generic_helpers,
        LIKE,
        scratch_shapes=(sp.dma_semaphore(2), sp.semaphore(1, 2)),
        interpret=True,
    )
    equal(call(X), X)


Sems: TypeAlias = sp.DmaSemaphore | sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]


# A flag that decides how many semaphores there are: one for all rows, or one for each.
Many: TypeAlias = sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]


def request(per_row: bool) -> sp.Spec[sp.DmaSemaphore | Many]:
    return sp.dma_semaphore(ROWS) if per_row else sp.dma_semaphore()


def copy_each_row(x: sp.Ref, o: sp.Ref, sems: sp.DmaSemaphore | Many) -> None:
    def copy(row: int) -> sp.LocalCopy:
        sem = sems if isinstance(sems, sp.DmaSemaphore) else sems.at[row]
        return sp.make_async_copy(x.at[row], o.at[row], sem)

    for row in range(ROWS):
        copy(row).start()
    for row in range(ROWS):
        copy(row).wait()


def by_tuple(x: jax.Array, per_row: bool) -> jax.Array:
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = sp.pallas_call(copy_each_row, like, scratch_shapes=(request(per_row),), interpret=True)
    result: jax.Array = call(x)
    return result


def by_class(x: jax.Array, per_row: bool) -> jax.Array:
    class Sems(sp.Scratch):
        rows = request(per_row)

    def kernel(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
        copy_each_row(x, o, s.rows)

    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    result: jax.Array = sp.pallas_call(kernel, like, scratch_shapes=Sems, interpret=True)(x)
    return result


def by_scope(x: jax.Array, per_row: bool) -> jax.Array:
    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        def body(sems: sp.DmaSemaphore | Many) -> None:
            copy_each_row(x, o, sems)

        sp.run_scoped(body, request(per_row))

    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    result: jax.Array = sp.pallas_call(kernel, like, interpret=True)(x)
    return result


def check_rank_by_flag() -> None:
    for per_row in (False, True):
        for copy in (by_tuple, by_class, by_scope):
            equal(copy(X, per_row), X)
