"""The reference kernel, in raw Pallas, of docs/examples/paged_attention.py."""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

GROUP, HEAD = 8, 128  # query heads to a KV head; elements to a head
PAGE, BLOCK_PAGES = 16, 8  # tokens to a page; pages to a block
BLOCK = PAGE * BLOCK_PAGES

LENGTHS = (300, 1, 0, 100, 128)  # tokens of the sequences that `build` makes
KV_HEADS, POOL = 2, 48

# Of the scores so far: their maximum, the sum of their weights, the values so weighted.
Running: TypeAlias = tuple[jax.Array, jax.Array, jax.Array]


def kernel(
    lengths: Any,
    table: Any,
    q: Any,
    k_pages: Any,
    v_pages: Any,
    o: Any,
    keys: Any,
    values: Any,
    arrived: Any,
    turn: Any,
) -> None:
    sequence, head = pl.program_id(0), pl.program_id(1)
    sequences, heads = pl.num_programs(0), pl.num_programs(1)
    length = lengths[sequence]
    blocks = pl.cdiv(length, BLOCK)

    def pages_of(sequence: jax.Array, block: jax.Array) -> jax.Array:
        left = pl.cdiv(lengths[sequence], PAGE) - block * BLOCK_PAGES
        return jnp.minimum(left, BLOCK_PAGES)

    def start(sequence: jax.Array, head: jax.Array, block: jax.Array, slot: jax.Array) -> None:
        def page(i: jax.Array, carry: None) -> None:
            where = table[sequence, block * BLOCK_PAGES + i]
            for pool, buffer in ((k_pages, keys), (v_pages, values)):
                pltpu.async_copy(pool.at[head, where], buffer.at[slot, i], arrived.at[slot])

        jax.lax.fori_loop(0, pages_of(sequence, block), page, None)

    def wait(block: jax.Array, slot: jax.Array) -> None:
        count = pages_of(sequence, block)
        sem = arrived.at[slot]

        @pl.when(count == BLOCK_PAGES)
        def _all() -> None:
            for buffer in (keys, values):
                like = buffer.at[slot]
                pltpu.make_async_copy(like, like, sem).wait()

        @pl.when(count < BLOCK_PAGES)
        def _some() -> None:
            def page(i: jax.Array, carry: None) -> None:
                for buffer in (keys, values):
                    like = buffer.at[slot, i]
                    pltpu.make_async_copy(like, like, sem).wait()

            jax.lax.fori_loop(0, count, page, None)

    def prefetch(block: jax.Array, slot: jax.Array) -> None:
        @pl.when(block < blocks)
        def _here() -> None:
            start(sequence, head, block, slot)

        last_head = head + 1 == heads
        following = sequence + last_head.astype(jnp.int32)

        @pl.when((block == blocks) & (following < sequences))
        def _next_step() -> None:
            start(following, jnp.where(last_head, 0, head + 1), jnp.int32(0), slot)

    @pl.when((sequence == 0) & (head == 0))
    def _first_step() -> None:
        turn[0] = jnp.int32(0)
        start(sequence, head, jnp.int32(0), jnp.int32(0))

    first = turn[0]

    @pl.when(blocks == 0)
    def _pass_on() -> None:
        prefetch(jnp.int32(0), first)

    def attend(block: jax.Array, so_far: Running) -> Running:
        slot = jax.lax.rem(first + block, 2)
        prefetch(block + 1, 1 - slot)
        wait(block, slot)
        k = keys[slot].reshape(BLOCK, HEAD)
        v = values[slot].reshape(BLOCK, HEAD)
        left = length - block * BLOCK
        scores = dot(q[...], k, contract=1) * HEAD**-0.5
        scores = jnp.where(positions(scores, 1) < left, scores, -jnp.inf)
        v = jnp.where(positions(v, 0) < left, v, 0)
        return fold(scores, v, so_far)

    column = jnp.zeros((GROUP, 1), jnp.float32)
    nothing = column - jnp.inf, column, jnp.zeros((GROUP, HEAD), jnp.float32)
    _, total, acc = jax.lax.fori_loop(0, blocks, attend, nothing)
    o[...] = (acc / jnp.maximum(total, 1.0)).astype(o.dtype)  # at least 1 where there is a token
    turn[0] = jax.lax.rem(first + blocks, 2)


def fold(scores: jax.Array, values: jax.Array, so_far: Running) -> Running:
    highest, total, acc = so_far
    now_highest = jnp.maximum(highest, scores.max(axis=1, keepdims=True))
    fade = jnp.exp(highest - now_highest)
    weights = jnp.exp(scores - now_highest)
    total = fade * total + weights.sum(axis=1, keepdims=True)
    acc = fade * acc + dot(weights.astype(values.dtype), values, contract=0)
    return now_highest, total, acc


def dot(a: jax.Array, b: jax.Array, *, contract: int) -> jax.Array:
    dimensions = (((1,), (contract,)), ((), ()))
    return jax.lax.dot_general(a, b, dimensions, preferred_element_type=jnp.float32)


def positions(x: jax.Array, axis: int) -> jax.Array:
    return jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)


def window(sequence: jax.Array, head: jax.Array, *_: Any) -> tuple[Any, ...]:
    return sequence, head, 0, 0


def paged_attention(
    lengths: jax.Array,
    table: jax.Array,
    q: jax.Array,
    k_pages: jax.Array,
    v_pages: jax.Array,
    *,
    interpret: Any = False,
) -> jax.Array:
    block = pl.BlockSpec((None, None, GROUP, HEAD), window)
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(q.shape, q.dtype),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=2,
            grid=q.shape[:2],
            in_specs=[block, hbm, hbm],
            out_specs=block,
            scratch_shapes=[
                pltpu.VMEM((2, BLOCK_PAGES, PAGE, HEAD), jnp.bfloat16),
                pltpu.VMEM((2, BLOCK_PAGES, PAGE, HEAD), jnp.bfloat16),
                pltpu.SemaphoreType.DMA((2,)),
                pltpu.SMEM((1,), jnp.int32),
            ],
        ),
        interpret=interpret,
    )
    # A TPU core has no 64 bit types, whatever the caller has.
    with jax.enable_x64(False):
        result: jax.Array = call(lengths, table, q, k_pages, v_pages)
    return result


def inputs(lengths: tuple[int, ...], kv_heads: int, pool: int) -> tuple[jax.Array, ...]:
    counts = [-(-length // PAGE) for length in lengths]
    order = np.random.default_rng(0).permutation(pool)
    table, taken = np.full((len(lengths), max(1, *counts)), -1, np.int32), 0
    for row, count in zip(table, counts, strict=True):
        row[:count] = order[taken : taken + count]
        taken += count
    q, k, v = jax.random.split(jax.random.key(0), 3)
    shape = (kv_heads, pool, PAGE, HEAD)
    return (
        jnp.array(lengths, jnp.int32),
        jnp.array(table),
        2 * jax.random.normal(q, (len(lengths), kv_heads, GROUP, HEAD), jnp.bfloat16),
        jax.random.normal(k, shape, jnp.bfloat16),
        jax.random.normal(v, shape, jnp.bfloat16),
    )


def build(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None, *, interpret: Any = False
) -> tuple[Callable[..., jax.Array], tuple[jax.Array, ...]]:

    def call(*args: jax.Array) -> jax.Array:
        return paged_attention(*args, interpret=interpret)

    return call, inputs(LENGTHS, KV_HEADS, POOL)
