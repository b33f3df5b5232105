"""The messages of the barriers, word for word."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp

from .helpers import FLOATS, MESHES, Message, assert_says, trace_call


class Group(sp.Scratch):
    done = sp.semaphore()
    send = sp.dma_semaphore()


def row(
    error: type[Exception],
    body: Callable[[Group], Any],
    text: str,
    mesh: str = "one axis",
    collective_id: int | None = None,
) -> Message:
    """What a kernel with that body is answered."""

    def misuse() -> None:
        def kernel(x: Any, o: Any, s: Group) -> None:
            body(s)

        params = pltpu.CompilerParams(collective_id=collective_id)
        call = sp.pallas_call(kernel, FLOATS, scratch_shapes=Group, compiler_params=params)
        trace_call(call, mesh)

    return Message(error, misuse, text)


def two_axes(s: Any) -> None:
    sp.barrier_all(("y", "x"))
    sp.barrier_neighbors("y")


def all_and_by_hand(s: Any) -> None:
    sp.barrier_all("x")
    sp.signal(sp.get_barrier_semaphore(), device_id={"x": 1})


def without_an_id(s: Any) -> None:
    sp.barrier_all(axes="x")


def in_no_kernel() -> None:
    def body(x: Any) -> Any:
        sp.barrier_neighbors("x")
        return x

    mesh = MESHES["one axis"]
    fn: Any = jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    jax.make_jaxpr(fn)(jnp.zeros(FLOATS.shape))


NAMES = "Name axes as the mesh does: 'x'. [axis-type]"
OVER = "Call the kernel inside jax.shard_map over a mesh with that axis. [axis]"
STANDS_IN = (
    "A signal of the one can stand in for a signal of the other. Keep to one, or move one to a "
    "kernel with another collective_id. [mixed-barriers]"
)

MESSAGES: dict[str, Message] = {
    "neighbors of several": row(
        sp.errors.AxisTypeError,
        lambda s: sp.barrier_neighbors(("x", "y")),
        f"barrier_neighbors: axis must be the name of one mesh axis, got tuple ('x', 'y'). {NAMES}",
    ),
    "all of a number": row(
        sp.errors.AxisTypeError,
        lambda s: sp.barrier_all(["x", 0]),
        "barrier_all: axes must be the name of a mesh axis or a sequence of names, got list "
        f"['x', 0]. {NAMES}",
    ),
    "core axis by number": row(
        sp.errors.AxisTypeError,
        lambda s: sp.core_barrier(s.done, core_axis_name=0),
        f"core_barrier: core_axis_name must be the name of an axis of cores, got int 0. {NAMES}",
    ),
    "no axis": row(
        sp.errors.AxisError,
        lambda s: sp.barrier_all([]),
        "barrier_all: axes names no axis. Name those whose devices are to wait. [axis]",
    ),
    "unknown axis": row(
        sp.errors.AxisError,
        lambda s: sp.barrier_neighbors("z"),
        "barrier_neighbors: axis names the axis 'z', which is no axis of the device mesh here. The "
        f"axes are 'x', 'y'. {OVER}",
        "two axes",
    ),
    "no mesh": row(
        sp.errors.AxisError,
        lambda s: sp.barrier_all("x"),
        "barrier_all: axes names the axis 'x', which is no axis of the device mesh here. The axes "
        f"are none: there is no mesh here. {OVER}",
        "no mesh",
    ),
    "axis twice": row(
        sp.errors.AxisError,
        lambda s: sp.barrier_all(("x", "y", "x")),
        "barrier_all: axes names the axis 'x' twice. Name each axis once. [axis]",
        "two axes",
    ),
    "device axis for cores": row(
        sp.errors.AxisError,
        lambda s: sp.core_barrier(s.done, core_axis_name="x"),
        "core_barrier: core_axis_name 'x' is no axis of cores here, for Semaphore <<done>>. The "
        "axes of cores are none: the kernel has no mesh of cores. For devices use sp.barrier_all. "
        "[axis]",
    ),
    "core barrier of a copy's semaphore": row(
        sp.errors.WrongKindError,
        lambda s: sp.core_barrier(s.send, core_axis_name="x"),
        "core_barrier: sem must be a Semaphore, got DmaSemaphore <<send>>. Only a copy signals a "
        "DMA semaphore: wait for the copy (copy.wait() or sp.wait_bytes), or allocate "
        "sp.semaphore() for signal and wait. [wrong-kind]",
    ),
    "outside a kernel": Message(
        sp.errors.NotInKernelError,
        in_no_kernel,
        "barrier_neighbors is called outside a kernel. Call it in the body of one, and that inside "
        "jax.shard_map. [not-in-kernel]",
    ),
    "two axes on one semaphore": row(
        sp.errors.MixedBarriersError,
        two_axes,
        "kernel <<def kernel>> uses its barrier semaphore in two ways: a barrier over ('x', 'y') "
        '(<<at sp.barrier_all(("y", "x"))>>:4 (two_axes)), and a barrier over \'y\' '
        f'(<<at sp.barrier_neighbors("y")>>:4 (two_axes)). {STANDS_IN}',
        "two axes",
        collective_id=1,
    ),
    "by hand on the same semaphore": row(
        sp.errors.MixedBarriersError,
        all_and_by_hand,
        "kernel <<def kernel>> uses its barrier semaphore in two ways: a barrier over 'x' "
        '(<<at sp.barrier_all("x")>>:4 (all_and_by_hand)), and sp.get_barrier_semaphore() by '
        "hand (<<at sp.signal(sp.get_barrier_semaphore()>>:14 (all_and_by_hand)). "
        f"{STANDS_IN}",
        collective_id=1,
    ),
    "no collective_id": row(
        sp.errors.MissingCollectiveIdError,
        without_an_id,
        "kernel <<def kernel>> uses the barrier semaphore (<<at sp.barrier_all(axes=>>:4 "
        "(without_an_id)) and has no collective_id. Pass compiler_params="
        "pltpu.CompilerParams(collective_id=...): an int that all devices agree on and no other "
        "communication pattern uses. [missing-collective-id]",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str) -> None:
    assert_says(MESSAGES[name], __file__)
