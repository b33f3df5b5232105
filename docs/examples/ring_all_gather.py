"""Ring all-gather: after n - 1 hops every device holds the blocks of all n devices.

In each hop a device passes on to its right the block that arrived last. Every hop has a receive
semaphore of its own, so waiting for hop k means the block of hop k, however far ahead the left
neighbour has run. The kernel has no `collective_id`: all devices are known to have entered it
before the first line runs.

`python docs/examples/ring_all_gather.py` simulates four devices on the CPU, race detector on.
"""

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Four devices and an idle one: with none idle the simulator of jax 0.10 can hang.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=5")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp

ROWS, COLS = 8, 128


def kernel(
    x: sp.Ref,
    o: sp.Ref,
    local: sp.DmaSemaphore,
    send: sp.DmaSemaphore,
    recv: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]],
) -> None:
    size = jax.lax.axis_size("x")
    me = jax.lax.axis_index("x")
    right = jax.lax.rem(me + 1, size)

    sp.async_copy(x, o.at[me], local).wait()
    for hop in range(size - 1):
        block = o.at[jax.lax.rem(me - hop + size, size)]
        sp.async_remote_copy(block, block, send, recv.at[hop], {"x": right}).wait()


def build(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None, *, interpret: Any = False
) -> tuple[Callable[..., jax.Array], tuple[jax.Array, ...]]:
    """The function and arguments for it, for a mesh with one axis "x" of any size from 2 up."""
    assert mesh is not None
    size = mesh.shape["x"]
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((size, ROWS, COLS), jnp.float32),
        in_specs=[hbm],
        out_specs=hbm,
        scratch_shapes=(sp.dma_semaphore(), sp.dma_semaphore(), sp.dma_semaphore(size - 1)),
        interpret=interpret,
    )
    sharded = jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)

    def fn(x: jax.Array) -> jax.Array:
        # A TPU core has no 64 bit types, whatever the caller has.
        with jax.enable_x64(False):
            result: jax.Array = sharded(x)
        return result

    x = jnp.arange(size * ROWS * COLS, dtype=jnp.float32).reshape(size * ROWS, COLS)
    return fn, (x,)


def expected(x: jax.Array) -> jax.Array:
    blocks = x.reshape(-1, ROWS, COLS)
    return jnp.tile(blocks, (len(blocks), 1, 1))


def main() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("x",))
    fn, args = build(mesh, interpret=pltpu.InterpretParams(detect_races=True))
    np.testing.assert_array_equal(jax.jit(fn)(*args), expected(*args))
    print(f"ring all-gather on {mesh.size} simulated devices: ok")


if __name__ == "__main__":
    main()
