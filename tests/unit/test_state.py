"""No trace leaves anything behind, in memory or in state, and none disturbs another."""

import copy
import functools
import gc
import pickle
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp
from safepallas._semaphores.lifetime import UNSCOPED, kernel_scope

X = OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)
WITH_ID = pltpu.CompilerParams(collective_id=3)


def trace(kernel: Any, *scratch: Any, **options: Any) -> Any:
    return jax.make_jaxpr(sp.pallas_call(kernel, OUT, scratch_shapes=scratch, **options))(X)


def good(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, ready: sp.Semaphore) -> None:
    barrier = sp.get_barrier_semaphore()
    sp.signal(barrier)
    sp.wait(barrier)
    sp.async_copy(x, o, sem).wait()
    sp.run_scoped(lambda own: sp.signal(own), sp.semaphore())
    sp.wait(ready)


def good_jaxpr() -> str:
    return str(trace(good, sp.dma_semaphore(), sp.semaphore(), compiler_params=WITH_ID))


# A trace that fails midway.


class UserError(Exception):
    pass


class UserExit(BaseException):
    pass


Leaked = dict[str, Any]  # where a kernel leaves its handles


def by_the_user(leaked: Leaked, sem: sp.Semaphore, dma: sp.DmaSemaphore) -> None:
    raise UserError


def by_leaving_the_program(leaked: Leaked, sem: sp.Semaphore, dma: sp.DmaSemaphore) -> None:
    raise UserExit


def by_an_error_of_ours(leaked: Leaked, sem: sp.Semaphore, dma: Any) -> None:
    sp.wait(dma)


def by_an_error_of_jax(leaked: Leaked, sem: sp.Semaphore, dma: sp.DmaSemaphore) -> None:
    jax.lax.cond(jnp.bool_(True), lambda: 1, lambda: 1.0)


def in_a_scope(leaked: Leaked, sem: sp.Semaphore, dma: sp.DmaSemaphore) -> None:
    def body(inner: sp.Semaphore) -> None:
        leaked.update(inner=inner)
        raise UserError

    sp.run_scoped(body, sp.semaphore())


def in_a_scope_in_a_branch_in_jit(leaked: Leaked, sem: sp.Semaphore, dma: Any) -> None:
    def body(inner: Any) -> None:
        leaked.update(inner=inner)
        sp.wait(inner)

    @jax.jit
    def helper(i: jax.Array, sem: sp.Semaphore) -> None:
        leaked.update(helper_sem=sem)
        jax.lax.cond(i > 0, lambda: None, lambda: sp.run_scoped(body, sp.dma_semaphore()))

    helper(jnp.int32(1), sem)


def in_the_checks_at_the_end(leaked: Leaked, sem: sp.Semaphore, dma: sp.DmaSemaphore) -> None:
    sp.read(sem)  # which the interpreter of the call below cannot


FAILURES: dict[Callable[..., None], type[BaseException]] = {
    by_the_user: UserError,
    by_leaving_the_program: UserExit,
    by_an_error_of_ours: sp.errors.WrongKindError,
    by_an_error_of_jax: TypeError,
    in_a_scope: UserError,
    in_a_scope_in_a_branch_in_jit: sp.errors.WrongKindError,
    in_the_checks_at_the_end: sp.errors.InterpretedReadError,
}


@pytest.mark.parametrize(
    ("fail", "error"), FAILURES.items(), ids=[fail.__name__ for fail in FAILURES]
)
def test_a_failed_trace_leaves_no_state(fail: Any, error: type[BaseException]) -> None:
    before = good_jaxpr()
    leaked: Leaked = {}

    def failing(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore, dma: sp.DmaSemaphore) -> None:
        leaked.update(sem=sem, dma=dma, barrier=sp.get_barrier_semaphore())
        fail(leaked, sem, dma)

    params: Any = {"compiler_params": WITH_ID, "interpret": pltpu.InterpretParams()}
    for _ in range(2):
        with pytest.raises(error):
            trace(failing, sp.semaphore(), sp.dma_semaphore(), **params)
        assert kernel_scope() is UNSCOPED
        for name, handle in leaked.items():
            refused = r"is used after its scope, (kernel|run_scoped) '"
            with pytest.raises(sp.errors.ScopeEndedError, match=refused) as info:
                sp.read(handle)
            shown = {"helper_sem": "sem"}.get(name, name)
            assert str(info.value).startswith(f"read: {type(handle).__name__} '{shown}' (")
            scope = "body" if name == "inner" else "failing"
            assert f"'{scope}' ({__file__}:" in str(info.value)
    assert good_jaxpr() == before


