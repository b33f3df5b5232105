"""What can only be said of a whole kernel, once it is traced.

Read off the traced equations and not counted while the kernel runs: JAX does not run again what it
has in its cache (a helper under `jax.jit`), and calls of raw Pallas count like ours.
"""

import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jax.experimental.pallas import tpu as pltpu

from safepallas._errors import kernel_errors
from safepallas._jax import compat
from safepallas._kernels.foreign import first_foreign
from safepallas._kernels.mixing import BarrierUses
from safepallas._semaphores.kinds import REGULAR, kind_of
from safepallas._semaphores.lifetime import Scope
from safepallas._semaphores.meshes import CORE

# How many semaphores of 4 bytes a core has, by its type, and from where on the TPU compiler may run
# out, as it takes some for itself. Measured with libtpu under JAX 0.10.2 and 0.12.0.1, for v5e, v5p
# and v6e; the SparseCores for v5p and v6e: 24 fit on a vector subcore, 7018 on a scalar one.
ROOM = {
    "TC": (512, 480),
    "SC_VECTOR_SUBCORE": (32, 25),
    "SC_SCALAR_SUBCORE": (7168, 7000),
}


# Most equations of a kernel. They hold no jaxpr, and are not looked at again.
_PLAIN = frozenset({"dma_start", "dma_wait", "get", "semaphore_signal", "semaphore_wait", "swap"})


class Terms(NamedTuple):
    """What a call promises about its kernel, as far as the audit goes."""

    collective_id: Any = None
    barrier_optional: bool = False  # a collective_id is fine without a barrier
    id_optional: bool = False  # a barrier is fine without a collective_id
    interpreted: bool = False  # under pltpu.InterpretParams
    side_effects: bool = False  # XLA keeps the call, whoever uses its results
    grid_axes: tuple[Any, ...] = ()  # the names of its grid's axes, where they have any
    core: str = CORE  # the type of the cores
    together: bool = False  # it is one of several bodies
    others: tuple[Any, ...] = ()  # the bodies traced before the last of several: see `audit`


def terms_of(compiler_params: Any, interpret: Any) -> Terms:
    """The terms of a call, from its arguments and JAX's settings of now."""
    assigned, interpreted = compat.ids_are_assigned(), compat.interprets_as_tpu(interpret)
    if compiler_params is None:
        return Terms(None, False, assigned, interpreted)
    effects = getattr(compiler_params, "has_side_effects", False)
    return Terms(
        getattr(compiler_params, "collective_id", None),
        getattr(compiler_params, "allow_collective_id_without_custom_barrier", False),
        assigned,
        interpreted,
        bool(effects) and effects is not pltpu.SideEffectType.PURE,
    )


def among(terms: Terms, traced_before: Sequence[Any], bodies: int) -> Terms:
    """The terms of one of several bodies of a call, by their number: the last answers for all."""
    if bodies == 1:
        return terms
    if len(traced_before) < bodies - 1:
        return terms._replace(together=True, barrier_optional=True)
    return terms._replace(together=True, others=tuple(traced_before))


def count_semaphores(types: Iterable[tuple[tuple[int, ...], Any]]) -> int:
    """How many semaphores refs of these shapes and dtypes hold."""
    return sum(math.prod(shape) for shape, dtype in types if kind_of(dtype) is not None)


_INTERPRET_TRUE = "Use interpret=True, or compile for a TPU."


def _fault(copy: Any) -> tuple[str, str, str] | None:
    """What a copy does that ``pltpu.InterpretParams`` does not, what that does, and the fix."""
    refs, arrays = compat.types_taken(copy)
    kinds = [kind_of(ref.dtype) for ref in refs]
    if REGULAR in kinds:
        instead = "adds its bytes instead, so that waits end too early"
        return "adds 1 to a regular semaphore", instead, _INTERPRET_TRUE
    if copy.params["add"]:
        return "adds to its destination", "overwrites it instead", "Compile for a TPU."
    if kinds.count(None) > 2 or any(array.shape for array in arrays):
        what = "takes rows by an array or a ref of indices"
        return what, "cannot follow them", _INTERPRET_TRUE
    return None


class _Findings:
    """What the equations of a kernel show."""

    __slots__ = ("barriers", "copy", "look_at_copies", "read")

    def __init__(self, look_at_copies: bool) -> None:
        self.look_at_copies = look_at_copies  # they are many, and matter to one interpreter only
        self.barriers = BarrierUses()
        self.copy: Any = None  # the first that cannot be interpreted, and why
        self.read: Any = None  # the first that reads a semaphore

    def walk(self, equations: Iterable[Any]) -> int:
        """Look at all equations; the number returned is the most semaphores scoped at a time."""
        most = 0
        for eqn in equations:
            name = eqn.primitive.name
            if name in _PLAIN:
                if name == "semaphore_signal":
                    self.barriers.signalled(eqn)
                if self.look_at_copies and name == "dma_start" and self.copy is None:
                    fault = _fault(eqn)
                    self.copy = fault and (eqn, fault)
                continue
            if name == "get_barrier_semaphore":
                self.barriers.got(eqn)
            elif name == "semaphore_read":
                self.read = self.read or eqn
            for jaxpr in compat.jaxprs_in(eqn.params):
                held = self.walk(compat.equations_of(jaxpr))
                if name == "run_scoped":
                    held += count_semaphores(compat.allocated_by(jaxpr))
                most = max(most, held)
        return most


def audit(kernel: Scope, scratch: int, terms: Terms) -> bool:
    """Judge a kernel at the end of its body, by the equations that it has traced.

    Args:
        kernel: its scope, for messages.
        scratch: the number of semaphores in its scratch.
        terms: those of the call. Of several bodies, the last answers for a collective_id that none
            uses: each of the `others` holds in `uses_barrier` what was returned for it.

    Returns:
        Whether it uses the barrier semaphore.

    Raises:
        MissingCollectiveIdError, UnusedCollectiveIdError, MixedBarriersError,
        InterpretedReadError, InterpretedCopyError, ForeignSemaphoreError

    Warns:
        SemaphoreLimitWarning: from 480 semaphores on.
    """
    findings = _Findings(terms.interpreted)
    held = scratch + findings.walk(compat.equations_so_far())
    barrier, read = findings.barriers.first, findings.read
    if barrier is None:
        needless = terms.collective_id is not None and not terms.barrier_optional
        if needless and not any(other.uses_barrier for other in terms.others):
            raise kernel_errors.unused_collective_id(kernel.label, terms.collective_id)
    elif terms.collective_id is None and not terms.id_optional and not barrier.params.get("tag"):
        raise kernel_errors.missing_collective_id(kernel.label, compat.line_of(barrier))
    conflict = findings.barriers.conflict()
    if conflict is not None:
        raise kernel_errors.mixed_barriers(kernel.label, *conflict)
    if read is not None and terms.interpreted:
        raise kernel_errors.interpreted_read(kernel.label, compat.line_of(read))
    if findings.copy is not None:
        copy, fault = findings.copy
        raise kernel_errors.interpreted_copy(kernel.label, compat.line_of(copy), *fault)
    if terms.together:
        foreign = first_foreign(compat.equations_so_far(), terms.core)
        if foreign is not None:
            raise kernel_errors.foreign_semaphore(kernel.label, compat.line_of(foreign))
    room, warn_at = ROOM.get(terms.core, ROOM[CORE])
    if held >= warn_at:
        message = kernel_errors.semaphore_limit(kernel.label, held, terms.core, room, warn_at)
        warnings.warn(message, kernel_errors.SemaphoreLimitWarning, stacklevel=2)
    return barrier is not None
