"""Kernels on meshes of cores: each lowers like its reference kernel.

A kernel that differs by more than names is written twice, with the same name and parameters.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc
from jax.sharding import AbstractDevice, AbstractMesh

import safepallas as sp
from safepallas.testing import assert_lowers_like

from . import raw
from .alike import assert_same

X = OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)
DMA = pltpu.SemaphoreType.DMA
REGULAR = pltpu.SemaphoreType.REGULAR

Index = Callable[[int], Any]

# JAX 0.10.2 gives all bodies the one name, and finds it taken.
NAME: dict[str, Any] = {"name": "both"} if hasattr(pltpu, "TensorCoreMesh") else {}

pytestmark = pytest.mark.usefixtures("x64")


@pytest.fixture(params=["TPU v6 lite", "TPU v5"], ids=["v6e", "v5p"])
def sparse_cores(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let JAX believe in a chip with SparseCores; it asks when a mesh of them is made."""
    mesh = AbstractMesh((), (), abstract_device=AbstractDevice(request.param, 1, "tpu"))
    with jax.sharding.use_abstract_mesh(mesh):
        yield


def tensor(cores: int = 1) -> Any:
    if hasattr(pltpu, "TensorCoreMesh"):
        return pltpu.TensorCoreMesh(axis_name="core", num_cores=cores)
    return pltpu.create_tensorcore_mesh("core", num_cores=cores)


def vector() -> Any:
    return plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore")


def scalar() -> Any:
    return plsc.ScalarSubcoreMesh(axis_name="core")


class Buffers(sp.Scratch):
    sem = sp.dma_semaphore()
    ready = sp.semaphore(2)


@pytest.mark.parametrize("cores", [1, 2])
def test_positional_scratch(cores: int) -> None:
    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, ready: sp.Semaphore) -> None:
            m.async_copy(x, o, sem).wait()
            m.signal(ready, 2)
            m.wait(ready, 2)

        specs = (m.dma_semaphore(), m.semaphore())
        return m.kernel(kernel, OUT, mesh=tensor(cores), scratch_types=specs)

    assert_same(build, X)


@pytest.mark.parametrize("mesh", [vector, scalar])
@pytest.mark.usefixtures("sparse_cores")
def test_scratch_class_on_sparse_cores(mesh: Callable[[], Any], index: Index) -> None:
    def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
        sp.async_copy(x, o, s.sem).wait()
        sp.signal(s.ready.at[1], 2)
        sp.wait(s.ready.at[1], 2)

    ours = sp.kernel(kernel, OUT, mesh=mesh(), scratch_types=Buffers)

    def kernel(x, o, sem, ready):
        pltpu.async_copy(x, o, sem).wait()
        pl.semaphore_signal(ready.at[index(1)], 2)
        pl.semaphore_wait(ready.at[index(1)], 2)

    raw = pl.kernel(kernel, OUT, mesh=mesh(), scratch_types=(DMA, REGULAR((2,))))
    assert_lowers_like(ours, raw, X)


@pytest.mark.parametrize("mesh", [vector, scalar])
@pytest.mark.usefixtures("sparse_cores")
def test_named_cores(mesh: Callable[[], Any]) -> None:
    """The cores that run the kernel may be named, and change the module."""

    def build(m: Any, *, named: bool = True) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
            m.async_copy(x, o, sem).wait()

        spec = m.dma_semaphore() @ mesh() if named else m.dma_semaphore()
        return m.kernel(kernel, OUT, mesh=mesh(), scratch_types=(spec,))

    assert_same(build, X)
    with pytest.raises(AssertionError):
        assert_lowers_like(build(sp), build(raw, named=False), X)


def test_dict_scratch() -> None:
    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, *, acc: sp.Ref, sems: Any) -> None:
            m.async_copy(x, acc, sems["a"]).wait()
            m.async_copy(acc, o, sems["b"][0]).wait()

        sems = {"b": (m.dma_semaphore(),), "a": DMA}
        scratch = {"acc": m.vmem((8, 128), jnp.float32), "sems": sems}
        return m.kernel(kernel, OUT, mesh=tensor(), scratch_types=scratch)

    assert_same(build, X)


def test_decorator_with_options() -> None:
    options: dict[str, Any] = {
        "name": "copies",
        "metadata": {"made": "by hand"},
        "cost_estimate": pl.CostEstimate(flops=1, transcendentals=0, bytes_accessed=8192),
        "compiler_params": pltpu.CompilerParams(collective_id=3, has_side_effects=True),
    }

    @sp.kernel(out_type=[OUT], mesh=tensor(), scratch_types=Buffers, **options)
    def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
        sp.wait(sp.get_barrier_semaphore())
        sp.async_copy(x, o, s.sem).wait()

    ours = kernel

    @pl.kernel(out_type=[OUT], mesh=tensor(), scratch_types=(DMA, REGULAR((2,))), **options)
    def kernel(x, o, sem, ready):
        pl.semaphore_wait(pltpu.get_barrier_semaphore())
        pltpu.async_copy(x, o, sem).wait()

    assert_lowers_like(ours, kernel, X)


def test_trees_of_inputs_and_outputs() -> None:
    def build(m: Any) -> Any:
        def kernel(tree: Any, last: sp.Ref, out: Any, sem: sp.DmaSemaphore) -> None:
            m.async_copy(tree["a"], out["sum"], sem).wait()
            m.async_copy(last, out["rest"][0], sem).wait()

        types = {"sum": OUT, "rest": (OUT,)}
        return m.kernel(kernel, types, mesh=tensor(), scratch_types=(m.dma_semaphore(),))

    assert_same(build, {"a": X, "b": X}, X)


