"""The reference kernel, in raw Pallas, of docs/examples/moe_all_to_all.py."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

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


def all_barrier(size: int) -> None:
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


def rows(counts: Any, device: jax.Array, experts: int) -> jax.Array:
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

    def kernel(
        x: Any,
        counts: Any,
        o: Any,
        counts_o: Any,
        going: Any,
        coming: Any,
        begins: Any,
        announced: Any,
        send: Any,
        received: Any,
    ) -> None:
        me = jax.lax.axis_index("x")

        def announce(peer: jax.Array) -> None:
            pltpu.async_remote_copy(counts.at[peer], counts_o.at[me], send, announced, {"x": peer})

        def send_to(peer: jax.Array) -> None:
            def piece(begin: jax.Array, length: int) -> None:
                src = x.at[pl.ds(begins[peer] + begin, length)]
                dst = o.at[me, pl.ds(begin, length)]
                pltpu.async_remote_copy(src, dst, send, received.at[me], {"x": peer})

            in_pieces(rows(going, peer, experts), chunk, piece)

        def keep(begin: jax.Array, length: int) -> None:
            src = x.at[pl.ds(begins[me] + begin, length)]
            pltpu.async_copy(src, o.at[me, pl.ds(begin, length)], received.at[me])

        pltpu.sync_copy(counts, going)

        def lay_out(_: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            device, begin = at
            begins[device] = begin
            return device + 1, begin + rows(going, device, experts)

        _, total = jax.lax.fori_loop(0, size, lay_out, (ZERO, ZERO))

        all_barrier(size)
        if size > 1:
            # From the next device on: so they do not all send to the same one at once.
            next_one = mod(me + 1, size)
            each(next_one, size - 1, size, announce)
            each(next_one, size - 1, size, send_to)
        pltpu.async_copy(counts.at[me], counts_o.at[me], announced)
        in_pieces(rows(going, me, experts), chunk, keep)

        wait_bytes(announced, counts_o)
        pltpu.sync_copy(counts_o, coming)

        def receive(source: jax.Array) -> None:
            def piece(begin: jax.Array, length: int) -> None:
                wait_bytes(received.at[source], o.at[source, pl.ds(begin, length)])

            in_pieces(rows(coming, source, experts), chunk, piece)

        each(me, size, size, receive)
        if size > 1:
            # A DMA semaphore counts bytes: one wait takes what went to all peers.
            def piece(begin: jax.Array, length: int) -> None:
                wait_bytes(send, x.at[pl.ds(0, length)])

            in_pieces(total - rows(going, me, experts), chunk, piece)
            wait_bytes(send, counts.at[pl.ds(0, size - 1)])

    hbm = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(
        kernel,
        (
            jax.ShapeDtypeStruct((size, tokens, *token), dtype),
            jax.ShapeDtypeStruct((size, 1, LANES), jnp.int32),
        ),
        in_specs=[hbm, hbm],
        out_specs=(hbm, hbm),
        scratch_shapes=[
            pltpu.SMEM((size, 1, LANES), jnp.int32),
            pltpu.SMEM((size, 1, LANES), jnp.int32),
            pltpu.SMEM((size,), jnp.int32),
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA((size,)),
        ],
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
