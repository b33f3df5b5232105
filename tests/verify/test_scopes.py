"""Semaphores of scopes are places on a stack; buffers of scopes are there while a scope is open."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas._verify.extract.source import Source, trace
from safepallas._verify.program import Semaphore, Signal, Start

from .judging import BARRIER, DMA, REGULAR, VMEM, X, call_of, has, is_safe, me, over, start_remote


def raised_and_lowered(semaphore: Any) -> None:
    pl.semaphore_signal(semaphore, 1)
    pl.semaphore_wait(semaphore, 1)


def semaphores_of(kernel: Callable[..., None], devices: int = 1) -> list[list[Semaphore]]:
    """By device: the semaphores that are signalled."""
    fn = over(call_of(kernel), devices)
    program = Source(trace(fn, (X,)), (X,)).extract(1, 10_000)
    return [
        [e.semaphore if isinstance(e, Signal) else e.recv for e in events if type(e) in _ADDING]
        for events in program.cores
    ]


_ADDING = (Signal, Start)


# Places


def test_scopes_that_do_not_nest_have_the_same_places_whatever_they_hold() -> None:
    def kernel(x: Any, o: Any) -> None:
        def several(a: Any, b: Any) -> None:
            raised_and_lowered(a)
            raised_and_lowered(b.at[2])

        def copy(sem: Any) -> None:
            pltpu.async_copy(x, o, sem).wait()

        pl.run_scoped(raised_and_lowered, REGULAR)
        pl.run_scoped(copy, DMA)
        pl.run_scoped(several, REGULAR, BARRIER((3,)))

    ((first, second, third, fourth),) = semaphores_of(kernel)
    assert first == second == third
    assert len({first.scope, second.scope, third.scope}) == 3  # for messages
    assert (fourth.indices, fourth.index) == ((3,), (2,))


def test_nested_scopes_are_on_top() -> None:
    def kernel(x: Any, o: Any) -> None:
        def outer(a: Any) -> None:
            def inner(b: Any) -> None:
                raised_and_lowered(a.at[0])
                raised_and_lowered(b)

            pl.run_scoped(inner, REGULAR)
            pl.run_scoped(inner, BARRIER)

        pl.run_scoped(outer, REGULAR((2,)))

    ((a, b, again, c),) = semaphores_of(kernel)
    assert a == again != b == c
    assert [one.indices for one in (a, b, c)] == [(0,), (2,), (2,)]


def test_branches_turns_and_call_sites_have_the_same_places() -> None:
    @jax.jit
    def helper() -> None:
        pl.run_scoped(raised_and_lowered, REGULAR)

    def kernel(x: Any, o: Any) -> None:
        helper()
        helper()
        first = lambda: pl.run_scoped(raised_and_lowered, REGULAR)  # noqa: E731
        second = lambda: pl.run_scoped(raised_and_lowered, BARRIER)  # noqa: E731
        lax.cond(me() == 0, first, second)

        def turn(i: Any, carry: None) -> None:
            pl.run_scoped(raised_and_lowered, REGULAR)

        lax.fori_loop(0, me() + 1, turn, None)

    for device, found in enumerate(semaphores_of(kernel, 3)):
        assert len(found) == 4 + device
        assert {(one.core, one.indices) for one in found} == {(device, (0,))}
        assert len({*found}) == 1


def test_scratch_is_apart_from_scopes_and_so_is_another_call() -> None:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        raised_and_lowered(sem)
        pl.run_scoped(raised_and_lowered, REGULAR)

    def twice(x: Any) -> Any:
        call = call_of(kernel, scratch_shapes=[REGULAR])
        return call(call(x))

    program = Source(trace(twice, (X,)), (X,)).extract(1, 10_000)
    found = [e.semaphore for e in program.cores[0] if isinstance(e, Signal)]
    assert len({*found}) == 4


# Counts


def neighbours(devices: int) -> tuple[Any, Any]:
    return lax.rem(me() + devices - 1, devices), lax.rem(me() + 1, devices)


def tell_neighbours(semaphore: Any, devices: int) -> None:
    for other in neighbours(devices):
        pl.semaphore_signal(semaphore, 1, device_id=(other,))
    pl.semaphore_wait(semaphore, 2)


@pytest.mark.parametrize("is_double", [False, True])
def test_the_double_barrier_of_the_tutorial(is_double: bool) -> None:
    """Once for all calls it is not enough: a neighbour may come again; the second one is new."""

    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        semaphore: Any = pltpu.get_barrier_semaphore()  # type: ignore[no-untyped-call, unused-ignore]
        tell_neighbours(semaphore, 5)
        if is_double:
            pl.run_scoped(lambda second: tell_neighbours(second, 5), REGULAR)
        start_remote(x, o, send, recv, neighbours(5)[1]).wait()

    params = {"compiler_params": pltpu.CompilerParams(collective_id=0)}
    fn = over(call_of(kernel, scratch_shapes=[DMA, DMA], **params), 5)
    if is_double:
        is_safe(fn, X)
    else:
        has("race", fn, X)


@pytest.mark.parametrize("apart", [False, True])
def test_two_barriers_in_scopes_one_after_the_other_are_one_count(apart: bool) -> None:
    """Device 3 may signal twice before device 1 has once; with two scratch semaphores it is safe.

    Device 0 writes twice into device 1, which has to read in between.
    """

    def kernel(x: Any, o: Any, v: Any, send: Any, recv: Any, one: Any, two: Any) -> None:
        for semaphore in (one, two):
            is_sender, is_reader = me() == 0, me() == 1

            @pl.when(is_sender)
            def _() -> None:
                start_remote(x, v, send, recv, 1).wait_send()

            @pl.when(is_reader)
            def _() -> None:
                pltpu.make_async_copy(x, v, recv).wait()
                o_read[...] = v[...]

            if apart:
                tell_neighbours(semaphore, 4)
            else:
                pl.run_scoped(lambda second: tell_neighbours(second, 4), REGULAR)

    def with_room(x: Any, o: Any, v: Any, room: Any, *semaphores: Any) -> None:
        nonlocal o_read
        o_read = room
        kernel(x, o, v, *semaphores)

    o_read: Any = None
    scratch = [VMEM, VMEM, DMA, DMA, REGULAR, REGULAR]
    fn = over(call_of(with_room, scratch_shapes=scratch), 4)
    if apart:
        is_safe(fn, X)
    else:
        report = has("race", fn, X)
        assert {finding.kind.value for finding in report.findings} == {"race"}


def test_a_signal_that_comes_early_counts() -> None:
    def kernel(x: Any, o: Any) -> None:
        def scope(semaphore: Any) -> None:
            pl.semaphore_signal(semaphore, 1, device_id=(1 - me(),))
            pl.semaphore_wait(semaphore, 1)

        @pl.when(me() == 0)
        def _() -> None:
            pl.run_scoped(raised_and_lowered, BARRIER)  # device 1 may be ahead by then

        pl.run_scoped(scope, REGULAR)

    is_safe(over(call_of(kernel), 2), X)


def leaves(amount: int) -> Callable[[Any], None]:
    def scope(semaphore: Any) -> None:
        pl.semaphore_signal(semaphore, 1 + amount)  # left
        pl.semaphore_wait(semaphore, 1)

    return scope


def test_what_a_scope_leaves_is_a_leak_although_the_next_one_takes_it() -> None:
    def takes(semaphore: Any) -> None:
        pl.semaphore_wait(semaphore, 1)

    def kernel(x: Any, o: Any) -> None:
        pl.run_scoped(leaves(1), REGULAR)
        pl.run_scoped(takes, REGULAR)

    (finding,) = has("leak", call_of(kernel), X).findings
    assert "left at 1 when its scope ends" in finding.text

    def alone(x: Any, o: Any) -> None:
        pl.run_scoped(leaves(1), REGULAR)
        pl.run_scoped(raised_and_lowered, REGULAR)

    (finding,) = has("leak", call_of(alone), X).findings
    assert "left at 1 when its scope ends" in finding.text

    def clean(x: Any, o: Any) -> None:
        pl.run_scoped(leaves(0), REGULAR)
        pl.run_scoped(raised_and_lowered, REGULAR)

    is_safe(call_of(clean), X)


def test_what_no_scope_takes_is_a_leak_of_the_kernel() -> None:
    def kernel(x: Any, o: Any) -> None:
        def scope(semaphore: Any) -> None:
            pl.semaphore_signal(semaphore, 1, device_id=(1,))

        @pl.when(me() == 0)
        def _() -> None:
            pl.run_scoped(scope, REGULAR)

    (finding,) = has("leak", over(call_of(kernel), 2), X).findings
    assert "left at 1 when `kernel` ends" in finding.text


# Buffers


def exchange(x: Any, flag: Any, send: Any) -> None:
    """Tell each other that the scope is open, then copy into it."""

    def scope(buffer: Any, recv: Any) -> None:
        other = 1 - me()
        pl.semaphore_signal(flag, 1, device_id=(other,))
        pl.semaphore_wait(flag, 1)
        start_remote(x, buffer, send, recv, other).wait()

    pl.run_scoped(scope, VMEM, DMA)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["inlined", "jitted"])
def test_call_sites_of_a_helper_are_the_same_scope(wrap: Any) -> None:
    def kernel(x: Any, o: Any, send: Any, flag: Any) -> None:
        helper = wrap(lambda: exchange(x, flag, send))

        def later() -> None:
            helper()

        lax.cond(me() == 0, lambda: helper(), later)

    is_safe(over(call_of(kernel, scratch_shapes=[DMA, REGULAR]), 2), X)


@pytest.mark.parametrize("turns", [(1, 2), (2, 1), (1, 1)])
def test_turns_that_differ(turns: tuple[int, int]) -> None:
    """Whichever turn it is: both have the scope open when they exchange."""

    def kernel(x: Any, o: Any, send: Any, flag: Any) -> None:
        last = jnp.where(me() == 0, turns[0], turns[1]) - 1

        def turn(i: Any, carry: None) -> None:
            def scope(buffer: Any, recv: Any) -> None:
                @pl.when(i == last)
                def _() -> None:
                    other = 1 - me()
                    pl.semaphore_signal(flag, 1, device_id=(other,))
                    pl.semaphore_wait(flag, 1)
                    start_remote(x, buffer, send, recv, other).wait()

                pltpu.sync_copy(buffer, o)

            pl.run_scoped(scope, VMEM, DMA)

        lax.fori_loop(0, last + 1, turn, None)

    is_safe(over(call_of(kernel, scratch_shapes=[DMA, REGULAR]), 2), X)


def test_a_copy_into_an_earlier_turn_of_the_other() -> None:
    """The signal is given in the turn before: that scope may have ended by then."""

    def kernel(x: Any, o: Any, send: Any, recv: Any, flag: Any) -> None:
        def turn(i: Any, carry: None) -> None:
            def scope(buffer: Any) -> None:
                @pl.when((me() == 1) & (i == 0))
                def _() -> None:
                    pl.semaphore_signal(flag, 1, device_id=(0,))

                @pl.when((me() == 0) & (i == 1))
                def _() -> None:
                    pl.semaphore_wait(flag, 1)
                    start_remote(x, buffer, send, recv, 1).wait_send()

                @pl.when((me() == 1) & (i == 1))
                def _() -> None:
                    pltpu.make_async_copy(x, buffer, recv).wait()

            pl.run_scoped(scope, VMEM)

        lax.fori_loop(0, 2, turn, None)

    fn = over(call_of(kernel, scratch_shapes=[DMA, DMA, REGULAR]), 2)
    (finding,) = has("race", fn, X).findings
    assert "after device x=1 has left the scope that ends at" in finding.text


@pytest.mark.parametrize("uses_scratch", [True, False])
def test_a_scope_that_the_other_never_opens(uses_scratch: bool) -> None:
    """Told as that, and not as what is left on the semaphore of that scope."""

    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        def scope(buffer: Any, mine: Any) -> None:
            start_remote(x, buffer, send, recv if uses_scratch else mine, 1).wait_send()

        @pl.when(me() == 0)
        def _() -> None:
            pl.run_scoped(scope, VMEM, DMA)

        @pl.when(me() == 1)
        def _() -> None:
            if uses_scratch:
                pltpu.make_async_copy(x, x, recv).wait()

    fn = over(call_of(kernel, scratch_shapes=[DMA, DMA]), 2)
    (finding,) = has("race", fn, X).findings
    assert "but device x=1 never opens that scope" in finding.text


def test_another_scope_of_the_same_shape_is_not_that_scope() -> None:
    def kernel(x: Any, o: Any, send: Any, recv: Any, flag: Any) -> None:
        def sender(buffer: Any) -> None:
            pl.semaphore_wait(flag, 1)
            start_remote(x, buffer, send, recv, 1).wait_send()

        def receiver(buffer: Any) -> None:
            pl.semaphore_signal(flag, 1, device_id=(0,))
            pltpu.make_async_copy(x, buffer, recv).wait()

        @pl.when(me() == 0)
        def _() -> None:
            pl.run_scoped(sender, VMEM)

        @pl.when(me() == 1)
        def _() -> None:
            pl.run_scoped(receiver, VMEM)

    fn = over(call_of(kernel, scratch_shapes=[DMA, DMA, REGULAR]), 2)
    (finding,) = has("race", fn, X).findings
    assert "never opens that scope" in finding.text


def test_a_signal_counts_a_granule_where_bytes_were_expected() -> None:
    """Kinds do not matter at a place: a DMA semaphore counts granules of 32 bytes."""

    def kernel(x: Any, o: Any) -> None:
        def raises(semaphore: Any) -> None:
            pl.semaphore_signal(semaphore, 1)

        def takes(semaphore: Any) -> None:
            row = x.at[pl.ds(0, 1), pl.ds(0, 8)]
            pltpu.make_async_copy(row, row, semaphore).wait()

        pl.run_scoped(raises, REGULAR)
        pl.run_scoped(takes, DMA)

    report = has("leak", call_of(kernel), X)
    assert [finding.kind.value for finding in report.findings] == ["leak"]  # and no deadlock
