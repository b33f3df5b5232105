"""Start and done kernels, and semaphores between kernels otherwise: what is refused, and when."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

from .helpers import FLOATS, Message, assert_says, says

ANY = pl.BlockSpec(memory_space=pl.ANY)
SEMAPHORE = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
EFFECTS = pltpu.CompilerParams(has_side_effects=True)
PURE = pltpu.CompilerParams(has_side_effects=pltpu.SideEffectType.PURE)
DATAFLOW = pltpu.CompilerParams(has_side_effects=pltpu.SideEffectType.DATAFLOW_SIDE_EFFECTING)


class Flight(sp.Scratch):
    sem = sp.dma_semaphore()
    credits = sp.semaphore(2)


class Barriers(sp.Scratch):
    ready = sp.barrier_semaphore()


class Data(sp.Scratch):
    sem = sp.dma_semaphore()
    rows = sp.vmem((8, 128), jnp.float32)


class Empty(sp.Scratch):
    pass


def start(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    sp.async_copy(x, o, flight.sem)


def done(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    del x
    sp.wait_bytes(flight.sem, o)


def wrong_done(x: sp.Ref, o: sp.Ref, flight: Data) -> None:
    del x, o, flight


def make(
    begin: Any = start, end: Any = done, out: Any = FLOATS, scratch: Any = Flight, **options: Any
) -> Any:
    return sp.pallas_call_async(scratch, begin, end, out, **options)


def trace(run: Callable[[jax.Array], Any]) -> Any:
    return jax.make_jaxpr(run)(FLOATS)


def twice(x: jax.Array) -> Any:
    call = make()
    in_flight = call.start(x)
    return call.done(in_flight), call.done(in_flight)


def out_start(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(x, o, sem)


def out_done(x: sp.Ref, begun: sp.Ref, sem: sp.DmaSemaphore, o: sp.Ref) -> None:
    del x, o
    sp.wait_bytes(sem, begun)


def by_hand(first: Any, second: Any, interpret: Any = False) -> Callable[[jax.Array], Any]:
    """A pair of plain calls, with these compiler parameters."""

    def run(x: jax.Array) -> Any:
        o, sem = sp.pallas_call(
            out_start,
            (FLOATS, sp.dma_semaphore()),
            in_specs=[ANY],
            out_specs=(ANY, SEMAPHORE),
            compiler_params=first,
            interpret=interpret,
        )(x)
        return sp.pallas_call(
            out_done,
            FLOATS,
            in_specs=[ANY, ANY, SEMAPHORE],
            out_specs=ANY,
            input_output_aliases={1: 0},
            compiler_params=second,
        )(x, o, sem)

    return run


DROPPED = (
    "an input or output of the call, and XLA may drop a call without side effects: its semaphores "
    "would be left over. Pass compiler_params=pltpu.CompilerParams(has_side_effects=True), or use "
    "sp.pallas_call_async. [missing-side-effects]"
)
BOTH = "<<def start>> and <<def done>>"

MESSAGES: dict[str, Message] = {
    "start without side effects": says(
        lambda: trace(by_hand(None, EFFECTS)),
        "kernel <<def out_start>>: parameter 'sem' is DmaSemaphore 'sem' (from outside), "
        f"{DROPPED}",
    ),
    "done without side effects": says(
        lambda: trace(by_hand(EFFECTS, PURE)),
        f"kernel <<def out_done>>: parameter 'sem' is DmaSemaphore 'sem' (from outside), {DROPPED}",
    ),
    "interpreted output": says(
        lambda: trace(by_hand(EFFECTS, EFFECTS, interpret=True)),
        "pallas_call: out_shape holds a semaphore (sp.dma_semaphore()), and JAX "
        f"{jax.__version__} cannot carry one out of a kernel in an interpreter. Compile for a "
        "TPU, or use sp.pallas_call_async, whose two kernels an interpreter runs as one. "
        "[interpreted-output]",
    ),
    "done with something else": says(
        lambda: make().done(3),
        f"done: the argument must be what start of the same call returned ({BOTH}), got int 3. "
        "Keep what start returns, and pass it to done of the same sp.pallas_call_async. "
        "[in-flight]",
    ),
    "done twice": says(
        lambda: trace(twice),
        f"done: it has been done already ({BOTH}): a second wait would never end. Call done "
        "once for each start. [in-flight]",
    ),
    "semaphores in a tuple": says(
        lambda: make(scratch=()),
        "pallas_call_async: semaphores must be a Scratch class, got tuple (). Write a class "
        "with a field for each semaphore that goes from start to done. [spec]",
    ),
    "a barrier semaphore": says(
        lambda: make(scratch=Barriers),
        "pallas_call_async: Barriers.ready must be a semaphore, got barrier_semaphore(). Only "
        "sp.dma_semaphore and sp.semaphore go from one kernel to another. [spec]",
    ),
    "data": says(
        lambda: make(scratch=Data),
        "pallas_call_async: Data.rows must be a semaphore, got vmem((8, 128), float32). Only "
        "sp.dma_semaphore and sp.semaphore go from one kernel to another. [spec]",
    ),
    "no semaphore": says(
        lambda: make(scratch=Empty),
        "pallas_call_async: there must be an output and a semaphore, got 1 outputs and 0 "
        "semaphores. Without both there is nothing to wait for. [spec]",
    ),
    "an output that is none": says(
        lambda: make(out=(FLOATS, 8)),
        "pallas_call_async: out_shape must hold jax.ShapeDtypeStructs, got int 8. The outputs lie "
        "in HBM; semaphores are fields of the Scratch class. [spec]",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str) -> None:
    assert_says(MESSAGES[name], __file__)


@pytest.mark.parametrize("params", [EFFECTS, DATAFLOW])
def test_a_pair_by_hand_with_side_effects_is_fine(params: Any) -> None:
    assert str(trace(by_hand(params, params))).count("pallas_call[") == 2


def calls(jaxpr: Any) -> list[Any]:
    return [eqn for eqn in jaxpr.jaxpr.eqns if eqn.primitive.name == "pallas_call"]


def simple(x: jax.Array, **options: Any) -> Any:
    call = make(**options)
    return call.done(call.start(x))


@pytest.mark.parametrize("given", [None, pltpu.CompilerParams(), DATAFLOW])
def test_both_kernels_have_side_effects(given: Any) -> None:
    params = [
        c.params["compiler_params"]
        for c in calls(trace(lambda x: simple(x, compiler_params=given)))
    ]
    wanted = given.has_side_effects if given is DATAFLOW else True
    assert [p.has_side_effects for p in params] == [wanted, wanted]


def entering(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    barrier = sp.get_barrier_semaphore()
    sp.signal(barrier)
    sp.wait(barrier)
    sp.async_copy(x, o, flight.sem)


def test_the_collective_id_is_the_start_halfs() -> None:
    given = pltpu.CompilerParams(collective_id=3, vmem_limit_bytes=1 << 20)
    both = calls(trace(lambda x: simple(x, begin=entering, compiler_params=given)))
    params = [one.params["compiler_params"] for one in both]
    assert [p.collective_id for p in params] == [3, None]
    assert [p.vmem_limit_bytes for p in params] == [1 << 20] * 2


@pytest.mark.parametrize("interpret", [False, True, pltpu.InterpretParams()])
def test_a_half_is_held_to_its_annotation(interpret: Any) -> None:
    with pytest.raises(sp.errors.AnnotationError, match="parameter 'flight' is annotated Data"):
        trace(lambda x: simple(x, end=wrong_done, interpret=interpret))


def test_in_flight_belongs_to_one_call() -> None:
    with pytest.raises(sp.errors.InFlightError):
        trace(lambda x: make().done(make().start(x)))


def test_done_may_stand_in_both_branches() -> None:
    def run(x: jax.Array) -> Any:
        call = make()
        in_flight = call.start(x)
        half = lambda: call.done(in_flight)  # noqa: E731
        return jax.lax.cond(x[0, 0] > 0, half, half)

    trace(run)


def test_in_flight_cannot_leave_a_jitted_function() -> None:
    with pytest.raises(TypeError, match="InFlight"):
        jax.eval_shape(jax.jit(make().start), FLOATS)


def test_outputs_have_the_form_of_out_shape() -> None:
    def begin(x: sp.Ref, a: sp.Ref, b: sp.Ref, flight: Flight) -> None:
        sp.async_copy(x, a, flight.sem)
        sp.async_copy(x, b, flight.sem)

    def end(x: sp.Ref, a: sp.Ref, b: sp.Ref, flight: Flight) -> None:
        sp.wait_bytes(flight.sem, a)
        sp.wait_bytes(flight.sem, b)

    def run(x: jax.Array, interpret: Any) -> Any:
        out = {"b": FLOATS, "a": [FLOATS]}
        call = make(begin, end, out=out, interpret=interpret)
        in_flight = call.start(x)
        y = in_flight.then({"y": x})["y"] + 1
        return call.done(in_flight, after=y), y

    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    for interpret in True, pltpu.InterpretParams():
        out, y = jax.jit(run, static_argnums=1)(x, interpret)
        assert jax.tree.structure(out) == jax.tree.structure({"a": [0], "b": 0})
        assert all(jnp.array_equal(leaf, x) for leaf in jax.tree.leaves(out))
        assert jnp.array_equal(y, x + 1)


def test_then_orders_what_xla_may_not_move() -> None:
    def run(x: jax.Array) -> Any:
        call = make()
        in_flight = call.start(x)
        y = jnp.sin(in_flight.then(x))
        return call.done(in_flight, after=y), y

    eqns = trace(run).jaxpr.eqns
    shown = {"pallas_call": "call", "optimization_barrier": "barrier", "sin": "sin"}
    order = [shown[eqn.primitive.name] for eqn in eqns if eqn.primitive.name in shown]
    assert order == ["call", "barrier", "sin", "barrier", "call"]
    # The semaphores of the second call are those that the barriers have let pass.
    barrier = [eqn for eqn in eqns if eqn.primitive.name == "optimization_barrier"][-1]
    assert set(eqns[-1].invars[2:4]) <= set(barrier.outvars)


@pytest.mark.parametrize("cls", [sp.AsyncCall, sp.InFlight])
def test_only_the_library_makes_them(cls: Any) -> None:
    with pytest.raises(TypeError, match="cannot be constructed"):
        cls(None)
    with pytest.raises(TypeError, match="is final"):
        type("Mine", (cls,), {})
