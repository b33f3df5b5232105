"""`safepallas.testing`: what it compiles, for what, and what it says where it cannot."""

import importlib.util
import os
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import safepallas as sp
from safepallas import testing

needs_libtpu = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None,
    reason="libtpu is not installed: no TPU compiler here",
)
ANY = pl.BlockSpec(memory_space=pl.ANY)
X = jax.ShapeDtypeStruct((8, 128), jnp.float32)


def shift(x: sp.Ref, o: sp.Ref, send: sp.DmaSemaphore, recv: sp.DmaSemaphore) -> None:
    right = jax.lax.rem(jax.lax.axis_index("x") + 1, jax.lax.axis_size("x"))
    sp.async_remote_copy(x, o, send, recv, {"x": right}).wait()


def scoped(x: sp.Ref, o: sp.Ref) -> None:
    sp.sync_copy(x, o)  # with a scope of its own: JAX 0.12 asks for the kind of TPU


def call(kernel: Any, *scratch: Any) -> Any:
    specs: Any = tuple(scratch)
    return sp.pallas_call(kernel, X, scratch_shapes=specs, in_specs=[ANY], out_specs=ANY)


def over(mesh: Any) -> Any:
    body = call(shift, sp.dma_semaphore(), sp.dma_semaphore())
    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)


@needs_libtpu
@pytest.mark.parametrize("topology", ["v5e:2x2", "v6e:2x2", "v5p:2x2x1"])
def test_compiles_for_one_device(topology: str) -> None:
    compiled = testing.compile_for_tpu(call(scoped), jnp.zeros(X.shape), topology=topology)
    assert isinstance(compiled, jax.stages.Compiled)
    assert "tpu_custom_call" in compiled.as_text()


@needs_libtpu
@pytest.mark.parametrize("devices", [2, 4])
def test_compiles_over_a_mesh_of_the_topology(devices: int) -> None:
    x = jax.ShapeDtypeStruct((8 * devices, 128), jnp.float32)
    fn = over(testing.tpu_mesh((devices,), ("x",)))
    assert "tpu_custom_call" in testing.compile_for_tpu(fn, x).as_text()


@needs_libtpu
def test_compiles_over_an_abstract_mesh() -> None:
    x = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    fn = over(AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,)))
    assert "tpu_custom_call" in testing.compile_for_tpu(fn, x).as_text()


@needs_libtpu
def test_too_many_semaphores_are_warned_of_before_the_compiler_fails() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, a: Any, b: Any) -> None:
        sp.async_copy(x, o, a.at[0]).wait()

    fn = call(kernel, sp.dma_semaphore(480), sp.dma_semaphore(480))
    with (
        pytest.warns(sp.errors.SemaphoreLimitWarning, match="holds 960 semaphores at once"),
        pytest.raises(jax.errors.JaxRuntimeError, match="Ran out of memory in memory space sflag"),
    ):
        testing.compile_for_tpu(fn, X)


@needs_libtpu
@pytest.mark.parametrize("operands", [2, 5, 9])
@pytest.mark.parametrize("topology", ["v5e:2x2", "v6e:2x2", "v5p:2x2x1"])
@pytest.mark.filterwarnings("ignore::safepallas.errors.SemaphoreLimitWarning")
def test_room_for_semaphores(topology: str, operands: int) -> None:
    """As `SemaphoreLimitWarning` says, by the number of operands that are copied over a grid."""
    whole = jax.ShapeDtypeStruct((64, 128), jnp.float32)
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))

    def kernel(*refs: Any) -> None:
        sp.signal(refs[-1].at[0])
        sp.wait(refs[-1].at[0])

    def compile_with(semaphores: int) -> None:
        fn = sp.pallas_call(
            kernel,
            whole,
            grid=(8,),
            in_specs=[block] * (operands - 1),
            out_specs=block,
            scratch_shapes=(sp.semaphore(semaphores),),
        )
        testing.compile_for_tpu(fn, *[whole] * (operands - 1), topology=topology)

    fit = {"v5e:2x2": 440, "v6e:2x2": 438, "v5p:2x2x1": 436}[topology]
    fit -= {2: 4, 5: 8, 9: 12}[operands]
    compile_with(fit)
    with pytest.raises(jax.errors.JaxRuntimeError, match="Ran out of memory in memory space sflag"):
        compile_with(fit + 1)


@needs_libtpu
def test_leaves_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TPU_SKIP_MDS_QUERY", raising=False)
    monkeypatch.setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "true")
    before = dict(os.environ)
    testing.compile_for_tpu(call(scoped), X)
    assert dict(os.environ) == before


@needs_libtpu
def test_a_mesh_larger_than_the_topology_is_refused() -> None:
    with pytest.raises(ValueError, match="v5e:2x2 has 4 devices, fewer than the 8 asked for"):
        testing.tpu_mesh((8,), ("x",))


def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError) as caught:
        testing.compile_for_tpu(call(scoped), X)
    assert str(caught.value) == (
        "safepallas.testing needs the TPU compiler, libtpu, which is not installed: "
        "pip install 'safepallas[tpu]'"
    )


def test_lowers_without_libtpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    testing.assert_lowers_like(call(scoped), call(scoped), X)
