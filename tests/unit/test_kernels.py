"""`sp.kernel`: handles for each body, checks at its boundary, and what several bodies share."""

import inspect
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

from .core_meshes import CHIP, on_sparse_cores, scalar, tensor, vector
from .helpers import FLOATS, assert_ours

WITH_ID = pltpu.CompilerParams(collective_id=3)
SIDE_EFFECTS = pltpu.CompilerParams(has_side_effects=True)


class Group(sp.Scratch):
    sem = sp.dma_semaphore()
    done = sp.semaphore(2)


def trace(body: Any, scratch: Any = (), mesh: Any = None, out: Any = FLOATS, **options: Any) -> Any:
    options["mesh"] = tensor() if mesh is None else mesh
    return jax.make_jaxpr(sp.kernel(body, out, scratch_types=scratch, **options))(FLOATS)


def trace_both(first: Any, second: Any, *specs: Any, **options: Any) -> Any:
    """The two on vector and on scalar subcores; `specs` are for the scalar ones."""

    def fn() -> Any:
        mesh = [vector(), scalar()]
        scratch = tuple(spec @ mesh[1] for spec in specs)
        return trace([first, second], scratch, mesh, **options)

    return on_sparse_cores(fn)()


def nothing(*refs: Any) -> None: ...


def unused(*refs: Any) -> None: ...


def wait_for_barrier(*refs: Any) -> None:
    sp.wait(sp.get_barrier_semaphore())


# What a body receives.


def test_handles_by_position_by_keyword_and_in_a_class() -> None:
    seen: list[Any] = []
    trace(lambda x, o, sem, done: seen.extend((sem, done)), (sp.dma_semaphore(), sp.semaphore(2)))
    trace(lambda x, o, **rest: seen.append(rest["sem"]), {"sem": sp.semaphore()})
    trace(lambda x, o, s: seen.append(s), Group)
    trace(lambda x, o, sem: seen.append(sem), [pltpu.SemaphoreType.DMA])
    types = [type(x) for x in seen]
    assert types == [sp.DmaSemaphore, sp.SemaphoreArray, sp.Semaphore, Group, sp.DmaSemaphore]


def test_every_body_has_handles_of_its_own() -> None:
    leaked: list[Any] = []

    def second(x: Any, o: Any, sem: Any) -> None:
        assert type(sem) is sp.Semaphore
        assert sem is not leaked[0]
        sp.wait(sem)
        with pytest.raises(sp.errors.ScopeEndedError):
            sp.wait(leaked[0])

    trace_both(lambda x, o, sem: leaked.append(sem), second, sp.semaphore())


