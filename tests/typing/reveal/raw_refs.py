"""The types of raw Pallas refs: what indexing a `SemaphoreArrayRef` gives, and views of a `Ref`."""

from typing import Any, assert_type

import jax
from jax.experimental import pallas as pl

import safepallas as sp
from safepallas.raw import DmaSemaphoreRef, Ref, SemaphoreArrayRef, SemaphoreRef

Line = SemaphoreArrayRef[DmaSemaphoreRef, tuple[int]]
Plane = SemaphoreArrayRef[SemaphoreRef, tuple[int, int]]
Cube = SemaphoreArrayRef[DmaSemaphoreRef, tuple[int, int, int]]
Tesseract = SemaphoreArrayRef[DmaSemaphoreRef, tuple[int, int, int, int]]


def indices(a: Line, b: Plane, c: Cube, d: Tesseract, i: jax.Array) -> None:
    assert_type(a.at[0], DmaSemaphoreRef)
    assert_type(a.at[i], DmaSemaphoreRef)
    assert_type(a.at[0:1], Line)
    assert_type(a.at[pl.ds(0, 1)], Line)
    assert_type(a.at[...], Line)
    assert_type(b.at[0, i], SemaphoreRef)
    assert_type(b.at[0], SemaphoreArrayRef[SemaphoreRef, tuple[int]])
    assert_type(b.at[0].at[i], SemaphoreRef)
    assert_type(c.at[0, 0, i], DmaSemaphoreRef)
    assert_type(c.at[0, i], Line)
    assert_type(c.at[0], SemaphoreArrayRef[DmaSemaphoreRef, tuple[int, int]])
    assert_type(d.at[0, 0, 0, 0], Any)
    assert_type(d.shape, tuple[int, int, int, int])
    assert_type(len(a), int)


def data(x: Ref) -> None:
    assert_type(x.at[0], Ref)
    assert_type(x.T.reshape(8, 128).bitcast("int32"), Ref)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.size + x.ndim + len(x), int)
    assert_type(x[0], Any)
    assert_type(sp.sync_copy(x, x.at[0]), None)


def adopted(a: Line, one: SemaphoreRef) -> None:
    assert_type(sp.adopt(a.at[0], sp.dma_semaphore()), sp.DmaSemaphore)
    assert_type(sp.adopt(one, sp.semaphore()), sp.Semaphore)
    array = sp.adopt(a, sp.dma_semaphore(2))
    assert_type(array, sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]])
    again: Line = array.ref
    assert_type(again.at[0], DmaSemaphoreRef)
