"""Correct raw kernels pass the guard, and trace and lower to what they are without it."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import safepallas as sp
from safepallas import testing

from ..loading import load
from . import core_meshes
from .helpers import FLOATS, equations, trace_call

TESTS = Path(__file__).resolve().parents[1]
REFERENCE = sorted((TESTS / "lowering" / "reference").glob("raw_*.py"))
RING = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
DMA, REGULAR = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR


def guarded(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose kernels are under guard whenever it is traced."""

    def traced(*args: Any) -> Any:
        with testing.guard_raw_pallas() as guard:
            result = fn(*args)
        assert guard.checked
        return result

    return traced


# JAX 0.12 says so of every copy from the memory of a vector subcore to HBM, its own too.
@pytest.mark.filterwarnings("ignore:Destination semaphore is ignored for push streams")
@pytest.mark.parametrize("path", REFERENCE, ids=[path.stem for path in REFERENCE])
def test_reference_kernels_of_the_examples(path: Path) -> None:
    def build_and_call(*args: Any) -> Any:
        return load(path).build(RING)[0](*args)

    def compare() -> None:
        _, args = load(path).build(RING)
        testing.assert_lowers_like(guarded(build_and_call), build_and_call, *args)

    on_sparse_cores = path.stem.startswith("raw_sparse_core_")
    (core_meshes.on_sparse_cores(compare) if on_sparse_cores else compare)()


def test_raw_kernels_of_the_stubs() -> None:
    path = TESTS / "stubs" / "accept" / "kernels.py"
    raw = load(path).trace()
    with testing.guard_raw_pallas() as guard:
        ours = load(path).trace()
    assert ours == raw
    assert guard.checked["pallas_call"] == len(raw)
    assert {"run_scoped", "with_scoped", "sync_copy", "async_remote_copy"} <= set(guard.checked)


def scratch_by_keyword(x: Any, o: Any, *, done: Any, parts: Any) -> None:
    pltpu.make_async_copy(x, o, done).start()
    pltpu.make_async_copy(x, o, done).wait()
    pltpu.async_copy(x, o, parts[0].at[1, jnp.int32(0)]).wait()


def nested_scopes(x: Any, o: Any) -> None:
    def body(buffer: Any, done: Any, *, ready: Any) -> None:
        pltpu.async_copy(x, buffer, done.at[x[0, 0].astype(jnp.int32)]).wait()

        @pl.when(x[0, 0] > 0)
        def _() -> None:
            pl.semaphore_signal(ready, 2)

        jax.lax.fori_loop(0, 2, lambda i, sem: [pl.semaphore_wait(sem, i + 1), sem][1], ready)
        o[...] = buffer[...]

    pl.run_scoped(body, pltpu.VMEM((8, 128), jnp.float32), DMA((2,)), ready=REGULAR)


def trees(x: Any, o: Any) -> None:
    pltpu.sync_copy({"a": x.at[0], "b": [x.at[1]]}, {"a": o.at[0], "b": [o.at[1]]})
    pltpu.sync_copy((), ())


def counted(x: Any, o: Any, arrived: Any) -> None:
    pltpu.make_async_copy(x, o, arrived).start()
    pltpu.async_copy(x, o, arrived)
    pl.semaphore_wait(arrived, 2)


def views_of_views(x: Any, o: Any, sems: Any) -> None:
    pltpu.async_copy(x, o, sems.at[pl.ds(1, 2)].at[1, 0]).wait()
    pltpu.async_copy(x, o, sems.at[2].at[...].at[1]).wait()


def pipeline(x: Any, o: Any, done: Any) -> None:
    def inner(x: Any, o: Any) -> None:
        pltpu.async_copy(x, o, done).wait()

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    pltpu.emit_pipeline(inner, grid=(1,), in_specs=[spec], out_specs=[spec])(x, o)


def bound_first(number: int, x: Any, o: Any, sems: Any, last: int = 0) -> None:
    def body(number: int, x: Any, done: Any) -> None:
        pltpu.async_copy(x, o, done).wait()

    pl.semaphore_signal(sems.at[number])
    pl.run_scoped(functools.partial(body, 1, x), DMA)


