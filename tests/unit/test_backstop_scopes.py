"""A semaphore after its scope: by name, in every use, however it got away."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

from .helpers import FLOATS, KINDS, Act, Case, Kernel, judge, judge_under_x64, table, trace

THERE = {"x": 1}


def leak(make: Callable[[Any], Any], *requests: Any) -> Any:
    """What `make` makes of what a scope hands out, after that scope."""
    leaked: list[Any] = []
    sp.run_scoped(lambda *handles: leaked.append(make(*handles)), *requests)
    return leaked[0]


def local(k: Kernel) -> Any:
    return leak(lambda sem: sp.make_async_copy(k.x, k.o, sem), sp.dma_semaphore())


def remote(k: Kernel, dead: str) -> Any:
    """A remote copy with that semaphore dead, the other alive."""

    def make(sem: Any) -> Any:
        sems = (sem, k.dma0) if dead == "send" else (k.dma0, sem)
        return sp.make_async_remote_copy(k.x, k.o, *sems, THERE)

    return leak(make, sp.dma_semaphore())


class Group(sp.Scratch):
    one = sp.dma_semaphore()
    many = sp.semaphore(2)


def by_with_scoped(k: Kernel) -> Any:
    leaked: list[Any] = []

    @sp.with_scoped(sp.semaphore())
    def body(sem: Any) -> None:
        leaked.append(sem)

    body()
    return leaked[0]


def by_error(k: Kernel) -> Any:
    """A scope that ends by an exception has ended as well."""
    leaked: list[Any] = []

    def body(sem: Any) -> None:
        leaked.append(sem)
        raise KeyError

    with pytest.raises(KeyError):
        sp.run_scoped(body, sp.semaphore())
    return leaked[0]


LEAKS: dict[str, Act] = {
    "handle by run_scoped": lambda k: leak(lambda sem: sem, sp.semaphore()),
    "element iterated after": lambda k: next(leak(iter, sp.semaphore(2))),
    "handle by with_scoped": by_with_scoped,
    "handle by an error": by_error,
    "element of an array": lambda k: leak(lambda sems: sems[1], sp.semaphore(2)),
    "element of a row": lambda k: leak(lambda sems: sems[1][2], sp.semaphore(2, 3)),
    "iterated element": lambda k: leak(lambda sems: next(iter(sems)), sp.semaphore(2)),
    "mapped handle": lambda k: leak(lambda sem: jax.tree.map(lambda r: r, sem), sp.semaphore()),
    "handle mapped after": lambda k: jax.tree.map(lambda r: r, k.dead("regular")),
    "element of a Scratch": lambda k: leak(lambda group: group.many[0], Group),
}

CASES = [
    *(
        Case(f"signal {name}", sp.errors.ScopeEndedError, lambda k, make=make: sp.signal(make(k)))
        for name, make in LEAKS.items()
    ),
    *(
        Case(f"wait {name}", sp.errors.ScopeEndedError, lambda k, make=make: sp.wait(make(k)))
        for name, make in LEAKS.items()
    ),
    *(
        Case(f"read {name}", sp.errors.ScopeEndedError, lambda k, make=make: sp.read(make(k)))
        for name, make in LEAKS.items()
    ),
    *(
        Case(f"ref of {name}", sp.errors.ScopeEndedError, lambda k, make=make: make(k).ref)
        for name, make in LEAKS.items()
    ),
    *(
        Case(
            f"adopt {name}",
            sp.errors.ScopeEndedError,
            lambda k, make=make: sp.adopt(make(k), sp.semaphore()),
        )
        for name, make in LEAKS.items()
    ),
    *(
        Case(
            f"{use} a dead array of {kind}{rank}",
            sp.errors.ScopeEndedError,
            lambda k, w=(kind, rank), act=act: act(k.dead(*w)),
        )
        for kind in KINDS
        for rank in (1, 2)
        for use, act in {
            "index": lambda array: array[0],
            "at": lambda array: array.at[0],
            "iterate": lambda array: list(array),
            "unpack": lambda array: [*array],
            "ref of": lambda array: array.ref,
        }.items()
    ),
    *(
        Case(
            f"{method} of a local copy",
            sp.errors.ScopeEndedError,
            lambda k, method=method: getattr(local(k), method)(),
        )
        for method in ("start", "wait")
    ),
    *(
        Case(
            f"{method} of a remote copy, {dead} dead",
            sp.errors.ScopeEndedError,
            lambda k, method=method, dead=dead: getattr(remote(k, dead), method)(),
        )
        for method in ("start", "wait", "wait_send", "wait_recv")
        for dead in ("send", "recv")
    ),
    Case(
        "start of a dead copy with a bad option",
        sp.errors.ScopeEndedError,
        lambda k: local(k).start(priority=-1),
    ),
    Case("wait_bytes", sp.errors.ScopeEndedError, lambda k: sp.wait_bytes(k.dead("dma"), k.x)),
    Case(
        "field of a Scratch",
        sp.errors.ScopeEndedError,
        lambda k: sp.wait_bytes(leak(lambda group: group, Group).one, k.x),
    ),
    Case(
        "array of a Scratch", sp.errors.ScopeEndedError, lambda k: leak(lambda g: g, Group).many[0]
    ),
    # The scope around is alive, the one inside is not, and the other way round.
    Case("inner alive", None, lambda k: sp.run_scoped(sp.signal, sp.semaphore())),
    Case(
        "outer in inner",
        None,
        lambda k: sp.run_scoped(lambda inner: sp.signal(k.regular0), sp.semaphore()),
    ),
    Case("outer after inner", None, lambda k: (k.dead("regular"), sp.signal(k.regular0))),
    Case(
        "inner after inner",
        None,
        lambda k: [sp.run_scoped(sp.signal, sp.semaphore()) for _ in range(2)],
    ),
    Case(
        "copy within",
        None,
        lambda k: leak(lambda sem: sp.async_copy(k.x, k.o, sem).wait(), sp.dma_semaphore()),
    ),
    Case("under pl.when", None, lambda k: pl.when(k.x[0, 0] > 0)(lambda: sp.signal(k.regular0))),
    Case(
        "dead under pl.when",
        sp.errors.ScopeEndedError,
        lambda k: pl.when(k.x[0, 0] > 0)(lambda: sp.signal(k.dead("regular"))),
    ),
]


@table(CASES)
def test_scope(case: Case) -> None:
    judge(case)


def test_scopes_under_x64() -> None:
    judge_under_x64(CASES)


@pytest.fixture
def leaked() -> dict[str, Any]:
    """All that a kernel had, after it has been traced."""
    things: dict[str, Any] = {}

    def act(k: Kernel) -> None:
        barrier = sp.get_barrier_semaphore()
        things.update(
            regular=k.regular0,
            barrier=k.barrier0,
            dma=k.dma0,
            array=k.regular1,
            collective=barrier,
            adopted=sp.adopt(k.regular0.ref, sp.semaphore()),
            copy=sp.async_copy(k.x, k.o, k.dma0),
            remote=sp.async_remote_copy(k.x, k.o, k.dma0, k.dma0, THERE),
            x=k.x,
        )

    trace(act, compiler_params=pltpu.CompilerParams(collective_id=0))
    return things


AFTER_KERNEL: dict[str, Callable[[dict[str, Any]], Any]] = {
    "signal regular": lambda t: sp.signal(t["regular"]),
    "wait barrier": lambda t: sp.wait(t["barrier"]),
    "read dma": lambda t: sp.read(t["dma"]),
    "signal collective": lambda t: sp.signal(t["collective"]),
    "signal adopted": lambda t: sp.signal(t["adopted"]),
    "index": lambda t: t["array"][0],
    "copy": lambda t: sp.async_copy(t["x"], t["x"], t["dma"]),
    "wait_bytes": lambda t: sp.wait_bytes(t["dma"], t["x"]),
    "start": lambda t: t["copy"].start(),
    "wait": lambda t: t["copy"].wait(),
    "wait_send": lambda t: t["remote"].wait_send(),
    "wait_recv": lambda t: t["remote"].wait_recv(),
    "ref": lambda t: t["dma"].ref,
}


@pytest.mark.parametrize("use", AFTER_KERNEL)
def test_after_the_kernel(use: str, leaked: dict[str, Any]) -> None:
    with pytest.raises(sp.errors.ScopeEndedError, match="kernel 'kernel'"):
        AFTER_KERNEL[use](leaked)


@pytest.mark.parametrize("use", [use for use in AFTER_KERNEL if use != "ref"])
def test_in_the_next_kernel(use: str, leaked: dict[str, Any]) -> None:
    with pytest.raises(sp.errors.ScopeEndedError, match="kernel 'kernel'"):
        trace(lambda k: AFTER_KERNEL[use](leaked | {"x": k.x}))


def test_after_a_kernel_that_failed() -> None:
    leaked: list[Any] = []

    def act(k: Kernel) -> None:
        leaked.append(k.regular0)
        raise KeyError

    with pytest.raises(KeyError):
        trace(act)
    with pytest.raises(sp.errors.ScopeEndedError):
        sp.signal(leaked[0])
    trace(lambda k: sp.signal(k.regular0))


def test_leak_from_one_branch_into_another() -> None:
    """As JAX's own leaks are, but by name."""

    def kernel(x: Any, o: Any) -> None:
        leaked: list[Any] = []

        @pl.when(x[0, 0] > 0)
        def _() -> None:
            sp.run_scoped(leaked.append, sp.semaphore())

        sp.signal(leaked[0])

    with pytest.raises(sp.errors.ScopeEndedError, match="run_scoped"):
        jax.make_jaxpr(sp.pallas_call(kernel, FLOATS))(jnp.zeros(FLOATS.shape))
