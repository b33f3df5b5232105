"""The messages of the operations, word for word, each through a misuse that one could write."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import safepallas as sp

from .helpers import FLOATS, Message, assert_says, trace_call


class Group(sp.Scratch):
    done = sp.semaphore()
    barrier = sp.barrier_semaphore()
    send = sp.dma_semaphore()
    slots = sp.dma_semaphore(2)
    grid = sp.semaphore(2, 3)
    none = sp.semaphore(0)
    ints = sp.vmem((8, 128), jnp.int32)
    rows = sp.vmem((2, 128), jnp.float32)


def row(
    error: type[Exception],
    body: Callable[[Any, Any, Any], Any],
    text: str,
    mesh: str = "one axis",
) -> Message:
    """What a kernel with that body is answered."""

    def misuse() -> None:
        def kernel(x: Any, o: Any, s: Group) -> None:
            body(x, o, s)

        trace_call(sp.pallas_call(kernel, FLOATS, scratch_shapes=Group), mesh)

    return Message(error, misuse, text)


inside = sp.semaphore()
wide = sp.dma_semaphore(2, 2)
data = sp.dma_semaphore()


def leaked(spec: Any) -> Any:
    things: list[Any] = []

    def leaker(sem: Any) -> None:
        things.append(sem)

    sp.run_scoped(leaker, spec)
    return things[0]


def leaked_copy(x: Any, o: Any, other: Any) -> Any:
    things: list[Any] = []

    def copier(sem: Any) -> None:
        things.append(sp.make_async_remote_copy(x, o, sem, other, 1))

    sp.run_scoped(copier, data)
    return things[0]


def forged(handle: Any, ref: Any) -> Any:
    return jax.tree.map(lambda _: ref, handle)


COME_FROM = (
    "Semaphores come from an allocator: scratch_shapes=, sp.run_scoped, or sp.adopt(ref, spec) "
    "for a raw Pallas ref. [not-a-semaphore]"
)
DMA_FIX = (
    "Only a copy signals a DMA semaphore: wait for the copy (copy.wait() or sp.wait_bytes), or "
    "allocate sp.semaphore() for signal and wait. [wrong-kind]"
)
AMOUNT = "Raw Pallas would truncate or wrap it; convert it yourself. [amount-type]"
CORE = "Give the index of the core to signal, or leave it out for this core. [amount-type]"
ID_FORMS = (
    "must be mesh coordinates (by axis name as in {'x': i}, a tuple, or one int on a mesh of one "
    "axis)"
)
EACH = "Each coordinate is an int or a traced integer scalar. [device-id-type]"
ENDED = (
    "has ended. Use it inside that scope, or allocate it in the scope that uses it. [scope-ended]"
)

MESSAGES: dict[str, Message] = {
    "no handle": row(
        sp.errors.NotASemaphoreError,
        lambda x, o, s: sp.signal("banana"),
        f"signal: sem must be a Semaphore or BarrierSemaphore, got str 'banana'. {COME_FROM}",
    ),
    "raw semaphore": row(
        sp.errors.NotASemaphoreError,
        lambda x, o, s: sp.async_copy(x, o, s.send.ref),
        "async_copy: sem must be a DmaSemaphore, got a raw Pallas ref to a dma semaphore "
        f"(dma_sem[]). {COME_FROM}",
    ),
    "raw ref": row(
        sp.errors.NotASemaphoreError,
        lambda x, o, s: sp.read(s.ints),
        "read: sem must be a Semaphore or BarrierSemaphore or DmaSemaphore, got a raw Pallas ref "
        f"(int32[8,128]). {COME_FROM}",
    ),
    "loaded array": row(
        sp.errors.NotASemaphoreError,
        lambda x, o, s: sp.wait(x[0]),
        "wait: sem must be a Semaphore or BarrierSemaphore, got an array float32[128]. "
        f"{COME_FROM}",
    ),
    "forged": row(
        sp.errors.NotASemaphoreError,
        lambda x, o, s: sp.wait(forged(s.done, s.ints)),
        "wait: sem must be a Semaphore or BarrierSemaphore, got Semaphore <<done>>, which holds a "
        f"raw Pallas ref (int32[8,128]). {COME_FROM}",
    ),
    "forged array": row(
        sp.errors.NotASemaphoreError,
        lambda x, o, s: forged(s.slots, None)[0],
        "indexing: the array must be a SemaphoreArray[DmaSemaphore] of shape (2,), got "
        "SemaphoreArray[DmaSemaphore] of shape (2,) <<slots>>, which holds NoneType None. "
        f"{COME_FROM}",
    ),
    "after its scope": row(
        sp.errors.ScopeEndedError,
        lambda x, o, s: sp.signal(leaked(inside)),
        "signal: Semaphore 'sem' (allocated at <<at inside = >>) is used after its scope, "
        f"run_scoped <<def leaker>>, {ENDED}",
    ),
    "array after its scope": row(
        sp.errors.ScopeEndedError,
        lambda x, o, s: leaked(wide)[0],
        "indexing: SemaphoreArray[DmaSemaphore] of shape (2, 2) 'sem' (allocated at <<at wide = >>)"
        f" is used after its scope, run_scoped <<def leaker>>, {ENDED}",
    ),
    "ref after its scope": row(
        sp.errors.ScopeEndedError,
        lambda x, o, s: leaked(inside).ref,
        ".ref: Semaphore 'sem' (allocated at <<at inside = >>) is used after its scope, run_scoped "
        f"<<def leaker>>, {ENDED}",
    ),
    "ref of an array after its scope": row(
        sp.errors.ScopeEndedError,
        lambda x, o, s: leaked(wide).ref,
        ".ref: SemaphoreArray[DmaSemaphore] of shape (2, 2) 'sem' (allocated at <<at wide = >>) is "
        f"used after its scope, run_scoped <<def leaker>>, {ENDED}",
    ),
    **{
        f"{method} after its scope": row(
            sp.errors.ScopeEndedError,
            lambda x, o, s, method=method: getattr(leaked_copy(x, o, s.send), method)(),
            f"{method}: DmaSemaphore 'sem' (allocated at <<at data = >>) is used after its scope, "
            f"run_scoped <<def copier>>, {ENDED}",
        )
        for method in ("start", "wait", "wait_send", "wait_recv")
    },
    "dma signalled": row(
        sp.errors.WrongKindError,
        lambda x, o, s: sp.signal(s.send),
        "signal: sem must be a Semaphore or BarrierSemaphore, got DmaSemaphore <<send>>. "
        f"{DMA_FIX}",
    ),
    "regular in a copy": row(
        sp.errors.WrongKindError,
        lambda x, o, s: sp.make_async_copy(x, o, s.done),
        "make_async_copy: sem must be a DmaSemaphore, got Semaphore <<done>>. A regular semaphore "
        "is for signal and wait; a copy needs sp.dma_semaphore(). [wrong-kind]",
    ),
    "barrier in a copy": row(
        sp.errors.WrongKindError,
        lambda x, o, s: sp.async_remote_copy(x, o, s.send, s.barrier, 1),
        "async_remote_copy: recv_sem must be a DmaSemaphore, got BarrierSemaphore <<barrier>>. A "
        "barrier semaphore is for signal and wait; a copy needs sp.dma_semaphore(). [wrong-kind]",
    ),
    "forged of another kind": row(
        sp.errors.WrongKindError,
        lambda x, o, s: sp.signal(forged(s.done, s.send.ref)),
        "signal: sem must be a Semaphore or BarrierSemaphore, got Semaphore <<done>>, which holds "
        f"a raw Pallas ref to a dma semaphore (dma_sem[]). {DMA_FIX}",
    ),
    "array": row(
        sp.errors.NotScalarError,
        lambda x, o, s: sp.wait_bytes(s.slots, x),
        "wait_bytes: sem must be one DmaSemaphore, got SemaphoreArray[DmaSemaphore] of shape (2,) "
        "<<slots>>. Index it first: slots.at[i]. [not-scalar]",
    ),
    "matrix": row(
        sp.errors.NotScalarError,
        lambda x, o, s: sp.signal(s.grid),
        "signal: sem must be one Semaphore or BarrierSemaphore, got SemaphoreArray[Semaphore] of "
        "shape (2, 3) <<grid>>. Index it first: grid.at[i, j]. [not-scalar]",
    ),
    "row of a matrix": row(
        sp.errors.NotScalarError,
        lambda x, o, s: sp.signal(s.grid[1]),
        "signal: sem must be one Semaphore or BarrierSemaphore, got SemaphoreArray[Semaphore] of "
        "shape (3,) <<grid[1]>>. Index it first: grid[1].at[i]. [not-scalar]",
    ),
    "index": row(
        sp.errors.IndexTypeError,
        lambda x, o, s: s.slots[0.5],
        "SemaphoreArray[DmaSemaphore] of shape (2,) <<slots>>: an index must be an int or a traced "
        "integer scalar, got float 0.5. Use one integer for each dimension. [index-type]",
    ),
    "index by an array": row(
        sp.errors.IndexTypeError,
        lambda x, o, s: s.slots[s.ints[0]],
        "SemaphoreArray[DmaSemaphore] of shape (2,) <<slots>>: an index must be an int or a traced "
        "integer scalar, got an array int32[128]. Use one integer for each dimension. [index-type]",
    ),
    "no index": row(
        sp.errors.IndexTypeError,
        lambda x, o, s: s.grid[()],
        "SemaphoreArray[Semaphore] of shape (2, 3) <<grid>>: no index given. Use one integer for "
        "each dimension. [index-type]",
    ),
    "index out of bounds": row(
        sp.errors.IndexRangeError,
        lambda x, o, s: s.grid[1, 3],
        "SemaphoreArray[Semaphore] of shape (2, 3) <<grid>>: index 3 is out of bounds for "
        "dimension 1 of size 3. Valid indices are -3 to 2. [index-range]",
    ),
    "index of nothing": row(
        sp.errors.IndexRangeError,
        lambda x, o, s: s.none[0],
        "SemaphoreArray[Semaphore] of shape (0,) <<none>>: index 0 is out of bounds for dimension "
        "0 of size 0. Valid indices are none: it holds no semaphore. [index-range]",
    ),
    "too many for one": row(
        sp.errors.IndexRangeError,
        lambda x, o, s: s.slots[0, 0],
        "SemaphoreArray[DmaSemaphore] of shape (2,) <<slots>>: 2 indices for 1 dimension. Use at "
        "most one for each dimension. [index-range]",
    ),
    "too many for two": row(
        sp.errors.IndexRangeError,
        lambda x, o, s: s.grid[0, 0, 0],
        "SemaphoreArray[Semaphore] of shape (2, 3) <<grid>>: 3 indices for 2 dimensions. Use at "
        "most one for each dimension. [index-range]",
    ),
    "amount": row(
        sp.errors.AmountTypeError,
        lambda x, o, s: sp.signal(s.grid[-1, s.ints[0, 0]], 1.9),
        "signal: inc must be an int or a traced integer scalar, got float 1.9, on Semaphore "
        f"<<grid[1, ?]>>. {AMOUNT}",
    ),
    "amount of a wait": row(
        sp.errors.AmountTypeError,
        lambda x, o, s: sp.wait(s.barrier, True),
        "wait: value must be an int or a traced integer scalar, got bool True, on BarrierSemaphore "
        f"<<barrier>>. {AMOUNT}",
    ),
    "negative signal": row(
        sp.errors.AmountRangeError,
        lambda x, o, s: sp.signal(s.done, -1),
        "signal: inc must be from 0 to 2147483647 (int32), got -1, on Semaphore <<done>>. A "
        "semaphore only counts up by signals and down by waits. [amount-range]",
    ),
    "wait for nothing": row(
        sp.errors.AmountRangeError,
        lambda x, o, s: sp.wait(s.done, 0),
        "wait: value must be from 1 to 2147483647 (int32), got 0, on Semaphore <<done>>. A wait "
        "takes at least one from the semaphore; leave out a wait for nothing. [amount-range]",
    ),
    "core": row(
        sp.errors.AmountTypeError,
        lambda x, o, s: sp.signal(s.done, core_index=-1),
        "signal: core_index must be a non-negative int or a traced integer scalar, got int -1, on "
        f"Semaphore <<done>>. {CORE}",
    ),
    "device": row(
        sp.errors.DeviceIdTypeError,
        lambda x, o, s: sp.signal(s.done, device_id="x"),
        f"signal: device_id {ID_FORMS}, got str 'x', for Semaphore <<done>>. {EACH}",
    ),
    "coordinate": row(
        sp.errors.DeviceIdTypeError,
        lambda x, o, s: sp.async_remote_copy(x, o, s.send, s.slots[1], {"x": 1.5}),
        f"async_remote_copy: device_id {ID_FORMS}, got dict {{'x': 1.5}}, for DmaSemaphore "
        f"<<slots[1]>>. {EACH}",
    ),
    "empty device": row(
        sp.errors.DeviceIdError,
        lambda x, o, s: sp.signal(s.done, device_id={}),
        "signal: device_id {} names no axis, for Semaphore <<done>>. Name one, {'axis': i}, or "
        "leave device_id out for this device. [device-id]",
    ),
    "device without a mesh": row(
        sp.errors.DeviceIdError,
        lambda x, o, s: sp.signal(s.done, device_id=1),
        "signal: device_id is given for Semaphore <<done>>, but there is no mesh here. Call the "
        "kernel inside jax.shard_map. [device-id]",
        "no mesh",
    ),
    "axis without a mesh": row(
        sp.errors.DeviceIdError,
        lambda x, o, s: sp.signal(s.done, device_id={"x": 1}),
        "signal: device_id names the axis 'x' for Semaphore <<done>>, which is not bound here. "
        "The axes are none: there is no mesh here. [device-id]",
        "no mesh",
    ),
    "one coordinate of two": row(
        sp.errors.DeviceIdError,
        lambda x, o, s: sp.signal(s.done, device_id=1),
        "signal: device_id has 1 coordinate for Semaphore <<done>>, but the mesh is ('x': 2, "
        "'y': 3). Give one for each axis in that order, or name axes: {'axis': i}. [device-id]",
        "two axes",
    ),
    "two coordinates of one": row(
        sp.errors.DeviceIdError,
        lambda x, o, s: sp.signal(s.done, device_id=(1, 2)),
        "signal: device_id has 2 coordinates for Semaphore <<done>>, but the mesh is ('x': 4). "
        "Give one for each axis in that order, or name axes: {'axis': i}. [device-id]",
    ),
    "unknown axis": row(
        sp.errors.DeviceIdError,
        lambda x, o, s: sp.signal(s.done, device_id={"z": 1}),
        "signal: device_id names the axis 'z' for Semaphore <<done>>, which is not bound here. "
        "The axes are 'x', 'y'. [device-id]",
        "two axes",
    ),
    "axis twice": row(
        sp.errors.DeviceIdError,
        lambda x, o, s: sp.signal(s.done, device_id={"y": 1, ("x", "y"): 1}),
        "signal: device_id names the axis 'y' twice for Semaphore <<done>>. Give each axis one "
        "coordinate. [device-id]",
        "two axes",
    ),
    "device out of range": row(
        sp.errors.DeviceIdError,
        lambda x, o, s: sp.signal(s.done, device_id={"y": 3}),
        "signal: device_id 3 is out of range for the axis 'y' of size 3, for Semaphore <<done>>. "
        "Use 0 to 2; for a ring take the remainder: (i + 1) % 3. [device-id]",
        "two axes",
    ),
    "joint device out of range": row(
        sp.errors.DeviceIdError,
        lambda x, o, s: sp.signal(s.done, device_id={("x", "y"): -1}),
        "signal: device_id -1 is out of range for the axis ('x', 'y') of size 6, for Semaphore "
        "<<done>>. Use 0 to 5; for a ring take the remainder: (i + 1) % 6. [device-id]",
        "two axes",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str) -> None:
    assert_says(MESSAGES[name], __file__)
