"""The reference kernel, in raw Pallas, of docs/examples/ring_all_gather.py."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

ROWS, COLS = 8, 128


def kernel(x: Any, o: Any, local: Any, send: Any, recv: Any) -> None:
    size = jax.lax.axis_size("x")
    me = jax.lax.axis_index("x")
    right = jax.lax.rem(me + 1, size)

    pltpu.async_copy(x, o.at[me], local).wait()
    for hop in range(size - 1):
        block = o.at[jax.lax.rem(me - hop + size, size)]
        pltpu.async_remote_copy(block, block, send, recv.at[hop], {"x": right}).wait()


def build(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None, *, interpret: Any = False
) -> tuple[Callable[..., Any], tuple[jax.Array, ...]]:
    assert mesh is not None
    size = mesh.shape["x"]
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((size, ROWS, COLS), jnp.float32),
        in_specs=[hbm],
        out_specs=hbm,
        scratch_shapes=[
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA((size - 1,)),
        ],
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
