"""A semaphore is no value and no class to build on: Python's own TypeError says so."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

import safepallas as sp

from .helpers import KINDS, Case, Kernel, judge, judge_under_x64, table, trace

Use = Callable[[Kernel, Any], Any]

# For handles and arrays alike.
USES: dict[str, Use] = {
    "bool": lambda k, s: bool(s),
    "not": lambda k, s: not s,
    "if": lambda k, s: 1 if s else 0,
    "and": lambda k, s: s and 1,
    "int": lambda k, s: int(s),
    "float": lambda k, s: float(s),
    "complex": lambda k, s: complex(s),
    "range": lambda k, s: range(s),
    "list index": lambda k, s: [1, 2][s],
    "+ 1": lambda k, s: s + 1,
    "1 +": lambda k, s: 1 + s,
    "- traced": lambda k, s: s - k.traced(jnp.int32),
    "traced -": lambda k, s: k.traced(jnp.int32) - s,
    "numpy +": lambda k, s: np.ones(2) + s,
    "* itself": lambda k, s: s * s,
    "@ itself": lambda k, s: s @ s,
    "negated": lambda k, s: -s,
    "< 1": lambda k, s: s < 1,
    "1 >=": lambda k, s: s <= 1,
    "== 0": lambda k, s: s == 0,
    "!= 0": lambda k, s: s != 0,
    "0 ==": lambda k, s: 0 == s,  # noqa: SIM300
    "== 0.0": lambda k, s: s == 0.0,
    "== True": lambda k, s: s == True,  # noqa: E712
    "== numpy": lambda k, s: s == np.int32(0),
    "numpy ==": lambda k, s: np.zeros(2) == s,
    "== traced": lambda k, s: s == k.traced(jnp.int32),
    "traced ==": lambda k, s: k.traced(jnp.int32) == s,
    "in": lambda k, s: 0 in s,
    "in a list of": lambda k, s: 0 in [s],
    "jnp.asarray": lambda k, s: jnp.asarray(s),
    "jnp.int32": lambda k, s: jnp.int32(s),
    "np.asarray": lambda k, s: np.asarray(s),
    "np.int32": lambda k, s: np.int32(s),
    "np.array of": lambda k, s: np.asarray(s, dtype=np.int32),
    "jnp.add": lambda k, s: jnp.add(s, 1),
    "jnp.sum": lambda k, s: jnp.sum(s),
    "jnp.stack": lambda k, s: jnp.stack([s, s]),
    "jnp.where, chosen": lambda k, s: jnp.where(k.x[...] > 0, s, 0),
    "jnp.where, choosing": lambda k, s: jnp.where(s, 1, 0),
    "lax.add": lambda k, s: jax.lax.add(s, s),
    "lax.convert": lambda k, s: jax.lax.convert_element_type(s, jnp.int32),
    "lax.cond": lambda k, s: jax.lax.cond(s, lambda: 0, lambda: 1),
    "lax.switch": lambda k, s: jax.lax.switch(s, [lambda: 0, lambda: 1]),
    "lax.fori_loop": lambda k, s: jax.lax.fori_loop(0, s, lambda i, c: c, 0),
    "pl.when": lambda k, s: pl.when(s)(lambda: None),
    "stored": lambda k, s: k.o.__setitem__(..., s),
    "stored in an element": lambda k, s: k.data.int32.__setitem__((0, 0), s),
    "format": lambda k, s: f"{s:d}",
    "call": lambda k, s: s(),
    "copy.copy": lambda k, s: copy.copy(s),
    "copy.deepcopy": lambda k, s: copy.deepcopy(s),
}
# For a handle alone: an array has a length, elements, and an order.
HANDLE_USES: dict[str, Use] = {
    "len": lambda k, s: len(s),
    "iter": lambda k, s: iter(s),
    "unpack": lambda k, s: [*s],
    "index": lambda k, s: s[0],
    "sum": lambda k, s: sum(s),
    "in, itself": lambda k, s: s in s,
    # JAX takes an array here for indices, as it does a raw ref; its lowering refuses both.
    "indexing data": lambda k, s: k.x[s],
    "indexing a view": lambda k, s: k.x.at[s],
}
ARRAY_USES: dict[str, Use] = {
    "in, element": lambda k, s: s[0] in s,
    "store by index": lambda k, s: s.__setitem__(0, 1),
    "store by at": lambda k, s: s.at[0].set(1),
    "at of an element of rank 1": lambda k, s: s[0][0],
}

CASES = [
    Case(f"{name} of {kind}{rank}", TypeError, lambda k, w=(kind, rank), use=use: use(k, k.sem(*w)))
    for rank, uses in ((0, USES | HANDLE_USES), (1, USES))
    for name, use in uses.items()
    for kind in KINDS
]
WRITES: dict[str, Callable[[Any], Any]] = {
    "a new attribute": lambda s: setattr(s, "extra", 1),
    "the ref": lambda s: setattr(s, "ref", None),
    "the kind": lambda s: setattr(s, "_kind", None),
    "the shape": lambda s: setattr(s, "shape", (9,)),
}


@table(CASES)
def test_no_value(case: Case) -> None:
    judge(case)


def test_no_value_under_x64() -> None:
    judge_under_x64(CASES)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ARRAY_USES)
def test_array_is_no_container_of_values(name: str, kind: str) -> None:
    with pytest.raises((TypeError, AttributeError)):
        trace(lambda k: ARRAY_USES[name](k, k.sem(kind, 1)))


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("name", WRITES)
def test_cannot_be_written(name: str, rank: int) -> None:
    with pytest.raises(AttributeError):
        trace(lambda k: WRITES[name](k.sem("dma", rank)))


@pytest.mark.parametrize("rank", [0, 1])
def test_cannot_be_pickled(rank: int) -> None:
    def act(k: Kernel) -> None:
        with pytest.raises(Exception):  # noqa: B017, PT011
            pickle.dumps(k.sem("dma", rank))

    trace(act)


FINAL = (
    sp.Semaphore,
    sp.BarrierSemaphore,
    sp.DmaSemaphore,
    sp.SemaphoreArray,
    sp.Spec,
    sp.LocalCopy,
    sp.RemoteCopy,
)


class Group(sp.Scratch):
    one = sp.dma_semaphore()


@pytest.mark.parametrize("cls", [*FINAL, sp.Scratch, Group], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("args", [(), (None,), (1, 2)], ids=["of nothing", "of None", "of numbers"])
def test_cannot_be_constructed(cls: Any, args: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="cannot be constructed"):
        cls(*args)


@pytest.mark.parametrize("cls", FINAL, ids=lambda cls: cls.__name__)
def test_cannot_be_constructed_of_a_ref(cls: Any) -> None:
    with pytest.raises(TypeError, match="cannot be constructed"):
        trace(lambda k: cls(k.dma0.ref))
    with pytest.raises(TypeError, match="cannot be constructed"):
        trace(lambda k: type(k.dma0)(k.dma0))


@pytest.mark.parametrize(
    "cls", [sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]], sp.Spec[sp.DmaSemaphore]], ids=str
)
def test_cannot_be_constructed_by_its_generic_form(cls: Any) -> None:
    with pytest.raises(TypeError, match="cannot be constructed"):
        cls(None)


@pytest.mark.parametrize("cls", FINAL, ids=lambda cls: cls.__name__)
def test_cannot_be_subclassed(cls: Any) -> None:
    with pytest.raises(TypeError, match=f"{cls.__name__} is final"):
        type("Own", (cls,), {})
    with pytest.raises(TypeError, match=f"{cls.__name__} is final"):

        class Own(cls):
            __slots__ = ()


def test_what_is_allowed() -> None:
    """Identity, hash, comparison with what is no number."""

    def act(k: Kernel) -> None:
        for sem in (k.dma0, k.dma1):
            assert sem == sem
            assert sem is not None
            assert sem != k.regular0
            assert (sem == None) is False  # noqa: E711
            assert (sem == "dma") is False
            assert sem in {sem: 1}
            assert sem in [k.regular0, sem]
            assert f"{sem}" == str(sem)

    trace(act)
