"""The sizes that a request asks for."""

import operator
from collections.abc import Iterable
from typing import Any

from safepallas._errors import semaphore_errors
from safepallas._semaphores.names import describe


def sizes_of(request: str, shape: Any) -> tuple[int, ...]:
    """The shape as ints; refused where a size is none."""
    sizes: list[int] = []
    if not isinstance(shape, Iterable):
        fix = f"Write {request}((8, 128), dtype)."
        raise semaphore_errors.spec(
            f"{request}: a shape must be a tuple of ints", describe(shape), fix
        )
    for size in shape:
        try:
            if isinstance(size, bool):
                raise TypeError
            sizes.append(operator.index(size))
        except TypeError:
            fix = f"Write the sizes one by one, as in {request}(2, 3)."
            raise semaphore_errors.spec(
                f"{request}: a size must be an int", describe(size), fix
            ) from None
        if sizes[-1] < 0:
            fix = "Sizes are counts, from 0 up."
            raise semaphore_errors.spec(f"{request}: a size must not be negative", str(size), fix)
    return tuple(sizes)
