"""Barriers: the semaphore that devices share, rings of devices, the cores of one device."""

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas._errors import operation_errors
from safepallas._jax import compat
from safepallas._jax.kernel_equations import RING_BARRIER
from safepallas._operations.checks import vet
from safepallas._operations.signal_wait import signal, wait
from safepallas._semaphores.handles import BarrierSemaphore, Semaphore, make
from safepallas._semaphores.kinds import REGULAR
from safepallas._semaphores.lifetime import UNSCOPED, Origin, Scope, describe, kernel_scope


def get_barrier_semaphore() -> BarrierSemaphore:
    """The barrier semaphore that the kernel's `collective_id` names.

    All devices that run the kernel share it, each with a count of its own; it exists before they
    enter, so it is the one that may be signalled across devices at once. It outlives the kernel:
    wait for all that is signalled, back to zero.

    Lowers to ``pltpu.get_barrier_semaphore``. Of the interpreters only ``InterpretParams`` has one.

    Returns:
        The `BarrierSemaphore`.

    Raises:
        MissingCollectiveIdError: at the end of the kernel, where the call names no
            ``collective_id`` in its ``pltpu.CompilerParams``.

    Example, in a kernel::

        barrier = sp.get_barrier_semaphore()
        sp.signal(barrier, device_id={"x": right})
        sp.wait(barrier, 1)
    """
    get: Any = pltpu.get_barrier_semaphore  # not annotated in JAX 0.10.2
    origin = Origin("barrier", "sp.get_barrier_semaphore()")
    return make(BarrierSemaphore, get(), origin, kernel_scope())


def core_barrier(sem: Semaphore, *, core_axis_name: str) -> None:
    """Wait until all cores along an axis of a core mesh have come here too.

    Lowers to ``pltpu.core_barrier``: each core signals each other one and waits for as many. The
    semaphore must be allocated on all of them before the first comes here: in the scratch of the
    kernel. It may be called again at once with the same semaphore, if nothing else uses it: to
    pass for the k-th time takes k signals from each other core.

    Args:
        sem: a regular semaphore that serves this barrier alone.
        core_axis_name: the name that the mesh of cores gives its axis; of size 1: no operation.
            For the subcores of a SparseCore use ``plsc.subcore_barrier``: JAX 0.10.2 takes the
            numbers of an axis for those of cores.

    Raises:
        NotASemaphoreError, ScopeEndedError, WrongKindError, NotScalarError: see there.
        AxisTypeError, AxisError: for `core_axis_name`.

    Example::

        @sp.kernel(out_type=like, mesh=mesh, scratch_types=(sp.semaphore(),))
        def synchronize(x: sp.Ref, o: sp.Ref, arrived: sp.Semaphore) -> None:
            sp.core_barrier(arrived, core_axis_name="core")

        synchronize(x)
    """
    vet(sem, "core_barrier", "sem")
    axis: Any = core_axis_name
    if not isinstance(axis, str):
        expected = "the name of an axis of cores"
        raise operation_errors.axis_type("core_barrier", "core_axis_name", expected, describe(axis))
    cores = compat.core_axes()
    if axis not in cores:
        known = ", ".join(map(repr, cores)) or "none: the kernel has no mesh of cores"
        raise operation_errors.core_axis(str(sem), repr(axis), known)
    # With 64 bit types JAX 0.10.2 makes an int64 of each core's number, and cannot lower it.
    with jax.enable_x64(False) if compat.x64_enabled() else contextlib.nullcontext():
        pltpu.core_barrier(sem._ref, core_axis_name=core_axis_name)


# Barriers over a ring of devices, safe to call again at once.

# Up to this many devices all signal all. The barrier of two rounds holds a device until those two
# places away have entered, and that is everyone here: one round does it with no more signals.
ALL_TO_ALL = 5


