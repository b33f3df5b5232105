"""The sizes that a request asks for."""

import operator
from collections.abc import Iterable
from typing import Any

from safepallas import _messages
from safepallas._describe import describe


def sizes_of(request: str, shape: Any) -> tuple[int, ...]:
    """The shape as ints; refused where a size is none."""
    sizes: list[int] = []
    if not isinstance(shape, Iterable):
        mend = f"Write {request}((8, 128), dtype)."
        raise _messages.spec(f"{request}: a shape must be a tuple of ints", describe(shape), mend)
    for size in shape:
        try:
            if isinstance(size, bool):
                raise TypeError
            sizes.append(operator.index(size))
        except TypeError:
            mend = f"Write the sizes one by one, as in {request}(2, 3)."
            raise _messages.spec(
                f"{request}: a size must be an int", describe(size), mend
            ) from None
        if sizes[-1] < 0:
            mend = "Sizes are counts, from 0 up."
            raise _messages.spec(f"{request}: a size must not be negative", str(size), mend)
    return tuple(sizes)
