"""Handles and arrays as pytrees: they go where raw refs go, and are checked when they come out."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

from .helpers import KINDS, Kernel, equations, in_kernel, trace

TREES = [(kind, rank) for kind in KINDS for rank in (0, 1, 2)]


class Pair(NamedTuple):
    sem: Any
    sems: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Group:
    sem: Any
    sems: Any


@dataclasses.dataclass
class Plain:
    sem: Any


@in_kernel
def test_one_leaf_the_ref(k: Kernel) -> None:
    for where in TREES:
        sem = k.sem(*where)
        leaves, treedef = jax.tree.flatten(sem)
        assert leaves == [sem.ref] or leaves[0] is sem.ref
        assert treedef.num_leaves == 1
        paths, _ = jax.tree_util.tree_flatten_with_path({"a": sem})
        assert jax.tree_util.keystr(paths[0][0]) == "['a'].ref"


@in_kernel
def test_round_trip(k: Kernel) -> None:
    for where in TREES:
        sem = k.sem(*where)
        for same in (
            jax.tree.unflatten(jax.tree.structure(sem), jax.tree.leaves(sem)),
            jax.tree.map(lambda ref: ref, sem),
            jax.tree.map(lambda ref: ref, {"a": [sem]})["a"][0],
            jax.tree.map(lambda ref: ref, Pair(sem, 1)).sem,
            jax.tree.map(lambda ref: ref, Group(sem, 1)).sem,
        ):
            assert type(same) is type(sem)
            assert same.ref is sem.ref
            assert str(same) == str(sem)


@in_kernel
def test_round_trip_can_be_used(k: Kernel) -> None:
    def again(tree: Any) -> Any:
        return jax.tree.map(lambda ref: ref, tree)

    sp.signal(again(k.regular0))
    sp.signal(again(k.regular1)[1])
    sp.signal(again(k.regular2[0])[-1])
    sp.wait_bytes(again(k.dma0), k.x)
    with pytest.raises(sp.errors.IndexRangeError):
        again(k.regular1)[2]
    with pytest.raises(sp.errors.WrongKindError):
        sp.signal(again(k.dma0))


@in_kernel
def test_structures_differ_by_kind_and_shape(k: Kernel) -> None:
    structures = [jax.tree.structure(k.sem(*where)) for where in TREES]
    assert len(set(structures)) == len(TREES)
    for kind in KINDS:
        assert jax.tree.structure(k.sem(kind)) == jax.tree.structure(k.sem(kind, 1)[0])
        assert jax.tree.structure(k.sem(kind, 1)) != jax.tree.structure(k.sem(kind, 2)[0])


@in_kernel
def test_in_containers_of_the_user(k: Kernel) -> None:
    for group in (Pair(k.dma0, k.regular1), Group(k.dma0, k.regular1)):
        sp.async_copy(k.x, k.o, group.sem).wait()
        for sem in group.sems:
            sp.signal(sem)
    assert dataclasses.replace(Plain(1), sem=k.dma0).sem is k.dma0
    assert Pair(1, 2)._replace(sem=k.dma0).sem is k.dma0


# --- through JAX's control flow, as raw refs do --------------------------------------------------


Use = Callable[[Any], Any]


def used(use: Use, sem: Any) -> Any:
    """The semaphore, after use."""
    use(sem)
    return sem


def positive(k: Kernel) -> Any:
    return k.x[0, 0] > 0


def scoped(k: Kernel, sem: Any, use: Use) -> None:
    if use is sp.signal:
        sp.run_scoped(lambda s: s, sp.semaphore())
    else:
        pl.run_scoped(lambda s: s, pltpu.SemaphoreType.REGULAR)


WAYS: dict[str, Callable[[Kernel, Any, Use], Any]] = {
    "through cond": lambda k, sem, use: jax.lax.cond(
        positive(k), use, lambda s: (use(s), None)[1], sem
    ),
    "through switch": lambda k, sem, use: jax.lax.switch(
        k.traced(jnp.int32), [use, lambda s: None, lambda s: use(s, 2)], sem
    ),
    "through jit": lambda k, sem, use: jax.jit(lambda s: use(s))(sem),
    "through jit in a tuple": lambda k, sem, use: jax.jit(lambda pair: use(pair[1]))((1, sem)),
    "through fori carry": lambda k, sem, use: jax.lax.fori_loop(
        0, 3, lambda i, s: used(use, s), sem
    ),
    "through scan carry": lambda k, sem, use: jax.lax.scan(
        lambda s, _: (used(use, s), None), sem, None, length=3
    ),
    "through while carry": lambda k, sem, use: jax.lax.while_loop(
        lambda carry: carry[0] < 3,
        lambda carry: (carry[0] + 1, used(use, carry[1])),
        (jnp.int32(0), sem),
    ),
    "through scan xs": lambda k, sem, use: jax.lax.scan(
        lambda c, s: (use(s), (c, None))[1], 0, sem
    ),
    "returned by jit": lambda k, sem, use: use(jax.jit(lambda s: s)(sem)),
    "returned by cond": lambda k, sem, use: use(
        jax.lax.cond(positive(k), lambda s: s, lambda s: s, sem)
    ),
    "returned by run_scoped": scoped,
    "closed over by cond": lambda k, sem, use: jax.lax.cond(
        positive(k), lambda: use(sem), lambda: None
    ),
    "closed over by loop": lambda k, sem, use: jax.lax.fori_loop(
        0, 3, lambda i, c: (use(sem), c)[1], 0
    ),
    "closed over by when": lambda k, sem, use: pl.when(positive(k))(lambda: use(sem)),
    "closed over by pl.loop": lambda k, sem, use: pl.loop(0, 3)(lambda i: use(sem)),
    "closed over by scope": lambda k, sem, use: pl.run_scoped(
        lambda other: use(sem), pltpu.SemaphoreType.DMA
    ),
}


def outcome(way: str, pick: Callable[[Kernel], Any], use: Use) -> str:
    """The jaxpr, or the class of the error."""
    try:
        return str(trace(lambda k: WAYS[way](k, pick(k), use)))
    except sp.SemaphoreError:
        raise
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "pick", [lambda k: k.regular0, lambda k: k.regular1[1]], ids=["scalar", "element"]
)
def test_goes_where_raw_refs_go(way: str, pick: Callable[[Kernel], Any]) -> None:
    raw = outcome(way, lambda k: pick(k).ref, pl.semaphore_signal)
    assert outcome(way, pick, sp.signal) == raw


@pytest.mark.parametrize("way", ["through cond", "through jit", "closed over by loop"])
def test_ways_that_raw_refs_can_go(way: str) -> None:
    """So that the test above does not compare errors alone."""
    jaxpr = trace(lambda k: WAYS[way](k, k.regular0, sp.signal))
    assert list(equations(jaxpr, "semaphore_signal"))


@pytest.mark.parametrize(
    "way", ["through cond", "through jit", "closed over by loop", "closed over by when"]
)
def test_wrong_kind_behind_control_flow(way: str) -> None:
    with pytest.raises(sp.errors.WrongKindError, match="'dma0'"):
        trace(lambda k: WAYS[way](k, k.dma0, sp.signal))


def test_helper_under_jit_is_checked_for_every_kind() -> None:
    """JAX keeps the helper's trace: the kind is part of what it goes by."""

    @jax.jit
    def helper(sem: Any) -> None:
        sp.signal(sem)

    def kernel(k: Kernel) -> None:
        helper(k.regular0)
        helper(k.regular1[0])
        helper(k.barrier0)
        with pytest.raises(sp.errors.WrongKindError):
            helper(k.dma0)
        with pytest.raises(sp.errors.NotScalarError):
            helper(k.regular1)
        helper(k.regular0)

    trace(kernel)
