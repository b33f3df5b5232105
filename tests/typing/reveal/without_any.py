"""A kernel of all that the API offers, in which no expression has an Any: so mypy's
``disallow_any_expr`` demands of this file. (`pallas_call` returns a ``Callable[..., Any]``, as in
Pallas, and functions of JAX return Any here and there.)
"""

from typing import NamedTuple

import safepallas as sp


class Pair(NamedTuple):
    copy: sp.DmaSemaphore
    done: sp.Semaphore | None = None


class Buffers(sp.Scratch):
    acc = sp.vmem((8, 128), "float32")
    counts = sp.smem((4,), "int32")
    line = sp.dma_semaphore(2)
    plane = sp.semaphore(2, 2)
    cube = sp.dma_semaphore(2, 2, 2)
    one = sp.dma_semaphore()
    done = sp.semaphore()
    gate = sp.barrier_semaphore()


def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    copy = sp.make_async_copy(x, s.acc, s.line.at[0])
    copy.start(1, add=False)
    copy.wait()
    sp.async_copy(x.at[0], o.at[0], s.line[1]).wait()
    remote = sp.make_async_remote_copy(x, o, s.one, s.cube.at[0, 1, 1], {"x": 1})
    remote.start()
    remote.wait_send()
    remote.wait_recv()
    sp.async_remote_copy(x, o, s.one, s.line[0], (0, 1)).wait()
    sp.sync_copy(x, o)
    sp.wait_bytes(s.one, o)
    count = sp.read(s.done)
    sp.signal(s.done, count, device_id={"x": count, "y": 0})
    sp.wait(s.plane.at[0].at[1], 2)
    for row in s.plane:
        for sem in row:
            sp.signal(sem)
    rows, cols = s.plane.shape
    for i in range(rows * cols + len(s.line)):
        sp.wait(s.plane.at[i // cols, i % cols])
    barrier = sp.get_barrier_semaphore()
    sp.signal(barrier, 2, device_id=1)
    sp.wait(barrier, 2)
    o[0, 0] = s.acc[0, 0] + s.counts[0]
    pair = Pair(s.one, s.done)
    if pair.done is not None:
        sp.signal(pair.done)
    sp.signal(sp.adopt(s.done.ref, sp.semaphore()))

    def body(acc: sp.Ref, sem: sp.DmaSemaphore) -> int:
        sp.async_copy(x, acc, sem).wait()
        return 1

    total = sp.run_scoped(body, sp.vmem((8, 128), "float32"), sp.dma_semaphore())
    sp.signal(s.done, total)

    def named(t: Buffers) -> sp.LocalCopy:
        return sp.async_copy(x, t.acc, t.one)

    sp.run_scoped(named, Buffers).wait()


@sp.with_scoped(sp.dma_semaphore(2))
def staged(src: sp.Ref, dst: sp.Ref, sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]) -> None:
    sp.async_copy(src, dst, sems.at[0]).wait()


def outer(x: sp.Ref, o: sp.Ref) -> None:
    staged(x, o)
