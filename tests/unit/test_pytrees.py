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


def use(sem: Any, *, ours: bool) -> None:
    if ours:
        sp.signal(sem)
    else:
        pl.semaphore_signal(sem, 1)


def through_cond(k: Kernel, sem: Any, ours: bool) -> None:
    jax.lax.cond(
        k.x[0, 0] > 0, lambda s: use(s, ours=ours), lambda s: (use(s, ours=ours), None)[1], sem
    )


def through_switch(k: Kernel, sem: Any, ours: bool) -> None:
    branches = [lambda s: use(s, ours=ours), lambda s: None]
    jax.lax.switch(k.traced(jnp.int32), branches, sem)


def through_jit(k: Kernel, sem: Any, ours: bool) -> None:
    jax.jit(lambda s: use(s, ours=ours))(sem)


def through_jit_in_a_tuple(k: Kernel, sem: Any, ours: bool) -> None:
    jax.jit(lambda pair: use(pair[1], ours=ours))((1, sem))


def through_fori_carry(k: Kernel, sem: Any, ours: bool) -> None:
    def step(i: Any, s: Any) -> Any:
        use(s, ours=ours)
        return s

    jax.lax.fori_loop(0, 3, step, sem)


def through_scan_carry(k: Kernel, sem: Any, ours: bool) -> None:
    def step(s: Any, _: Any) -> Any:
        use(s, ours=ours)
        return s, None

    jax.lax.scan(step, sem, None, length=3)


def through_while_carry(k: Kernel, sem: Any, ours: bool) -> None:
    def step(carry: Any) -> Any:
        use(carry[1], ours=ours)
        return carry[0] + 1, carry[1]

    jax.lax.while_loop(lambda carry: carry[0] < 3, step, (jnp.int32(0), sem))


def through_scan_xs(k: Kernel, sem: Any, ours: bool) -> None:
    jax.lax.scan(lambda c, s: (use(s, ours=ours), (c, None))[1], 0, sem)


def returned_by_jit(k: Kernel, sem: Any, ours: bool) -> None:
    use(jax.jit(lambda s: s)(sem), ours=ours)


def returned_by_cond(k: Kernel, sem: Any, ours: bool) -> None:
    use(jax.lax.cond(k.x[0, 0] > 0, lambda s: s, lambda s: s, sem), ours=ours)


def returned_by_run_scoped(k: Kernel, sem: Any, ours: bool) -> None:
    scope = sp.run_scoped if ours else pl.run_scoped
    request = sp.semaphore() if ours else pltpu.SemaphoreType.REGULAR
    scope(lambda s: s, request)


def closed_over_by_cond(k: Kernel, sem: Any, ours: bool) -> None:
    jax.lax.cond(k.x[0, 0] > 0, lambda: use(sem, ours=ours), lambda: None)


def closed_over_by_loop(k: Kernel, sem: Any, ours: bool) -> None:
    jax.lax.fori_loop(0, 3, lambda i, c: (use(sem, ours=ours), c)[1], 0)


def closed_over_by_when(k: Kernel, sem: Any, ours: bool) -> None:
    pl.when(k.x[0, 0] > 0)(lambda: use(sem, ours=ours))


def closed_over_by_pl_loop(k: Kernel, sem: Any, ours: bool) -> None:
    pl.loop(0, 3)(lambda i: use(sem, ours=ours))


def closed_over_by_scope(k: Kernel, sem: Any, ours: bool) -> None:
    pl.run_scoped(lambda other: use(sem, ours=ours), pltpu.SemaphoreType.DMA)


WAYS = {
    way.__name__: way
    for way in (
        through_cond,
        through_switch,
        through_jit,
        through_jit_in_a_tuple,
        through_fori_carry,
        through_scan_carry,
        through_while_carry,
        through_scan_xs,
        returned_by_jit,
        returned_by_cond,
        returned_by_run_scoped,
        closed_over_by_cond,
        closed_over_by_loop,
        closed_over_by_when,
        closed_over_by_pl_loop,
        closed_over_by_scope,
    )
}


def outcome(way: Any, pick: Callable[[Kernel], Any], ours: bool) -> str:
    """The jaxpr, or the class of the error."""
    try:
        return str(trace(lambda k: way(k, pick(k) if ours else pick(k).ref, ours)))
    except sp.SemaphoreError:
        raise
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "pick", [lambda k: k.regular0, lambda k: k.regular1[1]], ids=["scalar", "element"]
)
def test_goes_where_raw_refs_go(way: str, pick: Callable[[Kernel], Any]) -> None:
    assert outcome(WAYS[way], pick, ours=True) == outcome(WAYS[way], pick, ours=False)


@pytest.mark.parametrize("way", ["through_cond", "through_jit", "closed_over_by_loop"])
def test_ways_that_raw_refs_can_go(way: str) -> None:
    """So that the test above does not compare errors alone."""
    jaxpr = trace(lambda k: WAYS[way](k, k.regular0, True))
    assert list(equations(jaxpr, "semaphore_signal"))


def test_wrong_kind_behind_control_flow() -> None:
    for way in ("through_cond", "through_jit", "closed_over_by_loop", "closed_over_by_when"):
        with pytest.raises(sp.errors.WrongKindError, match="'dma0'"):
            trace(lambda k, way=WAYS[way]: way(k, k.dma0, True))


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
