"""The reference kernel, in raw Pallas, of docs/examples/collective_matmul.py."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P


class Sizes(NamedTuple):
    """What one device holds, in elements."""

    rows: int  # of the left operand; a half of them is a multiple of 16, the tile of bfloat16
    depth: int
    cols: int  # of the right operand
    block: int  # columns computed at a time


SMALL = Sizes(rows=32, depth=128, cols=256, block=128)
# 9.5 MiB of VMEM: 4 for the slots, 4 for two blocks of the right operand, 1 for the tiles, and
# the products before rounding.
PRODUCTION = Sizes(rows=512, depth=2048, cols=2048, block=512)

# Pallas cannot lower a Python int as an index of data where 64 bit types are on.
FIRST, SECOND = np.int32(0), np.int32(1)
DIRECTIONS = (FIRST, SECOND)  # to the right, to the left


def mod(value: jax.Array, size: int) -> jax.Array:
    """The remainder of an int32; `jax.lax.rem` takes no int beside it where 64 bit types are on."""
    return jax.lax.rem(value, np.int32(size))


def neighbour_barrier(size: int) -> None:
    """All of up to 5 devices."""
    barrier = pltpu.get_barrier_semaphore()
    if size == 1:
        pl.semaphore_signal(barrier)
        pl.semaphore_wait(barrier)
        return
    me = jax.lax.axis_index("x")
    for device in [mod(me + np.int32(step), size) for step in range(1, size)]:
        pl.semaphore_signal(barrier, device_id={"x": device})
    pl.semaphore_wait(barrier, size - 1)


def wait_bytes(sem: Any, like: Any) -> None:
    pltpu.make_async_copy(like, like, sem).wait()


def build(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None,
    *,
    sizes: Sizes = SMALL,
    interpret: Any = False,
) -> tuple[Callable[..., jax.Array], tuple[jax.Array, ...]]:
    """The function and arguments for it, for a mesh with one axis "x" of any size."""
    assert mesh is not None
    size = mesh.shape["x"]
    rows, depth, cols, block = sizes
    half, blocks = rows // 2, cols // block
    dtype = jnp.bfloat16

    def kernel(
        x: Any,
        w: Any,
        o: Any,
        slots: Any,
        tiles: Any,
        send: Any,
        recv: Any,
        credit: Any,
        stored: Any,
    ) -> None:
        step, column = pl.program_id(0), pl.program_id(1)
        here, there = mod(step, 2), mod(step + 1, 2)
        me = jax.lax.axis_index("x")
        left, right = mod(me + size - 1, size), mod(me + 1, size)
        ahead, behind = (right, left), (left, right)
        source = mod(me + size - step, size), mod(me + step, size)

        def passing_on(way: np.int32) -> Any:
            return pltpu.make_async_remote_copy(
                slots.at[way, here],
                slots.at[way, there],
                send.at[way],
                recv.at[way, there],
                {"x": ahead[way]},
            )

        @pl.when((step == 0) & (column == 0))
        def _enter() -> None:
            for way in DIRECTIONS:  # as if a neighbour had sent the own rows
                pltpu.async_copy(x.at[way], slots.at[way, FIRST], recv.at[way, FIRST])
            neighbour_barrier(size)

        @pl.when(column == 0)
        def _begin_step() -> None:
            for way in DIRECTIONS:
                wait_bytes(recv.at[way, here], slots.at[way, here])

        if size > 1:

            @pl.when((column == 0) & (step > 0) & (step < size - 1))
            def _wait_until_free() -> None:
                for way in DIRECTIONS:
                    pl.semaphore_wait(credit.at[way])

            @pl.when((column == 0) & (step < size - 1))
            def _pass_on() -> None:
                for way in DIRECTIONS:
                    passing_on(way).start()

        turn = step * blocks + column
        tile = mod(turn, 2)

        @pl.when(turn >= 2)
        def _wait_until_stored() -> None:
            wait_bytes(stored.at[tile], tiles.at[tile])

        for way in DIRECTIONS:
            product = jnp.dot(slots[way, here], w[...], preferred_element_type=jnp.float32)
            tiles[tile, way] = product.astype(dtype)
            columns = pl.ds(pl.multiple_of(column * block, block), block)
            pltpu.async_copy(
                tiles.at[tile, way], o.at[source[way], way, :, columns], stored.at[tile]
            )

        if size > 1:

            @pl.when((column == blocks - 1) & (step < size - 1))
            def _passed_on() -> None:
                for way in DIRECTIONS:
                    passing_on(way).wait_send()

            @pl.when((column == blocks - 1) & (step < size - 2))
            def _grant() -> None:
                for way in DIRECTIONS:
                    pl.semaphore_signal(credit.at[way], device_id={"x": behind[way]})

        @pl.when(turn == size * blocks - 1)
        def _leave() -> None:
            for last in (FIRST, SECOND)[: size * blocks]:
                wait_bytes(stored.at[last], tiles.at[last])

    def window(step: jax.Array, column: jax.Array) -> tuple[np.int32, jax.Array]:
        return FIRST, column

    hbm = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((size, 2, half, cols), dtype),
        grid=(size, blocks),
        in_specs=[hbm, pl.BlockSpec((depth, block), window)],
        out_specs=hbm,
        scratch_shapes=[
            pltpu.VMEM((2, 2, half, depth), dtype),
            pltpu.VMEM((2, 2, half, block), dtype),
            pltpu.SemaphoreType.DMA((2,)),
            pltpu.SemaphoreType.DMA((2, 2)),
            pltpu.SemaphoreType.REGULAR((2,)),
            pltpu.SemaphoreType.DMA((2,)),
        ],
        compiler_params=pltpu.CompilerParams(collective_id=0),
        interpret=interpret,
    )

    def matmul(x: jax.Array, w: jax.Array) -> jax.Array:
        product: jax.Array = call(x.reshape(2, half, depth), w)
        return product.reshape(size * rows, cols)

    over, down = P("x", None), P(None, "x")
    fn = jax.shard_map(matmul, mesh=mesh, in_specs=(over, down), out_specs=down, check_vma=False)
    x, w = (
        # Small integers: sums of their products are exact, whatever the order.
        jax.random.randint(jax.random.key(seed), shape, -4, 5, jnp.int32).astype(dtype)
        for seed, shape in enumerate([(size * rows, depth), (depth, size * cols)])
    )
    return fn, (x, w)
