"""Copies that count: their completion adds 1 to a regular semaphore."""

from typing import Any

from jax.experimental.pallas import tpu as pltpu

from safepallas._errors import operation_errors
from safepallas._jax import compat
from safepallas._operations.checks import vet
from safepallas._operations.copies import _check_ends
from safepallas._operations.device_ids import DeviceId, resolve
from safepallas._semaphores.handles import Semaphore
from safepallas._semaphores.names import describe
from safepallas._semaphores.refs import Ref


def _check_counted(src: Any, dst: Any, op: str, sem: Any) -> None:
    """Refuse ends that do not match, or that lie where copies cannot count."""
    _check_ends(src, dst, op, sem)
    for arg, ref in (("src", src), ("dst", dst)):
        if compat.is_in_smem(ref):
            raise operation_errors.counted_in_smem(op, arg, describe(ref), str(sem))


def async_copy_counted(src: Ref, dst: Ref, sem: Semaphore) -> None:
    """Start a copy on this device that adds 1 to a regular semaphore when it is complete.

    Wait for `n` such copies with ``sp.wait(sem, n)``, whatever their sizes; signals may be counted
    on the same semaphore. Nothing is returned: there is no copy to wait for by its bytes.

    Lowers to ``pltpu.make_async_copy(src, dst, sem).start()`` with a regular semaphore. For TPU v6
    and later. Measured with the TPU compilers of JAX 0.10.2 and 0.12.0.1, no TPU attached: v6e and
    v5p compile; v5e says "Regular semaphores in EnqueueDMA are not supported on this target."
    On SparseCores the scalar subcore can; for the vector subcores the compiler says "Count done
    mode is not supported for streams." With an end in SMEM 0.10.2 says "Non-DMA semaphores are not
    supported for DMAs involving SMEM"; it is refused while tracing under any version.

    ``interpret=pltpu.InterpretParams(...)`` adds the bytes of a copy, so that a wait for several
    ends after the first: it is refused. ``interpret=True`` adds the number of elements, which does
    no harm where nothing reads the semaphore: its waits never block.

    Args:
        src: a ref, or a view of one (``ref.at[...]``), not in SMEM.
        dst: the same, of the same shape and dtype.
        sem: counts the copies that are complete.

    Raises:
        NotASemaphoreError, ScopeEndedError, WrongKindError, NotScalarError: see there.
        NotARefError, CopyMismatchError: as `make_async_copy`.
        CountedCopyError: where an end is in SMEM.
        InterpretedCopyError: at the end of the kernel, where it is to run under
            ``interpret=pltpu.InterpretParams(...)``.

    Example, in a kernel::

        for i in range(4):
            sp.async_copy_counted(x.at[i], o.at[i], ready)
        sp.wait(ready, 4)
    """
    op = "async_copy_counted"
    vet(sem, op, "sem")
    _check_counted(src, dst, op, sem)
    raw: Any = pltpu.make_async_copy(src, dst, sem._ref)
    raw.start()


def async_remote_copy_counted(
    src: Ref, dst: Ref, send_sem: Semaphore, recv_sem: Semaphore, device_id: DeviceId
) -> None:
    """Start a copy to another device that counts on regular semaphores, here and there.

    As `async_copy_counted`, on the same chips. Wait with ``sp.wait(send_sem)`` until the source has
    been read, and with ``sp.wait(recv_sem)`` for a copy that comes in. Both semaphores are regular:
    the TPU compiler knows no copy that counts at one end and adds bytes at the other.

    Lowers to ``pltpu.make_async_remote_copy(...).start()`` with mesh coordinates.

    Args:
        src: a ref of this device, or a view of one, not in SMEM.
        dst: a ref of the same shape and dtype: the one of that name on the other device.
        send_sem: gets 1 on this device, when the source has been read.
        recv_sem: gets 1 on the other device, when the destination is written.
        device_id: as in `make_async_remote_copy`; required.

    Raises:
        NotASemaphoreError, ScopeEndedError, WrongKindError, NotScalarError: see there.
        NotARefError, CopyMismatchError: as `make_async_copy`.
        CountedCopyError, InterpretedCopyError: as `async_copy_counted`.
        DeviceIdTypeError, DeviceIdError: for `device_id`.

    Example, in a kernel::

        sp.async_remote_copy_counted(x, o, send, recv, {"x": right})
        sp.wait(send)
        sp.wait(recv)
    """
    op = "async_remote_copy_counted"
    vet(send_sem, op, "send_sem")
    vet(recv_sem, op, "recv_sem")
    _check_counted(src, dst, op, recv_sem)
    where = resolve(device_id, op, recv_sem)
    raw: Any = pltpu.make_async_remote_copy(src, dst, send_sem._ref, recv_sem._ref, where)
    raw.start()
