"""What scopes and calls give."""

from collections.abc import Callable
from typing import Any, assert_type

import jax
import jax.numpy as jnp
from jax.experimental.pallas import tpu_sc as plsc

import safepallas as sp

LIKE = jax.ShapeDtypeStruct((8, 128), jnp.float32)


class Buffers(sp.Scratch):
    acc = sp.vmem((8, 128), jnp.float32)
    sem = sp.dma_semaphore()


def nothing(sem: sp.DmaSemaphore) -> None:
    del sem


def array(acc: sp.Ref, sem: sp.DmaSemaphore) -> jax.Array:
    del sem
    return acc[...]


def pair(s: Buffers) -> tuple[jax.Array, int]:
    return s.acc[...], 1


def count(
    a: sp.Semaphore,
    b: sp.SemaphoreArray[sp.Semaphore, tuple[int]],
    c: sp.BarrierSemaphore,
    d: sp.DmaSemaphore,
    e: sp.Ref,
    f: sp.Ref,
) -> int:
    del a, b, c, d, e, f
    return 1


buffer = sp.vmem((8, 128), jnp.float32)
assert_type(sp.run_scoped(nothing, sp.dma_semaphore()), None)
assert_type(sp.run_scoped(array, buffer, sp.dma_semaphore()), jax.Array)
assert_type(sp.run_scoped(pair, Buffers), tuple[jax.Array, int])
assert_type(
    sp.run_scoped(
        count,
        sp.semaphore(),
        sp.semaphore(2),
        sp.barrier_semaphore(),
        sp.dma_semaphore(),
        buffer,
        sp.smem((1,), jnp.int32),
    ),
    int,
)
assert_type(sp.run_scoped(lambda sem: sp.read(sem), sp.dma_semaphore()), jax.Array)
assert_type(sp.run_scoped(lambda s: s.acc[...], Buffers), jax.Array)


@sp.with_scoped(sp.dma_semaphore())
def copy(src: sp.Ref, dst: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(src, dst, sem).wait()


@sp.with_scoped(Buffers)
def load(src: sp.Ref, s: Buffers) -> jax.Array:
    sp.async_copy(src, s.acc, s.sem).wait()
    return s.acc[...]


@sp.with_scoped(buffer, sp.dma_semaphore())
def alone(acc: sp.Ref, sem: sp.DmaSemaphore) -> int:
    del acc, sem
    return 1


# Not of the three above: what a decorator returns is a function to ty, and no Callable.
assert_type(sp.with_scoped(sp.dma_semaphore())(array), Callable[[sp.Ref], jax.Array])
assert_type(sp.with_scoped(buffer, sp.dma_semaphore())(array), Callable[[], jax.Array])
assert_type(sp.with_scoped(Buffers)(pair), Callable[[], tuple[jax.Array, int]])


def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    assert_type(copy(x, o), None)
    assert_type(load(x), jax.Array)
    assert_type(alone(), int)
    del s


def refs_only(x: sp.Ref, o: sp.Ref) -> None:
    sp.sync_copy(x, o)


assert_type(sp.pallas_call(kernel, LIKE, scratch_shapes=Buffers), Callable[..., Any])
assert_type(sp.pallas_call(refs_only, LIKE), Callable[..., Any])
assert_type(
    sp.pallas_call(
        lambda x, o, sem: assert_type(sp.async_copy(x, o, sem), sp.LocalCopy).wait(),
        LIKE,
        scratch_shapes=(sp.dma_semaphore(),),
    ),
    Callable[..., Any],
)
assert_type(
    sp.pallas_call(
        lambda x, o, s: assert_type(sp.async_copy(x, s.acc, s.sem).wait(), None),
        LIKE,
        scratch_shapes=Buffers,
    ),
    Callable[..., Any],
)


# Kernels on meshes of cores: the same, in each form of the call.
MESH = plsc.ScalarSubcoreMesh(axis_name="core", num_cores=1)
assert_type(sp.dma_semaphore() @ MESH, sp.Spec[sp.DmaSemaphore])
assert_type(sp.semaphore(2) @ MESH, sp.Spec[sp.SemaphoreArray[sp.Semaphore, tuple[int]]])
assert_type(buffer @ MESH, sp.Spec[sp.Ref])
assert_type(sp.kernel(kernel, LIKE, mesh=MESH, scratch_types=Buffers), Callable[..., Any])
assert_type(sp.kernel(refs_only, LIKE, mesh=MESH), Callable[..., Any])
assert_type(
    sp.kernel([kernel, kernel], LIKE, mesh=[MESH, MESH], scratch_types=Buffers),
    Callable[..., Any],
)
assert_type(
    sp.kernel(
        lambda x, o, sem: assert_type(sp.async_copy(x, o, sem), sp.LocalCopy).wait(),
        LIKE,
        mesh=MESH,
        scratch_types=(sp.dma_semaphore() @ MESH,),
    ),
    Callable[..., Any],
)
assert_type(
    sp.kernel(out_type=LIKE, mesh=MESH, scratch_types=(buffer, sp.dma_semaphore()))(
        lambda x, o, acc, sem: assert_type(sp.async_copy(x, acc, sem), sp.LocalCopy).wait()
    ),
    Callable[..., Any],
)
assert_type(sp.kernel(mesh=MESH, scratch_types=Buffers)(kernel), Callable[..., Any])


class Flight(sp.Scratch):
    sem = sp.dma_semaphore()


def pass_over(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    del x, o, flight


call = sp.pallas_call_async(Flight, pass_over, pass_over, LIKE)
assert_type(call, sp.AsyncCall[Flight])
in_flight = call.start(jnp.zeros((8, 128)))
assert_type(in_flight, sp.InFlight[Flight])
assert_type(in_flight.then({"y": jnp.zeros(2)}), dict[str, jax.Array])
assert_type(call.done(in_flight), Any)
