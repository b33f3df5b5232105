"""Correct raw kernels: no checker says anything, and each is traced by the tests."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas.raw import DmaSemaphoreRef, Ref, SemaphoreArrayRef, SemaphoreRef

SHAPE = (2, 8, 128)
DATA = jax.ShapeDtypeStruct(SHAPE, jnp.float32)


def one_copy(x: Ref, o: Ref, done: DmaSemaphoreRef) -> None:
    copy = pltpu.make_async_copy(x, o, done)
    copy.start()
    copy.wait()


def untyped(x, o, done):  # type: ignore[no-untyped-def]  # as most kernels are written
    pltpu.async_copy(x.at[0], o.at[0], done.at[0]).wait()
    pltpu.async_copy(x.at[1], o.at[1], done.at[1]).wait()


def any_refs(x: Any, o: Any, done: Any) -> None:
    pltpu.async_copy(x, o, done).wait()


def double_buffer(x: Ref, o: Ref, done: SemaphoreArrayRef[DmaSemaphoreRef, tuple[int]]) -> None:
    for slot in range(len(done)):
        pltpu.async_copy(x.at[slot], o.at[slot], done.at[slot])

    def wait(slot: jax.Array, carry: None) -> None:
        pltpu.make_async_copy(x.at[slot], o.at[slot], done.at[slot]).wait()

    jax.lax.fori_loop(0, done.shape[0], wait, None)


def grid(x: Ref, o: Ref, done: SemaphoreArrayRef[DmaSemaphoreRef, tuple[int, int]]) -> None:
    row = done.at[0]
    pltpu.async_copy(x.at[0], o.at[0], row.at[1]).wait()
    pltpu.async_copy(x.at[pl.ds(1, 1)], o.at[pl.ds(1, 1)], done.at[1, jnp.int32(0)]).wait()


def counters(x: Ref, o: Ref, ready: SemaphoreRef) -> None:
    pl.semaphore_signal(ready)
    pl.semaphore_signal(ready, jnp.int32(2))
    o[...] = x[...] + pl.semaphore_read(ready)
    pl.semaphore_wait(ready, 3)


def part(x: Ref, o: Ref, done: SemaphoreArrayRef[DmaSemaphoreRef, tuple[int]]) -> None:
    last = done.at[pl.ds(1, 1)]
    pltpu.async_copy(x, o, last.at[0]).wait()


def scoped(x: Ref, o: Ref) -> None:
    def body(buffer: Ref, done: DmaSemaphoreRef) -> None:
        pltpu.async_copy(x, buffer, done).wait()
        o[...] = buffer[...]

    pl.run_scoped(body, pltpu.VMEM(SHAPE, jnp.float32), pltpu.SemaphoreType.DMA)
    pl.run_scoped(body, pltpu.VMEM(SHAPE, jnp.float32), pltpu.SemaphoreType.DMA(()))
    pl.run_scoped(body, pltpu.VMEM(SHAPE, jnp.float32), done=pltpu.SemaphoreType.DMA)
    pl.run_scoped(body, buffer=pltpu.VMEM(SHAPE, jnp.float32), done=pltpu.SemaphoreType.DMA)
    pl.run_scoped(lambda done: pltpu.sync_copy(x, o), pltpu.SemaphoreType.DMA)


def scoped_result(x: Ref, o: Ref) -> None:
    def count(ready: SemaphoreRef) -> jax.Array:
        pl.semaphore_signal(ready, 4)
        pl.semaphore_wait(ready, 4)
        return pl.semaphore_read(ready)

    left = pl.run_scoped(count, pltpu.SemaphoreType.REGULAR)
    o[...] = x[...] + left.astype(jnp.float32)


def decorated(x: Ref, o: Ref) -> None:
    @pl.with_scoped(pltpu.SemaphoreType.DMA((2,)))
    def move(slot: int, done: SemaphoreArrayRef[DmaSemaphoreRef, tuple[int]]) -> None:
        pltpu.async_copy(x.at[slot], o.at[slot], done.at[slot]).wait()

    @pl.with_scoped(ready=pltpu.SemaphoreType.REGULAR)
    def unused(ready: SemaphoreRef) -> None:
        pl.semaphore_signal(ready)
        pl.semaphore_wait(ready)

    move(0)
    move(1)
    unused()


def partial_scope(x: Ref, o: Ref) -> None:
    @functools.partial(pl.run_scoped, done=pltpu.SemaphoreType.DMA)
    def _(done: DmaSemaphoreRef) -> None:
        pltpu.async_copy(x, o, done).wait()


def trees(x: Ref, o: Ref) -> None:
    def body(sems: Any) -> None:
        pltpu.async_copy(x, o, sems["done"][0]).wait()

    request = {"done": [pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR]}
    pl.run_scoped(body, request)


class Channel(NamedTuple):
    send: DmaSemaphoreRef
    recv: DmaSemaphoreRef

    def push(self, source: Ref, target: Ref, device: int | jax.Array) -> None:
        pltpu.async_remote_copy(source, target, self.send, self.recv, {"x": device}).wait()


def remote(x: Ref, o: Ref, send: DmaSemaphoreRef, recv: DmaSemaphoreRef) -> None:
    right = jax.lax.rem(jax.lax.axis_index("x") + 1, jax.lax.axis_size("x"))
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, 1, device_id={"x": right})
    pl.semaphore_wait(barrier, 1)
    Channel(send, recv).push(x, o, right)
    copy = pltpu.make_async_remote_copy(
        src_ref=x, dst_ref=o, send_sem=send, recv_sem=recv, device_id=(right,)
    )
    copy.start()
    copy.wait_send()
    copy.wait_recv()


def kinds(x: Ref, o: Ref) -> None:
    chosen: pltpu.SemaphoreType = pltpu.SemaphoreType.REGULAR
    assert [kind.name for kind in pltpu.SemaphoreType] == ["REGULAR", "DMA", "BARRIER"]
    assert pltpu.SemaphoreType("regular") is chosen

    def body(ready: SemaphoreRef) -> None:
        pl.semaphore_signal(ready)
        pl.semaphore_wait(ready)

    pl.run_scoped(body, chosen)
    o[...] = x[...]


DMA = pltpu.SemaphoreType.DMA
KERNELS: list[tuple[Callable[..., None], Any]] = [
    (one_copy, [DMA]),
    (untyped, [DMA((2,))]),
    (any_refs, (DMA(()),)),
    (double_buffer, [DMA((2,))]),
    (grid, [DMA((2, 2))]),
    (counters, [pltpu.SemaphoreType.REGULAR]),
    (part, [DMA((2,))]),
    (scoped, ()),
    (scoped_result, ()),
    (decorated, ()),
    (partial_scope, ()),
    (trees, []),
    (remote, {"send": DMA, "recv": DMA}),
    (kinds, ()),
]


def call(kernel: Callable[..., None], scratch: Any) -> Callable[[jax.Array], jax.Array]:
    result: Callable[[jax.Array], jax.Array] = pl.pallas_call(
        kernel,
        DATA,
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        scratch_shapes=scratch,
        compiler_params=pltpu.CompilerParams(collective_id=0) if kernel is remote else None,
    )
    return result


def trace() -> list[str]:
    """The jaxprs of all kernels."""
    mesh = jax.sharding.AbstractMesh((2,), ("x",))
    spec = jax.sharding.PartitionSpec()
    jaxprs = []
    for kernel, scratch in KERNELS:
        mapped = jax.shard_map(
            call(kernel, scratch), mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False
        )
        jaxprs.append(str(jax.make_jaxpr(mapped)(jax.ShapeDtypeStruct(SHAPE, jnp.float32))))
    return jaxprs
