"""guard_raw_pallas itself: what it replaces and puts back, what it traces again, what it finds."""

import logging
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp
from safepallas import testing
from safepallas._guard import guard as _guard

from . import core_meshes
from .helpers import FLOATS, trace_call

DMA, REGULAR = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR


@pytest.fixture(autouse=True)
def without_the_log_of_copies() -> Iterator[None]:
    """JAX logs copies that are made and not started, as those are that were refused."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def public() -> dict[tuple[str, str], Any]:
    """What the two modules hold under the names that are replaced."""
    return {
        (module.__name__, name): vars(module)[name]
        for module in (pl, pltpu)
        for name in _guard.NAMES
        if name in vars(module)
    }


def call(kernel: Callable[..., None], *scratch: Any, **options: Any) -> Callable[..., Any]:
    return pl.pallas_call(kernel, FLOATS, scratch_shapes=scratch, **options)


def trace(kernel: Callable[..., None], *scratch: Any, mesh: str = "no mesh", **options: Any) -> Any:
    return trace_call(call(kernel, *scratch, **options), mesh)


def correct(x: Any, o: Any, sem: Any) -> None:
    pl.semaphore_signal(sem)
    pl.semaphore_wait(sem)


def wrong(x: Any, o: Any, sem: Any) -> None:
    pl.semaphore_signal(sem, 1.9)  # type: ignore[arg-type]


# What is replaced, and put back.


def test_everything_is_replaced_and_put_back() -> None:
    before = public()
    with testing.guard_raw_pallas():
        within = public()
        assert set(before) <= set(within)
        assert not [key for key in before if within[key] is before[key]]
    assert public() == before
    assert {name for _, name in before} >= set(_guard.NAMES) - {"core_map"}


def test_it_is_put_back_after_an_error() -> None:
    before = public()
    with pytest.raises(KeyboardInterrupt), testing.guard_raw_pallas():
        raise KeyboardInterrupt
    assert public() == before
    with pytest.raises(sp.errors.AmountTypeError), testing.guard_raw_pallas():
        trace(wrong, REGULAR)
    assert public() == before
    trace(wrong, REGULAR)  # raw Pallas again, which takes it


def test_signatures_and_names_stay() -> None:
    before = public()
    with testing.guard_raw_pallas():
        for (module, name), original in before.items():
            replaced = vars(sys.modules[module])[name]
            assert replaced.__wrapped__ is original
            assert replaced.__doc__ == original.__doc__


def test_old_names_on_pltpu() -> None:
    """JAX 0.10.2 makes up pltpu.semaphore_signal when asked, with a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old: Any = getattr(pltpu, "semaphore_signal", None)
    if old is None:
        assert jax.__version__ >= "0.12"
        return
    with testing.guard_raw_pallas(), pytest.raises(sp.errors.AmountTypeError):
        trace(lambda x, o, sem: pltpu.semaphore_signal(sem, 1.9), REGULAR)  # type: ignore
    assert "semaphore_signal" not in vars(pltpu)


def module_with(**names: Any) -> types.ModuleType:
    module = types.ModuleType("code_of_a_user")
    vars(module).update(names)
    return module


def test_what_modules_have_imported_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    signal, wait = pl.semaphore_signal, pl.semaphore_wait
    theirs = module_with(tell=signal, other=None)
    monkeypatch.setitem(sys.modules, "code_of_a_user", theirs)
    with testing.guard_raw_pallas():
        assert theirs.tell is pl.semaphore_signal is not signal
        with pytest.raises(sp.errors.AmountTypeError):
            trace(lambda x, o, sem: theirs.tell(sem, 1.9), REGULAR)
        vars(theirs)["imported_under_guard"] = pl.semaphore_wait
    assert theirs.tell is signal
    assert vars(theirs)["imported_under_guard"] is wait


def test_what_was_kept_from_under_a_guard_does_nothing_after_it() -> None:
    with testing.guard_raw_pallas() as guard:
        kept_signal, kept_call = pl.semaphore_signal, call(wrong, REGULAR)
    trace(lambda x, o, sem: kept_signal(sem, 1.9), REGULAR)  # type: ignore[arg-type]
    trace_call(kept_call, "no mesh")
    assert not guard.checked


