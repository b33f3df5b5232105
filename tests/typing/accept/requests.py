"""What a kernel asks for: positional, by name, in classes, in groups, of raw Pallas."""

from typing import Any, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

equal = np.testing.assert_array_equal
X = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
LIKE = jax.ShapeDtypeStruct(X.shape, X.dtype)
SIMULATED = pltpu.InterpretParams()


def shaped(x: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


# Positional scratch: a tuple of requests, one parameter for each.


def two(x: sp.Ref, y: sp.Ref, o: sp.Ref, done: sp.Semaphore, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(x, o.at[0], sem).wait()
    sp.async_copy(y, o.at[1], sem).wait()
    sp.signal(done, 2)
    sp.wait(done, 2)


def six(
    x: sp.Ref,
    y: sp.Ref,
    total: sp.Ref,
    difference: sp.Ref,
    left: sp.Ref,
    right: sp.Ref,
    offsets: sp.Ref,
    fetched: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]],
    stored: sp.DmaSemaphore,
    ready: sp.Semaphore,
) -> None:
    offsets[0] = 1
    copies = [sp.async_copy(x, left, fetched.at[0]), sp.async_copy(y, right, fetched.at[1])]
    for copy in copies:
        copy.wait()
        sp.signal(ready)
    sp.wait(ready, len(copies))
    total[...] = left[...] + right[...] + offsets[0]
    left[...] -= right[...]
    sp.async_copy(left, difference, stored).wait()


def check_positional_specs() -> None:
    x = jnp.arange(1024, dtype=jnp.int32).reshape(8, 128)
    y = x[::-1]
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    pair = jax.ShapeDtypeStruct((2, *x.shape), x.dtype)

    both = sp.pallas_call(
        two, pair, scratch_shapes=(sp.semaphore(), sp.dma_semaphore()), interpret=True
    )(x, y)
    equal(both, jnp.stack([x, y]))

    hbm = pl.BlockSpec(memory_space=pl.ANY)
    total, difference = sp.pallas_call(
        six,
        (like, like),
        in_specs=[hbm, hbm],
        out_specs=(pl.BlockSpec(), hbm),
        scratch_shapes=(
            sp.vmem(x.shape, x.dtype),
            sp.vmem(x.shape, x.dtype),
            sp.smem((1,), jnp.int32),
            sp.dma_semaphore(2),
            sp.dma_semaphore(),
            sp.semaphore(),
        ),
        interpret=SIMULATED,
    )(x, y)
    equal(total, x + y + 1)
    equal(difference, x - y)


# Scratch by keyword: a dict of requests, a keyword-only parameter for each.
def kernel(x: sp.Ref, o: sp.Ref, *, acc: sp.Ref, sem: sp.DmaSemaphore, done: sp.Semaphore) -> None:
    sp.async_copy(x, acc, sem).wait()
    sp.signal(done)
    o[...] = acc[...] * 3.0
    sp.wait(done)


def check_dict_scratch() -> None:
    call = sp.pallas_call(
        kernel,
        LIKE,
        scratch_shapes={
            "acc": sp.vmem((8, 128), jnp.float32),
            "sem": sp.dma_semaphore(),
            "done": sp.semaphore(),
        },
        interpret=True,
    )
    equal(call(X), X * 3)


# Scratch in groups: tuples and dicts of requests inside the tuple.
class Counters(TypedDict):
    begun: sp.Semaphore
    ended: sp.Semaphore


def grouped(
    x: sp.Ref,
    o: sp.Ref,
    copy: tuple[sp.Ref, sp.DmaSemaphore],
    counters: Counters,
    extra: sp.DmaSemaphore,
) -> None:
    buffer, sem = copy
    sp.signal(counters["begun"])
    sp.async_copy(x, buffer, sem).wait()
    sp.async_copy(buffer, o, extra).wait()
    sp.signal(counters["ended"])
    for counter in (counters["begun"], counters["ended"]):
        sp.wait(counter)


def spec_first(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, rest: tuple[sp.Ref, sp.Ref]) -> None:
    first, second = rest
    sp.async_copy(x, first, sem).wait()
    second[...] = first[...] + 1.0
    sp.async_copy(second, o, sem).wait()


