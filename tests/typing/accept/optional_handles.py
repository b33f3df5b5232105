"""Handles that may be absent: optional parameters, fields and results."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp


@dataclasses.dataclass
class Stream:
    src: sp.Ref
    dst: sp.Ref
    sem: sp.DmaSemaphore | None = None
    done: sp.Semaphore | None = None

    def run(self) -> None:
        if self.sem is None:
            sp.sync_copy(self.src, self.dst)
        else:
            sp.async_copy(self.src, self.dst, self.sem).wait()
        if self.done is not None:
            sp.signal(self.done)


def find(sems: dict[str, sp.Semaphore], name: str) -> sp.Semaphore | None:
    return sems.get(name)


def kernel(
    x: sp.Ref,
    o: sp.Ref,
    sem: sp.DmaSemaphore | None,
    done: sp.Semaphore | None,
    *,
    silent: bool,
) -> None:
    Stream(x.at[0], o.at[0]).run()
    Stream(x.at[1], o.at[1], sem, done=None if silent else done).run()
    if done is not None and not silent:
        sp.wait(done)
    found = find({} if done is None else {"done": done}, "done")
    if found is not None:
        sp.signal(found, 0)


def main() -> None:
    x = jnp.arange(256, dtype=jnp.float32).reshape(2, 128)
    for silent in (False, True):
        call = sp.pallas_call(
            functools.partial(kernel, silent=silent),
            jax.ShapeDtypeStruct(x.shape, x.dtype),
            scratch_shapes=(sp.dma_semaphore(), sp.semaphore()),
            interpret=pltpu.InterpretParams(),
        )
        np.testing.assert_array_equal(call(x), x)

    # Without the partial: an optional parameter takes what the allocator yields.
    def plain(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore | None) -> None:
        Stream(x, o, sem).run()

    call = sp.pallas_call(
        plain,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=(sp.dma_semaphore(),),
        interpret=True,
    )
    np.testing.assert_array_equal(call(x), x)
