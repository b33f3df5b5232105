"""Kernels over the cores of a device: each lowers like its reference kernel.

The semaphores are adopted, so that nothing stands between the two but the operations.
"""

import importlib.util
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp
from safepallas._jax import compat
from safepallas.testing import assert_lowers_like, compile_for_tpu, tpu_mesh

from .alike import assert_same

X = jax.ShapeDtypeStruct((8, 128), jnp.float32)
DMA = pltpu.SemaphoreType.DMA
REGULAR = pltpu.SemaphoreType.REGULAR

Index = Callable[[int], Any]
OverMesh = Callable[..., Any]

needs_libtpu = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None,
    reason="libtpu is not installed: no TPU compiler here",
)
both = pytest.mark.usefixtures("x64", "tpu")


def on_cores(kernel: Any, *scratch: Any) -> Any:
    """A kernel over two TensorCores: JAX 0.12 has given their mesh another name."""
    cores: Any
    if hasattr(pltpu, "TensorCoreMesh"):
        cores = pltpu.TensorCoreMesh(axis_name="core", num_cores=2)
    else:
        cores = pltpu.create_tensorcore_mesh("core", num_cores=2)
    return lambda x: pl.kernel(kernel, X, mesh=cores, scratch_types=scratch)(x)


@both
def test_cores_by_name_and_by_index(index: Index) -> None:
    def build(m: Any) -> Any:
        def kernel(x, o, sem, send, recv):
            sem = m.adopt(sem, m.semaphore())
            send, recv = m.adopt(send, m.dma_semaphore()), m.adopt(recv, m.dma_semaphore())
            other = 1 - jax.lax.axis_index("core")
            m.signal(sem, device_id={"core": other})
            m.signal(sem, 2, device_id={"core": index(1)})
            m.signal(sem, core_index=other)
            m.signal(sem, core_index=index(1))
            m.async_remote_copy(x, o, send, recv, {"core": other}).wait()
            m.wait(sem, 4)

        return on_cores(kernel, REGULAR, DMA, DMA)

    assert_same(build, X)


@both
def test_devices_and_cores(index: Index, over_mesh: OverMesh) -> None:
    def build(m: Any) -> Any:
        def kernel(x, o, sem, send, recv):
            sem = m.adopt(sem, m.semaphore())
            send, recv = m.adopt(send, m.dma_semaphore()), m.adopt(recv, m.dma_semaphore())
            i, other = jax.lax.axis_index("i"), 1 - jax.lax.axis_index("core")
            m.signal(sem, device_id={"i": 1 - i, "core": other})
            m.signal(sem, device_id={"core": index(0), "j": index(1)})
            m.signal(sem, device_id={"j": index(1)}, core_index=other)
            m.signal(sem, device_id=(1 - i, i), core_index=index(1))
            m.signal(sem, device_id={("i", "j"): 2 * i + 1}, core_index=other)
            m.async_remote_copy(x, o, send, recv, {"i": 1 - i, "core": other}).wait()

        return over_mesh(on_cores(kernel, REGULAR, DMA, DMA), i=2, j=2)

    assert_same(build, X)


@both
def test_joined_axes_beside_a_core(over_mesh: OverMesh) -> None:
    """Raw Pallas of JAX 0.10.2 cannot have both in one dict: there ours takes the axes apart."""

    def kernel(x, o, sem):
        sem = sp.adopt(sem, sp.semaphore())
        i, j = jax.lax.axis_index("i"), jax.lax.axis_index("j")
        sp.signal(sem, device_id={("i", "j"): 2 * i + j, "core": i})

    ours = over_mesh(on_cores(kernel, REGULAR), i=2, j=2)

    def kernel(x, o, sem):
        i, j = jax.lax.axis_index("i"), jax.lax.axis_index("j")
        joined = 2 * i + j
        if compat.KEYS_MUST_BE_ALIKE:
            two = np.int32(2)
            apart = {"i": jax.lax.div(joined, two), "j": jax.lax.rem(joined, two)}
            pl.semaphore_signal(sem, device_id={**apart, "core": i})
        else:
            pl.semaphore_signal(sem, device_id={("i", "j"): joined, "core": i})

    assert_lowers_like(ours, over_mesh(on_cores(kernel, REGULAR), i=2, j=2), X)


@needs_libtpu
def test_compiles_for_two_cores_of_two_by_two_devices() -> None:
    def kernel(x, o, sem, send, recv):
        sem = sp.adopt(sem, sp.semaphore())
        send, recv = sp.adopt(send, sp.dma_semaphore()), sp.adopt(recv, sp.dma_semaphore())
        i, other = jax.lax.axis_index("i"), 1 - jax.lax.axis_index("core")
        sp.signal(sem, device_id={"core": other})
        sp.signal(sem, device_id={"i": 1 - i, "core": other})
        sp.signal(sem, device_id={("i", "j"): 3, "core": 1})
        sp.signal(sem, device_id={("i", "j"): 2 * i + 1, "core": other})
        sp.signal(sem, device_id={("i", "j"): 2 * i + 1}, core_index=other)
        sp.signal(sem, core_index=1)
        sp.async_remote_copy(x, o, send, recv, {"j": i, "core": other}).wait()
        sp.wait(sem, 6)

    mesh = tpu_mesh((2, 2), ("i", "j"), topology="v5p:2x2x1")
    call = on_cores(kernel, REGULAR, DMA, DMA)
    spec = P(("i", "j"))
    fn = jax.shard_map(call, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    x = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    compile_for_tpu(fn, x, topology="v5p:2x2x1")


@needs_libtpu
def test_the_compiler_does_not_look_at_core_index() -> None:
    """Which is why safepallas does."""

    def kernel(x, o, sem):
        pl.semaphore_signal(sem, core_index=7)

    compile_for_tpu(on_cores(kernel, REGULAR), X, topology="v5p:2x2x1")

    def refused(x, o, sem):
        sp.signal(sp.adopt(sem, sp.semaphore()), core_index=7)

    with pytest.raises(sp.errors.AmountRangeError):
        compile_for_tpu(on_cores(refused, REGULAR), X, topology="v5p:2x2x1")
