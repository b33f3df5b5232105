"""Typical wrong calls. What each checker prints of them, test_wrong_calls.py bounds."""

import jax
from jax.experimental.pallas import tpu_sc as plsc

import safepallas as sp

MESH = plsc.ScalarSubcoreMesh(axis_name="core", num_cores=1)


class Buffers(sp.Scratch):
    sem = sp.dma_semaphore()


class Others(sp.Scratch):
    sem = sp.dma_semaphore()


def copies(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(x, o, sem).wait()


def named(x: sp.Ref, y: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, o, s.sem).wait()


def other(x: sp.Ref, y: sp.Ref, o: sp.Ref, s: Others) -> None:
    sp.async_copy(x, o, s.sem).wait()


def pair(sem: sp.DmaSemaphore, done: sp.Semaphore) -> None:
    sp.wait_bytes(sem, sem)  # E: a semaphore for a ref
    sp.wait(done)


def calls(like: jax.ShapeDtypeStruct) -> None:
    sp.pallas_call(copies, like, scratch_shapes=(sp.semaphore(),))  # E: pallas_call with a wrong handle
    sp.pallas_call(named, like, scratch_shapes=Others)  # E: pallas_call with a wrong Scratch
    sp.pallas_call(named, scratch_shapes=Buffers)  # E: a missing out_shape
    sp.pallas_call(named, like, scratch_shape=Buffers)  # E: a misspelt keyword
    sp.pallas_call(named, out_shapes=like, scratch_shapes=Buffers)  # E: a misspelt out_shape
    sp.pallas_call(named, undefined, scratch_shapes=Buffers)  # E: an argument with an error of its own
    sp.pallas_call(copies, undefined, scratch_shapes=(sp.dma_semaphore(),))  # E: the same beside a tuple
    sp.kernel(copies, like, mesh=MESH, scratch_types=(sp.semaphore(),))  # E: kernel with a wrong handle
    sp.kernel(copies, like, mesh=MESH, scratch_shapes=(sp.dma_semaphore(),))  # E: kernel with a misspelt keyword
    sp.run_scoped(pair, sp.semaphore(), sp.semaphore())  # E: run_scoped with a wrong handle
    sp.run_scoped(pair, sp.dma_semaphore())  # E: run_scoped with a parameter too many
    sp.with_scoped(sp.semaphore(), sp.semaphore())(pair)  # E: with_scoped with a wrong handle
    sp.pallas_call_async(Buffers, named, other, like)  # E: pallas_call_async with a wrong handle