def check_nested_scratch() -> None:
    buffer = sp.vmem(X.shape, X.dtype)
    call = sp.pallas_call(
        grouped,
        LIKE,
        scratch_shapes=(
            (buffer, sp.dma_semaphore()),
            {"begun": sp.semaphore(), "ended": sp.semaphore()},
            sp.dma_semaphore(),
        ),
        interpret=True,
    )
    equal(call(X), X)
    call = sp.pallas_call(
        spec_first, LIKE, scratch_shapes=(sp.dma_semaphore(), (buffer, buffer)), interpret=True
    )
    equal(call(X), X + 1)


CHUNKS, ROWS, COLS = 4, 8, 128


# A Scratch that extends another, and helpers that take any Scratch with the base's fields.
class Fetch(sp.Scratch):
    """What every kernel of the family needs."""

    page = sp.vmem((8, 128), jnp.float32)
    arrived = sp.dma_semaphore()

    def fetch(self, src: sp.Ref) -> jax.Array:
        sp.async_copy(src, self.page, self.arrived).wait()
        return self.page[...]


class FetchAndStore(Fetch):
    result = sp.vmem((8, 128), jnp.float32)
    stored = sp.dma_semaphore()
    steps = sp.semaphore()


def bare(s: Fetch, x: sp.Ref) -> jax.Array:
    return s.fetch(x)


def read_only(x: sp.Ref, o: sp.Ref, s: Fetch) -> None:
    o[...] = bare(s, x)


def both(x: sp.Ref, o: sp.Ref, s: FetchAndStore) -> None:
    s.result[...] = bare(s, x) + 1.0
    sp.signal(s.steps)
    sp.async_copy(s.result, o, s.stored).wait()
    sp.wait(s.steps)


def check_scratch_subclasses() -> None:
    params = pltpu.InterpretParams()
    small = sp.pallas_call(read_only, LIKE, scratch_shapes=Fetch, interpret=params)
    equal(small(X), X)
    large = sp.pallas_call(both, LIKE, scratch_shapes=FetchAndStore, interpret=params)
    equal(large(X), X + 1)
    # A kernel written for the base takes the subclass.
    wide = sp.pallas_call(read_only, LIKE, scratch_shapes=FetchAndStore, interpret=params)
    equal(wide(X), X)


# A Scratch defined where the sizes are known: inside the function that builds the call.
def reverse_chunks(x: jax.Array, *, slots: int) -> jax.Array:
    chunks, *block = x.shape

    class Buffers(sp.Scratch):
        window = sp.vmem((slots, *block), x.dtype)
        arrived = sp.dma_semaphore(slots)
        stored = sp.dma_semaphore(slots)

    def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
        def step(i: jax.Array, carry: None) -> None:
            slot = jax.lax.rem(i, slots)
            sp.async_copy(x.at[i], s.window.at[slot], s.arrived.at[slot]).wait()
            sp.async_copy(s.window.at[slot], o.at[chunks - 1 - i], s.stored.at[slot]).wait()
            return carry

        jax.lax.fori_loop(0, chunks, step, None)

    result: jax.Array = sp.pallas_call(
        kernel, shaped(x), scratch_shapes=Buffers, interpret=SIMULATED
    )(x)
    return result


def check_runtime_sizes() -> None:
    for chunks, slots in ((3, 2), (4, 3)):
        x = jnp.arange(chunks * 1024, dtype=jnp.float32).reshape(chunks, 8, 128)
        equal(reverse_chunks(x, slots=slots), x[::-1])


# Requests of raw Pallas beside those of safepallas, as in a kernel that is being moved over.
def raw_requests(x: sp.Ref, o: sp.Ref, acc: Any, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(x, acc, sem).wait()
    o[...] = acc[...] + 1


def annotated(x: sp.Ref, o: sp.Ref, acc: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.sync_copy(x, acc)
    sp.async_copy(acc, o, sem).wait()


def check_raw_requests() -> None:
    x = jnp.ones((8, 128), jnp.int32)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    scratch = (pltpu.VMEM(x.shape, x.dtype), sp.dma_semaphore())
    plus_one = sp.pallas_call(raw_requests, like, scratch_shapes=scratch, interpret=True)(x)
    equal(plus_one, x + 1)
    same = sp.pallas_call(
        annotated,
        like,
        scratch_shapes=(pltpu.VMEM(x.shape, x.dtype), sp.dma_semaphore()),
        interpret=True,
    )(x)
    equal(same, x)
