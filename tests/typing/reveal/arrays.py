"""Every way to index and to iterate, at every rank."""

from collections.abc import Iterator
from typing import Any, TypeAlias, assert_type

import jax
import numpy as np

import safepallas as sp
from safepallas import raw

Dma: TypeAlias = sp.DmaSemaphore
Line: TypeAlias = sp.SemaphoreArray[Dma, tuple[int]]
Plane: TypeAlias = sp.SemaphoreArray[Dma, tuple[int, int]]
Cube: TypeAlias = sp.SemaphoreArray[Dma, tuple[int, int, int]]
Tesseract: TypeAlias = sp.SemaphoreArray[Dma, tuple[int, int, int, int]]


def indices(a: Line, b: Plane, c: Cube, d: Tesseract) -> None:
    assert_type(a.at[0], Dma)
    assert_type(a[0], Dma)

    assert_type(b.at[0, 1], Dma)
    assert_type(b[0, 1], Dma)
    assert_type(b.at[0], Line)
    assert_type(b[0], Line)
    assert_type(b.at[0].at[1], Dma)
    assert_type(b[0][1], Dma)

    assert_type(c.at[0, 1, 2], Dma)
    assert_type(c[0, 1, 2], Dma)
    assert_type(c.at[0, 1], Line)
    assert_type(c[0, 1], Line)
    assert_type(c.at[0], Plane)
    assert_type(c[0], Plane)
    assert_type(c.at[0].at[1, 2], Dma)
    assert_type(c.at[0, 1].at[2], Dma)

    assert_type(d.at[0, 1, 2, 3], Dma)
    assert_type(d[0, 1, 2, 3], Dma)
    assert_type(d.at[0, 1, 2], Line)
    assert_type(d[0, 1, 2], Line)
    assert_type(d.at[0, 1], Plane)
    assert_type(d[0, 1], Plane)
    assert_type(d.at[0], Cube)
    assert_type(d[0], Cube)
    assert_type(d[0][1][2][3], Dma)
    assert_type(d[0].at[1, 2][3], Dma)


def kinds_of_index(
    a: Line, b: Plane, i: int, traced: jax.Array, n: np.int32, m: np.intp, j: int | jax.Array
) -> None:
    assert_type(a.at[-1], Dma)
    assert_type(a.at[i], Dma)
    assert_type(a.at[traced], Dma)
    assert_type(a.at[n], Dma)
    assert_type(a.at[m], Dma)
    assert_type(a.at[j], Dma)
    assert_type(a[jax.lax.rem(traced, 2)], Dma)
    assert_type(b.at[i, traced], Dma)
    assert_type(b.at[traced, n], Dma)
    assert_type(b.at[(i, j)], Dma)
    assert_type(b[j], Line)


def kinds_of_semaphore(
    regular: sp.SemaphoreArray[sp.Semaphore, tuple[int, int]],
    barrier: sp.SemaphoreArray[sp.BarrierSemaphore, tuple[int]],
) -> None:
    assert_type(regular.at[0, 0], sp.Semaphore)
    assert_type(regular.at[0], sp.SemaphoreArray[sp.Semaphore, tuple[int]])
    assert_type(barrier[0], sp.BarrierSemaphore)


def iteration(a: Line, b: Plane, c: Cube, d: Tesseract) -> None:
    for sem in a:
        assert_type(sem, Dma)
    for row in b:
        assert_type(row, Line)
        for sem in row:
            assert_type(sem, Dma)
    for plane in c:
        assert_type(plane, Plane)
    for cube in d:
        assert_type(cube, Cube)
    assert_type(iter(a), Iterator[Dma])
    assert_type(list(a), list[Dma])
    assert_type(dict(enumerate(b)), dict[int, Line])
    first, second = a
    assert_type(first, Dma)
    assert_type(second, Dma)
    assert_type([sem for row in b for sem in row], list[Dma])
    assert_type(next(iter(c)), Plane)


def attributes(a: Line, b: Plane, c: Cube, d: Tesseract) -> None:
    assert_type(a.shape, tuple[int])
    assert_type(b.shape, tuple[int, int])
    assert_type(c.shape, tuple[int, int, int])
    assert_type(d.shape, tuple[int, int, int, int])
    assert_type(b.at[0].shape, tuple[int])
    assert_type(len(a), int)
    assert_type(a.ref, raw.SemaphoreArrayRef[Any, tuple[int]])
    assert_type(b.ref.shape, tuple[int, int])
    assert_type(a.ref.dtype, Any)
    assert_type(a.ref.at[0], Any)
