"""What each operation says of a misuse, word for word."""

import copy
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp

from .helpers import FLOATS, MESHES, Message, assert_says, says, trace_call


class Group(sp.Scratch):
    done = sp.semaphore()
    barrier = sp.barrier_semaphore()
    send = sp.dma_semaphore()
    slots = sp.dma_semaphore(2)
    grid = sp.semaphore(2, 3)
    none = sp.semaphore(0)
    ints = sp.vmem((8, 128), jnp.int32)
    rows = sp.vmem((2, 128), jnp.float32)
    table = sp.smem((8, 128), jnp.float32)


def row(
    act: Callable[[Any, Any, Any], Any],
    text: str,
    mesh: str = "one axis",
    *,
    error: type[Exception] | None = None,
    collective_id: int | None = None,
) -> Message:
    """What a kernel that does `act` is told."""

    def misuse() -> None:
        def kernel(x: Any, o: Any, s: Group) -> None:
            act(x, o, s)

        params = pltpu.CompilerParams(collective_id=collective_id)
        call = sp.pallas_call(kernel, FLOATS, scratch_shapes=Group, compiler_params=params)
        trace_call(call, mesh)

    return says(misuse, text, error)


inside = sp.semaphore()
wide = sp.dma_semaphore(2, 2)
data = sp.dma_semaphore()


def leaked(spec: Any, make: Callable[[Any], Any] = lambda sem: sem) -> Any:
    """A handle, or what is made of it, that has left its scope."""
    things: list[Any] = []

    def leaker(sem: Any) -> None:
        things.append(make(sem))

    sp.run_scoped(leaker, spec)
    return things[0]


def leaked_copy(x: Any, o: Any, other: Any) -> Any:
    return leaked(data, lambda sem: sp.make_async_remote_copy(x, o, sem, other, 1))


def forged(handle: Any, ref: Any) -> Any:
    return jax.tree.map(lambda _: ref, handle)


def set_field(x: Any, o: Any, s: Any) -> None:
    s.done = None


def two_axes(x: Any, o: Any, s: Any) -> None:
    sp.barrier_all(("y", "x"))
    sp.barrier_neighbors("y")


def all_and_by_hand(x: Any, o: Any, s: Any) -> None:
    sp.barrier_all("x")  # all
    sp.signal(sp.get_barrier_semaphore(), device_id={"x": 1})


def without_an_id(x: Any, o: Any, s: Any) -> None:
    sp.barrier_all(axes="x")


def in_no_kernel() -> None:
    def body(x: Any) -> Any:
        sp.barrier_neighbors("x")
        return x

    mesh = MESHES["one axis"]
    fn: Any = jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    jax.make_jaxpr(fn)(jnp.zeros(FLOATS.shape))


COME_FROM = (
    "Semaphores come from an allocator: scratch_shapes=, sp.run_scoped, or sp.adopt(ref, spec) "
    "for a raw Pallas ref. [not-a-semaphore]"
)
DMA_FIX = (
    "Only a copy signals a DMA semaphore: wait for the copy (copy.wait() or sp.wait_bytes), or "
    "allocate sp.semaphore() for signal and wait. [wrong-kind]"
)
AMOUNT = "Raw Pallas would truncate or wrap it; convert it yourself. [amount-type]"
ID_FORMS = (
    "must be mesh coordinates (by axis name as in {'x': i}, a tuple, or one int on a mesh of one "
    "axis)"
)
EACH = "Each coordinate is an int or a traced integer scalar. [device-id-type]"
ENDED = (
    "has ended. Use it inside that scope, or allocate it in the scope that uses it. [scope-ended]"
)
REF_FIX = (
    "Pass the ref itself or a view of it, ref.at[...]; ref[...] is already loaded. [not-a-ref]"
)
MISMATCH = "Take the view that fits: ref.at[...]. [copy-mismatch]"
ADOPT_FIX = "Adopt it with the spec of what it is. [adopt]"
NAMES = "Name axes as the mesh does: 'x'. [axis-type]"
OVER = "Call the kernel inside jax.shard_map over a mesh with that axis. [axis]"
STANDS_IN = (
    "A signal of the one can stand in for a signal of the other. Keep to one, or move one to a "
    "kernel with another collective_id. [mixed-barriers]"
)
NO_VALUE = (
    "a semaphore is not a value. Read its count with sp.read(sem), or wait for it with "
    "sp.wait(sem, n)."
)

