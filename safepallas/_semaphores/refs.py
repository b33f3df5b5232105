"""What a kernel may expect of a ref that holds data."""

from typing import Any, Protocol, runtime_checkable

import jax
from jax.typing import ArrayLike


class RefIndexer(Protocol):
    """``ref.at``: index it for a view of a part of the ref."""

    def __getitem__(self, index: Any, /) -> "Ref": ...


@runtime_checkable
class Ref(Protocol):
    """A ref that holds data: what Pallas hands to a kernel for inputs, outputs and buffers.

    Annotate the data parameters of a kernel with it. Reading (``ref[...]``) gives a `jax.Array`
    of the indexed shape, writing takes an array; ``ref.at[...]`` is a view of a part, for copies.
    A semaphore is never one, and a `jax.Array` is not one either.

    Example::

        def double(x: sp.Ref, o: sp.Ref) -> None:
            assert (x.shape, x.dtype) == ((8, 128), jnp.float32)
            row: sp.Ref = x.at[0]
            o[0] = row[...] + row[...]

        sp.pallas_call(double, like)(x)
    """

    @property
    def at(self) -> RefIndexer:
        """Views of parts of the ref, ``ref.at[0]`` or ``ref.at[pl.ds(start, size)]``."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in elements; of the block, where the call has block specs."""
        ...

    @property
    def dtype(self) -> Any:
        """The dtype of an element."""
        ...

    def __getitem__(self, index: Any, /) -> jax.Array: ...

    def __setitem__(self, index: Any, value: ArrayLike, /) -> None: ...
