"""Barriers between devices, and between the cores of one: by one name, by several."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp

AXES = ("x", "y")


def pass_barrier(axes: Sequence[str]) -> None:
    sp.barrier_all(axes)


def kernel(x: sp.Ref, o: sp.Ref, send: sp.DmaSemaphore, recv: sp.DmaSemaphore) -> None:
    for axes in (AXES, list(AXES), ("x",), ["x"]):
        pass_barrier(axes)
    sp.barrier_all("x")
    sp.barrier_all(axes=AXES)
    sp.barrier_all(sorted(AXES))
    sp.barrier_neighbors("x")
    sp.barrier_neighbors(axis=AXES[0])
    other = 1 - jax.lax.axis_index("x")
    sp.async_remote_copy(x, o, send, recv, {"x": other}).wait()
    sp.barrier_neighbors("x")


def on_cores(ready: sp.Semaphore, slots: sp.SemaphoreArray[sp.Semaphore, tuple[int]]) -> None:
    sp.core_barrier(ready, core_axis_name="core")
    sp.core_barrier(slots[0], core_axis_name="core")


def main() -> None:
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=(sp.dma_semaphore(), sp.dma_semaphore()),
        compiler_params=pltpu.CompilerParams(collective_id=0),
        interpret=pltpu.InterpretParams(),
    )
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]).reshape(2, 1), ("x", "y"))
    fn = jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    x = jnp.arange(2 * 8 * 128, dtype=jnp.float32).reshape(16, 128)
    np.testing.assert_array_equal(jax.jit(fn)(x), jnp.roll(x, 8, axis=0))
