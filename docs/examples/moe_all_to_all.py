"""All-to-all of tokens for a mixture of experts: how many go where is data, not shape.

Every device holds tokens sorted by expert, so those for one device follow each other, and knows
how many there are for each expert of each device. It sends each peer its counts and its tokens:
whole chunks, then the remainder in one copy for each binary digit that is set. Nothing else moves,
and the receiver, who has the counts by then, waits for the same pieces.

Capacity: a device never sends more tokens than it has, so with room for as many from each source
nothing is dropped, even when all tokens of all devices go to one expert. What lies beyond the
counts in the result is not written.

Why it is safe:

- Each source has a region of its own in the result, and a receive semaphore of its own there: no
  flow control is needed, and to wait for its pieces is to wait for all that it sends. The counts
  have a semaphore apart, as tokens may overtake them.
- A device leaves when all that it sent has been read and all that is meant for it is here: every
  semaphore is at zero, and nothing comes after its device has left.
- There is a barrier of all devices before the first send, which calls back to back may share.

`python docs/examples/moe_all_to_all.py` simulates four devices on the CPU, race detector on.
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

LANES = 128


class Sizes(NamedTuple):
    """What one device holds."""

    tokens: int  # at least a chunk
    features: int  # of a token; they fill whole tiles, so that a copy may begin at any token
    experts: int  # at most LANES
    chunk: int  # tokens in one copy, a power of two
    dtype: Any


SMALL = Sizes(tokens=24, features=1024, experts=2, chunk=4, dtype=jnp.float32)
PRODUCTION = Sizes(tokens=4096, features=2048, experts=8, chunk=64, dtype=jnp.bfloat16)

# Pallas cannot lower a Python int as an index of data where 64 bit types are on.
ZERO = np.int32(0)


def mod(value: jax.Array, size: int) -> jax.Array:
    """The remainder of an int32; `jax.lax.rem` takes no int beside it where 64 bit types are on."""
    return jax.lax.rem(value, np.int32(size))


def each(first: jax.Array, count: int, size: int, act: Callable[[jax.Array], None]) -> None:
    """Call `act(device)` for `count` devices of the ring, from `first` on."""

    def step(_: jax.Array, device: jax.Array) -> jax.Array:
        act(device)
        return mod(device + 1, size)

    jax.lax.fori_loop(0, count, step, first)


def in_pieces(count: jax.Array, chunk: int, act: Callable[[jax.Array, int], None]) -> None:
    """Call `act(begin, length)` for pieces of static length that make up `count` rows."""
    whole = jax.lax.div(count, np.int32(chunk))

    def step(i: jax.Array, _: None) -> None:
        act(i * chunk, chunk)

    jax.lax.fori_loop(ZERO, whole, step, None)

    def rest(begin: jax.Array, length: int) -> None:
        @pl.when(count & length != 0)
        def _rest() -> None:
            act(begin, length)

    begin, length = whole * chunk, chunk // 2
    while length:
        rest(begin, length)
        begin, length = begin + (count & length), length // 2


def rows(counts: sp.Ref, device: jax.Array, experts: int) -> jax.Array:
    """How many tokens there are for (or from) a device, over all experts."""
    total = counts[device, ZERO, ZERO]
    for expert in range(1, experts):
        total += counts[device, ZERO, np.int32(expert)]
    return total


def build(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None,
    *,
    sizes: Sizes = SMALL,
    interpret: Any = False,
) -> tuple[Callable[..., tuple[jax.Array, jax.Array]], tuple[jax.Array, ...]]:
    """The function and arguments for it, for a mesh with one axis "x" of any size."""
    assert mesh is not None
    size = mesh.shape["x"]
    tokens, features, experts, chunk, dtype = sizes
    token = (features // LANES, LANES)

    class Buffers(sp.Scratch):
        going = sp.smem((size, 1, LANES), jnp.int32)  # my counts, by destination
        coming = sp.smem((size, 1, LANES), jnp.int32)  # the counts for me, by source
        begins = sp.smem((size,), jnp.int32)  # my first token for each destination
        announced = sp.dma_semaphore()
        send = sp.dma_semaphore()
        received = sp.dma_semaphore(size)  # source

    def kernel(x: sp.Ref, counts: sp.Ref, o: sp.Ref, counts_o: sp.Ref, s: Buffers) -> None:
        me = jax.lax.axis_index("x")

        def announce(peer: jax.Array) -> None:
            sp.async_remote_copy(counts.at[peer], counts_o.at[me], s.send, s.announced, {"x": peer})

        def send_to(peer: jax.Array) -> None:
            def piece(begin: jax.Array, length: int) -> None:
                src = x.at[pl.ds(s.begins[peer] + begin, length)]
                dst = o.at[me, pl.ds(begin, length)]
                sp.async_remote_copy(src, dst, s.send, s.received.at[me], {"x": peer})

            in_pieces(rows(s.going, peer, experts), chunk, piece)

        def keep(begin: jax.Array, length: int) -> None:
            src = x.at[pl.ds(s.begins[me] + begin, length)]
            sp.async_copy(src, o.at[me, pl.ds(begin, length)], s.received.at[me])

        sp.sync_copy(counts, s.going)

        def lay_out(_: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            device, begin = at
            s.begins[device] = begin
            return device + 1, begin + rows(s.going, device, experts)

        _, total = jax.lax.fori_loop(0, size, lay_out, (ZERO, ZERO))

        sp.barrier_all("x")
        if size > 1:
            # From the next device on: so they do not all send to the same one at once.
            next_one = mod(me + 1, size)
            each(next_one, size - 1, size, announce)
            each(next_one, size - 1, size, send_to)
        sp.async_copy(counts.at[me], counts_o.at[me], s.announced)
        in_pieces(rows(s.going, me, experts), chunk, keep)

        sp.wait_bytes(s.announced, counts_o)
        sp.sync_copy(counts_o, s.coming)

        def receive(source: jax.Array) -> None:
            def piece(begin: jax.Array, length: int) -> None:
                sp.wait_bytes(s.received.at[source], o.at[source, pl.ds(begin, length)])

            in_pieces(rows(s.coming, source, experts), chunk, piece)

        each(me, size, size, receive)
        if size > 1:
            # A DMA semaphore counts bytes: what went to all peers is taken at once.
            def piece(begin: jax.Array, length: int) -> None:
                sp.wait_bytes(s.send, x.at[pl.ds(0, length)])

            in_pieces(total - rows(s.going, me, experts), chunk, piece)
            sp.wait_bytes(s.send, counts.at[pl.ds(0, size - 1)])

    hbm = pl.BlockSpec(memory_space=pl.ANY)
    call = sp.pallas_call(
        kernel,
        (
            jax.ShapeDtypeStruct((size, tokens, *token), dtype),
            jax.ShapeDtypeStruct((size, 1, LANES), jnp.int32),
        ),
        in_specs=[hbm, hbm],
        out_specs=(hbm, hbm),
        scratch_shapes=Buffers,
        compiler_params=pltpu.CompilerParams(collective_id=0),
        interpret=interpret,
    )

    def all_to_all(x: jax.Array, counts: jax.Array) -> tuple[jax.Array, jax.Array]:
        # The counts for each device in tiles of their own, so that a copy may begin at any.
        padded = jnp.pad(counts, ((0, 0), (0, LANES - experts))).reshape(size, 1, LANES)
        arrived, counts = call(x, padded)
        return arrived, counts[:, 0, :experts]

    shards = P("x"), P("x")
    fn = jax.shard_map(all_to_all, mesh=mesh, in_specs=shards, out_specs=shards, check_vma=False)
    x = jax.random.normal(jax.random.key(0), (size * tokens, *token), dtype)
    return fn, (x, random_counts(size, sizes))


def random_counts(size: int, sizes: Sizes) -> jax.Array:
    """Counts by source and destination, and expert, as of a router that likes some better."""
    generator = np.random.default_rng(0)
    many = size * sizes.experts
    choices = generator.multinomial(sizes.tokens, generator.dirichlet(np.ones(many)), size)
    return jnp.asarray(choices.reshape(size * size, sizes.experts), jnp.int32)


def expected(x: jax.Array, counts: jax.Array) -> tuple[jax.Array, jax.Array]:
    """By destination and source; zero beyond the counts."""
    size = round(len(counts) ** 0.5)
    tokens = x.reshape(size, -1, *x.shape[1:])
    table = counts.reshape(size, size, -1)
    many = table.sum(axis=2)
    result = np.zeros((size, *tokens.shape), x.dtype)
    for source in range(size):
        ends = np.cumsum(many[source])
        for destination in range(size):
            begin = ends[destination] - many[source, destination]
            mine = tokens[source, begin : ends[destination]]
            result[destination, source, : len(mine)] = mine
    arrived = jnp.asarray(result.reshape(size * size, *tokens.shape[1:]))
    return arrived, table.swapaxes(0, 1).reshape(counts.shape)


def counted(arrived: jax.Array, counts: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The result with zero beyond the counts, where the kernel writes nothing."""
    inside = jnp.arange(arrived.shape[1]) < counts.sum(axis=1, keepdims=True)
    return jnp.where(inside[..., None, None], arrived, 0), counts


def main() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("x",))
    fn, args = build(mesh, interpret=pltpu.InterpretParams(detect_races=True))
    for got, wanted in zip(counted(*jax.jit(fn)(*args)), expected(*args), strict=True):
        np.testing.assert_array_equal(got, wanted)
    print(f"all-to-all of tokens on {mesh.size} simulated devices: ok")


if __name__ == "__main__":
    main()
