"""The barrier semaphore between devices."""

from typing import Any

from jax.experimental.pallas import tpu as pltpu

from safepallas._handles import BarrierSemaphore, make
from safepallas._scope import Origin, kernel_scope


def get_barrier_semaphore() -> BarrierSemaphore:
    """The barrier semaphore that the kernel's `collective_id` names.

    All devices that run the kernel share it, each with a count of its own; it exists before they
    enter, so it is the one that may be signalled across devices at once. It outlives the kernel:
    wait for all that is signalled, back to zero.

    Lowers to ``pltpu.get_barrier_semaphore``. Of the interpreters
    only ``InterpretParams`` has one.

    Returns:
        The `BarrierSemaphore`.

    Raises:
        MissingCollectiveIdError: at the end of the kernel, where the call names no
            ``collective_id`` in its ``pltpu.CompilerParams``.

    Example::

        barrier = sp.get_barrier_semaphore()
        sp.signal(barrier, device_id={"x": right})
        sp.wait(barrier, 1)
    """
    get: Any = pltpu.get_barrier_semaphore  # not annotated in JAX 0.10.2
    origin = Origin("barrier", "sp.get_barrier_semaphore()")
    return make(BarrierSemaphore, get(), origin, kernel_scope())