def test_a_failure_that_the_kernel_survives() -> None:
    """The scope that failed has ended; the kernel around it goes on."""
    leaked: Leaked = {}

    def body(inner: sp.Semaphore) -> None:
        leaked.update(inner=inner)
        raise UserError

    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        with pytest.raises(UserError):
            sp.run_scoped(body, sp.semaphore())
        with pytest.raises(sp.errors.ScopeEndedError, match=r"'inner'.*run_scoped 'body'"):
            sp.signal(leaked["inner"])
        sp.signal(sem)

    assert str(trace(kernel, sp.semaphore())).count("semaphore_signal") == 1


def test_a_failed_trace_inside_the_trace_of_another_kernel() -> None:
    """The barrier semaphore belongs to the kernel that asks for it, before and after."""
    leaked: Leaked = {}

    def inner(x: sp.Ref, o: sp.Ref) -> None:
        leaked.update(inner=sp.get_barrier_semaphore())
        raise UserError

    def outer(x: sp.Ref, o: sp.Ref) -> None:
        leaked.update(before=sp.get_barrier_semaphore())
        with pytest.raises(UserError):
            trace(inner, compiler_params=WITH_ID)
        leaked.update(after=sp.get_barrier_semaphore())
        for name in "before", "after":
            sp.signal(leaked[name])
        with pytest.raises(sp.errors.ScopeEndedError, match="kernel 'inner'"):
            sp.signal(leaked["inner"])

    trace(outer, compiler_params=WITH_ID)
    for name in "before", "after":
        with pytest.raises(sp.errors.ScopeEndedError, match="kernel 'outer'"):
            sp.signal(leaked[name])


# Traces in several threads at once.


def in_threads(*bodies: Callable[[], Any]) -> list[Any]:
    """What the bodies return, or the errors that end them, each run in a thread of its own."""
    results: list[Any] = [None] * len(bodies)

    def run(i: int) -> None:
        try:
            results[i] = bodies[i]()
        except Exception as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return results


def synchronised(count: int = 2) -> Callable[[], None]:
    """A place where that many threads wait for each other, so that their traces interleave."""
    barrier = threading.Barrier(count, timeout=20)
    return lambda: (barrier.wait(), None)[1]


def stepwise(sync: Callable[[], Any], *, barrier: bool, wrong: bool = False) -> Any:
    """A kernel that synchronises with others between any two of its steps."""

    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, ready: Any) -> None:
        sync()
        if barrier:
            sp.signal(sp.get_barrier_semaphore())
        sync()
        sp.run_scoped(lambda own: (sync(), sp.signal(own), sync())[1], sp.semaphore())
        sync()
        sp.async_copy(x, o, sem).wait()
        sync()
        if wrong:
            sp.wait(sem)  # type: ignore[arg-type]
        sp.wait(ready)

    return kernel


def stepwise_trace(kernel: Any, params: Any, rows: int = 8) -> Callable[[], str]:
    shape = jax.ShapeDtypeStruct((rows, 128), jnp.float32)
    scratch = (sp.dma_semaphore(), sp.semaphore())
    call = sp.pallas_call(kernel, shape, scratch_shapes=scratch, compiler_params=params)
    return lambda: str(jax.make_jaxpr(call)(shape))