def test_jax_itself_is_left_alone() -> None:
    """emit_pipeline and safepallas use the originals that they have."""
    modules = [m for name, m in sys.modules.items() if name.startswith(("jax._src.", "safepallas"))]
    before = [dict(vars(module)) for module in modules]
    with testing.guard_raw_pallas():
        after = [dict(vars(module)) for module in modules]
    for module, old, new in zip(modules, before, after, strict=True):
        changed = {name for name, value in new.items() if value is not old.get(name)}
        assert changed <= {"_installed"}, module.__name__


# Guards in guards, in threads, on functions that JAX has traced before.


def test_nested_guards() -> None:
    before = public()
    with testing.guard_raw_pallas() as outer:
        trace(correct, REGULAR)
        with testing.guard_raw_pallas() as inner:
            trace(correct, REGULAR)
        with pytest.raises(sp.errors.AmountTypeError):
            trace(wrong, REGULAR)
    assert inner.checked == {"pallas_call": 1, "semaphore_signal": 1, "semaphore_wait": 1}
    assert outer.checked == {"pallas_call": 3, "semaphore_signal": 2, "semaphore_wait": 2}
    assert public() == before
    assert repr(inner).startswith("<Guard, checked: {")


def test_guards_of_two_threads_that_overlap() -> None:
    """The one entered first is left first; the other still guards, and all is put back."""
    before = public()
    entered, left = threading.Event(), threading.Event()
    found: list[BaseException] = []

    def second() -> None:
        with testing.guard_raw_pallas():
            entered.set()
            left.wait(60)
            try:
                trace(wrong, REGULAR)
            except sp.SemaphoreError as error:
                found.append(error)

    thread = threading.Thread(target=second)
    with testing.guard_raw_pallas():
        thread.start()
        assert entered.wait(60)
    left.set()
    thread.join(60)
    assert [type(error) for error in found] == [sp.errors.AmountTypeError]
    assert public() == before