def test_refs_around_the_kernel() -> None:
    def build(m: Any) -> Any:
        def call(x: jax.Array) -> jax.Array:
            source: Any = jax.new_ref(x)
            target: Any = jax.new_ref(jnp.zeros_like(x))

            @m.kernel(mesh=tensor(), scratch_types=(m.dma_semaphore(),))
            def kernel(source: sp.Ref, sem: sp.DmaSemaphore) -> None:
                m.async_copy(source, target, sem).wait()

            kernel(source)
            copied: jax.Array = target[...]
            return copied

        return call

    assert_same(build, X)


@pytest.mark.parametrize("axes", [(), "core"], ids=["of this core", "collective"])
@pytest.mark.usefixtures("tpu")
def test_scopes_of_a_core_mesh(axes: Any) -> None:
    """No lowering of JAX 0.10.2 and 0.12.0.1 for TPU takes `collective_axes`: raw or ours."""

    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref) -> None:
            @m.with_scoped(m.dma_semaphore(), collective_axes=axes)
            def inner(sem: sp.DmaSemaphore) -> None:
                m.async_copy(x, o, sem).wait()

            inner()
            copy = lambda sem: m.async_copy(o, x, sem).wait()  # noqa: E731
            m.run_scoped(copy, m.dma_semaphore(), collective_axes=axes)

        return m.kernel(kernel, OUT, mesh=tensor(2))

    if not axes:
        assert_same(build, X)
        return
    assert str(jax.make_jaxpr(build(sp))(X)) == str(jax.make_jaxpr(build(raw))(X))
    for m in sp, raw:
        with pytest.raises(NotImplementedError, match="does not support collective axes"):
            jax.jit(build(m)).trace(X).lower(lowering_platforms=("tpu",))


@pytest.mark.usefixtures("sparse_cores")
def test_several_bodies(index: Index) -> None:
    def build(m: Any) -> Any:
        v, s = vector(), scalar()

        def copies(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, done: sp.Semaphore) -> None:
            m.async_copy(x, o, sem).wait()
            m.signal(done, device_id={"core": index(0)})

        def waits(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, done: sp.Semaphore) -> None:
            m.wait(done, 32)

        specs = (m.dma_semaphore() @ v, m.semaphore() @ s)
        return m.kernel([copies, waits], OUT, mesh=[v, s], scratch_types=specs)

    assert_same(build, X)


@pytest.mark.usefixtures("sparse_cores")
def test_several_bodies_with_a_scratch_class(index: Index) -> None:
    v, s = vector(), scalar()

    class Shared(sp.Scratch):
        page = sp.vmem((8, 128), jnp.float32) @ v
        sems = sp.dma_semaphore(2) @ v
        done = sp.semaphore() @ s

    def both(x: sp.Ref, o: sp.Ref, scratch: Shared) -> None:
        sp.async_copy(x, scratch.page, scratch.sems.at[1]).wait()
        sp.signal(scratch.done, 2, device_id={"core": 1})

    def both_wait(x: sp.Ref, o: sp.Ref, scratch: Shared) -> None:
        sp.wait(scratch.done, 32)

    ours = sp.kernel((both, both_wait), OUT, mesh=(v, s), scratch_types=Shared, **NAME)

    def both(x, o, page, sems, done):
        pltpu.async_copy(x, page, sems.at[index(1)]).wait()
        pl.semaphore_signal(done, 2, device_id={"core": index(1)})

    def both_wait(x, o, page, sems, done):
        pl.semaphore_wait(done, 32)

    requests = (pltpu.VMEM((8, 128), jnp.float32) @ v, DMA((2,)) @ v, REGULAR @ s)
    raw = pl.kernel((both, both_wait), OUT, mesh=(v, s), scratch_types=requests, **NAME)
    assert_lowers_like(ours, raw, X)


def test_inside_shard_map(over_mesh: Callable[..., Any], index: Index) -> None:
    """Devices and cores both have axes, and an id may name either."""

    def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
        right = 1 - jax.lax.axis_index("x")
        sp.signal(s.ready.at[0], device_id={"x": right, "core": 1})
        sp.wait(s.ready.at[0])
        sp.async_remote_copy(x, o, s.sem, s.sem, {"x": right}).wait_send()

    ours = sp.kernel(kernel, OUT, mesh=tensor(2), scratch_types=Buffers)

    def kernel(x, o, sem, ready):
        right = 1 - jax.lax.axis_index("x")
        pl.semaphore_signal(ready.at[index(0)], device_id={"x": right, "core": index(1)})
        pl.semaphore_wait(ready.at[index(0)])
        pltpu.async_remote_copy(x, o, sem, sem, {"x": right}).wait_send()

    raw = pl.kernel(kernel, OUT, mesh=tensor(2), scratch_types=(DMA, REGULAR((2,))))
    assert_lowers_like(over_mesh(ours, x=2), over_mesh(raw, x=2), X)
    assert_lowers_like(over_mesh(ours, y=3, x=2), over_mesh(raw, y=3, x=2), X)


def test_a_semaphore_between_kernels() -> None:
    params = pltpu.CompilerParams(has_side_effects=True)

    def build(m: Any) -> Any:
        def first(x: sp.Ref, sem: sp.DmaSemaphore, o: sp.Ref) -> None:
            m.async_copy(x, o, sem)

        def second(sem: sp.DmaSemaphore, o: sp.Ref) -> None:
            m.wait_bytes(sem, o)

        def call(x: jax.Array) -> Any:
            types = (m.dma_semaphore(), OUT)
            sem, o = m.kernel(first, types, mesh=tensor(), compiler_params=params)(x)
            m.kernel(second, mesh=tensor(), compiler_params=params)(sem, o)
            return o

        return call

    assert_same(build, X)
