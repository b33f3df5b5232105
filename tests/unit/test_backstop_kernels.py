"""What can only be said of a whole kernel: barriers and ids, reads, how many semaphores."""

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp
from safepallas import testing

from .helpers import FLOATS, Act, Kernel, assert_ours, line_of, trace, trace_call

pytestmark = pytest.mark.usefixtures("x64")


def in_a_scope(act: Callable[[], Any]) -> Act:
    return lambda k: sp.run_scoped(lambda sem: act() and None, sp.semaphore())


def in_a_branch(act: Callable[[], Any]) -> Act:
    return lambda k: pl.when(k.x[0, 0] > 0)(lambda: act() and None)


def in_a_loop(act: Callable[[], Any]) -> Act:
    def step(i: Any, carry: Any) -> Any:
        act()
        return carry

    return lambda k: jax.lax.fori_loop(0, k.traced(jnp.int32), step, jnp.int32(0))


def in_a_jit(act: Callable[[], Any]) -> Act:
    """Traced once, taken from JAX's cache the second time."""

    @jax.jit
    def helper() -> None:
        act()

    return lambda k: (helper(), helper())


def at_the_top(act: Callable[[], Any]) -> Act:
    return lambda k: act()


PLACES = {f.__name__: f for f in (at_the_top, in_a_scope, in_a_branch, in_a_loop, in_a_jit)}


def wait_for_barrier() -> None:
    sp.wait(sp.get_barrier_semaphore())


def wait_for_raw_barrier() -> None:
    pl.semaphore_wait(pltpu.get_barrier_semaphore(), 1)


BARRIERS = {"ours": wait_for_barrier, "raw": wait_for_raw_barrier}


def refused(error: type[Exception], act: Act, **options: Any) -> None:
    with pytest.raises(error) as info:
        trace(act, **options)
    assert_ours(info.value, error)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("barrier", BARRIERS)
@pytest.mark.parametrize("params", [None, pltpu.CompilerParams()], ids=["none", "without id"])
def test_barrier_without_id(place: str, barrier: str, params: Any) -> None:
    act = PLACES[place](BARRIERS[barrier])
    refused(sp.errors.MissingCollectiveIdError, act, compiler_params=params)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("barrier", BARRIERS)
@pytest.mark.parametrize("number", [0, 7])
def test_barrier_with_id(place: str, barrier: str, number: int) -> None:
    act = PLACES[place](BARRIERS[barrier])
    trace(act, compiler_params=pltpu.CompilerParams(collective_id=number))


@pytest.mark.parametrize("number", [0, 7])
def test_id_without_barrier(number: int) -> None:
    params = pltpu.CompilerParams(collective_id=number)
    refused(
        sp.errors.UnusedCollectiveIdError, lambda k: sp.signal(k.barrier0), compiler_params=params
    )


def test_id_without_barrier_where_allowed() -> None:
    params = pltpu.CompilerParams(collective_id=0, allow_collective_id_without_custom_barrier=True)
    trace(lambda k: sp.signal(k.barrier0), compiler_params=params)


def test_flag_does_not_excuse_the_id() -> None:
    params = pltpu.CompilerParams(allow_collective_id_without_custom_barrier=True)
    refused(
        sp.errors.MissingCollectiveIdError, lambda k: wait_for_barrier(), compiler_params=params
    )


@pytest.mark.parametrize("setting", ["yes", "override"])
def test_barrier_where_jax_assigns_the_id(setting: str) -> None:
    name = "jax_pallas_auto_assign_collective_ids"
    if not hasattr(jax.config, name):
        pytest.skip(f"jax {jax.__version__} has no {name}: it assigns no ids")
    before = getattr(jax.config, name)
    jax.config.update(name, setting)
    try:
        trace(lambda k: wait_for_barrier())
    finally:
        jax.config.update(name, before)
    refused(sp.errors.MissingCollectiveIdError, lambda k: wait_for_barrier())


def test_same_kernel_on_other_terms() -> None:
    """What JAX has traced on one call's terms is judged anew on another's."""

    def kernel(x: Any, o: Any) -> None:
        wait_for_barrier()

    def call(**options: Any) -> None:
        trace_call(sp.pallas_call(kernel, FLOATS, **options))

    with_id = pltpu.CompilerParams(collective_id=1)
    for _ in range(2):
        call(compiler_params=with_id)
        with pytest.raises(sp.errors.MissingCollectiveIdError):
            call()


def store_count(k: Kernel) -> None:
    k.store(sp.read(k.regular0))


READS: dict[str, Act] = {
    "read": store_count,
    "read of dma": lambda k: k.store(sp.read(k.dma0)),
    "read of an element": lambda k: k.store(sp.read(k.barrier1[0])),
    "raw read": lambda k: k.store(pl.semaphore_read(k.regular0.ref)),
    "in a scope": lambda k: sp.run_scoped(lambda sem: k.store(sp.read(sem)), sp.semaphore()),
    "in a branch": lambda k: pl.when(k.x[0, 0] > 0)(lambda: store_count(k)),
}


@pytest.mark.parametrize("name", READS)
def test_read_under_interpret_params(name: str) -> None:
    refused(sp.errors.InterpretedReadError, READS[name], interpret=pltpu.InterpretParams())
    with pltpu.force_tpu_interpret_mode():
        refused(sp.errors.InterpretedReadError, READS[name])
    with pltpu.force_tpu_interpret_mode():
        refused(sp.errors.InterpretedReadError, READS[name], interpret=True)


