"""The reference kernel, in raw Pallas, of docs/examples/ring_all_reduce.py."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

ROWS, COLS = 8, 128


def kernel(x: Any, o: Any, slots: Any, send: Any, recv: Any, credit: Any) -> None:
    size = jax.lax.axis_size("x")
    me = jax.lax.axis_index("x")
    left, right = jax.lax.rem(me + size - 1, size), jax.lax.rem(me + 1, size)

    slots[0] = x[...]
    o[...] = x[...]

    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, device_id={"x": left})
    pl.semaphore_signal(barrier, device_id={"x": right})
    pl.semaphore_wait(barrier, 2)

    for hop in range(size - 1):
        here, there = hop % 2, (hop + 1) % 2
        if hop > 0:
            pl.semaphore_wait(credit)
        pltpu.async_remote_copy(slots.at[here], slots.at[there], send, recv, {"x": right}).wait()
        if hop < size - 2:
            pl.semaphore_signal(credit, device_id={"x": left})
        o[...] += slots[there]


def build(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None, *, interpret: Any = False
) -> tuple[Callable[..., Any], tuple[jax.Array, ...]]:
    assert mesh is not None
    call = pl.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((ROWS, COLS), jnp.float32),
        scratch_shapes=[
            pltpu.VMEM((2, ROWS, COLS), jnp.float32),
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.REGULAR,
        ],
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
