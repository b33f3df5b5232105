"""The fields of a Scratch, on the class and on an instance."""

from typing import assert_type

import jax.numpy as jnp

import safepallas as sp

SLOTS = 2


class Base(sp.Scratch):
    send = sp.dma_semaphore()
    recv = sp.dma_semaphore(SLOTS, 3)
    acc = sp.vmem((8, 128), jnp.float32)


class Buffers(Base):
    ready = sp.semaphore()
    barrier = sp.barrier_semaphore(1)
    flags = sp.smem((4,), jnp.int32)
    grid = sp.semaphore(2, 2, 2, 2)


assert_type(Buffers.send, sp.Spec[sp.DmaSemaphore])
assert_type(Base.recv, sp.Spec[sp.SemaphoreArray[sp.DmaSemaphore, tuple[int, int]]])
assert_type(Buffers.ready, sp.Spec[sp.Semaphore])
assert_type(Buffers.flags, sp.Spec[sp.Ref])


def on_instance(s: Buffers, base: Base) -> None:
    assert_type(s.send, sp.DmaSemaphore)
    assert_type(s.recv, sp.SemaphoreArray[sp.DmaSemaphore, tuple[int, int]])
    assert_type(s.recv.at[0, 1], sp.DmaSemaphore)
    assert_type(s.acc, sp.Ref)
    assert_type(s.ready, sp.Semaphore)
    assert_type(s.barrier, sp.SemaphoreArray[sp.BarrierSemaphore, tuple[int]])
    assert_type(s.barrier[0], sp.BarrierSemaphore)
    assert_type(s.flags, sp.Ref)
    assert_type(s.grid[0, 0], sp.SemaphoreArray[sp.Semaphore, tuple[int, int]])
    assert_type(base.send, sp.DmaSemaphore)


def inside(size: int) -> None:
    class Local(sp.Scratch):
        sems = sp.dma_semaphore(size)

    def body(s: Local) -> sp.DmaSemaphore:
        assert_type(s.sems, sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]])
        return s.sems.at[0]

    assert_type(sp.run_scoped(body, Local), sp.DmaSemaphore)
