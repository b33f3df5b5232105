"""Kernels, on one core or on meshes of cores, that disagree with the scratch they are given."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc

import safepallas as sp

# Kernels whose parameters disagree with the scratch they are given.
LIKE = jax.ShapeDtypeStruct((8, 128), jnp.float32)


class Buffers(sp.Scratch):
    page = sp.vmem((8, 128), jnp.float32)
    sem = sp.dma_semaphore()
    slots = sp.dma_semaphore(2)
    done = sp.semaphore()


class Others(sp.Scratch):
    sem = sp.dma_semaphore()


def copies(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(x, o, sem).wait()


def counts(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
    sp.signal(sem)
    sp.wait(sem)


def slotted(x: sp.Ref, o: sp.Ref, sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]) -> None:
    sp.async_copy(x, o, sems.at[0]).wait()


def both(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, done: sp.Semaphore) -> None:
    sp.async_copy(x, o, sem).wait()
    sp.signal(done)


def named(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, o, s.sem).wait()


def refs_only(x: sp.Ref, o: sp.Ref) -> None:
    sp.sync_copy(x, o)


sp.pallas_call(copies, LIKE, scratch_shapes=(sp.semaphore(),))  # E: a regular semaphore for a DMA one
sp.pallas_call(counts, LIKE, scratch_shapes=(sp.dma_semaphore(),))  # E: a DMA semaphore for a regular one
sp.pallas_call(counts, LIKE, scratch_shapes=(sp.barrier_semaphore(),))  # E: a barrier one for a regular one
sp.pallas_call(copies, LIKE, scratch_shapes=(sp.dma_semaphore(2),))  # E: an array for one
sp.pallas_call(slotted, LIKE, scratch_shapes=(sp.dma_semaphore(),))  # E: one for an array
sp.pallas_call(slotted, LIKE, scratch_shapes=(sp.dma_semaphore(2, 2),))  # E: rank 2 for rank 1
sp.pallas_call(slotted, LIKE, scratch_shapes=(sp.semaphore(2),))  # E: an array of another kind
sp.pallas_call(copies, LIKE, scratch_shapes=(sp.vmem((8, 128), jnp.float32),))  # E: a buffer for a semaphore
sp.pallas_call(both, LIKE, scratch_shapes=(sp.semaphore(), sp.dma_semaphore()))  # E: in the other order
sp.pallas_call(both, LIKE, scratch_shapes=(sp.dma_semaphore(), sp.dma_semaphore()))  # E: the second disagrees
sp.pallas_call(named, LIKE, scratch_shapes=Others)  # E: another Scratch class
sp.pallas_call(named, LIKE, scratch_shapes=(sp.dma_semaphore(),))  # E: one request for a Scratch
sp.pallas_call(copies, LIKE, scratch_shapes=Buffers)  # E: a Scratch for one semaphore
sp.pallas_call(named, LIKE, scratch_shapes=(Buffers,))  # E: the class alone, not in a tuple
sp.pallas_call(copies, LIKE, scratch_shapes=sp.dma_semaphore())  # E: a tuple, also for one request
sp.pallas_call(copies, LIKE, scratch_shapes=(sp.dma_semaphore,))  # E: the request is not called
sp.pallas_call(copies, LIKE, scratch_shapes=(sp.DmaSemaphore,))  # E: the type is no request
sp.pallas_call(copies, LIKE, scratch_shapes=("dma",))  # E: nor is a string
sp.pallas_call(copies, LIKE, scratch_shapes=(None,))  # E: nor is None
sp.pallas_call(copies, LIKE, scratch_shapes=(8, 128))  # E: nor is a shape
sp.pallas_call(copies, LIKE, scratch_shapes=None)  # E: leave it out for none
sp.pallas_call(copies, LIKE, scratch_types=(sp.dma_semaphore(),))  # E: no such argument
sp.pallas_call(lambda x, o, sem: sp.signal(sem), LIKE, scratch_shapes=(sp.dma_semaphore(),))  # E: in a lambda
sp.pallas_call(lambda x, o, s: sp.signal(s.sem), LIKE, scratch_shapes=Buffers)  # E: in a lambda, by name


def one_parameter(sem: sp.DmaSemaphore) -> None:
    del sem


def too_few(o: sp.Ref, s: Buffers, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(o, o, sem).wait()
    del s


sp.pallas_call(one_parameter, LIKE, scratch_shapes=(sp.dma_semaphore(), sp.semaphore()))  # E: a parameter is missing
sp.pallas_call(too_few, LIKE, scratch_shapes=Buffers)  # E: the Scratch comes last


def fields(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, o, s.semaphore).wait()  # E: no such field
    sp.async_copy(x, o, s["sem"]).wait()  # E: fields are attributes
    sp.async_copy(x, o, Buffers.sem).wait()  # E: on the class it is the request
    sp.async_copy(x, s.done, s.sem).wait()  # E: a semaphore field as buffer
    sp.signal(s.page)  # E: a buffer field as semaphore
    s.sem = s.slots.at[0]  # E: fields are filled by the allocator
    s.page = o  # E: buffers, too
    x_sem, page = s  # E: a Scratch is no tuple
    named(x, o, Buffers)  # E: the class for an instance


def takes_others(s: Others) -> sp.DmaSemaphore:
    return s.sem


def helper(s: Buffers) -> sp.Semaphore:
    takes_others(s)  # E: a like field makes no like class
    return s.sem  # E: the field is of another kind


def returns(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> sp.LocalCopy:
    return sp.async_copy(x, o, sem)


def data_alone(*refs: sp.Ref) -> None:
    sp.sync_copy(refs[0], refs[1])


def many(a: sp.Ref, b: sp.Ref, c: sp.Ref, d: sp.Ref, e: sp.Ref, f: sp.Ref, g: sp.Ref, h: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
    del a, b, c, d, e, f, g, h, o, sem


def many_named(a: sp.Ref, b: sp.Ref, c: sp.Ref, d: sp.Ref, e: sp.Ref, f: sp.Ref, g: sp.Ref, h: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    del a, b, c, d, e, f, g, h, o, s


class Kernel:
    def __call__(self, x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        sp.signal(sem)

    def method(self, x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
        sp.signal(s.done)


page = sp.vmem((8, 128), jnp.float32)
sp.pallas_call(returns, LIKE, scratch_shapes=(sp.dma_semaphore(),))  # E: a kernel returns nothing
sp.pallas_call(data_alone, LIKE, scratch_shapes=(sp.dma_semaphore(),))  # E: a semaphore among data refs
sp.pallas_call(many, LIKE, scratch_shapes=(sp.semaphore(),))  # E: a regular semaphore after nine refs
sp.pallas_call(many_named, LIKE, scratch_shapes=Others)  # E: another Scratch class after nine refs
sp.pallas_call(copies, LIKE, scratch_shapes=(page, page, page, page, page, page, "dma"))  # E: seven are not matched, but each is a request
sp.pallas_call(copies, LIKE, scratch_shapes=(sp.dma_semaphore(),), grid=2, debug="yes")  # E: an option of another type
sp.pallas_call(copies, LIKE, (sp.dma_semaphore(),))  # E: options are keywords
sp.pallas_call(Kernel(), LIKE, scratch_shapes=(sp.dma_semaphore(),))  # E: a callable object
sp.pallas_call(Kernel().method, LIKE, scratch_shapes=Others)  # E: a bound method
sp.pallas_call(both, LIKE, scratch_shapes=(page, sp.semaphore()))  # E: a buffer for a semaphore, the rest agrees


def build(wide: bool) -> None:
    sp.pallas_call(copies, LIKE, scratch_shapes=(sp.dma_semaphore(2) if wide else sp.dma_semaphore(),))  # E: it may be an array


# Kernels on meshes of cores whose parameters, scratch or meshes disagree.
MESH = plsc.ScalarSubcoreMesh(axis_name="core", num_cores=1)
DEVICES: jax.sharding.Mesh = jax.sharding.Mesh(jax.devices(), ("x",))


def core_kernels_counts(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
    sp.signal(sem)


def alone(sem: sp.Semaphore) -> None:
    sp.wait(sem)


sp.kernel(copies, LIKE, mesh=MESH, scratch_types=(sp.semaphore(),))  # E: a regular semaphore for a DMA one
sp.kernel(core_kernels_counts, LIKE, mesh=MESH, scratch_types=(sp.dma_semaphore(),))  # E: a DMA semaphore for a regular one
sp.kernel(core_kernels_counts, LIKE, mesh=MESH, scratch_types=(sp.dma_semaphore() @ MESH,))  # E: of these cores, but of another kind
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
