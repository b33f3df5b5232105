"""The one table of semaphore kinds: dtype, Pallas constructor, legal operations."""

import dataclasses
from typing import Any, Final

from jax.experimental.pallas import tpu as pltpu


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One semaphore dtype of Pallas TPU and what may be done with it."""

    name: str
    handle: str  # the class that users see
    request: str  # the request that allocates one
    raw: pltpu.SemaphoreType
    fix: str  # what to do where another kind was expected


REGULAR: Final = Kind(
    name="regular",
    handle="Semaphore",
    request="sp.semaphore()",
    raw=pltpu.SemaphoreType.REGULAR,
    fix="A regular semaphore is for signal and wait; a copy needs sp.dma_semaphore().",
)
BARRIER: Final = Kind(
    name="barrier",
    handle="BarrierSemaphore",
    request="sp.barrier_semaphore()",
    raw=pltpu.SemaphoreType.BARRIER,
    fix="A barrier semaphore is for signal and wait; a copy needs sp.dma_semaphore().",
)
DMA: Final = Kind(
    name="dma",
    handle="DmaSemaphore",
    request="sp.dma_semaphore()",
    raw=pltpu.SemaphoreType.DMA,
    fix=(
        "Only a copy signals a DMA semaphore: wait for the copy (copy.wait() or sp.wait_bytes), "
        "or allocate sp.semaphore() for signal and wait."
    ),
)

KINDS: Final = (REGULAR, BARRIER, DMA)

# Which kinds each argument of each operation takes. The checks, the messages and the tests of the
# backstop all read this table.
OPERATIONS: Final[dict[tuple[str, str], tuple[Kind, ...]]] = {
    ("signal", "sem"): (REGULAR, BARRIER),
    ("wait", "sem"): (REGULAR, BARRIER),
    ("read", "sem"): KINDS,
    ("make_async_copy", "sem"): (DMA,),
    ("async_copy", "sem"): (DMA,),
    ("make_async_remote_copy", "send_sem"): (DMA,),
    ("make_async_remote_copy", "recv_sem"): (DMA,),
    ("async_remote_copy", "send_sem"): (DMA,),
    ("async_remote_copy", "recv_sem"): (DMA,),
    ("wait_bytes", "sem"): (DMA,),
    ("core_barrier", "sem"): (REGULAR,),
    ("async_copy_counted", "sem"): (REGULAR,),
    ("async_remote_copy_counted", "send_sem"): (REGULAR,),
    ("async_remote_copy_counted", "recv_sem"): (REGULAR,),
}

_BY_DTYPE: Final[dict[Any, Kind]] = {kind.raw.dtype: kind for kind in KINDS}


def kind_of(dtype: Any) -> Kind | None:
    """The kind that a dtype names, or None where it is no semaphore dtype (int16 never is)."""
    return _BY_DTYPE.get(dtype)
