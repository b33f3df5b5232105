"""The checks that operations make while tracing, in their order.

Is it a handle, is it alive, is it of the kind, is it scalar, are the values in range.
"""

from typing import Any

import jax
import numpy as np

from safepallas._errors import operation_errors, semaphore_errors
from safepallas._errors.base import INT32_MAX
from safepallas._jax import compat
from safepallas._semaphores.arrays import SemaphoreArray
from safepallas._semaphores.handles import Handle
from safepallas._semaphores.kinds import OPERATIONS, kind_of
from safepallas._semaphores.lifetime import describe


def vet(sem: Any, op: str, arg: str) -> None:
    """Refuse what `op` cannot take as its argument `arg`.

    Operations call it only where their own quick test fails: type, scope and `_vetted` of an
    allocated handle say all there is to know.
    """
    kinds = OPERATIONS[op, arg]
    expected = " or ".join(k.handle for k in kinds)
    is_array = isinstance(sem, SemaphoreArray)
    if not is_array and not isinstance(sem, Handle):
        raise semaphore_errors.not_a_semaphore(op, arg, expected, describe(sem))
    if not sem._is_alive():
        raise semaphore_errors.scope_ended(op, str(sem), sem._scope.label)
    kind = (sem._cls if is_array else type(sem))._kind
    shape = sem._shape if is_array else ()
    if not sem._vetted:  # it has been through a pytree, which holds whatever was put into it
        ref = compat.ref_type(sem._ref)
        actual = ref and kind_of(ref.dtype)
        if ref is None or actual is not kind:
            got = f"{sem}, which holds {describe(sem._ref)}"
            if actual is None:
                raise semaphore_errors.not_a_semaphore(op, arg, expected, got)
            raise semaphore_errors.wrong_kind(op, arg, expected, got, actual.fix)
        # Of an array jax.vmap leaves one semaphore, and JAX then says that it cannot do that.
        shape = ref.shape
    if kind not in kinds:
        raise semaphore_errors.wrong_kind(op, arg, expected, str(sem), kind.fix)
    if shape:
        index = f"{sem._origin.name}.at[{', '.join('ijkl'[: len(shape)])}]"
        raise semaphore_errors.not_scalar(op, arg, expected, str(sem), index)
    sem._vetted = not is_array


def amount(value: Any, op: str, arg: str, sem: Handle, low: int) -> Any:
    """An amount to signal or to wait for: int32, at least `low`; traced ones as they are."""
    if compat.is_traced_int32(value):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        number = int(value)
    elif (
        isinstance(value, (jax.Array, np.ndarray))
        and value.ndim == 0
        and np.issubdtype(value.dtype, np.integer)
    ):
        if compat.is_tracer(value):
            return value  # Pallas casts it to int32
        number = int(value)
    else:
        raise operation_errors.amount_type(op, arg, str(sem), describe(value))
    if not low <= number <= INT32_MAX:
        raise operation_errors.amount_range(op, arg, str(sem), number, low)
    return value