class _Ring(NamedTuple):
    """The devices along some mesh axes, in the order of the mesh, the last one next to the first.

    The order of the axes is the mesh's and not the caller's, and axes of size 1 are left out: the
    same devices are always the same ring.
    """

    axes: tuple[str, ...]
    size: int

    def devices(self, steps: Sequence[int]) -> list[dict[str | tuple[str, ...], jax.Array]]:
        """The ids of the devices so many steps, from 1 to size - 1, to the right of this one."""
        key = self.axes[0] if len(self.axes) == 1 else self.axes
        here, size = jax.lax.axis_index(key), np.int32(self.size)
        return [{key: jax.lax.rem(here + np.int32(step), size)} for step in steps]


def _ring(op: str, arg: str, axes: tuple[object, ...], given: object, expected: str) -> _Ring:
    """The ring over some axes, after all checks."""
    for axis in axes:
        if not isinstance(axis, str):
            raise operation_errors.axis_type(op, arg, expected, describe(given))
    if not axes:
        raise operation_errors.axis_none(op, arg)
    if kernel_scope() is UNSCOPED and not compat.in_kernel():
        raise operation_errors.not_in_kernel(op)
    sizes = compat.bound_mesh_axes()
    for axis in axes:
        if axis not in sizes:
            known = ", ".join(map(repr, sizes)) or "none: there is no mesh here"
            raise operation_errors.axis_unknown(op, arg, repr(axis), known)
        if axes.count(axis) > 1:
            raise operation_errors.axis_twice(op, arg, repr(axis))
    size = 1
    for axis in axes:
        size *= sizes[axis]
    return _Ring(tuple(axis for axis in sizes if axis in axes and sizes[axis] > 1), size)


def _barrier_of_rings() -> BarrierSemaphore:
    """The barrier semaphore, as one that rings share: the audit of the kernel tells them apart."""
    with compat.tagged(RING_BARRIER):
        return get_barrier_semaphore()


def _exchange(sem: Semaphore | BarrierSemaphore, ring: _Ring, steps: Sequence[int]) -> None:
    """Signal the devices so many steps away, and wait for as many signals."""
    for device in ring.devices(steps):
        with compat.tagged(RING_BARRIER):
            signal(sem, device_id=device)
    wait(sem, len(steps))


def _steps(size: int) -> list[int]:
    """How far to signal, round after round, until a device knows that all have entered.

    The first round is between neighbours, who know of theirs: after it a device knows of those up
    to 2 steps away. Each further round at most doubles that.
    """
    steps, known, needed = [1], 2, size // 2
    while known < needed:
        step = min(known, needed - known)
        steps.append(step)
        known += step
    return steps


def _synchronize(ring: _Ring, *, everyone: bool) -> None:
    """See `barrier_neighbors` and `barrier_all`, which differ by the number of rounds."""
    if ring.size == 1:
        # Nothing to wait for, but the compiler wants to see a barrier where it sees an id.
        barrier = _barrier_of_rings()
        signal(barrier)
        wait(barrier)
        return
    if ring.size <= ALL_TO_ALL:
        _exchange(_barrier_of_rings(), ring, range(1, ring.size))
        return
    rounds = _steps(ring.size) if everyone else [1]
    line = compat.this_line()

    def inside(sems: Any) -> None:
        origin, scope = Origin("round", "a barrier between devices"), Scope(lambda: "the barrier")
        with compat.at_line(line):
            # In here: who is signalled must be able to count on our having allocated `sems`.
            _exchange(_barrier_of_rings(), ring, (1, ring.size - 1))
            for round_, step in enumerate(rounds):
                ref = sems.at[compat.as_int32((round_,))]
                _exchange(make(Semaphore, ref, origin, scope), ring, (step, ring.size - step))

    pl.run_scoped(inside, REGULAR.raw((len(rounds),)))


