"""Attention of one new token per sequence over keys and values that stand in pages (decoding).

A sequence's keys and values are scattered over a pool of pages in HBM; a prefetched table says
which. One grid step per sequence and KV head fetches them block by block, `BLOCK_PAGES` pages of
keys and as many of values at a time, into one of two slots in VMEM, and folds each block into a
running softmax. While it works on one block the next is on its way, and during the last block the
first one of the next grid step: only the very first fetch is not hidden.

- All copies of a block share the DMA semaphore of its slot, `arrived[slot]`. It counts bytes: a
  whole block is waited for in bulk, the pages of a part of one each by `sp.wait_bytes`. The
  objects that started the copies are long gone, in the step before at times.
- Sequences need different numbers of blocks. So the slot of a step's first block is not a matter
  of the grid: it is handed on in `turn`, in SMEM.
- Only pages that the sequence has are fetched. What stands in a slot, or in a page, past its
  length is never read, be it NaN.
- A sequence of length 0 is allowed: its result is 0, and it passes on the fetch for the next.

The grid steps depend on each other, so the grid must run in order, on one core: leave
`dimension_semantics` alone.

`python docs/examples/paged_attention.py` runs it on the CPU, race detector on.
"""

import os
from collections.abc import Callable
from typing import Any, TypeAlias

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

GROUP, HEAD = 8, 128  # query heads to a KV head; elements to a head
PAGE, BLOCK_PAGES = 16, 8  # tokens to a page; pages to a block
BLOCK = PAGE * BLOCK_PAGES

LENGTHS = (300, 1, 0, 100, 128)  # tokens of the sequences that `build` makes
KV_HEADS, POOL = 2, 48

# Of the scores so far: their maximum, the sum of their weights, the values so weighted.
Running: TypeAlias = tuple[jax.Array, jax.Array, jax.Array]


class Buffers(sp.Scratch):
    keys = sp.vmem((2, BLOCK_PAGES, PAGE, HEAD), jnp.bfloat16)
    values = sp.vmem((2, BLOCK_PAGES, PAGE, HEAD), jnp.bfloat16)
    arrived = sp.dma_semaphore(2)
    turn = sp.smem((1,), jnp.int32)


def kernel(
    lengths: sp.Ref,
    table: sp.Ref,
    q: sp.Ref,
    k_pages: sp.Ref,
    v_pages: sp.Ref,
    o: sp.Ref,
    s: Buffers,
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
            for pool, buffer in ((k_pages, s.keys), (v_pages, s.values)):
                sp.async_copy(pool.at[head, where], buffer.at[slot, i], s.arrived.at[slot])

        jax.lax.fori_loop(0, pages_of(sequence, block), page, None)

    def wait(block: jax.Array, slot: jax.Array) -> None:
        arrived, count = s.arrived.at[slot], pages_of(sequence, block)

        @pl.when(count == BLOCK_PAGES)
        def _all() -> None:
            sp.wait_bytes(arrived, s.keys.at[slot])
            sp.wait_bytes(arrived, s.values.at[slot])

        @pl.when(count < BLOCK_PAGES)
        def _some() -> None:
            def page(i: jax.Array, carry: None) -> None:
                sp.wait_bytes(arrived, s.keys.at[slot, i])
                sp.wait_bytes(arrived, s.values.at[slot, i])

            jax.lax.fori_loop(0, count, page, None)

    def prefetch(block: jax.Array, slot: jax.Array) -> None:
        """Start this block, or where there are no more the first one of the next grid step."""

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
        s.turn[0] = jnp.int32(0)
        start(sequence, head, jnp.int32(0), jnp.int32(0))

    turn = s.turn[0]

    @pl.when(blocks == 0)
    def _pass_on() -> None:
        prefetch(jnp.int32(0), turn)

    def attend(block: jax.Array, so_far: Running) -> Running:
        slot = jax.lax.rem(turn + block, 2)
        prefetch(block + 1, 1 - slot)
        wait(block, slot)
        keys = s.keys[slot].reshape(BLOCK, HEAD)
        values = s.values[slot].reshape(BLOCK, HEAD)
        left = length - block * BLOCK
        scores = dot(q[...], keys, contract=1) * HEAD**-0.5
        scores = jnp.where(positions(scores, 1) < left, scores, -jnp.inf)
        # Also the values: a weight of 0 would not save us from a NaN.
        values = jnp.where(positions(values, 0) < left, values, 0)
        return fold(scores, values, so_far)

    column = jnp.zeros((GROUP, 1), jnp.float32)
    nothing = column - jnp.inf, column, jnp.zeros((GROUP, HEAD), jnp.float32)
    _, total, acc = jax.lax.fori_loop(0, blocks, attend, nothing)
    o[...] = (acc / jnp.maximum(total, 1.0)).astype(o.dtype)  # at least 1 where there is a token
    s.turn[0] = jax.lax.rem(turn + blocks, 2)


def fold(scores: jax.Array, values: jax.Array, so_far: Running) -> Running:
    highest, total, acc = so_far
    now_highest = jnp.maximum(highest, scores.max(axis=1, keepdims=True))
    fade = jnp.exp(highest - now_highest)
    weights = jnp.exp(scores - now_highest)
    total = fade * total + weights.sum(axis=1, keepdims=True)
    acc = fade * acc + dot(weights.astype(values.dtype), values, contract=0)
    return now_highest, total, acc


def dot(a: jax.Array, b: jax.Array, *, contract: int) -> jax.Array:
    """The product over the last axis of `a` and this one of `b`, in float32."""
    dimensions = (((1,), (contract,)), ((), ()))
    return jax.lax.dot_general(a, b, dimensions, preferred_element_type=jnp.float32)


def positions(x: jax.Array, axis: int) -> jax.Array:
    return jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)


