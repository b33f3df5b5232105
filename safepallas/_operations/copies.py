"""Copies: local and remote, made, started and waited for; and those that count on semaphores."""

from typing import Any, ClassVar, NoReturn, TypeVar, final

from jax.experimental.pallas import tpu as pltpu

from safepallas._errors import operation_errors, semaphore_errors
from safepallas._errors.no_public_constructor import NoPublicConstructor
from safepallas._jax import compat
from safepallas._operations.checks import vet
from safepallas._operations.device_ids import DeviceId, resolve
from safepallas._semaphores.handles import DmaSemaphore, Semaphore
from safepallas._semaphores.kinds import kind_of
from safepallas._semaphores.lifetime import describe, short_type
from safepallas._semaphores.specs import Ref


def _data_type(ref: object, op: str, arg: str) -> compat.RefType:
    """The type of an end of a copy; refused where it is not a ref to data."""
    ref_type = compat.ref_type(ref)
    if ref_type is None or kind_of(ref_type.dtype) is not None:
        raise operation_errors.not_a_ref(op, arg, describe(ref))
    return ref_type


def check_ends(src: object, dst: object, op: str, sem: object) -> None:
    """Refuse ends that are not refs to the same number of the same elements."""
    a, b = compat.ref_type(src), compat.ref_type(dst)
    if a is None or b is None or a.dtype != b.dtype or kind_of(a.dtype) is not None:
        a, b = _data_type(src, op, "src"), _data_type(dst, op, "dst")
    same_shape = len(a.shape) == len(b.shape)
    if same_shape:
        for m, n in zip(a.shape, b.shape):  # noqa: B905
            # A traced size has no value to compare yet.
            if m is not n and isinstance(m, int) and isinstance(n, int) and m != n:
                same_shape = False
    if not same_shape or a.dtype != b.dtype:
        what = "dtype" if same_shape else "shape"
        ours, theirs = short_type(a), short_type(b)
        raise operation_errors.copy_mismatch(op, ours, theirs, what, str(sem))


def _vet_dma(sem: object, op: str, arg: str) -> None:
    if not (type(sem) is DmaSemaphore and sem._scope.alive and sem._vetted):
        vet(sem, op, arg)


