"""Every wrong index of an array, in every place, of every rank."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

import safepallas as sp

from .helpers import (
    KINDS,
    RANKS,
    SIZES,
    Case,
    Kernel,
    judge_all,
    judge_under_x64,
    scalar_dtypes,
    trace,
)

# name: (error, what makes the index, given the kernel and the size of the dimension)
BAD: dict[str, tuple[type[Exception], Callable[[Kernel, int], Any]]] = {
    "bool": (sp.errors.IndexTypeError, lambda k, n: True),
    "numpy bool": (sp.errors.IndexTypeError, lambda k, n: np.bool_(False)),
    "float": (sp.errors.IndexTypeError, lambda k, n: 0.0),
    "numpy float": (sp.errors.IndexTypeError, lambda k, n: np.float32(0)),
    "str": (sp.errors.IndexTypeError, lambda k, n: "0"),
    "None": (sp.errors.IndexTypeError, lambda k, n: None),
    "slice": (sp.errors.IndexTypeError, lambda k, n: slice(0, 1)),
    "ellipsis": (sp.errors.IndexTypeError, lambda k, n: ...),
    "pl.ds": (sp.errors.IndexTypeError, lambda k, n: pl.ds(0, 1)),
    "list": (sp.errors.IndexTypeError, lambda k, n: [0]),
    "tuple": (sp.errors.IndexTypeError, lambda k, n: (0,)),
    "numpy vector": (sp.errors.IndexTypeError, lambda k, n: np.array([0])),
    "traced float": (sp.errors.IndexTypeError, lambda k, n: k.traced(jnp.float32)),
    "traced bool": (sp.errors.IndexTypeError, lambda k, n: k.traced(jnp.bool_)),
    "traced vector": (sp.errors.IndexTypeError, lambda k, n: k.traced(jnp.int32, (1,))),
    "array": (sp.errors.IndexTypeError, lambda k, n: k.x[...]),
    "semaphore": (sp.errors.IndexTypeError, lambda k, n: k.regular0),
    "size": (sp.errors.IndexRangeError, lambda k, n: n),
    "below minus size": (sp.errors.IndexRangeError, lambda k, n: -n - 1),
    "2**31": (sp.errors.IndexRangeError, lambda k, n: 2**31),
    "2**70": (sp.errors.IndexRangeError, lambda k, n: 2**70),
    "numpy size": (sp.errors.IndexRangeError, lambda k, n: np.int64(n)),
    "numpy below minus size": (sp.errors.IndexRangeError, lambda k, n: np.int8(-n - 1)),
}
GOOD: dict[str, Callable[[Kernel, int], Any]] = {
    "0": lambda k, n: 0,
    "last": lambda k, n: n - 1,
    "-1": lambda k, n: -1,
    "minus size": lambda k, n: -n,
    "numpy int": lambda k, n: np.int64(n - 1),
    "numpy int8": lambda k, n: np.int8(-1),
    "traced int32": lambda k, n: k.traced(jnp.int32),
    "traced int8": lambda k, n: k.traced(jnp.int8),
    "traced uint32": lambda k, n: k.traced(jnp.uint32),
    "traced int64": lambda k, n: k.traced(int),
}
HOW: dict[str, Callable[[Any, Any], Any]] = {
    "at": lambda array, index: array.at[index],
    "[]": lambda array, index: array[index],
}


def place(k: Kernel, rank: int, axis: int, count: int, make: Callable[[Kernel, int], Any]) -> Any:
    """`count` indices for an array of that rank, the one in question at `axis`, zeros before it."""
    index = [0] * count
    index[axis] = make(k, SIZES[axis])
    return tuple(index) if count > 1 or isinstance(index[0], (tuple, list)) else index[0]


def one(name: str, error: Any, kind: str, rank: int, make: Any) -> list[Case]:
    return [
        Case(
            f"{name} at {axis} of {count} of {kind}{rank} by {how}",
            error,
            lambda k, a=(rank, axis, count), get=get: get(k.sem(kind, rank), place(k, *a, make)),
        )
        for count in range(1, rank + 1)
        for axis in range(count)
        for how, get in HOW.items()
        if how == "at" or count == rank
    ]


CASES = [
    case
    for rank in RANKS[1:]
    for name, (error, make) in BAD.items()
    for case in one(name, error, KINDS[rank % 3], rank, make)
]
CASES += [
    Case(f"{name} of {kind}{rank}", error, lambda k, w=(kind, rank), i=index: k.sem(*w).at[i])
    for kind in KINDS
    for rank in RANKS[1:]
    for name, error, index in (
        ("no index", sp.errors.IndexTypeError, ()),
        ("too many indices", sp.errors.IndexRangeError, (0,) * (rank + 1)),
        ("too many by far", sp.errors.IndexRangeError, (0,) * 9),
        ("too many and bad", sp.errors.IndexRangeError, ("0",) * (rank + 1)),
    )
]
CASES += [  # each alone of its kind, so that no kind goes unseen
    case
    for kind in KINDS
    for name in ("bool", "traced float", "size", "below minus size")
    for case in one(f"{name}, again", BAD[name][0], kind, 1, BAD[name][1])
]
# The first of two faults is the one reported: alive before index, left before right.
CASES += [
    Case(
        f"dead {kind}{rank} by {name}",
        sp.errors.ScopeEndedError,
        lambda k, w=(kind, rank), i=index: k.dead(*w).at[i],
    )
    for kind in KINDS
    for rank in (1, 2)
    for name, index in (("0", 0), ("str", "0"), ("size", 99), ("no index", ()))
]
CASES += [
    Case("range, then type", sp.errors.IndexRangeError, lambda k: k.dma2.at[2, "0"]),
    Case("type, then range", sp.errors.IndexTypeError, lambda k: k.dma2.at["0", 3]),
]

FORGED_LEAVES: dict[str, Any] = {
    "int": lambda k: 0,
    "None": lambda k: None,
    "loaded array": lambda k: k.x[...],
    "int16 ref": lambda k: k.data.int16,
    "float ref": lambda k: k.x,
    "handle": lambda k: k.dma1,
}


def forged(k: Kernel, kind: str, rank: int, leaf: Any) -> Any:
    return jax.tree.map(lambda _: leaf, k.sem(kind, rank))


USE = {"regular": sp.signal, "barrier": sp.signal, "dma": sp.read}
for kind in KINDS:
    for name, make in FORGED_LEAVES.items():
        CASES.append(
            Case(
                f"{kind} array made to hold {name}, indexed and used",
                sp.errors.NotASemaphoreError,
                lambda k, kind=kind, make=make: USE[kind](forged(k, kind, 1, make(k))[0]),
            )
        )
        CASES.append(
            Case(
                f"{kind} array made to hold {name}, iterated and used",
                sp.errors.NotASemaphoreError,
                lambda k, kind=kind, make=make: [
                    USE[kind](sem) for sem in forged(k, kind, 1, make(k))
                ],
            )
        )
    for other in KINDS:
        error = None if kind == other else sp.errors.WrongKindError
        CASES.append(
            Case(
                f"{kind} array made to hold a {other} array",
                error,
                lambda k, kind=kind, other=other: USE[kind](
                    forged(k, kind, 1, k.sem(other, 1).ref)[0]
                ),
            )
        )


@pytest.mark.parametrize("part", range(40))
def test_misuse(part: int) -> None:
    judge_all(CASES[part::40])


def test_misuse_under_x64() -> None:
    judge_under_x64(CASES)


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(
            lambda k: sp.signal(forged(k, "regular", 1, k.regular1.ref.at[pl.ds(0, 1)])[1]),
            id="shorter",
        ),
        pytest.param(lambda k: sp.signal(forged(k, "regular", 1, k.regular0.ref)[0]), id="scalar"),
        pytest.param(
            lambda k: sp.signal(forged(k, "regular", 1, k.regular2.ref)[0]), id="longer rank"
        ),
    ],
)
def test_array_made_to_hold_another_shape(act: Any) -> None:
    with pytest.raises(sp.SemaphoreError):
        trace(act)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", GOOD)
def test_valid_index(name: str, how: str) -> None:
    """Fewer indices give an array of lower rank, all of them a handle that may be used."""

    def act(k: Kernel) -> None:
        for rank in RANKS[1:]:
            for axis in range(rank):
                index = tuple(GOOD[name](k, size) for size in SIZES[:rank])
                got = HOW[how](k.sem("regular", rank), index[: axis + 1])
                if axis + 1 == rank:
                    sp.signal(got)
                else:
                    assert isinstance(got, sp.SemaphoreArray)
                    assert got.shape == SIZES[axis + 1 : rank]

    trace(act)


@pytest.mark.parametrize("name", GOOD)
def test_valid_index_arrives_as_int32_under_x64(name: str) -> None:
    """The TPU knows no 64 bit index."""
    with jax.enable_x64(True):
        jaxpr = trace(lambda k: sp.signal(k.regular2.at[0, GOOD[name](k, SIZES[1])]))
    assert scalar_dtypes(jaxpr, "semaphore_signal") <= {"int32", "int8", "uint32"}