def small_core(x: Any, o: Any, sem: Any) -> None:
    """Of a dtype that safepallas would convert: the check must trace nothing."""
    small = x[0, 0].astype(jnp.int16)
    pl.run_scoped(lambda own: pl.semaphore_signal(sem, core_index=small), REGULAR)


class Signaller:
    def __call__(self, x: Any, o: Any, sem: Any) -> None:
        pl.semaphore_signal(sem)


KERNELS: dict[str, tuple[Callable[..., None], Any]] = {
    "partial": (functools.partial(bound_first, 1, last=1), [REGULAR((2,))]),
    "object": (Signaller(), [REGULAR]),
    "small core": (small_core, [REGULAR]),
    "scratch by keyword": (scratch_by_keyword, {"done": DMA, "parts": [DMA((2, 3))]}),
    "nested scopes": (nested_scopes, ()),
    "trees": (trees, ()),
    "counted": (counted, [REGULAR]),
    "views of views": (views_of_views, [DMA((3, 2))]),
    "pipeline": (pipeline, [DMA]),
}


def built(name: str, **options: Any) -> Callable[..., Any]:
    kernel, scratch = KERNELS[name]

    def call(x: Any) -> Any:
        return pl.pallas_call(kernel, FLOATS, scratch_shapes=scratch, **options)(x)

    return call


def named(jaxpr: Any) -> list[Any]:
    """What JAX calls the kernel and its parameters, and the bodies of scopes in it."""
    (call,) = equations(jaxpr, "pallas_call")
    bodies = [call.params["jaxpr"]]
    bodies += [eqn.params["jaxpr"] for eqn in equations(bodies[0], "run_scoped")]
    infos = [getattr(body, "jaxpr", body).debug_info for body in bodies]
    return [(info.func_src_info, info.arg_names) for info in infos]


@pytest.mark.parametrize("name", KERNELS)
def test_what_raw_pallas_allows(name: str, x64: bool) -> None:
    raw = jax.make_jaxpr(built(name))(FLOATS)
    with testing.guard_raw_pallas() as guard:
        ours = jax.make_jaxpr(built(name))(FLOATS)
    assert str(ours) == str(raw)
    assert named(ours) == named(raw)
    assert sum(guard.checked.values()) > guard.checked["pallas_call"]


@pytest.mark.parametrize("name", ["partial", "scratch by keyword", "nested scopes", "pipeline"])
def test_modules_are_equal(name: str) -> None:
    testing.assert_lowers_like(guarded(built(name)), built(name), FLOATS)


def logical(x: Any, o: Any, sem: Any, send: Any, recv: Any) -> None:
    kind = pl.DeviceIdType.LOGICAL
    pl.semaphore_signal(sem, device_id=5, device_id_type=kind)
    there = jax.lax.axis_index("x") * 3 + jax.lax.axis_index("y")
    pl.semaphore_signal(sem, device_id=there, device_id_type=kind)
    copy = pltpu.make_async_remote_copy(x, o, send, recv, 5, kind)
    copy.start()
    copy.wait_send()
    copy.wait_recv()
    pl.semaphore_wait(sem, 2)


def coordinates(x: Any, o: Any, sem: Any, send: Any, recv: Any) -> None:
    pl.semaphore_signal(sem, device_id=[1, jnp.int32(2)])
    pl.semaphore_signal(sem, device_id={"y": jax.lax.axis_index("y")})
    pl.semaphore_signal(sem, device_id={("x", "y"): 5})
    pltpu.async_remote_copy(x, o, send, recv, (0, jax.lax.axis_index("y"))).wait()
    pl.semaphore_wait(sem, 3)


@pytest.mark.filterwarnings("ignore:.*(device_id_type|DeviceIdType) is deprecated")
@pytest.mark.parametrize("kernel", [logical, coordinates], ids=lambda kernel: kernel.__name__)
def test_device_ids_of_raw_pallas(kernel: Any) -> None:
    def call(x: Any) -> Any:
        return pl.pallas_call(kernel, FLOATS, scratch_shapes=[REGULAR, DMA, DMA])(x)

    raw = str(trace_call(call, "two axes"))
    with testing.guard_raw_pallas() as guard:
        assert str(trace_call(call, "two axes")) == raw
    assert guard.checked["semaphore_signal"] == (2 if kernel is logical else 3)