CONSTRUCTED: list[tuple[str, Callable[[Any, Any, Any], Any], str]] = [
    (
        "DmaSemaphore",
        lambda x, o, s: sp.DmaSemaphore(s.send.ref),
        "sp.dma_semaphore() in scratch_shapes= or sp.run_scoped, or sp.adopt(ref, "
        "sp.dma_semaphore())",
    ),
    (
        "SemaphoreArray",
        lambda x, o, s: sp.SemaphoreArray(None),
        "sp.dma_semaphore(n) in scratch_shapes= or sp.run_scoped, or sp.adopt(ref, "
        "sp.dma_semaphore(n))",
    ),
    ("Spec", lambda x, o, s: sp.Spec(None), "sp.dma_semaphore()"),
    ("Group", lambda x, o, s: Group(), "scratch_shapes=Group"),
    ("LocalCopy", lambda x, o, s: sp.LocalCopy(None), "sp.make_async_copy(...)"),
    ("RemoteCopy", lambda x, o, s: sp.RemoteCopy(None), "sp.make_async_remote_copy(...)"),
]

MESSAGES: dict[str, Message] = {
    # Handles, amounts and devices.
    "no handle": row(
        lambda x, o, s: sp.signal("banana"),
        f"signal: sem must be a Semaphore or BarrierSemaphore, got str 'banana'. {COME_FROM}",
    ),
    "raw semaphore": row(
        lambda x, o, s: sp.async_copy(x, o, s.send.ref),
        "async_copy: sem must be a DmaSemaphore, got a raw Pallas ref to a dma semaphore "
        f"(dma_sem[]). {COME_FROM}",
    ),
    "raw ref": row(
        lambda x, o, s: sp.read(s.ints),
        "read: sem must be a Semaphore or BarrierSemaphore or DmaSemaphore, got a raw Pallas ref "
        f"(int32[8,128]). {COME_FROM}",
    ),
    "loaded array": row(
        lambda x, o, s: sp.wait(x[0]),
        "wait: sem must be a Semaphore or BarrierSemaphore, got an array float32[128]. "
        f"{COME_FROM}",
    ),
    "forged": row(
        lambda x, o, s: sp.wait(forged(s.done, s.ints)),
        "wait: sem must be a Semaphore or BarrierSemaphore, got Semaphore <<done>>, which holds a "
        f"raw Pallas ref (int32[8,128]). {COME_FROM}",
    ),
    "forged array": row(
        lambda x, o, s: forged(s.slots, None)[0],
        "indexing: the array must be a SemaphoreArray[DmaSemaphore] of shape (2,), got "
        "SemaphoreArray[DmaSemaphore] of shape (2,) <<slots>>, which holds NoneType None. "
        f"{COME_FROM}",
    ),
    "after its scope": row(
        lambda x, o, s: sp.signal(leaked(inside)),
        "signal: Semaphore 'sem' (allocated at <<at inside = >>) is used after its scope, "
        f"run_scoped <<def leaker>>, {ENDED}",
    ),
    "array after its scope": row(
        lambda x, o, s: leaked(wide)[0],
        "indexing: SemaphoreArray[DmaSemaphore] of shape (2, 2) 'sem' (allocated at <<at wide = >>)"
        f" is used after its scope, run_scoped <<def leaker>>, {ENDED}",
    ),
    "ref after its scope": row(
        lambda x, o, s: leaked(inside).ref,
        ".ref: Semaphore 'sem' (allocated at <<at inside = >>) is used after its scope, run_scoped "
        f"<<def leaker>>, {ENDED}",
    ),
    "ref of an array after its scope": row(
        lambda x, o, s: leaked(wide).ref,
        ".ref: SemaphoreArray[DmaSemaphore] of shape (2, 2) 'sem' (allocated at <<at wide = >>) is "
        f"used after its scope, run_scoped <<def leaker>>, {ENDED}",
    ),
    **{
        f"{method} after its scope": row(
            lambda x, o, s, method=method: getattr(leaked_copy(x, o, s.send), method)(),
            f"{method}: DmaSemaphore 'sem' (allocated at <<at data = >>) is used after its scope, "
            f"run_scoped <<def leaker>>, {ENDED}",
        )
        for method in ("start", "wait", "wait_send", "wait_recv")
    },
    "dma signalled": row(
        lambda x, o, s: sp.signal(s.send),
        "signal: sem must be a Semaphore or BarrierSemaphore, got DmaSemaphore <<send>>. "
        f"{DMA_FIX}",
    ),
    "regular in a copy": row(
        lambda x, o, s: sp.make_async_copy(x, o, s.done),
        "make_async_copy: sem must be a DmaSemaphore, got Semaphore <<done>>. A regular semaphore "
        "is for signal and wait; a copy needs sp.dma_semaphore(). [wrong-kind]",
    ),
    "barrier in a copy": row(
        lambda x, o, s: sp.async_remote_copy(x, o, s.send, s.barrier, 1),
        "async_remote_copy: recv_sem must be a DmaSemaphore, got BarrierSemaphore <<barrier>>. A "
        "barrier semaphore is for signal and wait; a copy needs sp.dma_semaphore(). [wrong-kind]",
    ),
    "forged of another kind": row(
        lambda x, o, s: sp.signal(forged(s.done, s.send.ref)),
        "signal: sem must be a Semaphore or BarrierSemaphore, got Semaphore <<done>>, which holds "
        f"a raw Pallas ref to a dma semaphore (dma_sem[]). {DMA_FIX}",
    ),
    "array": row(
        lambda x, o, s: sp.wait_bytes(s.slots, x),
        "wait_bytes: sem must be one DmaSemaphore, got SemaphoreArray[DmaSemaphore] of shape (2,) "
        "<<slots>>. Index it first: slots.at[i]. [not-scalar]",
    ),
    "matrix": row(
        lambda x, o, s: sp.signal(s.grid),
        "signal: sem must be one Semaphore or BarrierSemaphore, got SemaphoreArray[Semaphore] of "
        "shape (2, 3) <<grid>>. Index it first: grid.at[i, j]. [not-scalar]",
    ),
    "row of a matrix": row(
        lambda x, o, s: sp.signal(s.grid[1]),
        "signal: sem must be one Semaphore or BarrierSemaphore, got SemaphoreArray[Semaphore] of "
        "shape (3,) <<grid[1]>>. Index it first: grid[1].at[i]. [not-scalar]",
    ),
    "index": row(
        lambda x, o, s: s.slots[0.5],
        "SemaphoreArray[DmaSemaphore] of shape (2,) <<slots>>: an index must be an int or a traced "
        "integer scalar, got float 0.5. Use one integer for each dimension. [index-type]",
    ),
    "index by an array": row(
        lambda x, o, s: s.slots[s.ints[0]],
        "SemaphoreArray[DmaSemaphore] of shape (2,) <<slots>>: an index must be an int or a traced "
        "integer scalar, got an array int32[128]. Use one integer for each dimension. [index-type]",
    ),
    "no index": row(
        lambda x, o, s: s.grid[()],
        "SemaphoreArray[Semaphore] of shape (2, 3) <<grid>>: no index given. Use one integer for "
        "each dimension. [index-type]",
    ),
    "index out of bounds": row(
        lambda x, o, s: s.grid[1, 3],
        "SemaphoreArray[Semaphore] of shape (2, 3) <<grid>>: index 3 is out of bounds for "
        "dimension 1 of size 3. Valid indices are -3 to 2. [index-range]",
    ),
    "index of nothing": row(
        lambda x, o, s: s.none[0],
        "SemaphoreArray[Semaphore] of shape (0,) <<none>>: index 0 is out of bounds for dimension "
        "0 of size 0. Valid indices are none: it holds no semaphore. [index-range]",
    ),
    "too many for one": row(
        lambda x, o, s: s.slots[0, 0],
        "SemaphoreArray[DmaSemaphore] of shape (2,) <<slots>>: 2 indices for 1 dimension. Use at "
        "most one for each dimension. [index-range]",
    ),
    "too many for two": row(
        lambda x, o, s: s.grid[0, 0, 0],
        "SemaphoreArray[Semaphore] of shape (2, 3) <<grid>>: 3 indices for 2 dimensions. Use at "
        "most one for each dimension. [index-range]",
    ),
    "amount": row(
        lambda x, o, s: sp.signal(s.grid[-1, s.ints[0, 0]], 1.9),
        "signal: inc must be an int or a traced integer scalar, got float 1.9, on Semaphore "
        f"<<grid[1, ?]>>. {AMOUNT}",
    ),
    "amount of a wait": row(
        lambda x, o, s: sp.wait(s.barrier, True),
        "wait: value must be an int or a traced integer scalar, got bool True, on BarrierSemaphore "
        f"<<barrier>>. {AMOUNT}",
    ),
    "negative signal": row(
        lambda x, o, s: sp.signal(s.done, -1),
        "signal: inc must be from 0 to 2147483647 (int32), got -1, on Semaphore <<done>>. A "
        "semaphore only counts up by signals and down by waits. [amount-range]",
    ),
    "wait for nothing": row(
        lambda x, o, s: sp.wait(s.done, 0),
        "wait: value must be from 1 to 2147483647 (int32), got 0, on Semaphore <<done>>. A wait "
        "takes at least one from the semaphore; leave out a wait for nothing. [amount-range]",
    ),
    "core": row(
        lambda x, o, s: sp.signal(s.done, core_index=-1),
        "signal: core_index must be a non-negative int or a traced integer scalar, got int -1, on "
        "Semaphore <<done>>. Give the index of the core to signal, or leave it out for this core. "
        "[amount-type]",
    ),
    "device": row(
        lambda x, o, s: sp.signal(s.done, device_id="x"),
        f"signal: device_id {ID_FORMS}, got str 'x', for Semaphore <<done>>. {EACH}",
    ),
    "coordinate": row(
        lambda x, o, s: sp.async_remote_copy(x, o, s.send, s.slots[1], {"x": 1.5}),
        f"async_remote_copy: device_id {ID_FORMS}, got dict {{'x': 1.5}}, for DmaSemaphore "
        f"<<slots[1]>>. {EACH}",
    ),
    "empty device": row(
        lambda x, o, s: sp.signal(s.done, device_id={}),
        "signal: device_id {} names no axis, for Semaphore <<done>>. Name one, {'axis': i}, or "
        "leave device_id out for this device. [device-id]",
    ),
    "device without a mesh": row(
        lambda x, o, s: sp.signal(s.done, device_id=1),
        "signal: device_id is given for Semaphore <<done>>, but there is no mesh here. Call the "
        "kernel inside jax.shard_map. [device-id]",
        "no mesh",
    ),
    "axis without a mesh": row(
        lambda x, o, s: sp.signal(s.done, device_id={"x": 1}),
        "signal: device_id names the axis 'x' for Semaphore <<done>>, which is not bound here. "
        "The axes are none: there is no mesh here. [device-id]",
        "no mesh",
    ),
    "one coordinate of two": row(
        lambda x, o, s: sp.signal(s.done, device_id=1),
        "signal: device_id has 1 coordinate for Semaphore <<done>>, but the mesh is ('x': 2, "
        "'y': 3). Give one for each axis in that order, or name axes: {'axis': i}. [device-id]",
        "two axes",
    ),
    "two coordinates of one": row(
        lambda x, o, s: sp.signal(s.done, device_id=(1, 2)),
        "signal: device_id has 2 coordinates for Semaphore <<done>>, but the mesh is ('x': 4). "
        "Give one for each axis in that order, or name axes: {'axis': i}. [device-id]",
    ),
    "unknown axis": row(
        lambda x, o, s: sp.signal(s.done, device_id={"z": 1}),
        "signal: device_id names the axis 'z' for Semaphore <<done>>, which is not bound here. "
        "The axes are 'x', 'y'. [device-id]",
        "two axes",
    ),
    "axis twice": row(
        lambda x, o, s: sp.signal(s.done, device_id={"y": 1, ("x", "y"): 1}),
        "signal: device_id names the axis 'y' twice for Semaphore <<done>>. Give each axis one "
        "coordinate. [device-id]",
        "two axes",
    ),
    "device out of range": row(
        lambda x, o, s: sp.signal(s.done, device_id={"y": 3}),
        "signal: device_id 3 is out of range for the axis 'y' of size 3, for Semaphore <<done>>. "
        "Use 0 to 2; for a ring take the remainder: (i + 1) % 3. [device-id]",
        "two axes",
    ),
    "joint device out of range": row(
        lambda x, o, s: sp.signal(s.done, device_id={("x", "y"): -1}),
        "signal: device_id -1 is out of range for the axis ('x', 'y') of size 6, for Semaphore "
        "<<done>>. Use 0 to 5; for a ring take the remainder: (i + 1) % 6. [device-id]",
        "two axes",
    ),
    # Copies, and what is adopted.
    "loaded source": row(
        lambda x, o, s: sp.sync_copy(x[...], o),
        f"sync_copy: src must be a ref that holds data, got an array float32[8,128]. {REF_FIX}",
    ),
    "semaphore for data": row(
        lambda x, o, s: sp.async_copy(x, s.done, s.send),
        f"async_copy: dst must be a ref that holds data, got Semaphore <<done>>. {REF_FIX}",
    ),
    "tuple for data": row(
        lambda x, o, s: sp.wait_bytes(s.send, (1, 2)),
        f"wait_bytes: like must be a ref that holds data, got tuple (1, 2). {REF_FIX}",
    ),
    "long value for data": row(
        lambda x, o, s: sp.wait_bytes(s.send, "x" * 99),
        f"wait_bytes: like must be a ref that holds data, got str '{'x' * 56}.... {REF_FIX}",
    ),
    "shapes": row(
        lambda x, o, s: sp.async_copy(x, s.rows, s.send),
        "async_copy: source and destination must have the same shape, got float32[8,128] and "
        f"float32[2,128], with DmaSemaphore <<send>>. {MISMATCH}",
    ),
    "dtypes": row(
        lambda x, o, s: sp.sync_copy(s.ints, o),
        "sync_copy: source and destination must have the same dtype, got int32[8,128] and "
        f"float32[8,128], with a semaphore of its own. {MISMATCH}",
    ),
    "priority": row(
        lambda x, o, s: sp.async_copy(x, o, s.send, priority=-1),
        "start of a local copy: priority must be 0 or 1, got int -1, with DmaSemaphore <<send>>. "
        "[copy-option]",
    ),
    "add": row(
        lambda x, o, s: sp.make_async_copy(x, o, s.slots[1]).start(add=1),
        "start of a local copy: add must be True or False, got int 1, with DmaSemaphore "
        "<<slots[1]>>. [copy-option]",
    ),
    "counted in SMEM": row(
        lambda x, o, s: sp.async_copy_counted(x, s.table, s.done),
        "async_copy_counted: dst must not be in SMEM, got a raw Pallas ref (float32[8,128]), with "
        "Semaphore <<done>>. The TPU compiler counts no copy from or to SMEM: copy on "
        "sp.dma_semaphore() instead. [counted-copy]",
    ),
    "add of a sync_copy": row(
        lambda x, o, s: sp.sync_copy(x, o, add="yes"),
        "sync_copy: add must be True or False, got str 'yes', with a semaphore of its own. "
        "[copy-option]",
    ),
    "adopt as no spec": row(
        lambda x, o, s: sp.adopt(s.send.ref, sp.DmaSemaphore),
        "adopt: the second argument must be a Spec, got type <class "
        "'safepallas._semaphores.handles.DmaSemaphore'>. Pass what the ref is, such as "
        "sp.dma_semaphore(). [spec]",
    ),
    "adopt another kind": row(
        lambda x, o, s: sp.adopt(s.send.ref, sp.semaphore()),
        "adopt: the ref is a raw Pallas ref to a dma semaphore (dma_sem[]), not semaphore(): "
        f"semaphore[]. {ADOPT_FIX}",
    ),
    "adopt another shape": row(
        lambda x, o, s: sp.adopt(s.slots.ref, sp.dma_semaphore(3)),
        "adopt: the ref is a raw Pallas ref to a dma semaphore (dma_sem[2]), not dma_semaphore(3): "
        f"dma_sem[3]. {ADOPT_FIX}",
    ),
    "adopt other data": row(
        lambda x, o, s: sp.adopt(s.ints, sp.vmem((8, 128), jnp.int16)),
        "adopt: the ref is a raw Pallas ref (int32[8,128]), not vmem((8, 128), int16): "
        f"int16[8,128]. {ADOPT_FIX}",
    ),
    # Barriers.
    "neighbors of several": row(
        lambda x, o, s: sp.barrier_neighbors(("x", "y")),
        f"barrier_neighbors: axis must be the name of one mesh axis, got tuple ('x', 'y'). {NAMES}",
    ),
    "all of a number": row(
        lambda x, o, s: sp.barrier_all(["x", 0]),
        "barrier_all: axes must be the name of a mesh axis or a sequence of names, got list "
        f"['x', 0]. {NAMES}",
    ),
    "core axis by number": row(
        lambda x, o, s: sp.core_barrier(s.done, core_axis_name=0),
        f"core_barrier: core_axis_name must be the name of an axis of cores, got int 0. {NAMES}",
    ),
    "no axis": row(
        lambda x, o, s: sp.barrier_all([]),
        "barrier_all: axes names no axis. Name those whose devices are to wait. [axis]",
    ),
    "barrier: unknown axis": row(
        lambda x, o, s: sp.barrier_neighbors("z"),
        "barrier_neighbors: axis names the axis 'z', which is no axis of the device mesh here. The "
        f"axes are 'x', 'y'. {OVER}",
        "two axes",
    ),
    "no mesh": row(
        lambda x, o, s: sp.barrier_all("x"),
        "barrier_all: axes names the axis 'x', which is no axis of the device mesh here. The axes "
        f"are none: there is no mesh here. {OVER}",
        "no mesh",
    ),
    "barrier: axis twice": row(
        lambda x, o, s: sp.barrier_all(("x", "y", "x")),
        "barrier_all: axes names the axis 'x' twice. Name each axis once. [axis]",
        "two axes",
    ),
    "device axis for cores": row(
        lambda x, o, s: sp.core_barrier(s.done, core_axis_name="x"),
        "core_barrier: core_axis_name 'x' is no axis of cores here, for Semaphore <<done>>. The "
        "axes of cores are none: the kernel has no mesh of cores. For devices use sp.barrier_all. "
        "[axis]",
    ),
    "core barrier of a copy's semaphore": row(
        lambda x, o, s: sp.core_barrier(s.send, core_axis_name="x"),
        "core_barrier: sem must be a Semaphore, got DmaSemaphore <<send>>. Only a copy signals a "
        "DMA semaphore: wait for the copy (copy.wait() or sp.wait_bytes), or allocate "
        "sp.semaphore() for signal and wait. [wrong-kind]",
    ),
    "outside a kernel": says(
        in_no_kernel,
        "barrier_neighbors is called outside a kernel. Call it in the body of one, and that inside "
        "jax.shard_map. [not-in-kernel]",
    ),
    "two axes on one semaphore": row(
        two_axes,
        "kernel <<def kernel>> uses its barrier semaphore in two ways: a barrier over ('x', 'y') "
        '(<<use sp.barrier_all(("y", "x")) by two_axes>>), and a barrier over \'y\' '
        f'(<<use sp.barrier_neighbors("y") by two_axes>>). {STANDS_IN}',
        "two axes",
        collective_id=1,
    ),
    "by hand on the same semaphore": row(
        all_and_by_hand,
        "kernel <<def kernel>> uses its barrier semaphore in two ways: a barrier over 'x' "
        '(<<use sp.barrier_all("x")  # all by all_and_by_hand>>), and '
        "sp.get_barrier_semaphore() by hand (<<use sp.get_barrier_semaphore(), device_id by "
        f"all_and_by_hand>>). {STANDS_IN}",
        collective_id=1,
    ),
    "no collective_id": row(
        without_an_id,
        "kernel <<def kernel>> uses the barrier semaphore (<<use sp.barrier_all(axes= by "
        "without_an_id>>) and has no collective_id. Pass compiler_params="
        "pltpu.CompilerParams(collective_id=...): an int that all devices agree on and no other "
        "communication pattern uses. [missing-collective-id]",
    ),
    # A semaphore taken for a value, a class called or derived from.
    **{
        f"{name} constructed": row(
            act,
            f"{name} cannot be constructed: probably you called {name}(...), instead you want "
            f"{instead}.",
        )
        for name, act, instead in CONSTRUCTED
    },
    "handle copied": row(
        lambda x, o, s: copy.copy(s.done),
        "Semaphore cannot be constructed: probably you called Semaphore(...), instead you want "
        "sp.semaphore() in scratch_shapes= or sp.run_scoped, or sp.adopt(ref, sp.semaphore()).",
    ),
    **{
        f"{cls.__name__} subclassed": says(
            lambda cls=cls: type("Own", (cls,), {}),
            f"{cls.__name__} is final: it cannot be subclassed.",
        )
        for cls in (sp.Semaphore, sp.SemaphoreArray, sp.Spec, sp.LocalCopy)
    },
    "truth": row(
        lambda x, o, s: bool(s.done),
        f"Semaphore <<done>> has no truth value: {NO_VALUE}",
    ),
    "truth of an array": row(
        lambda x, o, s: not s.slots,
        f"SemaphoreArray[DmaSemaphore] of shape (2,) <<slots>> has no truth value: {NO_VALUE}",
    ),
    "loading": row(
        lambda x, o, s: jnp.asarray(s.send),
        f"DmaSemaphore <<send>> cannot be loaded: {NO_VALUE}",
    ),
    "comparing": row(
        lambda x, o, s: s.slots[0] == 0,
        f"DmaSemaphore <<slots[0]>> cannot be compared with a number: {NO_VALUE}",
    ),
    "searching": row(
        lambda x, o, s: 0 in s.slots,
        f"SemaphoreArray[DmaSemaphore] of shape (2,) <<slots>> cannot be searched: {NO_VALUE}",
    ),
    "field set": row(
        set_field,
        "'done' of a Scratch cannot be set: the allocator fills it.",
        error=AttributeError,
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str) -> None:
    assert_says(MESSAGES[name], __file__)


def test_names_of_what_kernels_receive() -> None:
    """Parameters, elements of containers, keywords, fields, what was adopted, the barrier."""
    seen: list[str] = []

    def receiver(x: Any, o: Any, pair: Any, *rest: Any) -> None:
        received = jax.tree.leaves((pair, rest), is_leaf=is_handle)
        seen.extend(str(handle).split(" (allocated")[0] for handle in received)
        seen.append(str(sp.adopt(rest[0].ref, sp.semaphore())))
        seen.append(str(sp.get_barrier_semaphore()))
        sp.run_scoped(lambda inner: seen.append(str(inner).split(" (allocated")[0]), sp.semaphore())
        pl.run_scoped(
            lambda raw: seen.append(str(sp.adopt(raw, sp.dma_semaphore()))),
            pltpu.SemaphoreType.DMA,
        )

    def is_handle(x: Any) -> bool:
        return isinstance(x, (sp.Semaphore, sp.DmaSemaphore, sp.SemaphoreArray))

    a_dict = {"a": sp.dma_semaphore(), "b": (sp.semaphore(2),)}
    call = sp.pallas_call(
        receiver,
        FLOATS,
        scratch_shapes=(a_dict, sp.semaphore(), sp.dma_semaphore()),
        compiler_params=pltpu.CompilerParams(collective_id=0),
    )
    trace_call(call)
    assert seen == [
        "DmaSemaphore \"pair['a']\"",
        "SemaphoreArray[Semaphore] of shape (2,) \"pair['b'][0]\"",
        "Semaphore 'rest[0]'",
        "DmaSemaphore 'rest[1]'",
        "Semaphore 'adopted' (adopted as semaphore())",
        "BarrierSemaphore 'barrier' (sp.get_barrier_semaphore())",
        "Semaphore 'inner'",
        "DmaSemaphore 'adopted' (adopted as dma_semaphore())",
    ]