def test_kernels_in_two_threads_have_their_own_names() -> None:
    def kernel_of(name: str) -> Any:
        exec(f"def kernel(x, o, {name}): both_in.wait(60); signal({name}, True)", scope := {})
        scope.update(both_in=both_in, signal=lambda *args: pl.semaphore_signal(*args))
        return scope["kernel"]

    both_in = threading.Barrier(2)
    said: dict[str, str] = {}

    def run(name: str) -> None:
        try:
            trace(kernel_of(name), REGULAR)
        except sp.SemaphoreError as error:
            said[name] = str(error)

    with testing.guard_raw_pallas():
        threads = [threading.Thread(target=run, args=(name,)) for name in ("left", "right")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert "'left'" in said["left"]
    assert "'right'" in said["right"]


@pytest.mark.parametrize(
    "wrap", [jax.jit, lambda fn: fn, jax.checkpoint], ids=["jit", "nothing", "checkpoint"]
)
def test_what_jax_has_traced_before_is_traced_again(wrap: Any) -> None:
    fn = wrap(call(wrong, REGULAR))
    x = jnp.zeros(FLOATS.shape, FLOATS.dtype)
    jax.eval_shape(fn, x)
    jax.eval_shape(fn, x)
    with testing.guard_raw_pallas(), pytest.raises(sp.errors.AmountTypeError):
        jax.eval_shape(fn, x)
    jax.eval_shape(fn, x)


def test_what_was_compiled_before_is_traced_again() -> None:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        pl.semaphore_signal(sem, True)
        o[...] = x[...]

    fn = jax.jit(call(kernel, REGULAR, interpret=True))
    x = jnp.ones(FLOATS.shape, FLOATS.dtype)
    assert np.array_equal(fn(x), x)
    with testing.guard_raw_pallas(), pytest.raises(sp.errors.AmountTypeError):
        fn(x)
    assert np.array_equal(fn(x), x)


def test_no_tracer_is_kept() -> None:
    """JAX's own check, which raw copies in a scope do not pass even without a guard."""

    def kernel(x: Any, o: Any, sems: Any) -> None:
        pl.run_scoped(lambda ready: pl.semaphore_signal(ready), REGULAR)
        pl.semaphore_signal(sems.at[1])

    with jax.checking_leaks(), testing.guard_raw_pallas() as guard:
        trace(kernel, REGULAR((2,)))
    assert guard.checked["run_scoped"] == 1


# What is found, beyond the matrix.


@pytest.mark.parametrize("kind", ["DMA", "BARRIER"])
def test_a_barrier_of_cores_takes_a_regular_semaphore_alone(kind: str) -> None:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        pltpu.core_barrier(sem, core_axis_name="x")

    said = rf"^core_barrier: sem must be a Semaphore, got {kind.title()}Semaphore 'sem'"
    with testing.guard_raw_pallas(), pytest.raises(sp.errors.WrongKindError, match=said):
        trace(kernel, getattr(pltpu.SemaphoreType, kind))


FOUND: dict[type[Exception], dict[str, Callable[[Any], Any]]] = {
    sp.errors.IndexRangeError: {
        "an index counted from the end": lambda k: pl.semaphore_signal(k.sems.at[-1, 0]),
        "an index of a view of a view": lambda k: pl.semaphore_signal(k.sems.at[1].at[3]),
        "an index that is a constant of the trace": lambda k: pl.semaphore_signal(
            k.sems.at[jnp.int32(2), 0]
        ),
        "an index of a slice": lambda k: pl.semaphore_signal(k.sems.at[pl.ds(1, 1), 2].at[1]),
        "a read out of bounds": lambda k: pl.semaphore_read(k.sems.at[0, 3]),
    },
    sp.errors.NotScalarError: {
        "an array of indices": lambda k: pl.semaphore_wait(k.sems.at[jnp.array([0, 1]), 0]),
    },
    sp.errors.AmountTypeError: {
        "a bool as a core": lambda k: pl.semaphore_signal(k.ready, core_index=True),
    },
    sp.errors.CopyMismatchError: {
        "sync_copy between shapes, in a tree": lambda k: pltpu.sync_copy(
            [k.x, k.x.at[0]], [k.o, k.o]
        ),
    },
    sp.errors.NotARefError: {
        "sync_copy of an array": lambda k: pltpu.sync_copy(k.x[...], k.o),
    },
    sp.errors.CopyOptionError: {
        "priority of a started copy": lambda k: pltpu.async_copy(k.x, k.o, k.done, priority=2),
        "priority of a remote copy": lambda k: pltpu.make_async_remote_copy(
            k.x, k.o, k.done, k.done, {"x": 1}
        ).start(1),
        "add of a copy": lambda k: pltpu.make_async_copy(k.x, k.o, k.done).start(add=1),  # type: ignore[arg-type]
    },
    sp.errors.WrongKindError: {
        "a remote copy that counts at one end": lambda k: pltpu.async_remote_copy(
            k.x, k.o, k.done, k.ready, {"x": 1}
        ),
        "waiting for the bytes of a counted copy": lambda k: pltpu.async_copy(
            k.x, k.o, k.ready
        ).wait(),
    },
    sp.errors.NotASemaphoreError: {
        "a remote copy without a semaphore": lambda k: pltpu.async_remote_copy(
            k.x, k.o, k.done, None, {"x": 1}
        ),
    },
    sp.errors.DeviceIdError: {
        "a logical id out of range": lambda k: pl.semaphore_signal(
            k.ready, device_id=6, device_id_type=pl.DeviceIdType.LOGICAL
        ),
        "a logical id below zero": lambda k: pltpu.make_async_remote_copy(
            k.x, k.o, k.done, k.done, -1, pl.DeviceIdType.LOGICAL
        ),
        "coordinates in a list": lambda k: pl.semaphore_signal(k.ready, device_id=[0, 3]),
        "a joint axis out of range": lambda k: pl.semaphore_signal(
            k.ready, device_id={("x", "y"): 6}
        ),
    },
    sp.errors.DeviceIdTypeError: {
        "a logical id that is a bool": lambda k: pl.semaphore_signal(
            k.ready, device_id=True, device_id_type=pl.DeviceIdType.LOGICAL
        ),
        "coordinates as a logical id": lambda k: pl.semaphore_signal(
            k.ready, device_id=(0, 1), device_id_type=pl.DeviceIdType.LOGICAL
        ),
    },
}


@pytest.mark.filterwarnings("ignore:.*(device_id_type|DeviceIdType) is deprecated")
@pytest.mark.parametrize(
    ("error", "act"),
    [
        pytest.param(error, act, id=name)
        for error, acts in FOUND.items()
        for name, act in acts.items()
    ],
)
def test_misuse_is_found(error: type[Exception], act: Callable[[Any], Any]) -> None:
    def kernel(x: Any, o: Any, ready: Any, done: Any, sems: Any) -> None:
        act(types.SimpleNamespace(x=x, o=o, ready=ready, done=done, sems=sems))

    before = public()
    with testing.guard_raw_pallas(), pytest.raises(error) as info:
        trace(kernel, REGULAR, DMA, REGULAR((2, 3)), mesh="two axes")
    assert type(info.value) is error
    assert public() == before


def test_counted_copies_and_smem() -> None:
    def kernel(x: Any, o: Any, sem: Any, small: Any) -> None:
        pltpu.async_copy(small, small, sem)

    with testing.guard_raw_pallas(), pytest.raises(sp.errors.CountedCopyError):
        trace(kernel, REGULAR, pltpu.SMEM((8,), jnp.int32))


def test_a_semaphore_of_another_kernel() -> None:
    kept: list[Any] = []

    def second(x: Any, o: Any) -> None:
        pl.semaphore_signal(kept[0])

    with testing.guard_raw_pallas():
        trace(lambda x, o, sem: kept.append(sem), REGULAR)
        with pytest.raises(sp.errors.ScopeEndedError, match="an unknown scope"):
            trace(second)


def test_scopes_of_a_decorator_and_of_partials() -> None:
    def kernel(x: Any, o: Any) -> None:
        @pl.with_scoped(DMA((2,)), ready=REGULAR)
        def body(x: Any, parts: Any, ready: Any) -> None:
            pltpu.async_copy(x, o, parts.at[2])

        body(x)

    with (
        testing.guard_raw_pallas() as guard,
        pytest.raises(sp.errors.IndexRangeError, match="'parts'"),
    ):
        trace(kernel)
    assert guard.checked == {"pallas_call": 1, "with_scoped": 1}


def test_names_of_nested_scratch_and_of_scratch_by_keyword() -> None:
    def nested(x: Any, o: Any, sems: Any) -> None:
        pl.semaphore_signal(sems["a"][0], True)

    def by_keyword(x: Any, o: Any, *, later: Any) -> None:
        pl.semaphore_signal(later, True)

    with testing.guard_raw_pallas():
        with pytest.raises(sp.errors.AmountTypeError, match=r'"sems\[\'a\'\]\[0\]"'):
            trace(nested, {"a": [REGULAR]})
        with pytest.raises(sp.errors.AmountTypeError, match="'later'"):
            trace_call(
                pl.pallas_call(by_keyword, FLOATS, scratch_shapes={"later": REGULAR}), "no mesh"
            )


def test_the_barrier_and_what_passed_through_a_loop_have_names() -> None:
    def barrier(x: Any, o: Any) -> None:
        pl.semaphore_signal(pltpu.get_barrier_semaphore(), True)

    def loop(x: Any, o: Any, sem: Any) -> None:
        jax.lax.fori_loop(0, 2, lambda i, s: [pl.semaphore_signal(s, True), s][1], sem)

    with testing.guard_raw_pallas():
        with pytest.raises(
            sp.errors.AmountTypeError, match=r"'barrier' \(pltpu.get_barrier_semaphore"
        ):
            trace(barrier)
        with pytest.raises(sp.errors.AmountTypeError, match=r"'semaphore' \(a raw Pallas ref\)"):
            trace(loop, REGULAR)


def signal_first(x: Any, o: Any, sems: Any) -> None:
    pl.semaphore_signal(sems.at[0])


def signal_barrier(x: Any, o: Any) -> None:
    pl.semaphore_signal(pltpu.get_barrier_semaphore())


def on_cores(kernel: Any, mesh: Any, *scratch: Any, **options: Any) -> Any:
    return trace_call(
        pl.kernel(kernel, FLOATS, mesh=mesh, scratch_types=scratch, **options), "no mesh"
    )


def test_kernels_on_meshes_of_cores_are_audited() -> None:
    with testing.guard_raw_pallas():
        with pytest.raises(sp.errors.MissingCollectiveIdError):
            on_cores(signal_barrier, core_meshes.tensor())
        decorator = pl.kernel(out_type=FLOATS, mesh=core_meshes.tensor())
        with pytest.raises(sp.errors.MissingCollectiveIdError):
            trace_call(decorator(signal_barrier), "no mesh")
        with pytest.warns(sp.errors.SemaphoreLimitWarning, match="480"):
            on_cores(signal_first, core_meshes.tensor(), REGULAR((480,)))


def test_a_vector_subcore_has_room_for_few() -> None:
    def call(count: int) -> None:
        core_meshes.on_sparse_cores(
            lambda: on_cores(signal_first, core_meshes.vector(), REGULAR((count,)))
        )()

    with testing.guard_raw_pallas():
        call(20)
        with pytest.warns(sp.errors.SemaphoreLimitWarning, match="26"):
            call(26)


def test_scratch_in_a_grid_spec_is_counted() -> None:
    def kernel(x: Any, o: Any, sems: Any) -> None:
        pl.run_scoped(lambda more: pl.semaphore_signal(more.at[0]), REGULAR((40,)))

    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=0, scratch_shapes=[REGULAR((440,))])
    with testing.guard_raw_pallas(), pytest.warns(sp.errors.SemaphoreLimitWarning, match="480"):
        trace_call(pl.pallas_call(kernel, FLOATS, grid_spec=spec), "no mesh")


