"""What can only be said of a whole kernel, once it is traced.

Read off the traced equations and not counted while the kernel runs: JAX does not run again what it
has in its cache (a helper under `jax.jit`), and calls of raw Pallas count like ours.
"""

import math
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax

from safepallas import _compat, _errors
from safepallas._kinds import kind_of

# From here on the TPU compiler may run out: 512 semaphores of 4 bytes on v5e, v5p and v6e, less
# those it takes for itself (measured with libtpu under JAX 0.10.2 and 0.12.0.1).
SEMAPHORES_TO_WARN_AT = 480


class Terms(NamedTuple):
    """What a call promises about its kernel, as far as the audit goes."""

    collective_id: Any = None
    barrier_optional: bool = False  # a collective_id is fine without a barrier
    id_optional: bool = False  # a barrier is fine without a collective_id
    interpreted: bool = False  # under pltpu.InterpretParams


def terms_of(compiler_params: Any, interpret: Any) -> Terms:
    """The terms of a call, from its arguments and JAX's settings of now."""
    return Terms(
        getattr(compiler_params, "collective_id", None),
        getattr(compiler_params, "allow_collective_id_without_custom_barrier", False),
        _compat.collective_ids_are_assigned(),
        _compat.interprets_as_tpu(interpret),
    )


def count_semaphores(requests: Any) -> int:
    """How many semaphores a tree of raw requests asks for."""
    types = [r.get_ref_aval() for r in jax.tree_util.tree_leaves(requests)]
    return _count((t.shape, t.dtype) for t in types)


def _count(types: Iterable[tuple[tuple[Any, ...], Any]]) -> int:
    return sum(math.prod(shape) for shape, dtype in types if kind_of(dtype) is not None)


class _Findings:
    """What the equations of a kernel show."""

    __slots__ = ("barrier", "read")

    def __init__(self) -> None:
        self.barrier: _compat.Equation | None = None
        self.read: _compat.Equation | None = None

    def walk(self, equations: Iterable[_compat.Equation]) -> int:
        """Look at all equations; the number returned is the most semaphores scoped at a time."""
        most = 0
        for eqn in equations:
            if eqn.primitive == "get_barrier_semaphore":
                self.barrier = self.barrier or eqn
            elif eqn.primitive == "semaphore_read":
                self.read = self.read or eqn
            for jaxpr in _compat.jaxprs_in(eqn.params):
                held = self.walk(_compat.equations_of(jaxpr))
                if eqn.primitive == "run_scoped":
                    held += _count(_compat.allocated_by(jaxpr))
                most = max(most, held)
        return most


def audit(kernel: str, scratch: int, terms: Terms) -> None:
    """Judge a kernel at the end of its body, by the equations that it has traced.

    Args:
        kernel: how messages name it.
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
            raise _errors.unused_collective_id(kernel, terms.collective_id)
    elif terms.collective_id is None and not terms.id_optional and not barrier.params.get("tag"):
        raise _errors.missing_collective_id(kernel, barrier.line())
    if read is not None and terms.interpreted:
        raise _errors.interpreted_read(kernel, read.line())
    if held >= SEMAPHORES_TO_WARN_AT:
        message = _errors.semaphore_limit(kernel, held)
        warnings.warn(message, _errors.SemaphoreLimitWarning, stacklevel=2)
