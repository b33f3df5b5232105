"""Kernels on meshes of cores through the TPU compiler: TensorCores, SparseCores, several bodies.

The text of a compiled SparseCore kernel cannot be had from JAX 0.10.2 (its HLO does not parse); so
these tests ask only that the compiler takes it.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.pallas import tpu_sc as plsc

import safepallas as sp
from safepallas.testing import compile_for_tpu

from ..loading import load
from ..unit.core_meshes import tensor

if importlib.util.find_spec("libtpu") is None:
    pytest.skip("libtpu is not installed: no TPU compiler here", allow_module_level=True)

X = OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)
ALL = ["v5e:2x2", "v6e:2x2", "v5p:2x2x1"]
SPARSE = ["v6e:2x2", "v5p:2x2x1"]  # v5e has no SparseCores
EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "sparse_core_gather.py"


class Buffers(sp.Scratch):
    sem = sp.dma_semaphore()
    ready = sp.semaphore(2)


def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, o, s.sem).wait()
    sp.signal(s.ready[1], 2)
    sp.wait(s.ready[1], 2)


def vector() -> Any:
    return plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore")


def scalar() -> Any:
    return plsc.ScalarSubcoreMesh(axis_name="core")


@pytest.mark.parametrize("topology", ALL)
@pytest.mark.parametrize("cores", [1, 2])
def test_tensor_cores(cores: int, topology: str) -> None:
    call = sp.kernel(kernel, OUT, mesh=tensor(cores), scratch_types=Buffers)
    assert "tpu_custom_call" in compile_for_tpu(call, X, topology=topology).as_text()


@pytest.mark.parametrize("topology", SPARSE)
@pytest.mark.parametrize("mesh", [vector, scalar])
def test_sparse_cores(mesh: Callable[[], Any], topology: str) -> None:
    def fn(x: jax.Array) -> Any:
        return sp.kernel(kernel, OUT, mesh=mesh(), scratch_types=Buffers)(x)

    compile_for_tpu(fn, X, topology=topology)


@pytest.mark.parametrize("topology", SPARSE)
def test_several_bodies(topology: str) -> None:
    def fn(x: jax.Array) -> Any:
        v, s = vector(), scalar()

        class Shared(sp.Scratch):
            sem = sp.dma_semaphore() @ v
            done = sp.semaphore() @ s

        def copies(x: sp.Ref, o: sp.Ref, scratch: Shared) -> None:
            sp.async_copy(x, o, scratch.sem).wait()
            sp.signal(scratch.done, device_id={"core": 0})

        def waits(x: sp.Ref, o: sp.Ref, scratch: Shared) -> None:
            sp.wait(scratch.done, 32)

        return sp.kernel([copies, waits], OUT, mesh=[v, s], scratch_types=Shared)(x)

    compile_for_tpu(fn, X, topology=topology)


@pytest.mark.parametrize("topology", SPARSE)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [("sp.wait(b)", "sp.wait(a)"), ("sp.async_copy(x, o, d)", "sp.async_copy(x, o, c)")],
    ids=["wait", "copy"],
)
def test_semaphores_of_other_cores_are_refused_by_the_compiler_too(
    right: str, wrong: str, topology: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `ForeignSemaphoreError` says: the neighbour that we accept compiles, and it does not."""

    def build(line: str) -> Callable[[jax.Array], Any]:
        def fn(x: jax.Array) -> Any:
            v, s = vector(), scalar()

            def nothing(x: Any, o: Any, a: Any, b: Any, c: Any, d: Any) -> None: ...

            def uses(x: Any, o: Any, a: Any, b: Any, c: Any, d: Any) -> None:
                eval(line, {"sp": sp, "x": x, "o": o, "a": a, "b": b, "c": c, "d": d})

            kinds = (sp.semaphore(), sp.dma_semaphore())
            specs = tuple(kind @ mesh for kind in kinds for mesh in (v, s))
            return sp.kernel([nothing, uses], OUT, mesh=[v, s], scratch_types=specs)(x)

        return fn

    compile_for_tpu(build(right), X, topology=topology)
    with pytest.raises(sp.errors.ForeignSemaphoreError):
        compile_for_tpu(build(wrong), X, topology=topology)
    monkeypatch.setattr("safepallas._jax.kernel_equations._is_foreign", lambda *_: False)
    with pytest.raises(Exception, match=r"only allowed on TEC|Core id must be specified"):
        compile_for_tpu(build(wrong), X, topology=topology)


@pytest.mark.parametrize("topology", SPARSE)
@pytest.mark.filterwarnings("ignore::safepallas.errors.SemaphoreLimitWarning")
def test_room_for_semaphores_on_a_vector_subcore(topology: str) -> None:
    """24 fit, and from 25 on we warn."""

    def copies(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, sems: Any) -> None:
        sp.async_copy(x, o, sem).wait()
        sp.make_async_copy(x, o, sems[-1]).wait()

    def fn(x: jax.Array) -> Any:
        specs = (sp.dma_semaphore(), sp.dma_semaphore(count - 1))
        return sp.kernel(copies, OUT, mesh=vector(), scratch_types=specs)(x)

    count = 24
    compile_for_tpu(fn, X, topology=topology)
    count = 25
    with pytest.raises(Exception, match="Ran out of memory in memory space sparse_core_tile_sflag"):
        compile_for_tpu(fn, X, topology=topology)


# JAX 0.12 says so of every copy from the memory of a vector subcore to HBM, its own too.
@pytest.mark.filterwarnings("ignore:Destination semaphore is ignored for push streams")
@pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])
@pytest.mark.parametrize("topology", SPARSE)
def test_gather_example_on_all_subcores(topology: str, x64: bool) -> None:
    example: Any = load(EXAMPLE)
    table = jax.ShapeDtypeStruct((1_000_000, 256), jnp.float32)
    indices = jax.ShapeDtypeStruct((32 * 2 * example.CHUNK * 64,), jnp.int32)
    with jax.enable_x64(x64):
        compile_for_tpu(example.gather, table, indices, topology=topology)
