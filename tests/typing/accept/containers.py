"""Handles in dataclasses, NamedTuples, dicts and lists."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp


@dataclasses.dataclass(frozen=True)
class Channel:
    """One stream of data: where from, where to, and what says that it has come."""

    src: sp.Ref
    dst: sp.Ref
    sem: sp.DmaSemaphore

    def copy(self, row: int) -> sp.LocalCopy:
        return sp.make_async_copy(self.src.at[row], self.dst.at[row], self.sem)


class Credits(NamedTuple):
    given: sp.Semaphore
    taken: sp.SemaphoreArray[sp.Semaphore, tuple[int]]


def kernel(
    q: sp.Ref,
    k: sp.Ref,
    q_out: sp.Ref,
    k_out: sp.Ref,
    sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]],
    given: sp.Semaphore,
    taken: sp.SemaphoreArray[sp.Semaphore, tuple[int]],
) -> None:
    channels = {
        "q": Channel(q, q_out, sems.at[0]),
        "k": Channel(k, k_out, sems.at[1]),
    }
    credits = Credits(given, taken)
    by_name: dict[str, sp.Semaphore] = {"q": credits.taken.at[0], "k": credits.taken.at[1]}
    started: list[sp.LocalCopy] = []
    for name, channel in channels.items():
        for row in range(2):
            copy = channel.copy(row)
            copy.start()
            started.append(copy)
            sp.signal(by_name[name])
        sp.signal(credits.given, 2)
    for copy in started:
        copy.wait()
    for sem in by_name.values():
        sp.wait(sem, 2)
    total, _ = credits
    sp.wait(total, len(started))


def main() -> None:
    q = jnp.arange(256, dtype=jnp.float32).reshape(2, 128)
    k = -q
    like = jax.ShapeDtypeStruct(q.shape, q.dtype)
    call = sp.pallas_call(
        kernel,
        (like, like),
        scratch_shapes=(sp.dma_semaphore(2), sp.semaphore(), sp.semaphore(2)),
        interpret=pltpu.InterpretParams(),
    )
    q_out, k_out = call(q, k)
    np.testing.assert_array_equal(q_out, q)
    np.testing.assert_array_equal(k_out, k)
