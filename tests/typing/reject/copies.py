"""Copies whose ends, semaphores, devices or methods are not what they are taken for."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

import safepallas as sp


# Copies whose ends, semaphores or methods are not what they are taken for.
class Buffers(sp.Scratch):
    page = sp.vmem((8, 128), jnp.float32)
    sem = sp.dma_semaphore()
    recv = sp.dma_semaphore()
    done = sp.semaphore()
    many = sp.semaphore(2)
    barrier = sp.barrier_semaphore()
    acc = sp.vmem((8, 128), jnp.float32)
    flags = sp.smem((4,), jnp.int32)
    slots = sp.semaphore(2)


def ends(x: sp.Ref, o: sp.Ref, s: Buffers, table: jax.Array) -> None:
    sp.async_copy(x[...], o, s.sem).wait()  # E: the source is loaded already
    sp.async_copy(x[0], s.page, s.sem).wait()  # E: x.at[0], not x[0]
    sp.async_copy(x, o[...], s.sem).wait()  # E: the destination is loaded already
    sp.make_async_copy(table, s.page, s.sem).start()  # E: an array is no ref
    sp.make_async_copy(np.zeros(8), s.page, s.sem)  # E: nor is one of NumPy
    sp.make_async_copy((x, o), s.page, s.sem)  # E: nor a tuple of refs
    sp.async_copy(x, s.sem, s.sem)  # E: a semaphore as destination
    sp.async_copy(s.sem, o, s.sem)  # E: a semaphore as source
    sp.async_copy(x, o.at, s.sem)  # E: .at wants an index
    sp.sync_copy(x, o[0])  # E: sync_copy wants refs, too
    sp.sync_copy(s.sem, o)  # E: a semaphore as source
    sp.wait_bytes(s.sem, o[...])  # E: like is a ref
    sp.wait_bytes(s.sem, 4096)  # E: not a number of bytes
    sp.wait_bytes(s.sem, jax.ShapeDtypeStruct((8, 128), jnp.float32))  # E: nor a shape
    sp.wait_bytes(o, s.sem)  # E: the semaphore comes first
    sp.async_copy(s.page.shape, o, s.sem)  # E: a shape as source


def semaphores(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, o)  # E: no semaphore
    sp.async_copy(x, o, None)  # E: no semaphore
    sp.async_copy(x, o, s.page)  # E: a buffer as semaphore
    sp.async_copy(x, o, s)  # E: the whole scratch as semaphore
    sp.async_copy(x, o, s.sem.ref)  # E: a raw ref as semaphore
    sp.make_async_copy(x, o, "sem")  # E: a name as semaphore
    sp.async_remote_copy(x, o, s.sem, {"x": 1})  # E: one semaphore of two


def methods(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    local = sp.make_async_copy(x, o, s.sem)
    local.wait_send()  # E: a local copy has no sending side
    local.wait_recv()  # E: nor a receiving side
    local.start("high")  # E: a priority is an int
    local.start(0, True)  # E: add= is by keyword only
    local.start(add=1)  # E: add is a bool
    local.wait(4096)  # E: it waits for the whole copy
    sp.async_copy(x, o, s.sem).start().wait()  # E: start gives nothing back
    sp.wait(local)  # E: a copy is no semaphore
    sp.sync_copy(x, o).wait()  # E: it is over by now
    remote: sp.RemoteCopy = sp.async_copy(x, o, s.sem)  # E: a local copy is no remote one
    remote.wait_send()


def handed_over(copy: sp.LocalCopy) -> None:
    copy.wait()


def hand_over(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    handed_over(sp.async_remote_copy(x, o, s.sem, s.recv, {"x": 1}))  # E: remote where local is taken
    handed_over(s.sem)  # E: the semaphore instead of its copy


# Counted copies, on semaphores that cannot, from ends that are none, and used as copies.
def local(x: sp.Ref, o: sp.Ref, s: Buffers, table: jax.Array) -> None:
    sp.async_copy_counted(x, o, s.sem)  # E: a DMA semaphore counts bytes
    sp.async_copy_counted(x, o, s.barrier)  # E: a barrier semaphore is for devices
    sp.async_copy_counted(x, o, s.many)  # E: one of them
    sp.async_copy_counted(x, o, s.done.ref)  # E: a raw ref
    sp.async_copy_counted(x, o, None)  # E: no semaphore
    sp.async_copy_counted(x, o)  # E: no semaphore
    sp.async_copy_counted(x[...], o, s.done)  # E: the source is loaded already
    sp.async_copy_counted(x, table, s.done)  # E: an array is no ref
    sp.async_copy_counted(x, s.done, s.done)  # E: a semaphore as destination
    sp.async_copy_counted(x, o, s.done).wait()  # E: sp.wait(s.done) waits for it
    sp.async_copy_counted(x, o, s.done, priority=1)  # E: it has no priority
    copy: sp.LocalCopy = sp.async_copy_counted(x, o, s.done)  # E: no copy to wait for
    copy.wait()


def remote(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_remote_copy_counted(x, o, s.sem, s.done, {"x": 1})  # E: both count, or none
    sp.async_remote_copy_counted(x, o, s.done, s.sem, {"x": 1})  # E: both count, or none
    sp.async_remote_copy_counted(x, o, s.done, s.many, {"x": 1})  # E: one of them
    sp.async_remote_copy_counted(x, o, s.done, s.done)  # E: to which device?
    sp.async_remote_copy_counted(x, o, s.done, {"x": 1})  # E: one semaphore of two
    sp.async_remote_copy_counted(x, o, s.done, s.done, "x")  # E: a name is no device
    sp.async_remote_copy_counted(x, o, s.done, s.done, {"x": 1}).wait_send()  # E: sp.wait does
    sp.async_remote_copy_counted(x, x[0], s.done, s.done, {"x": 1})  # E: loaded already


# Device ids that name no device.
class Sems(sp.Scratch):
    send = sp.dma_semaphore()
    recv = sp.dma_semaphore()
    ready = sp.semaphore()


def copies(x: sp.Ref, o: sp.Ref, s: Sems, me: jax.Array) -> None:
    sp.async_remote_copy(x, o, s.send, s.recv)  # E: to which device?
    sp.async_remote_copy(x, o, s.send, s.recv, None)  # E: a remote copy goes to another device
    sp.make_async_remote_copy(x, o, s.send, s.recv, device_id=None)  # E: the same, unstarted
    sp.async_remote_copy(x, o, s.send, s.recv, "x")  # E: an axis alone
    sp.async_remote_copy(x, o, s.send, s.recv, 1.0)  # E: a float
    sp.async_remote_copy(x, o, s.send, s.recv, [0, 1])  # E: coordinates are a tuple
    sp.async_remote_copy(x, o, s.send, s.recv, (me, 0.5))  # E: a float among coordinates
    sp.async_remote_copy(x, o, s.send, s.recv, {"x": 1.5})  # E: a float by name
    sp.async_remote_copy(x, o, s.send, s.recv, {"x": "right"})  # E: a name for a coordinate
    sp.async_remote_copy(x, o, s.send, s.recv, {0: me})  # E: axes go by name
    sp.async_remote_copy(x, o, s.send, s.recv, {"x": None})  # E: leave the axis out
    sp.async_remote_copy(x, o, s.send, s.recv, {"x", "y"})  # E: a set of axes
    sp.async_remote_copy(x, o, s.send, s.recv, s.ready)  # E: a semaphore


def signals(s: Sems, me: jax.Array) -> None:
    sp.signal(s.ready, device_id="x")  # E: an axis alone
    sp.signal(s.ready, device_id=0.0)  # E: a float
    sp.signal(s.ready, device_id=[me])  # E: coordinates are a tuple
    sp.signal(s.ready, device_id=("x", me))  # E: a name among coordinates
    sp.signal(s.ready, device_id={"x": me / 1.0, "y": 0.5})  # E: a float by name
    sp.signal(s.ready, device_id={1: me})  # E: axes go by name
    sp.signal(s.ready, device_id=me, device_id_type=pl.DeviceIdType.LOGICAL)  # E: ids are mesh coordinates
    sp.signal(s.ready, device_id={"x": me}, device_id_type=pl.DeviceIdType.MESH)  # E: always
    sp.signal(s.ready, core=0)  # E: it is called core_index


# Semaphores taken for data, and data taken for semaphores.
def stores(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    o[...] = s.sem  # E: a semaphore is no value
    o[0] = s.slots  # E: nor is an array of them
    s.flags[0] = s.done  # E: its count is sp.read(s.done)
    o[...] = x  # E: a ref is no value: x[...]
    o[...] = "zero"  # E: nor is a string
    o[...] += s.sem  # E: nor in an augmented assignment
    s.done[...] = 0  # E: a semaphore is not stored to
    s.slots[0] = 1  # E: nor is an array
    s.slots.at[0] = s.done  # E: nor a handle into one


def loads(s: Buffers) -> None:
    s.done[...]  # E: a semaphore is not loaded
    s.done[0]  # E: and has no elements
    jnp.sum(s.done)  # E: it is no array
    jnp.exp(s.slots)  # E: nor are many of them
    jnp.where(s.done, 1, 0)  # E: nor is it a condition
    count: jax.Array = s.done  # E: its count is sp.read(s.done)
    size: int = sp.read(s.done)  # E: which is a traced array
    number: int = s.done  # E: a semaphore is no number
    del count, size, number


def operations(x: sp.Ref, s: Buffers, y: jax.Array, z: np.ndarray[tuple[int], np.dtype[np.int16]]) -> None:
    sp.signal(x)  # E: a data ref is no semaphore
    sp.signal(s.flags)  # E: nor is one in SMEM
    sp.wait(s.flags.at[0])  # E: nor a view of one
    sp.wait(y)  # E: nor an array
    sp.signal(z)  # E: nor an int16 array
    sp.read(x)  # E: a data ref is loaded: x[...]
    sp.signal(s.done.ref)  # E: the raw ref is for raw Pallas
    sp.signal(1)  # E: an int is no semaphore
    sp.signal("banana")  # E: nor is a string
    sp.wait(None)  # E: nor is None
    sp.signal(s)  # E: nor is the whole scratch
    sp.read(s.sem, s.done)  # E: one at a time


def scale(ref: sp.Ref) -> None:
    ref[...] = ref[...] * 2.0


def helpers(x: sp.Ref, s: Buffers) -> None:
    scale(s.sem)  # E: a semaphore is no data ref
    scale(s.slots)  # E: nor is an array of them
    scale(s.done.ref)  # E: nor its raw ref
    scale(x[...])  # E: nor a loaded array
    scale(x.at)  # E: nor an indexer
    scale(np.zeros((8, 128)))  # E: nor an array of NumPy
    refs: list[sp.Ref] = [x, s.acc, s.done]  # E: nor in a list
    del refs
