"""How often the body of a kernel runs: as often as in raw Pallas, in the same calls.

JAX 0.12 keeps the trace of a kernel by its function; 0.10 traces anew in each call.
"""

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

X = jax.ShapeDtypeStruct((8, 128), jnp.float32)
WIDE = jax.ShapeDtypeStruct((16, 128), jnp.float32)
KEEPS_TRACES = jax.__version_info__ >= (0, 12)

OURS = SimpleNamespace(
    pallas_call=sp.pallas_call,
    run_scoped=sp.run_scoped,
    signal=sp.signal,
    barrier=sp.get_barrier_semaphore,
    dma=sp.dma_semaphore,
    regular=sp.semaphore,
)
RAW = SimpleNamespace(
    pallas_call=pl.pallas_call,
    run_scoped=pl.run_scoped,
    signal=pl.semaphore_signal,
    barrier=pltpu.get_barrier_semaphore,
    dma=lambda *shape: pltpu.SemaphoreType.DMA(shape) if shape else pltpu.SemaphoreType.DMA,
    regular=lambda *shape: (
        pltpu.SemaphoreType.REGULAR(shape) if shape else pltpu.SemaphoreType.REGULAR
    ),
)


class Runs:
    """Calls of one vocabulary, and a count of how often kernels have run in them."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        self.count = 0

    def new_kernel(self) -> Callable[..., None]:
        def kernel(*refs: Any, **options: Any) -> None:
            self.count += 1

        return kernel

    def trace(self, kernel: Any, *scratch: Any, shape: Any = X, **options: Any) -> None:
        scratch = scratch or (self.lib.dma(),)
        call = self.lib.pallas_call(kernel, shape, scratch_shapes=scratch, **options)
        jax.make_jaxpr(call)(shape)


def again(runs: Runs, kernel: Any) -> None:
    for _ in range(3):
        runs.trace(kernel)


def the_same_call_again(runs: Runs, kernel: Any) -> None:
    call = runs.lib.pallas_call(kernel, X, scratch_shapes=(runs.lib.dma(),))
    for _ in range(2):
        jax.make_jaxpr(call)(X)
        jax.make_jaxpr(jax.jit(call))(X)
        jax.eval_shape(call, X)


def other_kinds_and_back(runs: Runs, kernel: Any) -> None:
    for request in runs.lib.dma, runs.lib.regular, runs.lib.dma, runs.lib.regular:
        runs.trace(kernel, request())


def other_shapes_and_back(runs: Runs, kernel: Any) -> None:
    for size in 1, 2, 1, 2:
        runs.trace(kernel, runs.lib.dma(size))
    for shape in X, WIDE, X:
        runs.trace(kernel, shape=shape)


def nested_requests(runs: Runs, kernel: Any) -> None:
    for _ in range(2):
        runs.trace(kernel, (runs.lib.dma(), {"a": runs.lib.regular()}))


def requests_by_name(runs: Runs, kernel: Any) -> None:
    for _ in range(2):
        call = runs.lib.pallas_call(kernel, X, scratch_shapes={"sem": runs.lib.dma()})
        jax.make_jaxpr(call)(X)


def other_options_and_back(runs: Runs, kernel: Any) -> None:
    for name in "a", "b", "a":
        runs.trace(kernel, name=name)
    for grid in (), (2,), (), (2,):
        runs.trace(kernel, grid=grid)
    for params in None, pltpu.CompilerParams(vmem_limit_bytes=2**20), None:
        runs.trace(kernel, compiler_params=params)
    for interpret in False, True, False:
        runs.trace(kernel, interpret=interpret)


def with_64_bit_types_and_back(runs: Runs, kernel: Any) -> None:
    runs.trace(kernel)
    with jax.enable_x64(True):
        runs.trace(kernel)
    runs.trace(kernel)


def after_a_failure(runs: Runs, count: Any) -> None:
    def kernel(*refs: Any) -> None:
        count()
        if runs.count == 1:
            raise UserWarning

    with pytest.raises(UserWarning):
        runs.trace(kernel)
    runs.trace(kernel)
    runs.trace(kernel)


def after_clearing_the_caches(runs: Runs, kernel: Any) -> None:
    runs.trace(kernel)
    jax.clear_caches()
    runs.trace(kernel)


def one_partial_again(runs: Runs, kernel: Any) -> None:
    partial = functools.partial(kernel, option=1)
    for _ in range(3):
        runs.trace(partial)


def a_new_partial_each_time(runs: Runs, kernel: Any) -> None:
    for _ in range(3):
        runs.trace(functools.partial(kernel, option=1))


class Counting:
    """A kernel as an object and as a method, which each look-up makes anew, for JAX as for us."""

    def __init__(self, count: Any) -> None:
        self.count = count

    def __call__(self, *refs: Any) -> None:
        self.count()

    def method(self, *refs: Any) -> None:
        self.count()


def one_callable_object_again(runs: Runs, count: Any) -> None:
    kernel = Counting(count)
    for _ in range(3):
        runs.trace(kernel)


def a_method_again(runs: Runs, count: Any) -> None:
    kernel = Counting(count)
    for _ in range(3):
        runs.trace(kernel.method)


def wrapped_kernels_and_what_they_wrap(runs: Runs, kernel: Any) -> None:
    runs.trace(kernel)

    @functools.wraps(kernel)
    def first(*refs: Any) -> None:
        runs.count += 10

    @functools.wraps(kernel)
    def second(*refs: Any) -> None:
        runs.count += 100

    for _ in range(2):
        for each in kernel, first, second:
            runs.trace(each)


def a_jitted_helper_in_several_kernels(runs: Runs, count: Any) -> None:
    """The helper counts: neither a handle's scope nor its name makes JAX trace it anew."""

    @jax.jit
    def helper(group: Any, sems: Any) -> Any:
        count()
        runs.lib.signal(group["sem"])
        return group

    for _ in range(3):

        def kernel(x: Any, o: Any, first: Any, second: Any, sems: Any) -> None:
            helper({"sem": first}, sems)
            helper(helper({"sem": second}, sems), sems)

        runs.trace(kernel, runs.lib.regular(), runs.lib.regular(), runs.lib.dma(2))
    assert runs.count == 1


