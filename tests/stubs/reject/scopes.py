"""Bodies that expect another ref than the scope allocates."""

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas.raw import DmaSemaphoreRef, Ref, SemaphoreArrayRef, SemaphoreRef


def one(sem: DmaSemaphoreRef) -> int:
    return 1


def two(buffer: Ref, sem: DmaSemaphoreRef) -> None:
    pltpu.sync_copy(buffer, buffer)


def row(sems: SemaphoreArrayRef[DmaSemaphoreRef, tuple[int]]) -> None:
    pl.semaphore_read(sems.at[0])


def scopes() -> None:
    pl.run_scoped(one, pltpu.SemaphoreType.REGULAR)  # E: a regular semaphore
    pl.run_scoped(one, pltpu.SemaphoreType.BARRIER)  # E: the barrier
    pl.run_scoped(one, pltpu.SemaphoreType.DMA((2,)))  # E: two semaphores
    pl.run_scoped(row, pltpu.SemaphoreType.DMA)  # E: one semaphore
    pl.run_scoped(row, pltpu.SemaphoreType.DMA(()))  # E: one semaphore
    pl.run_scoped(row, pltpu.SemaphoreType.DMA((2, 2)))  # E: of rank 2
    pl.run_scoped(row, pltpu.SemaphoreType.REGULAR((2,)))  # E: regular ones
    pl.run_scoped(two, pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.REGULAR)  # E: regular
    pl.run_scoped(one, "banana")  # E: no request
    pl.run_scoped(one, pltpu.VMEM)  # E: not called
    pl.run_scoped("banana", pltpu.SemaphoreType.DMA)  # E: no body
    text: str = pl.run_scoped(one, pltpu.SemaphoreType.DMA)  # E: the body returns an int
    pltpu.SemaphoreType.DMA(2)  # E: a shape is a tuple
    print(pltpu.SemaphoreType.OTHER)  # E: no such kind
    print(text)

    @pl.with_scoped(pltpu.SemaphoreType.DMA)  # E: a regular semaphore is expected
    def signal_one(sem: SemaphoreRef) -> None:
        pl.semaphore_signal(sem)

    @pl.with_scoped(pltpu.SemaphoreType.REGULAR)
    def count(amount: int, sem: SemaphoreRef) -> int:
        pl.semaphore_signal(sem, amount)
        return amount

    count("banana")  # E: the argument is an int
    count()  # E: and is needed
    pl.with_scoped("banana")  # E: no request
