"""signal, wait, read."""

from typing import Any

import jax
import numpy as np
from jax.experimental import pallas as pl

from safepallas._errors import operation_errors
from safepallas._errors.base import INT32_MAX
from safepallas._jax import compat
from safepallas._operations.checks import amount, vet
from safepallas._operations.device_ids import DeviceId, core_named_by, resolve
from safepallas._semaphores.handles import BarrierSemaphore, DmaSemaphore, Semaphore
from safepallas._semaphores.lifetime import describe


def core_number(index: Any, sem: Any) -> Any:
    if isinstance(index, jax.Array) and not index.ndim and np.issubdtype(index.dtype, np.integer):
        return index if index.dtype == np.int32 else index.astype(np.int32)
    is_int = isinstance(index, (int, np.integer)) and not isinstance(index, bool)
    if is_int and 0 <= index <= INT32_MAX:
        count = compat.most_cores()
        if count is not None and index >= count:
            raise operation_errors.core_range(str(sem), int(index), count)
        return index if type(index) is int and not compat.x64_enabled() else np.int32(index)
    raise operation_errors.core_index(str(sem), describe(index))


def signal(
    sem: Semaphore | BarrierSemaphore,
    inc: int | jax.Array = 1,
    *,
    device_id: DeviceId | None = None,
    core_index: int | jax.Array | None = None,
) -> None:
    """Add to a semaphore, here or on another device.

    Lowers to ``pl.semaphore_signal``. A remote signal may reach a device before it has entered the
    kernel: only the barrier semaphore is safe before that is known.

    Args:
        sem: a regular or barrier semaphore. A DMA semaphore is signalled by copies only.
        inc: how much to add, from 0 to 2147483647; a traced integer is cast to int32.
        device_id: mesh coordinates of the device: by axis name, ``{"x": i}`` (axes left out are
            this device's own), a tuple with one for each axis of the mesh, or one int on a mesh of
            one axis. Left out: this device. Axes of the mesh may be joined, ``{("x", "y"): i}``,
            the last counting fastest. In a kernel over a core mesh its axes name a core, alone or
            beside those of the device: ``{"x": i, "core": j}``.
        core_index: the core of the device, where it has several and no axis names them. Raw Pallas
            and the TPU compiler take any number. Here it is checked against the kind of TPU of the
            mesh and the core meshes, as far as they are known.

    Raises:
        NotASemaphoreError, ScopeEndedError, WrongKindError, NotScalarError: see there.
        AmountTypeError, AmountRangeError: for `inc`, and for `core_index`.
        DeviceIdTypeError, DeviceIdError: for `device_id`; where it and `core_index` name a core.

    Example, in a kernel::

        sp.signal(ready)
        sp.signal(ready, 2, device_id={"x": left})
    """
    if not (
        (type(sem) is Semaphore or type(sem) is BarrierSemaphore)
        and sem._scope.alive
        and sem._vetted
    ):
        vet(sem, "signal", "sem")
    if type(inc) is not int or not 0 <= inc <= INT32_MAX:
        inc = amount(inc, "signal", "inc", sem, 0)
    if device_id is None and core_index is None:
        pl.semaphore_signal(sem._ref, inc)
        return
    device = None if device_id is None else resolve(device_id, "signal", sem)
    core = None if core_index is None else core_number(core_index, sem)
    if core is not None and device is not None:
        axis = core_named_by(device)
        if axis is not None:
            raise operation_errors.core_twice(str(sem), repr(axis))
    pl.semaphore_signal(sem._ref, inc, device_id=device, core_index=core)


def wait(sem: Semaphore | BarrierSemaphore, value: int | jax.Array = 1) -> None:
    """Block until the semaphore is at least `value`, then take `value` from it.

    Lowers to ``pl.semaphore_wait``, which always takes: its ``decrement=False`` is not offered, as
    the TPU lowering drops it (measured, JAX 0.10.2 and 0.12.0.1).

    Args:
        sem: a regular or barrier semaphore of this core. For a DMA semaphore wait for its copy.
        value: how much, from 1 to 2147483647; a traced integer is cast to int32.

    Raises:
        NotASemaphoreError, ScopeEndedError, WrongKindError, NotScalarError: see there.
        AmountTypeError, AmountRangeError: for `value`.

    Example, in a kernel::

        sp.signal(ready, 2)
        sp.wait(ready, 2)
    """
    if not (
        (type(sem) is Semaphore or type(sem) is BarrierSemaphore)
        and sem._scope.alive
        and sem._vetted
    ):
        vet(sem, "wait", "sem")
    if type(value) is not int or not 1 <= value <= INT32_MAX:
        value = amount(value, "wait", "value", sem, 1)
    pl.semaphore_wait(sem._ref, value)


def read(sem: Semaphore | BarrierSemaphore | DmaSemaphore) -> jax.Array:
    """The count of a semaphore now. Nothing may depend on it but debugging: it is a race.

    Lowers to ``pl.semaphore_read``. JAX cannot run it under ``pltpu.InterpretParams``.

    Args:
        sem: a semaphore of any kind; a DMA semaphore counts bytes.

    Returns:
        An int32 scalar.

    Raises:
        NotASemaphoreError, ScopeEndedError, NotScalarError: see there.
        InterpretedReadError: at the end of the kernel, where it is to run under
            ``interpret=pltpu.InterpretParams(...)``.

    Example, in a kernel::

        pl.debug_print("ready: {}", sp.read(ready))
    """
    if not (
        (type(sem) is Semaphore or type(sem) is BarrierSemaphore or type(sem) is DmaSemaphore)
        and sem._scope.alive
        and sem._vetted
    ):
        vet(sem, "read", "sem")
    return pl.semaphore_read(sem._ref)
