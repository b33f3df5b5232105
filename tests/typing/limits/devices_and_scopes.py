"""What depends on the mesh, on the call, on shapes, or on where a scope ends."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp

X = jnp.zeros((8, 128), jnp.float32)
LIKE = jax.ShapeDtypeStruct(X.shape, X.dtype)


class Sems(sp.Scratch):
    send = sp.dma_semaphore()
    recv = sp.dma_semaphore()
    ready = sp.semaphore()


def trace(kernel: Callable[[sp.Ref, sp.Ref, Sems], None]) -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("x", "y"))
    call = sp.pallas_call(kernel, LIKE, scratch_shapes=Sems)
    jax.eval_shape(
        jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False), X
    )


def unknown_axis(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.signal(s.ready, device_id={"z": 0})  # L: the mesh is not in the types


def too_few_coordinates(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.async_remote_copy(x, o, s.send, s.recv, (0,))  # L: nor is the number of its axes


def one_int_on_two_axes(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.async_remote_copy(x, o, s.send, s.recv, 0)  # L: as above


def no_such_device(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.signal(s.ready, device_id=(1, 0))  # L: nor are its sizes


def bool_coordinate(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.signal(s.ready, device_id={"x": False})  # L: a bool is an int


def other_shape(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.async_copy(x.at[0], o, s.send)  # L: shapes and dtypes of refs are not in the types


def after_the_scope(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    kept: list[sp.Semaphore] = []
    sp.run_scoped(lambda sem: kept.append(sem), sp.semaphore())
    sp.signal(kept[0])  # L: lifetimes are not in the types


def no_collective_id(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.wait(sp.get_barrier_semaphore())  # L: the call is somewhere else


def unused_collective_id() -> None:
    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        sp.sync_copy(x, o)

    params = pltpu.CompilerParams(collective_id=1)
    sp.pallas_call(kernel, LIKE, compiler_params=params)(X)  # L: the kernel is somewhere else


def read_where_it_cannot_be() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
        o[0, 0] = sp.read(s.ready).astype(o.dtype)  # L: the call is somewhere else

    sp.pallas_call(kernel, LIKE, scratch_shapes=Sems, interpret=pltpu.InterpretParams())(X)


LIMITS = {
    unknown_axis: sp.errors.DeviceIdError,
    too_few_coordinates: sp.errors.DeviceIdError,
    one_int_on_two_axes: sp.errors.DeviceIdError,
    no_such_device: sp.errors.DeviceIdError,
    bool_coordinate: sp.errors.DeviceIdTypeError,
    other_shape: sp.errors.CopyMismatchError,
    after_the_scope: sp.errors.ScopeEndedError,
    no_collective_id: sp.errors.MissingCollectiveIdError,
    unused_collective_id: sp.errors.UnusedCollectiveIdError,
    read_where_it_cannot_be: sp.errors.InterpretedReadError,
}
