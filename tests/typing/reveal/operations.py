"""What operations, copies and handles give."""

from typing import Any, assert_type

import jax

import safepallas as sp
from safepallas import raw


def operations(
    regular: sp.Semaphore, barrier: sp.BarrierSemaphore, dma: sp.DmaSemaphore, n: jax.Array
) -> None:
    assert_type(sp.signal(regular), None)
    assert_type(sp.signal(barrier, n, device_id={"x": n}), None)
    assert_type(sp.wait(regular), None)
    assert_type(sp.wait(barrier, 2), None)
    assert_type(sp.read(regular), jax.Array)
    assert_type(sp.read(barrier), jax.Array)
    assert_type(sp.read(dma), jax.Array)
    assert_type(sp.get_barrier_semaphore(), sp.BarrierSemaphore)
    assert_type(sp.barrier_neighbors("x"), None)
    assert_type(sp.barrier_all("x"), None)
    assert_type(sp.barrier_all(("x", "y")), None)
    assert_type(sp.core_barrier(regular, core_axis_name="core"), None)
    assert_type(regular.ref, raw.SemaphoreRef)
    assert_type(barrier.ref, raw.BarrierSemaphoreRef)
    assert_type(dma.ref, raw.DmaSemaphoreRef)
    assert_type(regular.ref.dtype, Any)
    assert_type(dma.ref.shape, tuple[()])
    assert_type(str(dma), str)


def copies(x: sp.Ref, o: sp.Ref, send: sp.DmaSemaphore, recv: sp.DmaSemaphore) -> None:
    local = sp.make_async_copy(x, o, send)
    assert_type(local, sp.LocalCopy)
    assert_type(local.start(), None)
    assert_type(local.start(1, add=True), None)
    assert_type(local.wait(), None)
    assert_type(sp.async_copy(x, o, send), sp.LocalCopy)
    assert_type(sp.async_copy(x, o, send, priority=1, add=True), sp.LocalCopy)
    assert_type(sp.async_copy(x, o, send).wait(), None)

    remote = sp.make_async_remote_copy(x, o, send, recv, {"x": 1})
    assert_type(remote, sp.RemoteCopy)
    assert_type(remote.start(), None)
    assert_type(remote.wait(), None)
    assert_type(remote.wait_send(), None)
    assert_type(remote.wait_recv(), None)
    assert_type(sp.async_remote_copy(x, o, send, recv, (0, 1)), sp.RemoteCopy)
    assert_type(sp.async_remote_copy(x, o, send, recv, device_id=1), sp.RemoteCopy)

    assert_type(sp.sync_copy(x, o), None)
    assert_type(sp.sync_copy(x, o, add=True), None)
    assert_type(sp.wait_bytes(recv, o.at[0]), None)


def counted(x: sp.Ref, o: sp.Ref, send: sp.Semaphore, recv: sp.Semaphore) -> None:
    assert_type(sp.async_copy_counted(x, o, send), None)
    assert_type(sp.async_remote_copy_counted(x, o.at[0], send, recv, {"x": 1}), None)


def data(x: sp.Ref, i: jax.Array) -> None:
    assert_type(x[...], jax.Array)
    assert_type(x[0, i], jax.Array)
    assert_type(x.at[0], sp.Ref)
    assert_type(x.at[i].at[:2], sp.Ref)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.dtype, Any)


def adopted(ref: Any, done: sp.Semaphore) -> None:
    assert_type(sp.adopt(ref, sp.semaphore()), sp.Semaphore)
    assert_type(sp.adopt(ref, sp.barrier_semaphore()), sp.BarrierSemaphore)
    assert_type(sp.adopt(ref, sp.dma_semaphore()), sp.DmaSemaphore)
    assert_type(sp.adopt(ref, sp.dma_semaphore(2)), sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]])
    assert_type(sp.adopt(ref, sp.semaphore(2, 3)), sp.SemaphoreArray[sp.Semaphore, tuple[int, int]])
    assert_type(sp.adopt(ref, sp.vmem((8, 128), "float32")), sp.Ref)
    assert_type(sp.adopt(done.ref, sp.semaphore()), sp.Semaphore)


def narrowed(
    sem: sp.Semaphore | sp.BarrierSemaphore | sp.DmaSemaphore,
    many: sp.DmaSemaphore | sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]],
    maybe: sp.DmaSemaphore | None,
) -> None:
    if isinstance(sem, sp.DmaSemaphore):
        assert_type(sem, sp.DmaSemaphore)
    elif isinstance(sem, sp.Semaphore):
        assert_type(sem, sp.Semaphore)
    else:
        assert_type(sem, sp.BarrierSemaphore)
    if isinstance(many, sp.DmaSemaphore):
        assert_type(many, sp.DmaSemaphore)
    else:
        assert_type(many, sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]])
    if maybe is not None:
        assert_type(maybe, sp.DmaSemaphore)