def test_different_kernels_at_once() -> None:
    alone = [
        stepwise_trace(stepwise(lambda: None, barrier=barrier), WITH_ID if barrier else None)()
        for barrier in (True, False)
    ]
    for _ in range(20):
        sync = synchronised()
        with_barrier = stepwise_trace(stepwise(sync, barrier=True), WITH_ID)
        without = stepwise_trace(stepwise(sync, barrier=False), None)
        assert in_threads(with_barrier, without) == alone


def test_no_check_is_lost_and_none_strays_to_another_thread() -> None:
    for _ in range(10):
        sync = synchronised(4)
        missing = stepwise_trace(stepwise(sync, barrier=True), None)
        unused = stepwise_trace(stepwise(sync, barrier=False), WITH_ID)
        wrong = stepwise_trace(stepwise(sync, barrier=True, wrong=True), WITH_ID)
        right = stepwise_trace(stepwise(sync, barrier=True), WITH_ID)
        results = in_threads(missing, unused, wrong, right)
        assert [type(result) for result in results] == [
            sp.errors.MissingCollectiveIdError,
            sp.errors.UnusedCollectiveIdError,
            sp.errors.WrongKindError,
            str,
        ]


def test_the_same_kernel_at_once_for_different_shapes() -> None:
    def both(kernel: Any) -> list[Callable[[], str]]:
        return [stepwise_trace(kernel, WITH_ID, rows) for rows in (8, 16)]

    alone = [run() for run in both(stepwise(lambda: None, barrier=True))]
    for _ in range(10):
        assert in_threads(*both(stepwise(synchronised(), barrier=True))) == alone


def test_the_same_kernel_at_once_for_the_same_shape() -> None:
    """JAX 0.12 lets the second thread wait for the first, so that they cannot sync inside."""
    scratch = (sp.dma_semaphore(), sp.semaphore())
    for _ in range(10):
        start = synchronised(3)

        def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, ready: sp.Semaphore) -> None:
            for _ in range(5):
                time.sleep(0.0005)
                sp.signal(ready)
            sp.async_copy(x, o, sem).wait()

        def run(kernel: Any = kernel, start: Any = start) -> str:
            start()
            return str(trace(kernel, *scratch))

        first, second, third = in_threads(run, run, run)
        assert first == second == third
        assert first.count("semaphore_signal") == 5


def test_the_scope_of_the_barrier_is_the_threads_own() -> None:
    leaked: Leaked = {}
    sync, outside = synchronised(), []

    def early(x: sp.Ref, o: sp.Ref) -> None:
        sync()  # both are in their kernels
        leaked.update(early=sp.get_barrier_semaphore())
        sync()

    def late(x: sp.Ref, o: sp.Ref) -> None:
        sync()
        leaked.update(late=sp.get_barrier_semaphore())
        sync()
        sync()  # the other has left its kernel
        leaked.update(later=sp.get_barrier_semaphore())
        for name in "late", "later":
            sp.signal(leaked[name])
        sync()

    def leave_early() -> None:
        trace(early, compiler_params=WITH_ID)
        outside.append(kernel_scope())
        sync()
        sync()

    errors = in_threads(leave_early, lambda: trace(late, compiler_params=WITH_ID) and None)
    assert errors == [None, None]
    assert outside == [UNSCOPED]
    for name, kernel in {"early": "early", "late": "late", "later": "late"}.items():
        with pytest.raises(sp.errors.ScopeEndedError, match=f"kernel '{kernel}'"):
            sp.signal(leaked[name])


# What stays in memory.


class Kept(sp.Scratch):
    sem = sp.dma_semaphore()


def new_kernel() -> Any:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
        sp.async_copy(x, o, sem).wait()

    return kernel, (sp.dma_semaphore(),)


def new_kernel_with_a_scratch() -> Any:
    def kernel(x: sp.Ref, o: sp.Ref, s: Kept) -> None:
        sp.async_copy(x, o, s.sem).wait()

    return kernel, Kept


def new_partial() -> Any:
    kernel, scratch = new_kernel()
    return functools.partial(kernel), scratch


