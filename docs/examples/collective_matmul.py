"""Collective matmul: all-gather of the left operand, overlapped with the product that needs it.

Device d holds some rows of the left operand and some columns of the right one, and computes all
rows of its columns. The rows travel round the ring in two halves, one to the right and one to the
left, so that both directions of every link are busy. In step k a device multiplies the halves that
set out k devices away, while it passes them on. The columns go by in blocks, one to a grid step,
fetched by Pallas itself.

Why it is safe, for each of the two directions:

- Step k works on slot k % 2 of two. A half arrives in the slot that the step before worked on, so
  nobody sends into it without a credit, which the receiver grants at the end of that step: product
  computed, half passed on. The first send needs none. As many credits are granted as are taken
  (n - 2): none is left over, and none comes after its taker has gone.
- Each slot has a receive semaphore of its own. Halves for the two slots can be on their way at
  once, in any order; two for the same slot cannot, as the credit for the second is granted after
  the wait for the first.
- There is a barrier of neighbours before the first send, which calls back to back may share. A
  device leaves when all that it sent has been read and all that is meant for it is here.

`python docs/examples/collective_matmul.py` simulates four devices on the CPU, race detector on.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

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

    class Buffers(sp.Scratch):
        slots = sp.vmem((2, 2, half, depth), dtype)  # direction, slot
        tiles = sp.vmem((2, 2, half, block), dtype)  # slot, direction
        send = sp.dma_semaphore(2)  # direction
        recv = sp.dma_semaphore(2, 2)  # direction, slot
        credit = sp.semaphore(2)  # direction
        stored = sp.dma_semaphore(2)  # slot of the tiles

    def kernel(x: sp.Ref, w: sp.Ref, o: sp.Ref, s: Buffers) -> None:
        step, column = pl.program_id(0), pl.program_id(1)
        here, there = mod(step, 2), mod(step + 1, 2)
        me = jax.lax.axis_index("x")
        left, right = mod(me + size - 1, size), mod(me + 1, size)
        ahead, behind = (right, left), (left, right)
        source = mod(me + size - step, size), mod(me + step, size)

        def passing_on(way: np.int32) -> sp.RemoteCopy:
            return sp.make_async_remote_copy(
                s.slots.at[way, here],
                s.slots.at[way, there],
                s.send.at[way],
                s.recv.at[way, there],
                {"x": ahead[way]},
            )

        @pl.when((step == 0) & (column == 0))
        def _enter() -> None:
            for way in DIRECTIONS:  # as if the own halves were from a neighbour
                sp.async_copy(x.at[way], s.slots.at[way, FIRST], s.recv.at[way, FIRST])
            sp.barrier_neighbors("x")

        @pl.when(column == 0)
        def _begin_step() -> None:
            for way in DIRECTIONS:
                sp.wait_bytes(s.recv.at[way, here], s.slots.at[way, here])

        if size > 1:

            @pl.when((column == 0) & (step > 0) & (step < size - 1))
            def _wait_until_free() -> None:
                for way in DIRECTIONS:
                    sp.wait(s.credit.at[way])

            @pl.when((column == 0) & (step < size - 1))
            def _pass_on() -> None:
                for way in DIRECTIONS:
                    passing_on(way).start()

        turn = step * blocks + column
        tile = mod(turn, 2)

        @pl.when(turn >= 2)
        def _wait_until_stored() -> None:
            sp.wait_bytes(s.stored.at[tile], s.tiles.at[tile])

        for way in DIRECTIONS:
            product = jnp.dot(s.slots[way, here], w[...], preferred_element_type=jnp.float32)
            s.tiles[tile, way] = product.astype(dtype)
            columns = pl.ds(pl.multiple_of(column * block, block), block)
            sp.async_copy(
                s.tiles.at[tile, way], o.at[source[way], way, :, columns], s.stored.at[tile]
            )

        if size > 1:

            @pl.when((column == blocks - 1) & (step < size - 1))
            def _passed_on() -> None:
                for way in DIRECTIONS:
                    passing_on(way).wait_send()

            @pl.when((column == blocks - 1) & (step < size - 2))
            def _grant() -> None:
                for way in DIRECTIONS:
                    sp.signal(s.credit.at[way], device_id={"x": behind[way]})

        @pl.when(turn == size * blocks - 1)
        def _leave() -> None:
            for last in (FIRST, SECOND)[: size * blocks]:
                sp.wait_bytes(s.stored.at[last], s.tiles.at[last])

    def window(step: jax.Array, column: jax.Array) -> tuple[np.int32, jax.Array]:
        return FIRST, column

    hbm = pl.BlockSpec(memory_space=pl.ANY)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((size, 2, half, cols), dtype),
        grid=(size, blocks),
        in_specs=[hbm, pl.BlockSpec((depth, block), window)],
        out_specs=hbm,
        scratch_shapes=Buffers,
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


def expected(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.dot(x, w, preferred_element_type=jnp.float32).astype(x.dtype)


def main() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("x",))
    fn, args = build(mesh, interpret=pltpu.InterpretParams(detect_races=True))
    np.testing.assert_array_equal(jax.jit(fn)(*args), expected(*args))
    print(f"collective matmul on {mesh.size} simulated devices: ok")


if __name__ == "__main__":
    main()
