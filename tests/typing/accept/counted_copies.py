"""Copies that count on regular semaphores, waited for by their number."""

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp


class Buffers(sp.Scratch):
    arrived = sp.semaphore()
    left = sp.semaphore(2)
    rows = sp.vmem((4, 128), jnp.float32)


def gather(table: sp.Ref, rows: sp.Ref, done: sp.Semaphore, count: int) -> None:
    for i in range(count):
        sp.async_copy_counted(table.at[2 * i], rows.at[i], done)


def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    gather(x, s.rows, s.arrived, 4)
    sp.wait(s.arrived, 4)
    sp.async_copy_counted(s.rows, o, sem=s.left[0])
    sp.wait(s.left.at[0])


def swap(x: sp.Ref, o: sp.Ref, sent: sp.Semaphore, came: sp.Semaphore) -> None:
    other = 1 - jax.lax.axis_index("x")
    # An int: interpret=True of JAX 0.10.2 knows no axis names for a remote copy.
    sp.async_remote_copy_counted(x, o, sent, came, other)
    sp.wait(sent)
    sp.wait(came)


def main() -> None:
    x = jnp.arange(8 * 128, dtype=jnp.float32).reshape(8, 128)
    out = jax.ShapeDtypeStruct((4, 128), jnp.float32)
    call = sp.pallas_call(kernel, out, scratch_shapes=Buffers, interpret=True)
    np.testing.assert_array_equal(call(x), x[::2])

    semaphores = (sp.semaphore(), sp.semaphore())
    swapping = sp.pallas_call(swap, out, scratch_shapes=semaphores, interpret=True)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    spec = jax.sharding.PartitionSpec("x")
    fn = jax.shard_map(swapping, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    np.testing.assert_array_equal(jax.jit(fn)(x), jnp.roll(x, 4, axis=0))
