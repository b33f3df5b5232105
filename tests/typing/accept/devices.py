"""Devices and their barriers: named in every way, next to one another."""

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp

equal = np.testing.assert_array_equal
SIMULATED = pltpu.InterpretParams()


# Every way to name a device: by axis name, as a tuple, as one int; from ints, NumPy and JAX.
class Sems(sp.Scratch):
    send = sp.dma_semaphore()
    recv = sp.dma_semaphore()
    ready = sp.semaphore()


def put(
    x: sp.Ref, o: sp.Ref, s: Sems, device: Mapping[str, jax.Array] | tuple[jax.Array, int]
) -> None:
    sp.async_remote_copy(x, o, s.send, s.recv, device).wait()


def kernel(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    me = jax.lax.axis_index("x")
    other = 1 - me
    put(x.at[0], o.at[0], s, {"x": other})
    put(x.at[1], o.at[1], s, (other, 0))
    both = sp.make_async_remote_copy(x.at[2], o.at[2], s.send, s.recv, {"x": other, "y": 0})
    both.start()
    both.wait_recv()
    both.wait_send()
    sp.async_remote_copy(x.at[3], o.at[3], s.send, s.recv, (other, np.int32(0))).wait()
    # Two axes of the mesh taken as one.
    sp.signal(s.ready, device_id={("x", "y"): me})
    sp.signal(s.ready, 2, device_id=(me, 0))
    sp.wait(s.ready, 3)


def on_one_axis(x: sp.Ref, o: sp.Ref, send: sp.DmaSemaphore, recv: sp.DmaSemaphore) -> None:
    other = 1 - jax.lax.axis_index("x")
    sp.async_remote_copy(x, o, send, recv, other).wait()


def check_device_ids() -> None:
    devices = np.array(jax.devices()[:2])
    x = jnp.arange(2 * 4 * 128, dtype=jnp.float32).reshape(8, 128)
    swapped = jnp.roll(x, 4, axis=0)
    like = jax.ShapeDtypeStruct((4, 128), jnp.float32)

    both = sp.pallas_call(
        kernel, like, scratch_shapes=Sems, interpret=pltpu.InterpretParams(num_cores_or_threads=1)
    )
    mesh = jax.sharding.Mesh(devices.reshape(2, 1), ("x", "y"))
    spec = P(("x", "y"))
    fn = jax.shard_map(both, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    equal(jax.jit(fn)(x), swapped)

    one = sp.pallas_call(
        on_one_axis,
        like,
        scratch_shapes=(sp.dma_semaphore(), sp.dma_semaphore()),
        interpret=SIMULATED,
    )
    line = jax.sharding.Mesh(devices, ("x",))
    fn = jax.shard_map(one, mesh=line, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    equal(jax.jit(fn)(x), swapped)


DEVICES, ROWS, COLS = 2, 8, 128


# Barriers between devices, and between the cores of one: by one name, by several.
AXES = ("x", "y")


def pass_barrier(axes: Sequence[str]) -> None:
    sp.barrier_all(axes)


def barriers(x: sp.Ref, o: sp.Ref, send: sp.DmaSemaphore, recv: sp.DmaSemaphore) -> None:
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


def check_barriers() -> None:
    call = sp.pallas_call(
        barriers,
        jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=(sp.dma_semaphore(), sp.dma_semaphore()),
        compiler_params=pltpu.CompilerParams(collective_id=0),
        interpret=SIMULATED,
    )
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]).reshape(2, 1), ("x", "y"))
    fn = jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    x = jnp.arange(2 * 8 * 128, dtype=jnp.float32).reshape(16, 128)
    equal(jax.jit(fn)(x), jnp.roll(x, 8, axis=0))