def window(sequence: jax.Array, head: jax.Array, *_: sp.Ref) -> tuple[Any, ...]:
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
    """For each new token: the values of its sequence, weighted by the softmax of q @ k.

    Args:
        lengths: int32[sequences]: tokens in the cache, from 0 to ``table.shape[1] * PAGE``.
        table: int32[sequences, most pages]: the pages of each sequence, in order. What stands
            past its length is not read.
        q: bfloat16[sequences, KV heads, GROUP, HEAD]
        k_pages: bfloat16[KV heads, pages, PAGE, HEAD]
        v_pages: the same.

    Returns:
        As `q`; zeros for a sequence of length 0.
    """
    block = pl.BlockSpec((None, None, GROUP, HEAD), window)
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(q.shape, q.dtype),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=2,
            grid=q.shape[:2],
            in_specs=[block, hbm, hbm],
            out_specs=block,
        ),
        scratch_shapes=Buffers,
        interpret=interpret,
    )
    # A TPU core has no 64 bit types, whatever the caller has.
    with jax.enable_x64(False):
        result: jax.Array = call(lengths, table, q, k_pages, v_pages)
    return result


def inputs(lengths: tuple[int, ...], kv_heads: int, pool: int) -> tuple[jax.Array, ...]:
    """Sequences of these lengths, whose pages lie anywhere in a pool of that many."""
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
    """The function and arguments for it. It runs on one device: no mesh is needed."""

    def call(*args: jax.Array) -> jax.Array:
        return paged_attention(*args, interpret=interpret)

    return call, inputs(LENGTHS, KV_HEADS, POOL)


def expected(
    lengths: jax.Array, table: jax.Array, q: jax.Array, k_pages: jax.Array, v_pages: jax.Array
) -> jax.Array:
    """The same in plain JAX, in float32: gather every page of every table, then attend."""
    used = jnp.arange(table.shape[1] * PAGE) < lengths[:, None]

    def gather(pages: jax.Array) -> jax.Array:
        tokens = pages[:, table].astype(jnp.float32)
        tokens = tokens.reshape(pages.shape[0], *used.shape, HEAD)
        return jnp.where(used[..., None], tokens, 0.0)

    scores = jnp.einsum("bhgd,hbtd->bhgt", q.astype(jnp.float32), gather(k_pages)) * HEAD**-0.5
    weights = jax.nn.softmax(jnp.where(used[:, None, None], scores, -1e30), axis=-1)
    out = jnp.einsum("bhgt,hbtd->bhgd", weights, gather(v_pages))
    return out.astype(q.dtype)


def main() -> None:
    fn, args = build(interpret=pltpu.InterpretParams(detect_races=True))
    got, wanted = (np.asarray(x, np.float32) for x in (jax.jit(fn)(*args), expected(*args)))
    np.testing.assert_allclose(got, wanted, atol=0.02)
    print(f"paged attention over {list(LENGTHS)} tokens, prefetched: ok")


if __name__ == "__main__":
    main()
