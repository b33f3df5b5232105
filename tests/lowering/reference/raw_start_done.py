"""The reference kernel, in raw Pallas, of docs/examples/start_done.py."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P


class Sizes(NamedTuple):
    rows: int  # of x on a device
    inner: int
    cols: int
    dtype: Any


SMALL = Sizes(rows=64, inner=256, cols=512, dtype=jnp.float32)
PRODUCTION = Sizes(rows=1024, inner=4096, cols=4096, dtype=jnp.bfloat16)


def start(w: Any, o: Any, send: Any, recv: Any) -> None:
    size = jax.lax.axis_size("x")
    left = jax.lax.rem(jax.lax.axis_index("x") + size - 1, np.int32(size))

    barrier = pltpu.get_barrier_semaphore()
    here = jax.lax.axis_index("x")
    steps = [np.int32(step) for step in range(1, size)]
    others = [jax.lax.rem(here + step, np.int32(size)) for step in steps]
    for other in others:
        pl.semaphore_signal(barrier, device_id={"x": other})
    pl.semaphore_wait(barrier, size - 1)
    pltpu.async_remote_copy(w, o, send, recv, {"x": left})


def done(w: Any, o_begun: Any, send: Any, recv: Any, o: Any) -> None:
    pltpu.make_async_copy(w, w, send).wait()
    pltpu.make_async_copy(o, o, recv).wait()


def build(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None, *, sizes: Sizes = SMALL
) -> tuple[Callable[..., Any], tuple[jax.Array, ...]]:
    assert mesh is not None
    size = mesh.shape["x"]
    hbm = pl.BlockSpec(memory_space=pltpu.HBM)
    semaphore = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
    dma = pltpu.SemaphoreType.DMA
    begin = pl.pallas_call(
        start,
        (pltpu.HBM((sizes.inner, sizes.cols), sizes.dtype), dma, dma),
        in_specs=[hbm],
        out_specs=(hbm, semaphore, semaphore),
        compiler_params=pltpu.CompilerParams(collective_id=0, has_side_effects=True),
    )
    finish = pl.pallas_call(
        done,
        [jax.ShapeDtypeStruct((sizes.inner, sizes.cols), sizes.dtype)],
        in_specs=[hbm, hbm, semaphore, semaphore],
        out_specs=[hbm],
        input_output_aliases={1: 0},
        compiler_params=pltpu.CompilerParams(has_side_effects=True),
    )

    def products(x: jax.Array, w: jax.Array) -> jax.Array:
        found = []
        for _ in range(size - 1):
            pinned = pltpu.with_memory_space_constraint(w, pltpu.HBM)
            o, *sems = begin(pinned)
            sems, x_then = jax.lax.optimization_barrier((sems, x))
            found.append(x_then @ w)
            sems, _ = jax.lax.optimization_barrier((sems, found[-1]))
            (w,) = finish(pinned, o, *sems)
        found.append(x @ w)
        return jnp.stack(found, axis=1)

    fn = jax.shard_map(products, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    x = jnp.arange(size * sizes.rows * sizes.inner, dtype=jnp.int32).reshape(-1, sizes.inner) % 7
    w = jnp.arange(size * sizes.inner * sizes.cols, dtype=jnp.int32).reshape(-1, sizes.cols) % 5
    return fn, (x.astype(sizes.dtype), w.astype(sizes.dtype))
