"""Copies whose ends, semaphores or methods are not what they are taken for."""

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp


class Buffers(sp.Scratch):
    page = sp.vmem((8, 128), jnp.float32)
    sem = sp.dma_semaphore()
    recv = sp.dma_semaphore()


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