def barrier_neighbors(axis: str) -> None:
    """Wait until both neighbours along a mesh axis have entered this barrier too.

    The axis is a ring: its last device is next to its first. On an axis of size 2 left is right; on
    one of size 1 there is nothing to wait for. Every device along the axis must call it, and the
    call of the kernel needs a ``collective_id``, whatever the size. Devices that differ in other
    axes have nothing to do with each other.

    It may be called again at once: in the same kernel, in the next call of it, mixed with
    `barrier_all` over the same axis, and by other kernels with the same ``collective_id`` if all
    their barriers are these two over that axis. Barriers over other axes need a kernel of their own
    with another id: a semaphore counts, and cannot tell whose signal it was.

    Cost: from 6 devices on, 4 signals from each device in two rounds. Up to 5 devices all signal
    all: 1 to 4 signals in one round.

    Why it is safe, from 6 devices on: round one is on the barrier semaphore, round two on a
    regular one that each device allocates before round one. A device sends round two once both
    neighbours have entered, and so have allocated it; they cannot have left, as they wait for just
    that signal. A neighbour that runs ahead into its next barrier has received our round two, so
    we are past our round one, and its early signal cannot stand in for another's. With one round
    it could. Up to 5: see `barrier_all`.

    Args:
        axis: the name of an axis of the device mesh.

    Raises:
        AxisTypeError, AxisError: for `axis`.
        NotInKernelError: outside a kernel.
        MissingCollectiveIdError: at the end of a kernel without a ``collective_id``.
        MixedBarriersError: at the end of a kernel with a barrier over other axes, or one by hand.

    Example, in a kernel::

        sp.barrier_neighbors("x")
        sp.async_remote_copy(x, o, sems.at[0], sems.at[1], {"x": right}).wait()
    """
    ring = _ring("barrier_neighbors", "axis", (axis,), axis, "the name of one mesh axis")
    _synchronize(ring, everyone=False)


def barrier_all(axes: str | Sequence[str]) -> None:
    """Wait until all devices along one or several mesh axes have entered this barrier too.

    Several axes are all devices of the part of the mesh that they span; in the other axes a device
    stays where it is. The order of `axes` does not matter. A part of 1 device has nothing to wait
    for. All of these devices must call it, and the call of the kernel needs a ``collective_id``,
    whatever their number.

    It may be called again at once, on the same terms as `barrier_neighbors`.

    Cost: up to n = 5 devices n - 1 signals from each, in one round. Beyond, in k + 1 rounds of 2
    signals, where k = ceil(log2(n // 2)): 6 for 8 devices, 8 for 16, 16 for 256. The devices are
    taken as one ring, in the order of the mesh.

    Why it is safe, up to 5 devices: all signal all, and each waits for n - 1. To leave for the
    k-th time takes k * (n - 1) signals in all. The first to do so has had at most k from each
    other device, as none of them has left for the k-th time; so it had k from each, and all have
    entered. Those who leave later do so when all have entered, whoever's signals they count.

    Beyond: the first two rounds are those of `barrier_neighbors`, so that calls of the two may
    follow each other. After them a device knows that those up to 2 steps away on the ring have
    entered. In each further round it signals, on a semaphore of that round, the two devices d steps
    away, of whom it knows that they have entered; they cannot leave without this signal. The two
    that it hears know of all up to some distance from them, which adds d to that distance. The
    rounds end when it is half the ring.

    Args:
        axes: the name of an axis of the device mesh, or a sequence of names.

    Raises:
        AxisTypeError, AxisError: for `axes`.
        NotInKernelError: outside a kernel.
        MissingCollectiveIdError: at the end of a kernel without a ``collective_id``.
        MixedBarriersError: at the end of a kernel with a barrier over other axes, or one by hand.

    Example, in a kernel::

        sp.barrier_all(("x", "y"))
    """
    is_sequence = isinstance(axes, (tuple, list))
    names = tuple(axes) if is_sequence else (axes,)
    expected = "the name of a mesh axis or a sequence of names"
    _synchronize(_ring("barrier_all", "axes", names, axes, expected), everyone=True)
