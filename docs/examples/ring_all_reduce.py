"""Ring all-reduce in two slots, guarded by a neighbour barrier and by credits.

Every block travels once round the ring, and each device adds what passes. A hop sends one slot
and receives into the other. A slot that has been sent may be overwritten: its device then grants
the left neighbour one credit, and no hop but the first starts without one. As many credits are
granted as are taken (n - 2), so none is left over and none comes after its taker has gone.

`python docs/examples/ring_all_reduce.py` simulates four devices on the CPU, race detector on.
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
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp

ROWS, COLS = 8, 128


class Buffers(sp.Scratch):
    slots = sp.vmem((2, ROWS, COLS), jnp.float32)
    send = sp.dma_semaphore()
    recv = sp.dma_semaphore()
    credit = sp.semaphore()


def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    size = jax.lax.axis_size("x")
    me = jax.lax.axis_index("x")
    left, right = jax.lax.rem(me + size - 1, size), jax.lax.rem(me + 1, size)

    s.slots[0] = x[...]
    o[...] = x[...]

    # One round is enough, also for calls back to back: a neighbour signals again only in its next
    # call, and it ends this one only with my block, which I send only after this wait.
    barrier = sp.get_barrier_semaphore()
    sp.signal(barrier, device_id={"x": left})
    sp.signal(barrier, device_id={"x": right})
    sp.wait(barrier, 2)

    for hop in range(size - 1):
        here, there = hop % 2, (hop + 1) % 2
        if hop > 0:
            sp.wait(s.credit)
        sp.async_remote_copy(
            s.slots.at[here], s.slots.at[there], s.send, s.recv, {"x": right}
        ).wait()
        if hop < size - 2:
            sp.signal(s.credit, device_id={"x": left})
        o[...] += s.slots[there]


def build(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None, *, interpret: Any = False
) -> tuple[Callable[..., jax.Array], tuple[jax.Array, ...]]:
    """The function and arguments for it, for a mesh with one axis "x" of any size from 2 up."""
    assert mesh is not None
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((ROWS, COLS), jnp.float32),
        scratch_shapes=Buffers,
        compiler_params=pltpu.CompilerParams(collective_id=0),
        interpret=interpret,
    )
    sharded = jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)

    def fn(x: jax.Array) -> jax.Array:
        # A TPU core has no 64 bit types, whatever the caller has.
        with jax.enable_x64(False):
            result: jax.Array = sharded(x)
        return result

    size = mesh.shape["x"]
    x = jnp.arange(size * ROWS * COLS, dtype=jnp.float32).reshape(size * ROWS, COLS)
    return fn, (x,)


def expected(x: jax.Array) -> jax.Array:
    blocks = x.reshape(-1, ROWS, COLS)
    return jnp.tile(blocks.sum(axis=0), (len(blocks), 1))


def main() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("x",))
    fn, args = build(mesh, interpret=pltpu.InterpretParams(detect_races=True))
    np.testing.assert_array_equal(jax.jit(fn)(*args), expected(*args))
    print(f"ring all-reduce on {mesh.size} simulated devices: ok")


if __name__ == "__main__":
    main()
