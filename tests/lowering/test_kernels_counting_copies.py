"""Counted copies: each kernel lowers like its reference kernel."""

import importlib.util
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc
from jax.sharding import AbstractDevice, AbstractMesh
from jax.sharding import PartitionSpec as P

import safepallas as sp
from safepallas.testing import compile_for_tpu, tpu_mesh

from .alike import assert_same

X = OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)
REGULAR = pltpu.SemaphoreType.REGULAR
COUNT = jax.ShapeDtypeStruct((4,), jnp.int32)
SMEM_SPEC = pl.BlockSpec(memory_space=pltpu.SMEM)

needs_libtpu = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None,
    reason="libtpu is not installed: no TPU compiler here",
)
TOPOLOGIES = ["v5p:2x2x1", "v6e:2x2"]
V6E = AbstractDevice("TPU v6 lite", 1, "tpu")

Index = Callable[[int], Any]

pytestmark = pytest.mark.usefixtures("x64")


def test_local_counted_copies(index: Index) -> None:
    def build(m: Any) -> Any:
        def kernel(n: sp.Ref, x: sp.Ref, o: sp.Ref, sem: sp.Semaphore, many: Any) -> None:
            m.async_copy_counted(x, o, sem)
            for i in range(4):
                m.async_copy_counted(x.at[index(i)], o.at[index(7 - i)], many.at[index(1)])
            m.async_copy_counted(x.at[pl.ds(n[0], 2)], o.at[pl.ds(0, 2)], many.at[n[1]])
            m.wait(sem)
            m.wait(many.at[index(1)], 4)

        specs: Any = {"in_specs": [SMEM_SPEC, pl.BlockSpec(memory_space=pl.ANY)]}
        scratch = (m.semaphore(), m.semaphore(2))
        return m.pallas_call(kernel, OUT, scratch_shapes=scratch, **specs)

    assert_same(build, COUNT, X)


def test_remote_counted_copies(index: Index, over_mesh: Callable[..., Any]) -> None:
    def build(m: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, send: sp.Semaphore, recv: Any) -> None:
            right = (jax.lax.axis_index("i") + 1) % 4
            m.async_remote_copy_counted(x, o, send, recv.at[index(0)], {"i": right})
            m.async_remote_copy_counted(
                x.at[index(0)], o.at[index(1)], send, recv.at[index(1)], (right,)
            )
            m.wait(send, 2)
            m.wait(recv.at[index(0)])

        scratch = (m.semaphore(), m.semaphore(2))
        return over_mesh(m.pallas_call(kernel, OUT, scratch_shapes=scratch), i=4)

    assert_same(build, X)


def counting(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
    sp.async_copy_counted(x, o, sem)
    sp.wait(sem)


def counting_there(x: sp.Ref, o: sp.Ref, send: sp.Semaphore, recv: sp.Semaphore) -> None:
    sp.async_remote_copy_counted(x, o, send, recv, {"x": 1 - jax.lax.axis_index("x")})
    sp.wait(send)
    sp.wait(recv)


def local_call() -> Any:
    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    scratch = (sp.semaphore(),)
    return sp.pallas_call(
        counting, OUT, scratch_shapes=scratch, in_specs=[anywhere], out_specs=anywhere
    )


@needs_libtpu
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_compiles(topology: str) -> None:
    compile_for_tpu(local_call(), X, topology=topology)


@needs_libtpu
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_compiles_between_devices(topology: str) -> None:
    call = sp.pallas_call(counting_there, OUT, scratch_shapes=(sp.semaphore(), sp.semaphore()))
    mesh = tpu_mesh((2,), ("x",), topology=topology)
    fn = jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    compile_for_tpu(fn, jax.ShapeDtypeStruct((16, 128), jnp.float32), topology=topology)


@needs_libtpu
def test_what_v5e_says() -> None:
    """As the docstring says."""
    said = r"Regular semaphores in EnqueueDMA are not supported on this target\."
    with pytest.raises(jax.errors.JaxRuntimeError, match=said):
        compile_for_tpu(local_call(), X, topology="v5e:2x2")
    assert said.replace("\\", "") in (sp.async_copy_counted.__doc__ or "")


@needs_libtpu
def test_on_sparse_cores() -> None:
    """The scalar subcore counts copies; the vector subcores do not, as the docstring says."""
    with jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=V6E)):
        scalar = plsc.ScalarSubcoreMesh(axis_name="core")
        vector = plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore")

    def kernel(x, o, *scratch):
        sp.async_copy_counted(x, scratch[0], sp.adopt(scratch[1], sp.semaphore()))

    def over(mesh: Any, memory: Any) -> Any:
        scratch = (memory(X.shape, X.dtype), REGULAR)
        return lambda x: pl.kernel(kernel, OUT, mesh=mesh, scratch_types=scratch)(x)

    with jax.enable_x64(False):
        compile_for_tpu(over(scalar, pltpu.VMEM_SHARED), X, topology="v6e:2x2")
        said = r"Count done mode is not supported for streams\."
        with pytest.raises(jax.errors.JaxRuntimeError, match=said):
            compile_for_tpu(over(vector, pltpu.VMEM), X, topology="v6e:2x2")


@needs_libtpu
@pytest.mark.parametrize("topology", ["v5e:2x2", "v5p:2x2x1", "v6e:2x2"])
def test_tensor_cores_do_not_add(topology: str) -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
        sp.async_copy(x, o, sem, add=True).wait()

    call = sp.pallas_call(kernel, OUT, scratch_shapes=(sp.dma_semaphore(),))
    with pytest.raises(NotImplementedError, match=r"DMA with add=True is not supported\."):
        compile_for_tpu(call, X, topology=topology)
