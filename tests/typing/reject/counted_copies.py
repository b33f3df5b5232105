"""Copies that count, on semaphores that cannot, from ends that are none, and used as copies."""

import jax

import safepallas as sp


class Buffers(sp.Scratch):
    done = sp.semaphore()
    many = sp.semaphore(2)
    barrier = sp.barrier_semaphore()
    sem = sp.dma_semaphore()


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
