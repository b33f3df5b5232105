"""Scratch in groups: tuples and dicts of requests inside the tuple."""

from typing import TypedDict

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp


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


def main() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    buffer = sp.vmem(x.shape, x.dtype)
    call = sp.pallas_call(
        grouped,
        like,
        scratch_shapes=(
            (buffer, sp.dma_semaphore()),
            {"begun": sp.semaphore(), "ended": sp.semaphore()},
            sp.dma_semaphore(),
        ),
        interpret=True,
    )
    np.testing.assert_array_equal(call(x), x)
    call = sp.pallas_call(
        spec_first, like, scratch_shapes=(sp.dma_semaphore(), (buffer, buffer)), interpret=True
    )
    np.testing.assert_array_equal(call(x), x + 1)
