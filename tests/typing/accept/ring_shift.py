"""Send every device's block to its right neighbour, behind a barrier, under shard_map."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp

DEVICES, ROWS, COLS = 2, 8, 128


class Sems(sp.Scratch):
    send = sp.dma_semaphore()
    recv = sp.dma_semaphore()


def neighbour_barrier(left: jax.Array, right: jax.Array) -> None:
    barrier = sp.get_barrier_semaphore()
    for neighbour in (left, right):
        sp.signal(barrier, device_id={"x": neighbour})
    sp.wait(barrier, 2)


def kernel(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    size = jax.lax.axis_size("x")
    me = jax.lax.axis_index("x")
    right = jax.lax.rem(me + 1, size)
    left = jax.lax.rem(me + size - 1, size)
    neighbour_barrier(left, right)
    copy = sp.make_async_remote_copy(x, o, s.send, s.recv, {"x": right})
    copy.start()
    copy.wait_recv()
    copy.wait_send()


def main() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:DEVICES]), ("x",))
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((ROWS, COLS), jnp.float32),
        in_specs=[hbm],
        out_specs=hbm,
        scratch_shapes=Sems,
        compiler_params=pltpu.CompilerParams(collective_id=0),
        interpret=pltpu.InterpretParams(),
    )
    x = jnp.arange(DEVICES * ROWS * COLS, dtype=jnp.float32).reshape(-1, COLS)
    shifted = jax.jit(
        jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    )(x)
    np.testing.assert_array_equal(shifted, jnp.roll(x, ROWS, axis=0))