@pytest.mark.parametrize("first", [True, False], ids=["first body", "second body"])
def test_annotations_of_every_body_are_checked(first: bool) -> None:
    def wrong(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None: ...

    bodies = (wrong, nothing) if first else (nothing, wrong)
    with pytest.raises(
        sp.errors.AnnotationError, match=r"'wrong' .*: parameter 'sem' is annotated"
    ) as info:
        trace_both(*bodies, sp.semaphore())
    assert_ours(info.value, sp.errors.AnnotationError)


def test_annotations_of_keywords_and_classes_are_checked() -> None:
    def by_keyword(x: sp.Ref, o: sp.Ref, *, sem: sp.Semaphore) -> None: ...
    def named(x: sp.Ref, o: sp.Ref, s: Group) -> None: ...

    trace(by_keyword, {"sem": sp.semaphore()})
    trace(named, Group)
    with pytest.raises(sp.errors.AnnotationError):
        trace(by_keyword, {"sem": sp.dma_semaphore()})
    with pytest.raises(sp.errors.AnnotationError):
        trace(named, (sp.dma_semaphore(),))


def test_a_semaphore_from_another_kernel_arrives_as_a_handle() -> None:
    seen: list[Any] = []

    def fn(x: jax.Array) -> Any:
        options: Any = {"mesh": tensor(), "compiler_params": SIDE_EFFECTS}
        out = (sp.dma_semaphore(), sp.semaphore(3) @ tensor())
        sems = sp.kernel(lambda x, *sems: seen.extend(sems), out, **options)(x)
        return sp.kernel(lambda *sems: seen.extend(sems[:2]), FLOATS, **options)(*sems)

    jax.make_jaxpr(fn)(FLOATS)
    assert [type(sem) for sem in seen] == [sp.DmaSemaphore, sp.SemaphoreArray] * 2


def test_what_leaves_a_kernel_is_checked_as_in_pallas_call() -> None:
    with pytest.raises(sp.errors.MissingSideEffectsError):
        trace(nothing, out=sp.dma_semaphore())
    for interpret in True, pltpu.InterpretParams():
        with pytest.raises(sp.errors.InterpretedOutputError):
            trace(nothing, out=[sp.dma_semaphore()], interpret=interpret)


# The whole kernel.


def test_barrier_and_collective_id() -> None:
    trace(wait_for_barrier, compiler_params=WITH_ID)
    with pytest.raises(sp.errors.MissingCollectiveIdError):
        trace(wait_for_barrier)
    with pytest.raises(sp.errors.UnusedCollectiveIdError):
        trace(nothing, compiler_params=WITH_ID)


def test_several_bodies_share_a_collective_id() -> None:
    allowed = pltpu.CompilerParams(collective_id=3, allow_collective_id_without_custom_barrier=True)
    for _ in range(2):
        trace_both(wait_for_barrier, unused, compiler_params=WITH_ID)
        trace_both(unused, wait_for_barrier, compiler_params=WITH_ID)
        trace_both(nothing, unused, compiler_params=allowed)
        with pytest.raises(sp.errors.UnusedCollectiveIdError):
            trace_both(nothing, unused, compiler_params=WITH_ID)
        for bodies in (wait_for_barrier, unused), (unused, wait_for_barrier):
            with pytest.raises(sp.errors.MissingCollectiveIdError):
                trace_both(*bodies)


def test_semaphores_of_other_cores_are_not_counted() -> None:
    def fn() -> None:
        mesh = [vector(), scalar()]
        scratch = (sp.dma_semaphore(24) @ mesh[0], sp.dma_semaphore(6999) @ mesh[1])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trace([nothing, unused], scratch, mesh)
        scratch = (sp.dma_semaphore(25) @ mesh[0], sp.dma_semaphore(6999) @ mesh[1])
        with pytest.warns(sp.errors.SemaphoreLimitWarning, match="'nothing' .* holds 25") as caught:
            trace([nothing, unused], scratch, mesh)
        assert len(caught) == 1

    on_sparse_cores(fn)()


def test_a_core_signals_others_and_copies_to_them() -> None:
    def fn() -> None:
        mesh = [vector(), scalar()]
        scratch = (sp.dma_semaphore() @ mesh[0], sp.dma_semaphore() @ mesh[1])

        def sends(x: Any, o: Any, own: Any, others: Any) -> None:
            sp.async_remote_copy(x, o, own, others, {"core": 0}).wait_send()

        trace([sends, unused], scratch, mesh)

    on_sparse_cores(fn)()


def test_a_foreign_wait_in_a_branch_is_found() -> None:
    def waits(x: Any, o: Any, sem: Any) -> None:
        pl.when(jax.lax.axis_index("core") == 0)(lambda: sp.wait(sem))

    trace_both(nothing, waits, sp.semaphore())
    with pytest.raises(sp.errors.ForeignSemaphoreError) as info:
        trace_both(waits, unused, sp.semaphore())
    assert_ours(info.value, sp.errors.ForeignSemaphoreError)


# Forms of the call, and JAX's cache.


def test_keywords_and_defaults_are_those_of_pallas() -> None:
    ours = inspect.signature(sp.kernel).parameters
    raw = inspect.signature(pl.kernel).parameters
    assert [*ours] == [*raw]
    for name in [*ours][1:]:
        assert ours[name].default == raw[name].default
        assert ours[name].kind == raw[name].kind


def test_a_sequence_of_one_is_as_free_as_one() -> None:
    """Its scratch need not name its cores, and it may be interpreted."""
    seen: list[Any] = []
    mesh = [tensor()]
    body = lambda x, o, sem: seen.append(sem)  # noqa: E731
    trace([body], (sp.semaphore(),), mesh, interpret=True)
    assert [type(sem) for sem in seen] == [sp.Semaphore]


def test_several_bodies_in_a_context_that_interprets() -> None:
    with (
        pltpu.force_tpu_interpret_mode(),
        pytest.raises(sp.errors.SpecError, match="a context that"),
    ):
        trace_both(nothing, unused)


def test_options_arrive_as_in_raw_pallas() -> None:
    options: dict[str, Any] = {
        "compiler_params": pltpu.CompilerParams(vmem_limit_bytes=2**20),
        "cost_estimate": pl.CostEstimate(flops=1, transcendentals=2, bytes_accessed=3),
        "debug": False,
        "name": "called",
        "metadata": {"a": "b"},
        "interpret": pltpu.InterpretParams(),
    }

    def params(of: Any, **given: Any) -> dict[str, str]:
        call = of.kernel(nothing, FLOATS, mesh=tensor(), **given)
        (eqn,) = jax.make_jaxpr(call)(FLOATS).eqns
        return {key: str(value) for key, value in eqn.params.items()}

    plain = params(pl)
    assert params(sp) == plain
    for name, value in options.items():
        assert params(sp, **{name: value}) == params(pl, **{name: value})
        assert name == "debug" or params(sp, **{name: value}) != plain


@pytest.mark.parametrize("form", ["function", "decorator", "several"])
def test_a_body_runs_as_often_as_that_of_raw_pallas(form: str) -> None:
    runs = {"ours": 0, "raw": 0}

    def counting(who: str) -> Any:
        def body(*refs: Any) -> None:
            runs[who] += 1

        return body

    def call(of: Any, body: Any) -> Any:
        if form == "function":
            return of.kernel(body, FLOATS, mesh=tensor())
        if form == "decorator":
            return of.kernel(out_type=FLOATS, mesh=tensor())(body)
        return of.kernel([body, unused], FLOATS, mesh=[vector(), scalar()])

    for who, of in ("ours", sp), ("raw", pl):
        body = counting(who)
        for _ in range(3):
            on_sparse_cores(lambda: jax.make_jaxpr(call(of, body))(FLOATS))()  # noqa: B023
    assert runs["ours"] == runs["raw"] > 0


# Requests for cores.


def test_a_request_for_cores_is_another_request() -> None:
    spec = sp.dma_semaphore(2)
    there, again = spec @ tensor(2), spec @ tensor(2)
    assert there == again
    assert hash(there) == hash(again)
    assert there != spec
    assert there != spec @ tensor()
    assert there.shape == (2,)
    assert repr(there) == repr(spec).replace("(2)", "(2) @ TensorCoreMesh")


def test_a_request_for_cores_in_a_class_and_adopted() -> None:
    class There(sp.Scratch):
        sem = sp.dma_semaphore() @ tensor()
        page = sp.vmem((8, 128), jnp.float32) @ tensor()

    def body(x: sp.Ref, o: sp.Ref, s: There) -> None:
        assert type(s.sem) is sp.DmaSemaphore
        assert type(sp.adopt(s.sem.ref, sp.dma_semaphore() @ tensor())) is sp.DmaSemaphore
        sp.async_copy(x, s.page, s.sem).wait()
        page = sp.vmem((8, 128), jnp.float32) @ tensor()
        sp.run_scoped(lambda scoped: sp.sync_copy(x, scoped), page)

    trace(body, There)


def test_a_global_semaphore_is_adopted_and_not_lowered() -> None:
    """`pl.get_global` is for GPUs: JAX 0.10.2 and 0.12.0.1 cannot lower it for TPU."""

    def body(x: sp.Ref, o: sp.Ref) -> None:
        sp.signal(sp.adopt(pl.get_global(pltpu.SemaphoreType.REGULAR), sp.semaphore()))

    call = sp.kernel(body, FLOATS, mesh=tensor())
    mesh = jax.sharding.AbstractMesh((), (), abstract_device=CHIP)
    with jax.sharding.use_abstract_mesh(mesh):
        traced = jax.jit(call).trace(FLOATS)
        with pytest.raises(NotImplementedError, match="get_global"):
            traced.lower(lowering_platforms=("tpu",))
