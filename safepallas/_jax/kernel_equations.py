"""What the equations of a traced kernel say, as plain facts.

Read off the equations and not counted while the kernel runs: JAX does not run again what it has in
its cache (a helper under `jax.jit`), and calls of raw Pallas count like ours. Names and parameters
of primitives end here; `safepallas._kernels.audit` judges.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import jax
from jax.experimental.pallas import tpu as pltpu
from jax.extend.core import Jaxpr, JaxprEqn

from safepallas._jax import compat
from safepallas._jax.core_types import CoreType

# The tag of barriers over all devices along mesh axes: see `compat.tagged`.
RING_BARRIER = "ring barrier"

_SEMAPHORES = frozenset(kind.dtype for kind in pltpu.SemaphoreType)
_BARRIER, _REGULAR = pltpu.SemaphoreType.BARRIER.dtype, pltpu.SemaphoreType.REGULAR.dtype

# Most equations of a kernel. They hold no jaxpr.
_PLAIN = frozenset({"dma_start", "dma_wait", "get", "semaphore_signal", "semaphore_wait", "swap"})

# A core signals the semaphores of others, and waits for its own alone.
_OF_ITS_OWN = frozenset({"dma_start", "dma_wait", "semaphore_read", "semaphore_wait"})


class SpecialCopy(NamedTuple):
    """A copy that does more than to copy."""

    equation: JaxprEqn
    counts: bool  # on a regular semaphore, copies instead of bytes
    adds: bool  # to its destination
    by_indices: bool  # takes rows by an array or a ref of indices


@dataclasses.dataclass(slots=True)
class Facts:
    """What the equations of a kernel say: of most things the first equation that does them."""

    scoped: int = 0  # the most semaphores that scopes hold at a time
    barrier: JaxprEqn | None = None  # gets the barrier semaphore
    barrier_is_tagged: bool = False  # it names the semaphore itself (JAX 0.12)
    by_hand: JaxprEqn | None = None  # gets it, and not for a ring barrier
    # By the axes of the devices that it signals, a signal of each ring barrier.
    rings: dict[frozenset[object], JaxprEqn] = dataclasses.field(default_factory=dict)
    read: JaxprEqn | None = None  # reads a semaphore
    special_copy: SpecialCopy | None = None
    foreign: JaxprEqn | None = None  # waits, reads or copies with semaphores of other cores only


def facts_so_far(*, special_copies: bool, core: CoreType | None) -> Facts:
    """The facts of the kernel that is being traced now.

    Args:
        special_copies: whether to look for them: copies are many.
        core: the type of its cores, to look for `foreign` semaphores; None not to.
    """
    reader = _Reader(Facts(), special_copies, core)
    reader.facts.scoped = reader.read(compat.equations_so_far())
    return reader.facts


def count_semaphores(types: Iterable[tuple[tuple[int, ...], object]]) -> int:
    """How many semaphores refs of these shapes and dtypes hold."""
    return sum(math.prod(shape) for shape, dtype in types if dtype in _SEMAPHORES)


def core_named_by(ref: object) -> CoreType | None:
    """The type of the cores that a ref or a request says it lies on (``SEMAPHORE @ mesh``)."""
    mesh = getattr(getattr(ref, "memory_space", None), "mesh", None)
    return None if mesh is None else CoreType(mesh.core_type.name)


class _Reader(NamedTuple):
    facts: Facts
    special_copies: bool
    core: CoreType | None

    def read(self, equations: Iterable[JaxprEqn]) -> int:
        """Note what the equations do; returned is the most semaphores scoped at a time."""
        most = 0
        for equation in equations:
            name = equation.primitive.name
            self._note(name, equation)
            if name not in _PLAIN:
                for jaxpr in compat.jaxprs_in(equation.params):
                    held = self.read(compat.equations_of(jaxpr))
                    if name == "run_scoped":
                        held += count_semaphores(_allocated_by(jaxpr))
                    most = max(most, held)
        return most

    def _note(self, name: str, equation: JaxprEqn) -> None:
        facts = self.facts
        if name == "semaphore_signal":
            _note_signal(equation, facts)
        elif name == "get_barrier_semaphore":
            _note_barrier(equation, facts)
        elif name == "semaphore_read":
            facts.read = facts.read or equation
        elif name == "dma_start" and self.special_copies:
            facts.special_copy = facts.special_copy or _special(equation)
        if self.core and not facts.foreign and name in _OF_ITS_OWN:
            facts.foreign = equation if _is_foreign(equation, self.core) else None


def _note_barrier(equation: JaxprEqn, facts: Facts) -> None:
    if facts.barrier is None:
        facts.barrier = equation
        facts.barrier_is_tagged = bool(equation.params.get("tag"))
    if facts.by_hand is None and compat.tag_of(equation) != RING_BARRIER:
        facts.by_hand = equation


def _note_signal(equation: JaxprEqn, facts: Facts) -> None:
    if compat.types_of(equation)[0].dtype == _BARRIER and compat.tag_of(equation) == RING_BARRIER:
        parts = jax.tree_util.tree_unflatten(equation.params["args_tree"], equation.invars)
        device_id = parts[3]  # after the ref, what indexes it, and the amount
        # A ring of one device signals itself, and is in nobody's way.
        if isinstance(device_id, Mapping) and device_id:
            facts.rings.setdefault(frozenset(device_id), equation)


def _special(copy: JaxprEqn) -> SpecialCopy | None:
    refs = compat.ref_types_of(copy)
    data = [ref for ref in refs if ref.dtype not in _SEMAPHORES]
    arrays = [array for array in compat.types_of(copy) if not compat.is_ref_type(array)]
    counts = any(ref.dtype == _REGULAR for ref in refs)
    adds = bool(copy.params["add"])
    by_indices = len(data) > 2 or any(array.shape for array in arrays)
    return SpecialCopy(copy, counts, adds, by_indices) if counts or adds or by_indices else None


def _is_foreign(equation: JaxprEqn, core: CoreType) -> bool:
    """Whether all semaphores that an equation takes lie on cores of another type.

    A remote copy may name one of each: it signals the other core when it arrives there.
    """
    semaphores = [ref for ref in compat.ref_types_of(equation) if ref.dtype in _SEMAPHORES]
    return bool(semaphores) and all(core_named_by(ref) not in (None, core) for ref in semaphores)


def _allocated_by(jaxpr: Jaxpr) -> list[tuple[tuple[int, ...], object]]:
    """Shapes and dtypes of the refs that a ``run_scoped`` body receives."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return [(ref.shape, ref.dtype) for ref in compat.types_of(inner)]
