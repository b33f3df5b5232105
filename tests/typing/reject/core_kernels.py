"""Kernels on meshes of cores whose parameters, scratch or meshes disagree."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc

import safepallas as sp

LIKE = jax.ShapeDtypeStruct((8, 128), jnp.float32)
MESH = plsc.ScalarSubcoreMesh(axis_name="core", num_cores=1)
DEVICES: jax.sharding.Mesh = jax.sharding.Mesh(jax.devices(), ("x",))


class Buffers(sp.Scratch):
    sem = sp.dma_semaphore()
    done = sp.semaphore()


class Others(sp.Scratch):
    sem = sp.dma_semaphore()


def copies(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(x, o, sem).wait()


def counts(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
    sp.signal(sem)


def named(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, o, s.sem).wait()


def alone(sem: sp.Semaphore) -> None:
    sp.wait(sem)


sp.kernel(copies, LIKE, mesh=MESH, scratch_types=(sp.semaphore(),))  # E: a regular semaphore for a DMA one
sp.kernel(counts, LIKE, mesh=MESH, scratch_types=(sp.dma_semaphore(),))  # E: a DMA semaphore for a regular one
sp.kernel(counts, LIKE, mesh=MESH, scratch_types=(sp.dma_semaphore() @ MESH,))  # E: of these cores, but of another kind
sp.kernel(copies, LIKE, mesh=MESH, scratch_types=(sp.dma_semaphore(2),))  # E: an array for one
sp.kernel(copies, LIKE, mesh=MESH, scratch_types=(sp.vmem((8, 128), jnp.float32),))  # E: a buffer for a semaphore
sp.kernel(named, LIKE, mesh=MESH, scratch_types=Others)  # E: another Scratch class
sp.kernel(named, LIKE, mesh=MESH, scratch_types=(sp.dma_semaphore(), sp.semaphore()))  # E: requests for a Scratch
sp.kernel(copies, LIKE, mesh=MESH, scratch_types=Buffers)  # E: a Scratch for one semaphore
sp.kernel(copies, LIKE, mesh=MESH, scratch_types=sp.dma_semaphore())  # E: no tuple
sp.kernel(copies, LIKE, mesh=MESH, scratch_types=(pltpu.SemaphoreType.DMA,))  # E: a raw semaphore type
sp.kernel(alone, mesh=MESH, scratch_types=(sp.dma_semaphore(),))  # E: a kernel without refs, and another kind
sp.kernel(copies, LIKE, scratch_types=(sp.dma_semaphore(),))  # E: no mesh
sp.kernel(copies, LIKE, mesh=DEVICES, scratch_types=(sp.dma_semaphore(),))  # E: a mesh of devices
sp.kernel(copies, LIKE, mesh=[MESH], scratch_types=(sp.dma_semaphore(),))  # E: several meshes for one body
sp.kernel([copies], LIKE, mesh=MESH, scratch_types=(sp.dma_semaphore(),))  # E: one mesh for several bodies
sp.kernel([named, named], LIKE, mesh=[MESH, MESH], scratch_types=Others)  # E: another Scratch for several bodies
sp.kernel(mesh=MESH, out_type=LIKE, scratch_types=(sp.semaphore(),))(copies)  # E: as a decorator
sp.kernel(mesh=MESH, out_type=LIKE, scratch_types=Others)(named)  # E: a decorator with another Scratch
sp.kernel(copies, LIKE, mesh=MESH, scratch_types=(sp.dma_semaphore(),), debug="yes")  # E: an option of another type
sp.kernel(mesh=MESH, out_types=LIKE, scratch_types=(sp.dma_semaphore(),))  # E: a misspelt keyword in a decorator
sp.kernel(mesh=[MESH], out_type=LIKE)(copies)  # E: a decorator with several meshes


@sp.kernel(mesh=MESH, scratch_types=(sp.semaphore(), sp.dma_semaphore()))  # E: in the other order
def swapped(x: sp.Ref, sem: sp.DmaSemaphore, done: sp.Semaphore) -> None: ...


sp.dma_semaphore() @ DEVICES  # E: a semaphore on devices
sp.dma_semaphore(2) @ "core"  # E: the name of an axis is no mesh
MESH @ sp.dma_semaphore()  # E: the other way round
spec: sp.Spec[sp.Semaphore] = sp.dma_semaphore() @ MESH  # E: another kind
array: sp.Spec[sp.SemaphoreArray[sp.DmaSemaphore, tuple[int, int]]] = sp.dma_semaphore(2) @ MESH  # E: another rank
result: int = sp.kernel(copies, LIKE, mesh=MESH, scratch_types=(sp.dma_semaphore(),))  # E: a call is no int