@pytest.mark.skipif(
    not hasattr(pltpu, "TensorCoreMesh"), reason="JAX 0.10.2 copies need a semaphore"
)
def test_the_source_semaphore_of_a_local_copy() -> None:
    """JAX 0.12: either may be left out, SparseCore uses the one alone."""

    def kernel(x: Any, o: Any, read: Any, written: Any) -> None:
        copy: Any = pltpu.make_async_copy(x, o, src_sem=read)
        copy.start()
        copy.wait_read()
        pltpu.async_copy(x, o, written, src_sem=read)

    with testing.guard_raw_pallas() as guard:
        jax.make_jaxpr(pl.pallas_call(kernel, FLOATS, scratch_shapes=[DMA, DMA]))(FLOATS)
    assert guard.checked["wait_read"] == 1


def test_safepallas_inside_a_guard() -> None:
    """Its kernels trace the same, and their operations are not checked once more."""

    def kernel(x: Any, o: Any, s: Any) -> None:
        sp.signal(s.ready)
        sp.wait(s.ready)
        sp.run_scoped(lambda done: sp.async_copy(x, o, done).wait(), sp.dma_semaphore())
        sp.sync_copy(x, o)

    class Buffers(sp.Scratch):
        ready = sp.semaphore()

    call = sp.pallas_call(kernel, FLOATS, scratch_shapes=Buffers)
    alone = str(jax.make_jaxpr(call)(FLOATS))
    with testing.guard_raw_pallas() as guard:
        call = sp.pallas_call(kernel, FLOATS, scratch_shapes=Buffers)
        assert str(jax.make_jaxpr(call)(FLOATS)) == alone
    assert not guard.checked


def test_raw_operations_on_handles() -> None:
    """Raw Pallas takes `handle.ref`, and is checked also in a kernel of safepallas."""

    def kernel(x: Any, o: Any, ready: sp.Semaphore, done: sp.DmaSemaphore) -> None:
        pl.semaphore_signal(ready.ref)
        pl.semaphore_wait(ready.ref)
        pltpu.async_copy(x, o, done.ref).wait()

    call = sp.pallas_call(kernel, FLOATS, scratch_shapes=(sp.semaphore(), sp.dma_semaphore()))
    with testing.guard_raw_pallas() as guard:
        jax.make_jaxpr(call)(FLOATS)
    assert guard.checked == {
        "semaphore_signal": 1,
        "semaphore_wait": 1,
        "async_copy": 1,
        "wait": 1,
    }


def on_cores(x: Any, o: Any, done: Any, ready: Any) -> None:
    pltpu.async_copy(x, o, done).wait()
    pltpu.core_barrier(ready, core_axis_name="core")


@pytest.mark.parametrize("form", ["called", "by keyword", "decorator", "several bodies"])
def test_kernels_on_meshes_of_cores(form: str) -> None:
    def call(x: Any) -> Any:
        mesh, rest = core_meshes.tensor(), {"scratch_types": [DMA, REGULAR]}
        if form == "called":
            return pl.kernel(on_cores, FLOATS, mesh=mesh, **rest)(x)
        if form == "by keyword":
            return pl.kernel(body=on_cores, out_type=FLOATS, mesh=mesh, **rest)(x)
        if form == "decorator":
            return pl.kernel(out_type=FLOATS, mesh=mesh, **rest)(on_cores)(x)
        return pl.kernel([on_cores], FLOATS, mesh=[mesh], **rest)(x)

    raw = str(trace_call(call, "no mesh"))
    with testing.guard_raw_pallas() as guard:
        assert str(trace_call(call, "no mesh")) == raw
    assert guard.checked == {"kernel": 1, "async_copy": 1, "wait": 1, "core_barrier": 1}


def test_a_kernel_under_shard_map_keeps_its_module() -> None:
    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        common = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(common, device_id={"x": 1 - jax.lax.axis_index("x")})
        pl.semaphore_wait(common)
        pltpu.async_remote_copy(x, o, send, recv, {"x": 1 - jax.lax.axis_index("x")}).wait()

    def call(x: Any) -> Any:
        params = pltpu.CompilerParams(collective_id=0)
        local = pl.pallas_call(kernel, FLOATS, scratch_shapes=[DMA, DMA], compiler_params=params)
        mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
        return jax.shard_map(local, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(x)

    testing.assert_lowers_like(guarded(call), call, FLOATS)