def test_semaphores_that_leave_a_kernel() -> None:
    """As for safepallas: XLA may drop the call, and no interpreter can hand them on."""

    def start(x: Any, o: Any, sem: Any, more: Any) -> None:
        pltpu.make_async_copy(x, o, sem).start()

    def call(side_effects: bool, **options: Any) -> None:
        anywhere = pl.BlockSpec(memory_space=pl.ANY)
        semaphore = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
        fn = pl.pallas_call(
            start,
            (FLOATS, DMA(())),
            in_specs=[anywhere],
            out_specs=(anywhere, semaphore),
            scratch_shapes=[DMA],
            compiler_params=pltpu.CompilerParams(has_side_effects=side_effects),
            **options,
        )
        trace_call(fn, "no mesh")

    with testing.guard_raw_pallas():
        call(True)
        with pytest.raises(sp.errors.MissingSideEffectsError, match="'sem'"):
            call(False)
        with pytest.raises(sp.errors.InterpretedOutputError):
            call(True, interpret=True)


def test_a_collective_id_of_several_bodies() -> None:
    """One of them may use the barrier for all."""

    def without(x: Any, o: Any) -> None:
        pass

    def still(x: Any, o: Any) -> None:
        pass

    def call(*bodies: Any, **params: Any) -> None:
        options = pltpu.CompilerParams(**params)
        core_meshes.on_sparse_cores(
            lambda: on_cores(
                list(bodies),
                [core_meshes.vector(), core_meshes.scalar()],
                compiler_params=options,
            )
        )()

    with testing.guard_raw_pallas() as guard:
        call(signal_barrier, without, collective_id=0)
        call(without, signal_barrier, collective_id=0)
        assert guard.checked["kernel"] == 4
        with pytest.raises(sp.errors.UnusedCollectiveIdError):
            call(without, still, collective_id=0)
        with pytest.raises(sp.errors.MissingCollectiveIdError):
            call(signal_barrier, without)


