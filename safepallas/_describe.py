"""What a value is, in the words of a message."""

from typing import Any

import jax
import numpy as np

from safepallas import _compat, _messages
from safepallas._kinds import kind_of
from safepallas._scope import Named


def describe(x: Any) -> str:
    """What `x` is: a semaphore by its name, a ref or an array by its type, the rest by its repr."""
    if isinstance(x, Named):
        return str(x)
    ref = _compat.ref_type(x)
    if ref is not None:
        kind = kind_of(ref.dtype)
        if kind is not None:
            return f"a raw Pallas ref to a {kind.name} semaphore ({_messages.short_type(ref)})"
        return f"a raw Pallas ref ({_messages.short_type(ref)})"
    if isinstance(x, (jax.Array, np.ndarray)):
        return f"an array {_messages.short_type(x)}"
    if type(x).__module__.startswith("safepallas."):
        return repr(x)  # ends with the line it was made on
    text = repr(x)
    return f"{type(x).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
