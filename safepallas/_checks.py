"""The checks that operations make while tracing, in their order.

Is it a handle, is it alive, is it of the kind, is it scalar, are the values in range.
"""

from typing import Any

import jax
import numpy as np

from safepallas import _compat, _messages
from safepallas._arrays import SemaphoreArray
from safepallas._describe import describe
from safepallas._errors import INT32_MAX
from safepallas._handles import Handle
from safepallas._kinds import OPERATIONS, kind_of


def vet(sem: Any, op: str, arg: str) -> None:
    """Refuse what `op` cannot take as its argument `arg`.

    Operations call it only where their own quick test fails: type, scope and `_vetted` of an
    allocated handle say all there is to know.
    """
    kinds = OPERATIONS[op, arg]
    expected = " or ".join(k.handle for k in kinds)
    is_array = isinstance(sem, SemaphoreArray)
    if not is_array and not isinstance(sem, Handle):
        raise _messages.not_a_semaphore(op, arg, expected, describe(sem))
    if not sem._is_alive():
        raise _messages.scope_ended(op, str(sem), sem._scope.label)
    kind = (sem._cls if is_array else type(sem))._kind
    shape = sem._shape if is_array else ()
    if not sem._vetted:  # it has been through a pytree, which holds whatever was put into it
        ref = _compat.ref_type(sem._ref)
        actual = ref and kind_of(ref.dtype)
        if ref is None or actual is not kind:
            got = f"{sem}, which holds {describe(sem._ref)}"
            if actual is None:
                raise _messages.not_a_semaphore(op, arg, expected, got)
            raise _messages.wrong_kind(op, arg, expected, got, actual.mend)
        # Of an array jax.vmap leaves one semaphore, and JAX then says that it cannot do that.
        shape = ref.shape
    if kind not in kinds:
        raise _messages.wrong_kind(op, arg, expected, str(sem), kind.mend)
    if shape:
        index = f"{sem._origin.name}.at[{', '.join('ijkl'[: len(shape)])}]"
        raise _messages.not_scalar(op, arg, expected, str(sem), index)
    sem._vetted = not is_array


def amount(value: Any, op: str, arg: str, sem: Handle, low: int) -> Any:
    """An amount to signal or to wait for: int32, at least `low`; traced ones as they are."""
    if _compat.is_traced_int32(value):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        number = int(value)
    elif (
        isinstance(value, (jax.Array, np.ndarray))
        and value.ndim == 0
        and np.issubdtype(value.dtype, np.integer)
    ):
        if _compat.is_tracer(value):
            return value  # Pallas casts it to int32
        number = int(value)
    else:
        raise _messages.amount_type(op, arg, str(sem), describe(value))
    if not low <= number <= INT32_MAX:
        raise _messages.amount_range(op, arg, str(sem), number, low)
    return value
