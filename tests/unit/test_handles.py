"""Handles and arrays as objects: what they show, and how they are indexed."""

import copy
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

from .helpers import CLASSES, FLOATS, KINDS, RANKS, SIZES, Kernel, in_kernel, trace

# What they show.


@in_kernel
def test_class_shape_and_length(k: Kernel) -> None:
    for kind in KINDS:
        assert type(k.sem(kind)) is CLASSES[kind]
        for rank in RANKS[1:]:
            array = k.sem(kind, rank)
            assert type(array) is sp.SemaphoreArray
            assert type(array[(0,) * rank]) is CLASSES[kind]
            assert array.shape == array.ref.shape == SIZES[:rank]
            assert array[0].ref.shape == array.shape[1:]
            assert len(array) == SIZES[0]


@in_kernel
def test_attributes_that_they_lack(k: Kernel) -> None:
    for name in ("shape", "dtype", "at", "__len__", "__iter__", "__getitem__", "__add__"):
        assert not hasattr(k.dma0, name)
    for name in ("dtype", "set", "get", "__add__", "__setitem__"):
        assert not hasattr(k.dma1, name)
    for sem in (k.dma0, k.dma1):
        assert not hasattr(sem, "__dict__")


@in_kernel
def test_text(k: Kernel) -> None:
    for sem, start in (
        (k.dma0, "DmaSemaphore 'dma0' ("),
        (k.dma1, "SemaphoreArray[DmaSemaphore] of shape (2,) 'dma1' ("),
        (k.regular2[1], "SemaphoreArray[Semaphore] of shape (3,) 'regular2[1]' ("),
        (k.regular2[1, 2], "Semaphore 'regular2[1, 2]' ("),
        (k.regular2[1][2], "Semaphore 'regular2[1][2]' ("),
        (k.barrier1[k.traced(jnp.int32)], "BarrierSemaphore 'barrier1[?]' ("),
    ):
        assert str(sem).startswith(start)
        assert repr(sem) == f"<{sem}>"


@in_kernel
def test_ref_is_the_raw_ref(k: Kernel) -> None:
    for sem in (k.dma0, k.dma1, k.regular2[0, 1]):
        assert sem.ref is sem.ref
    pl.semaphore_signal(k.regular0.ref, 1)
    pltpu.make_async_copy(k.x, k.o, k.dma1[0].ref).start()


@in_kernel
def test_identity_and_hash(k: Kernel) -> None:
    for sem, same, other in ((k.dma0, k.dma0, k.regular0), (k.dma1, k.dma1, k.regular1)):
        assert sem == same
        assert hash(sem) == hash(same)
        assert sem != other
        assert {sem, same, other} == {other, sem}
        assert {sem: 1}[same] == 1
    assert k.dma1[0] != k.dma1[0], "two handles, though on one semaphore"


@in_kernel
def test_copying(k: Kernel) -> None:
    """Raw refs cannot be copied either; containers of handles can."""
    for sem in (k.dma0, k.dma1):
        for copier in (copy.copy, copy.deepcopy):
            with pytest.raises(Exception):  # noqa: B017, PT011
                copier(sem.ref)
            with pytest.raises(TypeError):
                copier(sem)
        assert copy.copy([sem]) == [sem]
        assert copy.copy({"a": sem})["a"] is sem


# Indexing.


def jaxpr_of(test: Callable[[Kernel], None]) -> str:
    return str(trace(test))


@pytest.mark.parametrize(
    "index",
    [
        lambda k: (0, 0),
        lambda k: (1, 2),
        lambda k: (np.int64(1), np.int8(0)),
        lambda k: (k.traced(jnp.int32), 1),
        lambda k: (0, k.traced(jnp.int32)),
    ],
)
def test_index_is_that_of_the_raw_ref(index: Any) -> None:
    raw = jaxpr_of(lambda k: pl.semaphore_signal(k.regular2.ref.at[index(k)], 1))
    assert jaxpr_of(lambda k: sp.signal(k.regular2.at[index(k)])) == raw
    assert jaxpr_of(lambda k: sp.signal(k.regular2[index(k)])) == raw


def test_index_by_steps_is_that_of_the_raw_ref() -> None:
    raw = jaxpr_of(lambda k: pl.semaphore_signal(k.regular3.ref.at[1].at[2, 0], 1))
    assert jaxpr_of(lambda k: sp.signal(k.regular3.at[1].at[2, 0])) == raw
    assert jaxpr_of(lambda k: sp.signal(k.regular3[1][2, 0])) == raw


@pytest.mark.parametrize("rank", RANKS[1:])
def test_negative_index_counts_from_the_end(rank: int) -> None:
    last = tuple(size - 1 for size in SIZES[:rank])
    first = (0,) * rank
    for negative, positive in (
        ((-1,) * rank, last),
        (tuple(-size for size in SIZES[:rank]), first),
        ((np.int64(-1),) * rank, last),
    ):
        assert jaxpr_of(lambda k, i=negative: sp.signal(k.sem("regular", rank)[i])) == jaxpr_of(
            lambda k, i=positive: sp.signal(k.sem("regular", rank)[i])
        )


@in_kernel
def test_iteration(k: Kernel) -> None:
    for kind in KINDS:
        assert [type(sem) for sem in k.sem(kind, 1)] == [CLASSES[kind]] * SIZES[0]
        for rank in RANKS[2:]:
            rows = list(k.sem(kind, rank))
            assert [row.shape for row in rows] == [SIZES[1:rank]] * SIZES[0]
        (a, b), (_, c, _) = k.sem(kind, 1), k.sem(kind, 2)[1]
        assert type(a) is type(b) is type(c) is CLASSES[kind]


def test_iteration_is_indexing() -> None:
    def by_iterating(k: Kernel) -> None:
        for row in k.regular2:
            for sem in row:
                sp.signal(sem)

    def by_indexing(k: Kernel) -> None:
        for i in range(2):
            for j in range(3):
                sp.signal(k.regular2[i][j])

    assert jaxpr_of(by_iterating) == jaxpr_of(by_indexing)


def test_iteration_of_an_empty_array() -> None:
    def kernel(x: Any, o: Any, none: Any) -> None:
        assert list(none) == []
        assert len(none) == 0

    call = sp.pallas_call(kernel, FLOATS, scratch_shapes=(sp.semaphore(0),))
    jax.make_jaxpr(call)(jnp.zeros(FLOATS.shape))
