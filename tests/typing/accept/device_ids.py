"""Every way to name a device: by axis name, as a tuple, as one int; from ints, NumPy and JAX."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp


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
    sp.async_remote_copy(x.at[2], o.at[2], s.send, s.recv, {"x": other, "y": 0}).wait()
    sp.async_remote_copy(x.at[3], o.at[3], s.send, s.recv, (other, np.int32(0))).wait()
    # Two axes of the mesh taken as one.
    sp.signal(s.ready, device_id={("x", "y"): me})
    sp.signal(s.ready, 2, device_id=(me, 0))
    sp.wait(s.ready, 3)


def on_one_axis(x: sp.Ref, o: sp.Ref, send: sp.DmaSemaphore, recv: sp.DmaSemaphore) -> None:
    other = 1 - jax.lax.axis_index("x")
    sp.async_remote_copy(x, o, send, recv, other).wait()


def main() -> None:
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
    np.testing.assert_array_equal(jax.jit(fn)(x), swapped)

    one = sp.pallas_call(
        on_one_axis,
        like,
        scratch_shapes=(sp.dma_semaphore(), sp.dma_semaphore()),
        interpret=pltpu.InterpretParams(),
    )
    line = jax.sharding.Mesh(devices, ("x",))
    fn = jax.shard_map(one, mesh=line, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    np.testing.assert_array_equal(jax.jit(fn)(x), swapped)
