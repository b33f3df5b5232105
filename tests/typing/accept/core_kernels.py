"""Kernels on meshes of cores: TensorCores, SparseCores, several bodies, in all forms of a call."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc
from jax.sharding import AbstractDevice, AbstractMesh

import safepallas as sp

LIKE = jax.ShapeDtypeStruct((8, 128), jnp.float32)


def tensor_cores(count: int) -> Any:
    """JAX 0.12 has renamed it."""
    pallas: Any = pltpu
    if hasattr(pallas, "TensorCoreMesh"):
        return pallas.TensorCoreMesh(axis_name="core", num_cores=count)
    return pallas.create_tensorcore_mesh("core", num_cores=count)


class Buffers(sp.Scratch):
    sem = sp.dma_semaphore()
    ready = sp.semaphore(2)


def positional(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, ready: sp.Semaphore) -> None:
    sp.async_copy(x, o, sem).wait()
    sp.signal(ready)
    sp.wait(ready)


def named(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, o, s.sem).wait()
    sp.signal(s.ready.at[1], 2)
    sp.wait(s.ready.at[1], 2)


def by_keyword(x: sp.Ref, o: sp.Ref, *, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(x, o, sem).wait()


def plain(x: sp.Ref, o: sp.Ref) -> None:
    def body(sem: sp.DmaSemaphore) -> None:
        sp.async_copy(x, o, sem).wait()

    sp.run_scoped(body, sp.dma_semaphore())


def decorated(mesh: Any) -> list[Any]:
    """With a tuple of scratch, with a class, and without any."""

    @sp.kernel(out_type=LIKE, mesh=mesh, scratch_types=(sp.dma_semaphore(),), interpret=True)
    def with_a_tuple(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
        sp.async_copy(x, o, sem).wait()

    @sp.kernel(out_type=LIKE, mesh=mesh, scratch_types=Buffers, interpret=True)
    def with_a_class(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
        sp.async_copy(x, o, s.sem).wait()

    @sp.kernel(out_type=LIKE, mesh=mesh, interpret=True)
    def without(x: sp.Ref, o: sp.Ref) -> None:
        sp.sync_copy(x, o)

    return [with_a_tuple, with_a_class, without]


def closes_over(x: jax.Array) -> jax.Array:
    """A kernel without inputs and outputs, which works on refs around it."""
    source: Any = jax.new_ref(x)
    target: Any = jax.new_ref(jnp.zeros_like(x))

    def copy(sem: sp.DmaSemaphore) -> None:
        sp.async_copy(source, target, sem).wait()

    sp.kernel(copy, mesh=tensor_cores(1), scratch_types=(sp.dma_semaphore(),), interpret=True)()
    copied: jax.Array = target[...]
    return copied


def on_vector_subcores(x: jax.Array) -> jax.Array:
    mesh = plsc.VectorSubcoreMesh(
        core_axis_name="core", subcore_axis_name="subcore", num_cores=1, num_subcores=1
    )
    scratch = (sp.dma_semaphore() @ mesh, sp.semaphore())
    call = sp.kernel(positional, LIKE, mesh=mesh, scratch_types=scratch, interpret=True)
    copied: jax.Array = call(x)
    return copied


class Flags:
    """Two bodies: one copies and tells the other, which waits."""

    def __init__(self) -> None:
        self.vector = plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore")
        self.scalar = plsc.ScalarSubcoreMesh(axis_name="core")

    def on_vector(self, x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, done: sp.Semaphore) -> None:
        sp.async_copy(x, o, sem).wait()
        sp.signal(done, device_id={"core": 0})

    def on_scalar(self, x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, done: sp.Semaphore) -> None:
        sp.wait(done, 32)

    def trace(self) -> None:
        call = sp.kernel(
            [self.on_vector, self.on_scalar],
            LIKE,
            mesh=[self.vector, self.scalar],
            scratch_types=(sp.dma_semaphore() @ self.vector, sp.semaphore() @ self.scalar),
        )
        jax.eval_shape(call, LIKE)


def all_at_once() -> None:
    """Several bodies that share a class of scratch."""
    vector = plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore")
    scalar = plsc.ScalarSubcoreMesh(axis_name="core")

    class Shared(sp.Scratch):
        sem = sp.dma_semaphore(2) @ vector
        done = sp.semaphore() @ scalar

    def on_vector(x: sp.Ref, o: sp.Ref, s: Shared) -> None:
        sp.async_copy(x, o, s.sem.at[0]).wait()
        sp.signal(s.done, device_id={"core": 0})

    def on_scalar(x: sp.Ref, o: sp.Ref, s: Shared) -> None:
        sp.wait(s.done, 32)

    call = sp.kernel((on_vector, on_scalar), LIKE, mesh=(vector, scalar), scratch_types=Shared)
    jax.eval_shape(call, LIKE)


def check_core_kernels() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    mesh = tensor_cores(1)
    scratch = (sp.dma_semaphore(), sp.semaphore())
    for call in (
        sp.kernel(positional, LIKE, mesh=mesh, scratch_types=scratch, interpret=True),
        sp.kernel(named, LIKE, mesh=mesh, scratch_types=Buffers, interpret=True),
        sp.kernel(
            by_keyword, LIKE, mesh=mesh, scratch_types={"sem": sp.dma_semaphore()}, interpret=True
        ),
        sp.kernel(plain, LIKE, mesh=tensor_cores(2), interpret=True),
        *decorated(mesh),
    ):
        np.testing.assert_array_equal(call(x), x)
    # The interpreter of JAX 0.10.2 does not keep what is written to refs around a kernel.
    jax.eval_shape(closes_over, x)
    # SparseCores are described by the chip that JAX takes this for.
    chip = AbstractDevice("TPU v6 lite", 1, "tpu")
    with jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=chip)):
        np.testing.assert_array_equal(jax.jit(on_vector_subcores)(x), x)
        Flags().trace()
        all_at_once()
