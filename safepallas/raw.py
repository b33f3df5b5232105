"""The types of refs in raw Pallas, to annotate kernels that are not moved over yet.

Type checkers read them; with `safepallas-stubs` beside JAX the functions of raw Pallas take
nothing else. At run time they are names only: Pallas hands out refs of its own, and no ref is an
instance of these classes. The kernel runs as it did without annotations.

Inside a kernel of `sp.pallas_call` semaphores are handles, and these types are wrong there.

Example::

    from safepallas.raw import DmaSemaphoreRef, Ref

    def kernel(x: Ref, o: Ref, done: DmaSemaphoreRef) -> None:
        pltpu.async_copy(x, o, done).wait()

    pl.pallas_call(kernel, like, scratch_shapes=[pltpu.SemaphoreType.DMA])(x)
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Protocol,
    TypeAlias,
    TypeVar,
    final,
    overload,
)

import jax
import numpy as np
from jax.typing import ArrayLike

from safepallas._errors.no_public_constructor import NoPublicConstructor

# Pallas itself is not imported: its stubs import this module.

__all__ = ["BarrierSemaphoreRef", "DmaSemaphoreRef", "Ref", "SemaphoreArrayRef", "SemaphoreRef"]

R_co = TypeVar("R_co", covariant=True)
Shape_co = TypeVar("Shape_co", bound=tuple[int, ...], covariant=True)


class _Slice(Protocol):
    """What ``pl.ds`` makes."""

    @property
    def start(self) -> Any: ...

    @property
    def size(self) -> Any: ...

    @property
    def stride(self) -> Any: ...


_Int: TypeAlias = int | jax.Array | np.integer[Any]
_Part: TypeAlias = "slice[Any, Any, Any] | _Slice | EllipsisType"
_Index: TypeAlias = "_Int | _Part"


class RefIndexer(Protocol):
    """``ref.at``: index it for a view of a part of the ref."""

    def __getitem__(self, index: Any, /) -> Ref: ...


class Ref(Protocol):
    """A ref that holds data: what raw Pallas hands to a kernel for inputs, outputs and buffers.

    It has more methods than `sp.Ref`, which a kernel of safepallas is annotated with; it goes
    wherever an `sp.Ref` does. ``len(ref)`` is the first size.

    Example, in a kernel::

        from safepallas.raw import Ref

        def views(x: Ref, o: Ref) -> None:
            o[...] = x[...] + 1.0
            o.set(x.get(0) * x.ndim, 0)
            o.swap(x.at[0][...], 1)
            assert x.T.shape == x.transpose((1, 0)).shape == (128, 8)
            assert x.reshape(x.size).shape == (1024,)
            assert x.bitcast(jnp.int32).dtype == jnp.int32

        views(x, o)
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

    @property
    def size(self) -> int:
        """The number of elements."""
        ...

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        ...

    @property
    def T(self) -> Ref:  # noqa: N802
        """A view with the dimensions in reverse order."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any, /) -> Any: ...

    def __setitem__(self, index: Any, value: ArrayLike, /) -> None: ...

    def bitcast(self, dtype: Any) -> Ref:
        """A view of the same bytes as elements of another `dtype`."""
        ...

    def reshape(self, *shape: Any) -> Ref:
        """A view of another `shape`: its sizes one by one, or a tuple of them."""
        ...

    def transpose(self, permutation: Sequence[int], /) -> Ref:
        """A view with the dimensions in another order: `permutation` is a tuple of them."""
        ...

    def get(self, idx: Any = ()) -> Any:
        """Read: ``ref[idx]``."""
        ...

    def set(self, value: ArrayLike, idx: Any = ()) -> None:
        """Write: ``ref[idx] = value``."""
        ...

    def swap(self, value: ArrayLike, idx: Any = ()) -> Any:
        """Write `value` to ``ref[idx]``, and return what was there."""
        ...

    def addupdate(self, value: ArrayLike, idx: Any = ()) -> None:
        """Add `value` to what is at ``ref[idx]``.

        Of the interpreters ``interpret=True`` does; the TPU lowering of JAX 0.10.2 and 0.12.0.1 for
        TensorCores has no rule for it (measured).

        Example::

            from safepallas.raw import Ref

            def accumulate(x: Ref, o: Ref) -> None:
                o[...] = x[...]
                o.addupdate(x[...])

            o = pl.pallas_call(accumulate, like, interpret=True)(x)
            assert (o == 2 * x).all()
        """
        ...


class NameOnly(NoPublicConstructor):
    """What only annotations name: Pallas makes the refs, and they are of no class of ours."""

    _instead = "the ref that raw Pallas hands to the kernel"


class _OneSemaphoreRef(NameOnly):
    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[()]: ...

        @property
        def dtype(self) -> Any: ...


@final
class SemaphoreRef(_OneSemaphoreRef):
    """A ref to one regular semaphore: ``pltpu.SemaphoreType.REGULAR``. For annotations only.

    Example::

        from safepallas.raw import Ref, SemaphoreRef

        def kernel(x: Ref, o: Ref, ready: SemaphoreRef) -> None:
            pl.semaphore_signal(ready)
            pl.semaphore_wait(ready)

        pl.pallas_call(kernel, like, scratch_shapes=[pltpu.SemaphoreType.REGULAR])(x)
    """


@final
class BarrierSemaphoreRef(_OneSemaphoreRef):
    """A ref to one barrier semaphore: ``pltpu.get_barrier_semaphore()``. For annotations only.

    Example, in a kernel::

        from safepallas.raw import BarrierSemaphoreRef

        def arrive(barrier: BarrierSemaphoreRef, neighbor: jax.Array) -> None:
            pl.semaphore_signal(barrier, 1, device_id={"x": neighbor})
            pl.semaphore_wait(barrier, 1)

        arrive(pltpu.get_barrier_semaphore(), right)
    """


@final
class DmaSemaphoreRef(_OneSemaphoreRef):
    """A ref to one DMA semaphore: ``pltpu.SemaphoreType.DMA``. For annotations only.

    Example::

        from safepallas.raw import DmaSemaphoreRef, Ref

        def kernel(x: Ref, o: Ref, done: DmaSemaphoreRef) -> None:
            pltpu.async_copy(x, o, done).wait()

        pl.pallas_call(kernel, like, scratch_shapes=[pltpu.SemaphoreType.DMA])(x)
    """


@final
class SemaphoreArrayRef(NameOnly, Generic[R_co, Shape_co]):
    """A ref to semaphores that must be indexed, with ``.at``, before use. For annotations only.

    The parameters are the ref of one of them and the shape, as in NumPy:
    ``SemaphoreArrayRef[DmaSemaphoreRef, tuple[int]]`` is ``pltpu.SemaphoreType.DMA((n,))``.

    Example::

        from safepallas.raw import DmaSemaphoreRef, Ref, SemaphoreArrayRef

        Slots = SemaphoreArrayRef[DmaSemaphoreRef, tuple[int]]

        def kernel(x: Ref, o: Ref, slots: Slots) -> None:
            pltpu.async_copy(x, o, slots.at[0]).wait()

        pl.pallas_call(kernel, like, scratch_shapes=[pltpu.SemaphoreType.DMA((2,))])(x)
    """

    if TYPE_CHECKING:

        @property
        def at(self) -> SemaphoreRefIndexer[R_co, Shape_co]: ...

        @property
        def shape(self) -> Shape_co: ...

        @property
        def dtype(self) -> Any: ...

        def __len__(self) -> int: ...


@final
class SemaphoreRefIndexer(NameOnly, Generic[R_co, Shape_co]):
    """``ref.at`` of a `SemaphoreArrayRef`: index it for one semaphore, or for a part."""

    if TYPE_CHECKING:
        # Rank 1.
        @overload
        def __getitem__(
            self: SemaphoreRefIndexer[R_co, tuple[int]], index: _Int | tuple[_Int], /
        ) -> R_co: ...
        @overload
        def __getitem__(
            self: SemaphoreRefIndexer[R_co, tuple[int]], index: _Part | tuple[_Part], /
        ) -> SemaphoreArrayRef[R_co, tuple[int]]: ...
        # Rank 2.
        @overload
        def __getitem__(
            self: SemaphoreRefIndexer[R_co, tuple[int, int]], index: tuple[_Int, _Int], /
        ) -> R_co: ...
        @overload
        def __getitem__(
            self: SemaphoreRefIndexer[R_co, tuple[int, int]], index: _Int | tuple[_Int], /
        ) -> SemaphoreArrayRef[R_co, tuple[int]]: ...
        # Rank 3.
        @overload
        def __getitem__(
            self: SemaphoreRefIndexer[R_co, tuple[int, int, int]],
            index: tuple[_Int, _Int, _Int],
            /,
        ) -> R_co: ...
        @overload
        def __getitem__(
            self: SemaphoreRefIndexer[R_co, tuple[int, int, int]], index: tuple[_Int, _Int], /
        ) -> SemaphoreArrayRef[R_co, tuple[int]]: ...
        @overload
        def __getitem__(
            self: SemaphoreRefIndexer[R_co, tuple[int, int, int]], index: _Int | tuple[_Int], /
        ) -> SemaphoreArrayRef[R_co, tuple[int, int]]: ...
        # Parts of higher ranks, and ranks that the checker does not know.
        @overload
        def __getitem__(
            self: SemaphoreRefIndexer[R_co, tuple[int, int]],
            index: _Part | tuple[_Part, _Index] | tuple[_Int, _Part],
            /,
        ) -> Any: ...
        @overload
        def __getitem__(
            self: SemaphoreRefIndexer[R_co, tuple[int, int, int]],
            index: _Part | tuple[_Index, ...],
            /,
        ) -> Any: ...
        @overload
        def __getitem__(
            self: SemaphoreRefIndexer[R_co, tuple[int, int, int, int]],
            index: _Index | tuple[_Index, ...],
            /,
        ) -> Any: ...
        def __getitem__(self, index: Any, /) -> Any: ...