class _Copy(NoPublicConstructor):
    """What local and remote copies share."""

    __slots__ = ("_raw", "_sems")

    _what: ClassVar[str]
    _priorities: ClassVar[tuple[int, ...]]
    _raw: Any  # pltpu's descriptor
    _sems: tuple[DmaSemaphore, ...]

    def _check_alive(self, method: str) -> None:
        for sem in self._sems:
            if not (sem._scope.alive or sem._is_alive()):
                raise semaphore_errors.scope_ended(method, str(sem), sem._scope.label)

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Start the copy.

        Args:
            priority: of the DMA: 0 or 1 for a local copy, 0 for a remote one. The TPU lowering of
                JAX 0.10.2 and 0.12.0.1 knows no others (measured for v5e, v5p and v6e). On
                SparseCores leave it at 0: their compiler says "Priority not supported on
                SparseCore."
            add: add to the destination instead of overwriting it. Only SparseCores can, and only
                where one end is taken by indices: a gather from HBM into VMEM, a scatter from VMEM
                into VMEM_SHARED (compiled for v5p and v6e, JAX 0.10.2 and 0.12.0.1). TensorCores
                get "DMA with add=True is not supported." when lowered.
                ``interpret=pltpu.InterpretParams(...)`` would overwrite: refused as
                `InterpretedCopyError` at the end of the kernel.

        Raises:
            ScopeEndedError: after the scope of its semaphore.
            CopyOptionError: for another `priority`, or an `add` that is no bool.
        """
        self._check_alive("start")
        self._start(priority, add)

    def _start(self, priority: int, add: bool) -> None:
        if type(priority) is not int or priority not in self._priorities:
            expected = " or ".join(map(str, self._priorities))
            self._refuse("priority", expected, priority)
        if type(add) is not bool:
            self._refuse("add", "True or False", add)
        self._raw.start(priority=priority, add=add)

    def _refuse(self, option: str, expected: str, got: Any) -> NoReturn:
        what = f"of a {self._what} copy"
        sem = str(self._sems[-1])
        raise operation_errors.copy_option(f"start {what}", option, expected, describe(got), sem)

    def wait(self) -> None:
        """Wait until the copy is complete; for a remote one, both its sending and a receiving.

        It need not be the object that started the copy: the semaphore and the sizes matter.

        Raises:
            ScopeEndedError: after the scope of its semaphore.
        """
        self._check_alive("wait")
        self._raw.wait()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {', '.join(map(str, self._sems))}>"


@final
class LocalCopy(_Copy):
    """A copy between two refs of this device, from `make_async_copy` or `async_copy`.

    Calling the class raises `TypeError`.

    Example, in a kernel::

        copy: sp.LocalCopy = sp.make_async_copy(x, o, sem)
        copy.start(priority=1)
        copy.wait()
    """

    __slots__ = ()
    _instead = "sp.make_async_copy(...)"
    _what = "local"
    _priorities = (0, 1)


@final
class RemoteCopy(_Copy):
    """A copy to another device, from `make_async_remote_copy` or `async_remote_copy`.

    Calling the class raises `TypeError`.

    Example, in a kernel::

        send, recv = sems.at[0], sems.at[1]
        copy: sp.RemoteCopy = sp.make_async_remote_copy(x, o, send, recv, {"x": right})
        copy.start()
        copy.wait_send()  # x may be written again
        copy.wait_recv()  # o has come; copy.wait() is both
    """

    __slots__ = ()
    _instead = "sp.make_async_remote_copy(...)"
    _what = "remote"
    _priorities = (0,)

    def wait_send(self) -> None:
        """Wait until the source has been read: it may be written again.

        Raises:
            ScopeEndedError: after the scope of its semaphore.
        """
        self._check_alive("wait_send")
        self._raw.wait_send()

    def wait_recv(self) -> None:
        """Wait until as many bytes as the destination holds have arrived here.

        Raises:
            ScopeEndedError: after the scope of its semaphore.
        """
        self._check_alive("wait_recv")
        self._raw.wait_recv()


C = TypeVar("C", bound=_Copy)


def _made(cls: type[C], raw: Any, sems: tuple[DmaSemaphore, ...]) -> C:
    copy = object.__new__(cls)
    copy._raw = raw
    copy._sems = sems
    return copy


def _local(src: Any, dst: Any, sem: Any, op: str) -> LocalCopy:
    _vet_dma(sem, op, "sem")
    check_ends(src, dst, op, sem)
    return _made(LocalCopy, pltpu.make_async_copy(src, dst, sem._ref), (sem,))


def _remote(
    src: Any, dst: Any, send_sem: Any, recv_sem: Any, device_id: Any, op: str
) -> RemoteCopy:
    _vet_dma(send_sem, op, "send_sem")
    _vet_dma(recv_sem, op, "recv_sem")
    check_ends(src, dst, op, recv_sem)
    where = resolve(device_id, op, recv_sem)
    raw = pltpu.make_async_remote_copy(src, dst, send_sem._ref, recv_sem._ref, where)
    return _made(RemoteCopy, raw, (send_sem, recv_sem))


def make_async_copy(src: Ref, dst: Ref, sem: DmaSemaphore) -> LocalCopy:
    """Describe a copy on this device; start it, and wait for it, with the methods of the result.

    Lowers to ``pltpu.make_async_copy``.

    Args:
        src: a ref, or a view of one (``ref.at[...]``). On the vector subcores of a SparseCore a
            one-dimensional int32 ref or array of indices gathers rows: ``table.at[indices]``, or
            ``table.at[plsc.Indices(indices, ignored_value=-1)]``.
        dst: the same, of the same shape and dtype. As the source it may be taken by indices, which
            scatters: the shape of such a view is that of the indices, then the rest.
        sem: receives as many bytes as are copied. Several copies may share it.

    Returns:
        A `LocalCopy`, not started.

    Raises:
        NotASemaphoreError, ScopeEndedError, WrongKindError, NotScalarError: see there.
        NotARefError: where an end is an array, a tuple or a semaphore.
        CopyMismatchError: where the ends differ in shape or dtype.

    Example, in a kernel::

        copy = sp.make_async_copy(x.at[0], o.at[0], sem)
        copy.start()
        copy.wait()
    """
    return _local(src, dst, sem, "make_async_copy")


def async_copy(
    src: Ref, dst: Ref, sem: DmaSemaphore, *, priority: int = 0, add: bool = False
) -> LocalCopy:
    """Start a copy on this device. As `make_async_copy`, then ``start(priority, add=add)``.

    Args:
        src, dst, sem: as in `make_async_copy`.
        priority, add: as in `LocalCopy.start`.

    Returns:
        The copy, to wait for.

    Raises:
        SemaphoreError: as `make_async_copy` and `LocalCopy.start`.

    Example, in a kernel::

        sp.async_copy(x, o, sem).wait()
    """
    copy = _local(src, dst, sem, "async_copy")
    copy._start(priority, add)
    return copy


def make_async_remote_copy(
    src: Ref, dst: Ref, send_sem: DmaSemaphore, recv_sem: DmaSemaphore, device_id: DeviceId
) -> RemoteCopy:
    """Describe a copy to another device; start it, and wait, with the methods of the result.

    Lowers to ``pltpu.make_async_remote_copy`` with mesh coordinates.

    Args:
        src: a ref of this device, or a view of one.
        dst: a ref of the same shape and dtype: the one of that name on the other device.
        send_sem: receives the bytes on this device, when the source has been read.
        recv_sem: receives the bytes on the other device, when the destination is written.
        device_id: as in `signal`; required. Prefer axis names: with an int or a tuple, and no axis
            named anywhere in the kernel (``jax.lax.axis_index``), the TPU lowering of JAX 0.10.2
            and 0.12.0.1 does not see the mesh, and says that it has no dimensions.

    Returns:
        A `RemoteCopy`, not started.

    Raises:
        NotASemaphoreError, ScopeEndedError, WrongKindError, NotScalarError: see there.
        NotARefError, CopyMismatchError: as `make_async_copy`.
        DeviceIdTypeError, DeviceIdError: for `device_id`.

    Example, in a kernel::

        copy = sp.make_async_remote_copy(x, o, sems.at[0], sems.at[1], {"x": right})
        copy.start()
        copy.wait_send()
        copy.wait_recv()
    """
    return _remote(src, dst, send_sem, recv_sem, device_id, "make_async_remote_copy")


def async_remote_copy(
    src: Ref, dst: Ref, send_sem: DmaSemaphore, recv_sem: DmaSemaphore, device_id: DeviceId
) -> RemoteCopy:
    """Start a copy to another device. As `make_async_remote_copy`, then ``start()``.

    Args:
        src, dst, send_sem, recv_sem, device_id: as in `make_async_remote_copy`.

    Returns:
        The copy, to wait for.

    Raises:
        SemaphoreError: as `make_async_remote_copy`.

    Example, in a kernel::

        sp.async_remote_copy(x, o, sems.at[0], sems.at[1], {"x": right}).wait()
    """
    copy = _remote(src, dst, send_sem, recv_sem, device_id, "async_remote_copy")
    copy._start(0, False)
    return copy


def sync_copy(src: Ref, dst: Ref, *, add: bool = False) -> None:
    """Copy on this device, and wait for it. Its semaphore is its own.

    Lowers to ``pltpu.sync_copy``.

    Args:
        src: a ref, or a view of one (``ref.at[...]``).
        dst: the same, of the same shape and dtype.
        add: as in `LocalCopy.start`.

    Raises:
        NotARefError, CopyMismatchError: as `make_async_copy`.
        CopyOptionError: for an `add` that is no bool.

    Example, in a kernel::

        sp.sync_copy(x, o)
    """
    check_ends(src, dst, "sync_copy", "a semaphore of its own")
    given: Any = add
    if type(given) is not bool:
        own, got = "a semaphore of its own", describe(given)
        raise operation_errors.copy_option("sync_copy", "add", "True or False", got, own)
    pltpu.sync_copy(src, dst, add=add)


def wait_bytes(sem: DmaSemaphore, like: Ref) -> None:
    """Wait until as many bytes as `like` holds have been copied on `sem`, and take them from it.

    For copies whose objects are not at hand, or for several at once. Of `like` only the
    size matters: it is neither read nor written.

    Lowers to ``make_async_copy(like, like, sem).wait()``.

    Args:
        sem: the semaphore of the copies.
        like: a ref, or a view of one, of that many bytes.

    Raises:
        NotASemaphoreError, ScopeEndedError, WrongKindError, NotScalarError: see there.
        NotARefError: where `like` is not a ref that holds data.

    Example, in a kernel::

        for row in range(4):
            sp.async_copy(x.at[row], o.at[row], sem)
        sp.wait_bytes(sem, o.at[pl.ds(0, 4)])
    """
    _vet_dma(sem, "wait_bytes", "sem")
    _data_type(like, "wait_bytes", "like")
    raw: Any = pltpu.make_async_copy(like, like, sem._ref)
    raw.wait()


def check_counting_ends(src: object, dst: object, op: str, sem: object) -> None:
    """Refuse ends that do not match, or that lie where copies cannot count."""
    check_ends(src, dst, op, sem)
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
    check_counting_ends(src, dst, op, sem)
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
    check_counting_ends(src, dst, op, recv_sem)
    where = resolve(device_id, op, recv_sem)
    raw: Any = pltpu.make_async_remote_copy(src, dst, send_sem._ref, recv_sem._ref, where)
    raw.start()