@pytest.mark.parametrize("name", READS)
def test_read_where_it_works(name: str) -> None:
    trace(READS[name])
    trace(READS[name], interpret=True)


def test_other_uses_under_interpret_params() -> None:
    trace(lambda k: sp.signal(k.regular0), interpret=pltpu.InterpretParams())


# name: the kernel's scratch, what it does, the peak for a count n
Counted = tuple[Callable[[int], Any], Callable[[int], Callable[..., None]]]


def scopes(*counts: int) -> Callable[..., None]:
    """Scopes of so many semaphores, each inside the one before."""

    def body(*_: Any) -> None:
        if counts:
            sp.run_scoped(scopes(*counts[1:]), sp.semaphore(counts[0]))

    return body


def one_after_another(*counts: int) -> Callable[..., None]:
    def body(*_: Any) -> None:
        for count in counts:
            scopes(count)()

    return body


def under_a_branch(*counts: int) -> Callable[..., None]:
    def body(x: Any, *_: Any) -> None:
        pl.when(x[0, 0] > 0)(scopes(*counts))

    return body


def with_raw_scope(count: int) -> Callable[..., None]:
    def body(*_: Any) -> None:
        pl.run_scoped(lambda sem: None, pltpu.SemaphoreType.DMA((count,)))

    return body


def named(n: int) -> Any:
    return type("Many", (sp.Scratch,), {"a": sp.dma_semaphore(n - 1), "b": sp.semaphore()})


# What holds n semaphores at its peak.
PEAKS: dict[str, Counted] = {
    "one array": (lambda n: (sp.dma_semaphore(n),), lambda n: scopes()),
    "raw array": (lambda n: (pltpu.SemaphoreType.DMA((n,)),), lambda n: scopes()),
    "matrix": (lambda n: (sp.semaphore(2, n // 2), sp.semaphore(n % 2)), lambda n: scopes()),
    "nested tuples": (lambda n: ((sp.semaphore(n - 1), (sp.semaphore(),)),), lambda n: scopes()),
    "dict": (
        lambda n: {"a": sp.semaphore(n - 1), "b": sp.barrier_semaphore()},
        lambda n: lambda *_, a, b: None,
    ),
    "Scratch": (named, lambda n: scopes()),
    "scope": (lambda n: (), scopes),
    "raw scope": (lambda n: (), with_raw_scope),
    "scratch and scope": (lambda n: (sp.semaphore(100),), lambda n: scopes(n - 100)),
    "scope in scope": (lambda n: (sp.semaphore(1),), lambda n: scopes(n - 51, 20, 30)),
    "scope in a branch": (lambda n: (sp.semaphore(1),), lambda n: under_a_branch(n - 1)),
    "one scope after another": (lambda n: (), lambda n: one_after_another(350, n, 300)),
    "scratch, then two scopes": (
        lambda n: (sp.semaphore(100),),
        lambda n: one_after_another(250, n - 100),
    ),
    "beside data": (
        lambda n: (sp.semaphore(n), sp.vmem((8, 128), jnp.int16), sp.smem((8,), jnp.int32)),
        lambda n: scopes(),
    ),
}


@pytest.mark.parametrize("name", PEAKS)
@pytest.mark.parametrize("count", [399, 400, 600])
def test_semaphore_limit(name: str, count: int) -> None:
    """400 is where the warning starts. Warnings are errors here: 399 gives none."""
    scratch, body = PEAKS[name]
    call = sp.pallas_call(body(count), FLOATS, scratch_shapes=scratch(count))
    with contextlib.ExitStack() as stack:
        if count >= 400:
            match = rf"holds {count} semaphores .* \[semaphore-limit\]$"
            stack.enter_context(pytest.warns(sp.errors.SemaphoreLimitWarning, match=match))
        trace_call(call)


def test_semaphore_limit_warns_once() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace_call(sp.pallas_call(scopes(), FLOATS, scratch_shapes=(sp.semaphore(500),)))
    assert [w.category for w in caught] == [sp.errors.SemaphoreLimitWarning]


@pytest.mark.parametrize("around", [lambda fn: fn, jax.jit, jax.checkpoint])
@pytest.mark.parametrize("guarded", [False, True], ids=["ours", "raw under guard"])
def test_semaphore_limit_points_at_the_call(around: Any, guarded: bool) -> None:
    """At the user's line, where a filter by module or line finds it; never into safepallas."""
    scratch: Any = pltpu.SemaphoreType.DMA((500,)) if guarded else sp.dma_semaphore(500)
    guard = testing.guard_raw_pallas() if guarded else contextlib.nullcontext()
    with guard:
        pallas_call: Any = pl.pallas_call if guarded else sp.pallas_call
        call = pallas_call(lambda x, o, sems: None, FLOATS, scratch_shapes=(scratch,))

        def user(x: Any) -> Any:
            return call(x)  # the line

        with pytest.warns(sp.errors.SemaphoreLimitWarning) as caught:
            jax.eval_shape(around(user), FLOATS)
    assert {w.filename for w in caught} == {__file__}
    assert {w.lineno for w in caught} == {line_of(__file__, "return call(x)  # the line")[0]}