def new_callable() -> Any:
    class Kernel:
        def __call__(self, x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
            sp.async_copy(x, o, sem).wait()

    return Kernel(), (sp.dma_semaphore(),)


def new_kernel_with_a_scope() -> Any:
    def body(own: sp.Semaphore) -> None:
        sp.signal(own)

    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        sp.run_scoped(body, sp.semaphore())

    return kernel, ()


def new_kernel_that_fails() -> Any:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        sp.signal(sem, True)

    return kernel, (sp.semaphore(),)


@pytest.mark.parametrize(
    "make",
    [
        new_kernel,
        new_kernel_with_a_scratch,
        new_partial,
        new_callable,
        new_kernel_with_a_scope,
        new_kernel_that_fails,
    ],
)
def test_a_kernel_is_collected_after_use(make: Any) -> None:
    def use() -> weakref.ref[Any]:
        kernel, scratch = make()
        for interpret in True, pltpu.InterpretParams():
            call: Any = sp.pallas_call(kernel, OUT, scratch_shapes=scratch, interpret=interpret)
            try:
                jax.make_jaxpr(call)(X)
                jax.jit(call)(jnp.zeros((8, 128))) if interpret is True else None
            except sp.errors.AmountTypeError:
                pass
        return weakref.ref(kernel)

    used = use()
    gc.collect()
    assert used() is None


def test_scratch_classes_stay_as_jax_forgets_no_pytree_class() -> None:
    """So does any class that is registered with raw JAX; kernels do go."""

    def use() -> tuple[weakref.ref[Any], ...]:
        class Group:
            pass

        jax.tree_util.register_pytree_node(Group, lambda _: ((), None), lambda *_: None)

        class Buffers(sp.Scratch):
            sem = sp.dma_semaphore()

        def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
            sp.async_copy(x, o, s.sem).wait()

        jax.make_jaxpr(sp.pallas_call(kernel, OUT, scratch_shapes=Buffers))(X)
        return weakref.ref(kernel), weakref.ref(Buffers), weakref.ref(Group)

    kernel, buffers, group = use()
    gc.collect()
    assert kernel() is None
    assert buffers() is not None
    assert group() is not None


def test_handles_are_collected_with_the_trace() -> None:
    scopes: list[weakref.ref[Any]] = []

    class Witness:
        pass

    def kernel(x: sp.Ref, o: sp.Ref, sems: Any) -> None:
        witness = Witness()
        scopes.append(weakref.ref(witness))
        held = [sems[0], sems, sp.make_async_copy(x, o, sems[0]), witness]
        held.append(held)
        pl.when(x[0, 0] > 0)(lambda: held[2].start())

    trace(kernel, sp.dma_semaphore(2))
    gc.collect()
    assert scopes[0]() is None


# Copies of kernels.


class Kernel:
    """A kernel with an option, as an object and as a method."""

    def __init__(self, inc: int) -> None:
        self.inc = inc

    def __call__(self, x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        sp.signal(sem, self.inc)

    def method(self, x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        sp.signal(sem, self.inc)


def function(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore, inc: int) -> None:
    sp.signal(sem, inc)


def text_of(kernel: Any) -> str:
    return str(trace(kernel, sp.semaphore()))


def pickled(kernel: Any) -> Any:
    return pickle.loads(pickle.dumps(kernel))


def test_an_object_is_collected_after_use_of_its_method() -> None:
    kernel = Kernel(2)
    trace(kernel.method, sp.semaphore())
    alive = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_used_kernels_can_be_copied(copied: Any) -> None:
    """As they can be after use in raw Pallas; and a copy is a kernel of its own."""
    kernel = Kernel(2)
    before = text_of(kernel)
    other = copied(kernel)
    assert text_of(other) == before
    other.inc = 3
    another = copied(other)
    assert text_of(another) == before.replace("] 2:i32[]", "] 3:i32[]") != before
    assert text_of(kernel) == before

    partial = functools.partial(function, inc=2)
    before = text_of(partial)
    assert text_of(copied(partial)) == before
    assert copied(function) is function
