"""`barrier_neighbors`, `barrier_all`, `core_barrier`: what they take, and what does not mix."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import safepallas as sp

from .helpers import (
    FLOATS,
    MESHES,
    Case,
    assert_ours,
    equations,
    judge,
    judge_under_x64,
    table,
    trace_call,
)

PARAMS = pltpu.CompilerParams(collective_id=7)
TYPE, VALUE = sp.errors.AxisTypeError, sp.errors.AxisError

WRONG: dict[str, tuple[type[Exception], Any]] = {
    "int": (TYPE, 0),
    "None": (TYPE, None),
    "bytes": (TYPE, b"x"),
    "dict": (TYPE, {"x": 1}),
    "set": (TYPE, {"x"}),
    "generator": (TYPE, (axis for axis in "x")),
    "class": (TYPE, str),
    "tuple of int": (TYPE, ("x", 0)),
    "nested": (TYPE, (("x",),)),
    "list of None": (TYPE, [None]),
    "unknown": (VALUE, "z"),
    "letters": (VALUE, "xy"),
    "no name": (VALUE, ""),
}
SEQUENCES: dict[str, tuple[type[Exception], Any]] = {
    "unknown of two": (VALUE, ("x", "z")),
    "twice": (VALUE, ("x", "x")),
    "twice in a list": (VALUE, ["y", "x", "y"]),
    "no axis": (VALUE, ()),
    "empty list": (VALUE, []),
}
NO_ONE_AXIS = {name: (TYPE, axes) for name, (_, axes) in SEQUENCES.items()}
NO_ONE_AXIS |= {"tuple": (TYPE, ("x",)), "list": (TYPE, ["x"])}

CASES = [
    *(
        Case(f"all {name}", error, lambda k, axes=axes: sp.barrier_all(axes), "two axes")
        for name, (error, axes) in (WRONG | SEQUENCES).items()
    ),
    *(
        Case(
            f"neighbors {name}", error, lambda k, axis=axis: sp.barrier_neighbors(axis), "two axes"
        )
        for name, (error, axis) in (WRONG | NO_ONE_AXIS).items()
    ),
    Case("all of no mesh", VALUE, lambda k: sp.barrier_all("x"), "no mesh"),
    Case("neighbors of no mesh", VALUE, lambda k: sp.barrier_neighbors("x"), "no mesh"),
    Case("all, a traced value", TYPE, lambda k: sp.barrier_all(k.traced(jnp.int32))),
    Case("all, a semaphore", TYPE, lambda k: sp.barrier_all(k.regular0)),
    Case("neighbors, a semaphore", TYPE, lambda k: sp.barrier_neighbors(k.barrier0)),
    *(
        Case(f"core {name}", TYPE, lambda k, a=a: sp.core_barrier(k.regular0, core_axis_name=a))
        for name, a in (("int", 0), ("None", None), ("tuple", ("x",)), ("list", ["x"]))
    ),
    *(
        Case(
            f"core of {name} on {mesh}",
            VALUE,
            lambda k, a=name: sp.core_barrier(k.regular0, core_axis_name=a),
            mesh,
        )
        for name in ("x", "core", "")
        for mesh in MESHES
    ),
    # Of two faults the first.
    Case(
        "semaphore, then axis",
        sp.errors.WrongKindError,
        lambda k: sp.core_barrier(k.dma0, core_axis_name=1),
    ),
]


@table(CASES)
def test_axes(case: Case) -> None:
    judge(case)


def test_axes_under_x64() -> None:
    judge_under_x64(CASES)


Body = Callable[[], None]


def call_of(body: Body, **options: Any) -> Callable[..., Any]:
    def kernel(x: Any, o: Any) -> None:
        body()

    return sp.pallas_call(kernel, FLOATS, **{"compiler_params": PARAMS, **options})


def over(call: Callable[..., Any], **axes: int) -> Any:
    """Trace a call on a mesh with axes of these sizes."""
    kinds = (AxisType.Auto,) * len(axes)
    mesh = AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=kinds)
    fn = jax.shard_map(call, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    return jax.make_jaxpr(fn)(jnp.zeros(FLOATS.shape))


BARRIERS: dict[str, Body] = {
    "neighbors": lambda: sp.barrier_neighbors("x"),
    "all": lambda: sp.barrier_all("x"),
}


@pytest.mark.parametrize("size", [1, 2, 5, 6])
@pytest.mark.parametrize("name", BARRIERS)
def test_collective_id_is_needed_whatever_the_size(name: str, size: int) -> None:
    over(call_of(BARRIERS[name]), x=size)
    with pytest.raises(sp.errors.MissingCollectiveIdError, match=r"test_barriers\.py:"):
        over(call_of(BARRIERS[name], compiler_params=None), x=size)


@pytest.mark.parametrize("name", BARRIERS)
def test_outside_a_kernel(name: str) -> None:
    with pytest.raises(sp.errors.NotInKernelError):
        BARRIERS[name]()

    def no_kernel(x: Any) -> Any:
        BARRIERS[name]()
        return x

    with pytest.raises(sp.errors.NotInKernelError):
        over(no_kernel, x=2)


@pytest.mark.parametrize("name", BARRIERS)
def test_in_a_kernel_of_raw_pallas(name: str) -> None:
    def kernel(x: Any, o: Any) -> None:
        BARRIERS[name]()

    for size in (1, 2, 6):
        jaxpr = over(pl.pallas_call(kernel, FLOATS, compiler_params=PARAMS), x=size)
        assert len(list(equations(jaxpr, "get_barrier_semaphore"))) == 1


def test_an_axis_that_shard_map_leaves_out() -> None:
    """A device does not know where it is along it."""

    def trace_over(axis: str) -> None:
        fn: Any = jax.shard_map(
            call_of(lambda: sp.barrier_all(axis)),
            mesh=MESHES["two axes"],
            in_specs=P("x"),
            out_specs=P("x"),
            axis_names={"x"},
            check_vma=False,
        )
        jax.eval_shape(fn, jax.ShapeDtypeStruct((16, 128), jnp.float32))

    trace_over("x")
    with pytest.raises(sp.errors.AxisError, match="The axes are 'x'"):
        trace_over("y")


def by_hand() -> None:
    sp.signal(sp.get_barrier_semaphore(), device_id={"x": 0})


jitted = jax.jit(lambda: sp.barrier_all("x"))


def in_a_scope() -> None:
    sp.run_scoped(lambda sem: sp.barrier_all("y"), sp.semaphore())


def in_a_loop() -> None:
    jax.lax.fori_loop(0, 3, lambda i, c: (sp.barrier_neighbors("y"), c)[1], 0)


def in_a_branch() -> None:
    pl.when(jax.lax.axis_index("x") == 0)(lambda: sp.barrier_all(("x", "y")))


X, Y, XY = (lambda axes=axes: sp.barrier_all(axes) for axes in ("x", "y", ("x", "y")))
X_NEIGHBORS, Y_NEIGHBORS = (lambda axis=axis: sp.barrier_neighbors(axis) for axis in "xy")

MIXED: dict[str, tuple[Body, Body]] = {
    "x and y": (X, Y),
    "x and both": (X, XY),
    "both and neighbors on y": (XY, Y_NEIGHBORS),
    "neighbors on x and on y": (X_NEIGHBORS, Y_NEIGHBORS),
    "x and by hand": (X, by_hand),
    "both and by hand": (XY, by_hand),
    "x and y in a scope": (X, in_a_scope),
    "x and y in a loop": (X_NEIGHBORS, in_a_loop),
    "x and both in a branch": (X, in_a_branch),
    "jitted x and y": (jitted, Y),
}
MIXABLE: dict[str, tuple[Body, Body]] = {
    "x twice": (X, X),
    "x and its neighbors": (X, X_NEIGHBORS),
    "both, in either order": (XY, lambda: sp.barrier_all(["y", "x"])),
    "both, in a branch": (XY, in_a_branch),
    "y in a scope and in a loop": (in_a_scope, in_a_loop),
    "jitted x and neighbors": (jitted, X_NEIGHBORS),
    "by hand twice": (by_hand, by_hand),
}


@pytest.mark.parametrize("sizes", [(2, 3), (6, 6), (2, 7)], ids=str)
@pytest.mark.parametrize("name", MIXED)
def test_mixed(name: str, sizes: tuple[int, int]) -> None:
    for first, second in (MIXED[name], MIXED[name][::-1]):

        def body(first: Body = first, second: Body = second) -> None:
            first()
            second()

        with pytest.raises(sp.errors.MixedBarriersError) as info:
            over(call_of(body), x=sizes[0], y=sizes[1])
        assert_ours(info.value, sp.errors.MixedBarriersError)
        assert str(info.value).count("test_barriers.py:") == 3  # the kernel, the two uses


@pytest.mark.parametrize("sizes", [(2, 3), (6, 6), (1, 1)], ids=str)
@pytest.mark.parametrize("name", MIXABLE)
def test_mixable(name: str, sizes: tuple[int, int]) -> None:
    first, second = MIXABLE[name]
    over(call_of(lambda: (first(), second())[0]), x=sizes[0], y=sizes[1])


def test_axes_of_size_one_do_not_count() -> None:
    """A kernel for a mesh of two axes runs on one with a single row, or on one device."""
    for name in ("x and both", "both and neighbors on y", "neighbors on x and on y"):
        first, second = MIXED[name]
        over(call_of(lambda f=first, s=second: (f(), s())[0]), x=1, y=1)
    over(call_of(lambda: (Y(), XY())[0]), x=1, y=6)
    over(call_of(lambda: (X(), Y())[0]), x=1, y=6)  # alone on x: a signal to itself, no more


def test_jitted_helper_is_seen_in_every_kernel() -> None:
    """JAX traces it once; what it does is read off the equations each time."""
    over(call_of(jitted), x=2, y=2)
    with pytest.raises(sp.errors.MixedBarriersError):
        over(call_of(lambda: (jitted(), Y())[0]), x=2, y=2)
    over(call_of(lambda: (jitted(), X())[0]), x=2, y=2)


def test_scoped_semaphores_are_counted() -> None:
    """Those of a large ring count towards the chip's."""

    def kernel(x: Any, o: Any, sems: Any) -> None:
        sp.barrier_neighbors("x")

    def ring_beside(held: int) -> None:
        scratch = (sp.semaphore(held),)
        over(sp.pallas_call(kernel, FLOATS, scratch_shapes=scratch, compiler_params=PARAMS), x=6)

    ring_beside(398)
    with pytest.warns(sp.errors.SemaphoreLimitWarning, match="holds 400"):
        ring_beside(399)


def test_no_semaphores_on_small_rings() -> None:
    assert not list(equations(over(call_of(X), x=5), "run_scoped"))


def test_returns_nothing_also_over_a_grid() -> None:
    got: list[Any] = []
    over(call_of(lambda: got.extend(body() for body in BARRIERS.values()), grid=(3,)), x=6)
    assert got == [None, None]


@pytest.mark.parametrize("mesh", ["one axis", "two axes"])
def test_under_vmap_of_a_named_axis(mesh: str) -> None:
    """Its axis is none of the mesh."""
    call = jax.vmap(call_of(lambda: sp.barrier_all("v")), axis_name="v")

    def fn(x: Any) -> Any:
        return call(x[None])[0]

    with pytest.raises(sp.errors.AxisError, match="'v'"):
        trace_call(fn, mesh)
