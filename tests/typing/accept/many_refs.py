"""More refs than most kernels have, and more requests than the checkers match with parameters."""

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp

SEVEN = (
    sp.dma_semaphore(),
    sp.dma_semaphore(2),
    sp.semaphore(),
    sp.semaphore(2),
    sp.vmem((8, 128), jnp.float32),
    sp.vmem((8, 128), jnp.float32),
    sp.smem((1,), jnp.int32),
)


class Buffers(sp.Scratch):
    sem = sp.dma_semaphore()


def last_of_nine(
    a: sp.Ref,
    b: sp.Ref,
    c: sp.Ref,
    d: sp.Ref,
    e: sp.Ref,
    f: sp.Ref,
    g: sp.Ref,
    x: sp.Ref,
    o: sp.Ref,
    sem: sp.DmaSemaphore,
) -> None:
    del a, b, c, d, e, f, g
    sp.async_copy(x, o, sem).wait()


def named(
    a: sp.Ref,
    b: sp.Ref,
    c: sp.Ref,
    d: sp.Ref,
    e: sp.Ref,
    f: sp.Ref,
    g: sp.Ref,
    x: sp.Ref,
    o: sp.Ref,
    s: Buffers,
) -> None:
    last_of_nine(a, b, c, d, e, f, g, x, o, s.sem)


def seven(
    x: sp.Ref,
    o: sp.Ref,
    sem: sp.DmaSemaphore,
    slots: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]],
    ready: sp.Semaphore,
    free: sp.SemaphoreArray[sp.Semaphore, tuple[int]],
    left: sp.Ref,
    right: sp.Ref,
    count: sp.Ref,
) -> None:
    del ready, free, right, count
    sp.async_copy(x, left, sem).wait()
    sp.async_copy(left, o, slots.at[1]).wait()


def scoped(x: sp.Ref, o: sp.Ref) -> None:
    def body(
        sem: sp.DmaSemaphore,
        slots: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]],
        ready: sp.Semaphore,
        free: sp.SemaphoreArray[sp.Semaphore, tuple[int]],
        left: sp.Ref,
        right: sp.Ref,
        count: sp.Ref,
    ) -> None:
        seven(x, o, sem, slots, ready, free, left, right, count)

    sp.run_scoped(body, *SEVEN)
    sp.with_scoped(*SEVEN)(seven)(x, o)


def main() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    inputs = [x * i for i in range(7)] + [x]
    calls = [
        sp.pallas_call(last_of_nine, like, scratch_shapes=(sp.dma_semaphore(),), interpret=True),
        sp.pallas_call(named, like, scratch_shapes=Buffers, interpret=True),
    ]
    for call in calls:
        np.testing.assert_array_equal(call(*inputs), x)
    matched = sp.pallas_call(seven, like, scratch_shapes=SEVEN, interpret=True)
    np.testing.assert_array_equal(matched(x), x)
    np.testing.assert_array_equal(sp.pallas_call(scoped, like, interpret=True)(x), x)