def test_semaphores_of_other_cores() -> None:
    """In a kernel of several bodies each receives the semaphores of all."""

    def vector(x: Any, o: Any, own: Any, other: Any) -> None:
        pl.semaphore_wait(other)

    def scalar(x: Any, o: Any, own: Any, other: Any) -> None:
        pass

    def call() -> None:
        meshes = [core_meshes.vector(), core_meshes.scalar()]
        on_cores([vector, scalar], meshes, *(REGULAR @ mesh for mesh in meshes))

    with testing.guard_raw_pallas(), pytest.raises(sp.errors.ForeignSemaphoreError):
        core_meshes.on_sparse_cores(call)()


def test_copies_are_still_those_of_jax() -> None:
    kinds: list[type] = []

    def kernel(x: Any, o: Any, done: Any) -> None:
        copy = pltpu.make_async_copy(x, o, done)
        kinds.append(type(copy))
        copy.start(priority=1)
        copy.wait()

    trace(kernel, DMA)
    with testing.guard_raw_pallas() as guard:
        trace(kernel, DMA)
    assert issubclass(kinds[1], kinds[0])
    assert kinds[1].__name__ == kinds[0].__name__
    assert guard.checked == {"pallas_call": 1, "make_async_copy": 1, "start": 1, "wait": 1}


def test_arguments_that_do_not_fit_are_for_jax_to_refuse() -> None:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        pl.semaphore_signal(sem, increment=1)  # type: ignore[call-arg]

    with testing.guard_raw_pallas(), pytest.raises(TypeError, match="increment") as info:
        trace(kernel, REGULAR)
    assert not isinstance(info.value, sp.SemaphoreError)
    with testing.guard_raw_pallas(), pytest.raises(TypeError):
        pl.pallas_call()  # type: ignore[call-arg]
