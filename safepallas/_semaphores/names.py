"""What a value is, in the words of a message."""

from typing import Any

import jax
import numpy as np

from safepallas._jax import compat
from safepallas._semaphores.kinds import kind_of
from safepallas._semaphores.lifetime import Named


def short_type(x: Any) -> str:
    """Dtype and shape as JAX prints them: ``float32[8,128]``."""
    return f"{x.dtype}[{','.join(map(str, x.shape))}]"


def describe(x: Any) -> str:
    """What `x` is: a semaphore by its name, a ref or an array by its type, the rest by its repr."""
    if isinstance(x, Named):
        return str(x)
    ref = compat.ref_type(x)
    if ref is not None:
        kind = kind_of(ref.dtype)
        if kind is not None:
            return f"a raw Pallas ref to a {kind.name} semaphore ({short_type(ref)})"
        return f"a raw Pallas ref ({short_type(ref)})"
    if isinstance(x, (jax.Array, np.ndarray)):
        return f"an array {short_type(x)}"
    if type(x).__module__.startswith("safepallas."):
        return repr(x)  # ends with the line it was made on
    text = repr(x)
    return f"{type(x).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