def scopes(runs: Runs, body: Any) -> None:
    def kernel(*refs: Any) -> None:
        runs.lib.run_scoped(body, runs.lib.dma())
        runs.lib.run_scoped(body, runs.lib.dma())

    runs.trace(kernel)
    runs.trace(kernel)


SEQUENCES = [
    again,
    the_same_call_again,
    other_kinds_and_back,
    other_shapes_and_back,
    nested_requests,
    requests_by_name,
    other_options_and_back,
    with_64_bit_types_and_back,
    after_a_failure,
    after_clearing_the_caches,
    one_partial_again,
    a_new_partial_each_time,
    one_callable_object_again,
    a_method_again,
    wrapped_kernels_and_what_they_wrap,
    a_jitted_helper_in_several_kernels,
    scopes,
]


def counted(sequence: Any, lib: Any) -> int:
    runs = Runs(lib)
    sequence(runs, runs.new_kernel())
    return runs.count


@pytest.mark.parametrize("sequence", SEQUENCES, ids=[s.__name__ for s in SEQUENCES])
def test_a_kernel_runs_as_often_as_in_raw_pallas(sequence: Any) -> None:
    assert counted(sequence, OURS) == counted(sequence, RAW) > 0


def test_jax_keeps_traces_or_not() -> None:
    """What the other tests of this file rest on."""
    assert counted(again, RAW) == (1 if KEEPS_TRACES else 3)


def written_elsewhere(runs: Runs, kernel: Any) -> None:
    runs.trace(kernel, runs.lib.dma())
    runs.trace(kernel, runs.lib.dma())


def other_collective_ids(runs: Runs, count: Any) -> None:
    def kernel(*refs: Any) -> None:
        count()
        runs.lib.signal(runs.lib.barrier())

    for number in 1, 2, 1:
        runs.trace(kernel, compiler_params=pltpu.CompilerParams(collective_id=number))


def other_interpreters(runs: Runs, kernel: Any) -> None:
    for interpret in True, pltpu.InterpretParams(), True:
        runs.trace(kernel, interpret=interpret)


@pytest.mark.parametrize("sequence", [written_elsewhere, other_collective_ids, other_interpreters])
def test_other_terms_may_cost_one_more_run(sequence: Any) -> None:
    """Checks and messages depend on the terms of the call and on the lines of its requests."""
    raw = counted(sequence, RAW)
    assert raw <= counted(sequence, OURS) <= raw + KEEPS_TRACES
