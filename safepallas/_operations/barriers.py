"""The barrier semaphore between devices, and the barrier between the cores of one."""

import contextlib
from typing import Any

import jax
from jax.experimental.pallas import tpu as pltpu

from safepallas._errors import operation_errors
from safepallas._jax import compat
from safepallas._operations.checks import vet
from safepallas._semaphores.handles import BarrierSemaphore, Semaphore, make
from safepallas._semaphores.lifetime import Origin, kernel_scope
from safepallas._semaphores.names import describe


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
        def meet(x: sp.Ref, o: sp.Ref, met: sp.Semaphore) -> None:
            sp.core_barrier(met, core_axis_name="core")

        meet(x)
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
