"""What can only be said of a whole kernel, once it is traced.

Read off the traced equations and not counted while the kernel runs: JAX does not run again what it
has in its cache (a helper under `jax.jit`), and calls of raw Pallas count like ours.
"""

import math
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

from safepallas import _compat, _errors, _messages
from safepallas._kinds import kind_of
from safepallas._scope import Scope

# From here on the TPU compiler may run out: 512 semaphores of 4 bytes on v5e, v5p and v6e, less
# those it takes for itself (measured with libtpu under JAX 0.10.2 and 0.12.0.1).
SEMAPHORES_TO_WARN_AT = 480


# Most equations of a kernel. They hold no jaxpr, and are not looked at again.
_PLAIN = frozenset({"dma_start", "dma_wait", "get", "semaphore_signal", "semaphore_wait", "swap"})


class Terms(NamedTuple):
    """What a call promises about its kernel, as far as the audit goes."""

    collective_id: Any = None
    barrier_optional: bool = False  # a collective_id is fine without a barrier
    id_optional: bool = False  # a barrier is fine without a collective_id
    interpreted: bool = False  # under pltpu.InterpretParams


def terms_of(compiler_params: Any, interpret: Any) -> Terms:
    """The terms of a call, from its arguments and JAX's settings of now."""
    assigned, interpreted = _compat.ids_are_assigned(), _compat.interprets_as_tpu(interpret)
    if compiler_params is None:
        return Terms(None, False, assigned, interpreted)
    return Terms(
        getattr(compiler_params, "collective_id", None),
        getattr(compiler_params, "allow_collective_id_without_custom_barrier", False),
        assigned,
        interpreted,
    )


def count_semaphores(types: Iterable[tuple[tuple[int, ...], Any]]) -> int:
    """How many semaphores refs of these shapes and dtypes hold."""
    return sum(math.prod(shape) for shape, dtype in types if kind_of(dtype) is not None)


class _Findings:
    """What the equations of a kernel show."""

    __slots__ = ("barrier", "read")

    def __init__(self) -> None:
        self.barrier: Any = None  # the first equation that gets it
        self.read: Any = None  # the first that reads a semaphore

    def walk(self, equations: Iterable[Any]) -> int:
        """Look at all equations; the number returned is the most semaphores scoped at a time."""
        most = 0
        for eqn in equations:
            name = eqn.primitive.name
            if name in _PLAIN:
                continue
            if name == "get_barrier_semaphore":
                self.barrier = self.barrier or eqn
            elif name == "semaphore_read":
                self.read = self.read or eqn
            for jaxpr in _compat.jaxprs_in(eqn.params):
                held = self.walk(_compat.equations_of(jaxpr))
                if name == "run_scoped":
                    held += count_semaphores(_compat.allocated_by(jaxpr))
                most = max(most, held)
        return most


def audit(kernel: Scope, scratch: int, terms: Terms) -> None:
    """Judge a kernel at the end of its body, by the equations that it has traced.

    Args:
        kernel: its scope, for messages.
        scratch: the number of semaphores in its scratch.
        terms: those of the call.

    Raises:
        MissingCollectiveIdError, UnusedCollectiveIdError, InterpretedReadError

    Warns:
        SemaphoreLimitWarning: from 480 semaphores on.
    """
    findings = _Findings()
    held = scratch + findings.walk(_compat.equations_so_far())
    barrier, read = findings.barrier, findings.read
    if barrier is None:
        if terms.collective_id is not None and not terms.barrier_optional:
            raise _messages.unused_collective_id(kernel.label, terms.collective_id)
    elif terms.collective_id is None and not terms.id_optional and not barrier.params.get("tag"):
        raise _messages.missing_collective_id(kernel.label, _compat.line_of(barrier))
    if read is not None and terms.interpreted:
        raise _messages.interpreted_read(kernel.label, _compat.line_of(read))
    if held >= SEMAPHORES_TO_WARN_AT:
        message = _messages.semaphore_limit(kernel.label, held)
        warnings.warn(message, _errors.SemaphoreLimitWarning, stacklevel=2)
