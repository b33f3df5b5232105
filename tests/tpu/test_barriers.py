"""The barriers go through the real TPU compiler, for several chips and numbers of them."""

import importlib.util
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp
import safepallas.testing

if importlib.util.find_spec("libtpu") is None:
    pytest.skip("libtpu is not installed: no TPU compiler here", allow_module_level=True)

X = OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)


def compiled(body: Callable[[], None], topology: str, **axes: int) -> str:
    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        body()
        o[...] = x[...]

    params = pltpu.CompilerParams(collective_id=0)
    call = sp.pallas_call(kernel, OUT, compiler_params=params)
    mesh = safepallas.testing.tpu_mesh(tuple(axes.values()), tuple(axes), topology=topology)
    fn = jax.shard_map(call, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    return str(safepallas.testing.compile_for_tpu(fn, X, topology=topology).as_text())


def both(axis: str, axes: Any) -> Callable[[], None]:
    def body() -> None:
        sp.barrier_all(axes)
        if axis:
            sp.barrier_neighbors(axis)
            sp.barrier_all(axes)

    return body


@pytest.mark.parametrize(
    ("topology", "axes"),
    [
        ("v5e:2x2", {"x": 1}),
        ("v5e:2x2", {"x": 2}),
        ("v5e:2x2", {"x": 4}),
        ("v6e:2x2", {"x": 4}),
        ("v5p:2x2x1", {"x": 4}),
        ("v5e:4x4", {"x": 16}),
        ("v6e:2x4", {"x": 8}),
    ],
    ids=str,
)
def test_one_axis(topology: str, axes: dict[str, int]) -> None:
    assert "tpu_custom_call" in compiled(both("x", "x"), topology, **axes)


@pytest.mark.parametrize(
    ("topology", "axes"),
    [
        ("v5e:2x2", {"x": 2, "y": 2}),
        ("v6e:2x2", {"x": 2, "y": 2}),
        ("v5e:4x4", {"x": 4, "y": 4}),
        ("v6e:2x4", {"x": 2, "y": 3}),
    ],
    ids=str,
)
def test_two_axes(topology: str, axes: dict[str, int]) -> None:
    assert "tpu_custom_call" in compiled(both("", ("x", "y")), topology, **axes)
    assert "tpu_custom_call" in compiled(both("y", "y"), topology, **axes)


@pytest.mark.parametrize("topology", ["v5e:2x2", "v6e:2x2", "v5p:2x2x1"])
@pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])
def test_core_barrier(x64: bool, topology: str) -> None:
    """With 64 bit types too, where the raw one of JAX 0.10.2 cannot be lowered."""

    def kernel(x: Any, o: Any, sem: Any) -> None:
        ready = sp.adopt(sem, sp.semaphore())
        sp.core_barrier(ready, core_axis_name="core")
        sp.core_barrier(ready, core_axis_name="core")
        pltpu.sync_copy(x, o)

    make: Any = getattr(pltpu, "TensorCoreMesh", None) or pltpu.create_tensorcore_mesh
    mesh = make(axis_name="core", num_cores=2)
    with jax.enable_x64(x64):
        call = pl.kernel(kernel, OUT, mesh=mesh, scratch_types=(pltpu.SemaphoreType.REGULAR,))
        text = safepallas.testing.compile_for_tpu(call, X, topology=topology).as_text()
    assert "tpu_custom_call" in text
