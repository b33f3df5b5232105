"""The barrier of all devices that Pallas puts before a kernel: when it is there, and when not."""

from collections.abc import Callable
from typing import Any

import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .judging import BARRIER, DMA, REGULAR, X, call_of, has, is_safe, judge, me, over, start_remote

SCRATCH = [BARRIER, REGULAR, DMA, DMA]


def right(devices: int) -> Any:
    return lax.rem(me() + 1, devices)


def copies(x: Any, o: Any, flag: Any, other: Any, send: Any, recv: Any) -> None:
    start_remote(x, o, send, recv, right(2)).wait()


def signals(x: Any, o: Any, flag: Any, other: Any, send: Any, recv: Any) -> None:
    pl.semaphore_signal(other, 1, device_id=(right(2),))
    pl.semaphore_wait(other, 1)


def barrier_semaphore() -> Any:
    return pltpu.get_barrier_semaphore()  # type: ignore[no-untyped-call, unused-ignore]


def has_a_barrier_in_a_branch(x: Any, o: Any, flag: Any, other: Any, send: Any, recv: Any) -> None:
    @pl.when(me() > 1)
    def _() -> None:
        pl.semaphore_signal(barrier_semaphore(), 1)
        pl.semaphore_wait(barrier_semaphore(), 1)

    copies(x, o, flag, other, send, recv)


def barrier_in_scratch(x: Any, o: Any, flag: Any, other: Any, send: Any, recv: Any) -> None:
    for device in range(2):
        pl.semaphore_signal(flag, 1, device_id=(device,))
    pl.semaphore_wait(flag, 2)
    copies(x, o, flag, other, send, recv)


def local(x: Any, o: Any, flag: Any, other: Any, send: Any, recv: Any) -> None:
    pltpu.async_copy(x, o, recv).wait()


def ring(kernel: Callable[..., None], devices: int = 2, **params: Any) -> Any:
    options = {"compiler_params": pltpu.CompilerParams(**params)} if params else {}
    return over(call_of(kernel, scratch_shapes=SCRATCH, **options), devices)


WITHOUT_BARRIER: dict[str, Any] = {
    "collective_id": 0,
    "allow_collective_id_without_custom_barrier": True,
}


@pytest.mark.parametrize("kernel", [copies, signals, barrier_in_scratch])
def test_by_default_and_then_it_is_told(kernel: Any) -> None:
    verdict, _, report = judge(ring(kernel), X)
    assert verdict == "safe", str(report)
    assert "entry-barrier" in str(report)


@pytest.mark.parametrize("params", [{"skip_device_barrier": True}, WITHOUT_BARRIER], ids=str)
def test_not_if_it_is_turned_off(params: dict[str, Any]) -> None:
    for kernel, kind in [
        (copies, "race"),
        (signals, "remote-before-entry"),
        (barrier_in_scratch, "remote-before-entry"),
    ]:
        report = has(kind, ring(kernel, **params), X)
        assert "entry-barrier" not in str(report)


def test_not_with_a_barrier_semaphore_anywhere() -> None:
    has("race", ring(has_a_barrier_in_a_branch, collective_id=0), X)
    has("race", ring(has_a_barrier_in_a_branch), X)


def test_not_where_nothing_communicates() -> None:
    """A kernel of one's own memory says nothing of when the others have come."""

    def then(x: Any) -> Any:
        return ring(copies, **WITHOUT_BARRIER)(ring(local)(x))

    assert "entry-barrier" not in str(judge(ring(local), X)[2])
    has("race", then, X)

    def after(x: Any) -> Any:
        return ring(copies)(ring(local)(x))

    is_safe(after, X)


def test_one_device_needs_none() -> None:
    def to_itself(x: Any, o: Any, flag: Any, other: Any, send: Any, recv: Any) -> None:
        start_remote(x, o, send, recv, 0).wait()

    verdict, _, report = judge(ring(to_itself, 1, skip_device_barrier=True), X)
    assert verdict == "safe", str(report)
    assert "entry-barrier" not in str(report)


def test_the_entry_into_a_kernel_does_not_order_the_end_of_the_one_before() -> None:
    """Devices may leave at any time: the barrier is at the entry only."""

    def both(x: Any) -> Any:
        first, second = ring(copies), ring(copies)
        return second(first(x))

    is_safe(both, X)
