"""The types of refs in raw Pallas kernels. There is no such module at run time.

Import it for annotations only, below ``if TYPE_CHECKING:``.
"""

from types import EllipsisType
from typing import Any, Generic, Never, Protocol, TypeAlias, TypeVar, final, overload

import jax
import numpy as np
from jax._src.pallas.core import MemoryRef
from jax._src.state.indexing import Slice
from jax._src.state.types import AbstractRef
from jax.typing import ArrayLike

_S_co = TypeVar("_S_co", covariant=True)
_Shape_co = TypeVar("_Shape_co", bound=tuple[int, ...], covariant=True)
_R_co = TypeVar("_R_co", covariant=True)

_Int: TypeAlias = int | jax.Array | np.integer[Any]
_Part: TypeAlias = slice[Any, Any, Any] | Slice | EllipsisType
_Index: TypeAlias = _Int | _Part

class _View(Protocol):
    # An index-update helper, `array.at[0]`, has no `at` of its own: an array is no ref.
    @property
    def at(self) -> Any: ...

class _ViewIndexer(Protocol):
    def __getitem__(self, index: Any, /) -> _View: ...

class RefLike(Protocol):
    """What a copy takes for a ref that holds data: a `Ref`, a `jax.Ref`, a view of either."""

    @property
    def at(self) -> _ViewIndexer: ...
    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __setitem__(self, index: Any, value: ArrayLike, /) -> None: ...

class _RefIndexer(Protocol):
    def __getitem__(self, index: Any, /) -> Ref: ...

class Ref(Protocol):
    """A ref that holds data, as a kernel gets it for inputs, outputs and buffers."""

    @property
    def at(self) -> _RefIndexer: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def size(self) -> int: ...
    @property
    def ndim(self) -> int: ...
    @property
    def T(self) -> Ref: ...  # noqa: N802
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __setitem__(self, index: Any, value: ArrayLike, /) -> None: ...
    def bitcast(self, dtype: Any) -> Ref: ...
    def reshape(self, *shape: Any) -> Ref: ...
    def transpose(self, *permutation: Any) -> Ref: ...
    def get(self, idx: Any = ()) -> Any: ...
    def set(self, value: ArrayLike, idx: Any = ()) -> None: ...
    def swap(self, value: ArrayLike, idx: Any = ()) -> Any: ...
    def addupdate(self, value: ArrayLike, idx: Any = ()) -> None: ...

class _SemaphoreRef:
    def __init__(self, never: Never, /) -> None: ...
    @property
    def shape(self) -> tuple[()]: ...
    @property
    def dtype(self) -> Any: ...

@final
class SemaphoreRef(_SemaphoreRef):
    """A ref to one regular semaphore."""

@final
class BarrierSemaphoreRef(_SemaphoreRef):
    """A ref to one barrier semaphore."""

@final
class DmaSemaphoreRef(_SemaphoreRef):
    """A ref to one DMA semaphore."""

@final
class SemaphoreArrayRef(Generic[_S_co, _Shape_co]):
    """A ref to semaphores that must be indexed, with ``.at``, before use.

    The parameters are the ref of one of them and the shape: ``tuple[int]``, ``tuple[int, int]``.
    """

    def __init__(self, never: Never, /) -> None: ...
    @property
    def at(self) -> _SemaphoreIndexer[_S_co, _Shape_co]: ...
    @property
    def shape(self) -> _Shape_co: ...
    @property
    def dtype(self) -> Any: ...
    def __len__(self) -> int: ...

@final
class _SemaphoreIndexer(Generic[_S_co, _Shape_co]):
    # Rank 1.
    @overload
    def __getitem__(
        self: _SemaphoreIndexer[_S_co, tuple[int]], index: _Int | tuple[_Int], /
    ) -> _S_co: ...
    @overload
    def __getitem__(
        self: _SemaphoreIndexer[_S_co, tuple[int]], index: _Part | tuple[_Part], /
    ) -> SemaphoreArrayRef[_S_co, tuple[int]]: ...
    # Rank 2.
    @overload
    def __getitem__(
        self: _SemaphoreIndexer[_S_co, tuple[int, int]], index: tuple[_Int, _Int], /
    ) -> _S_co: ...
    @overload
    def __getitem__(
        self: _SemaphoreIndexer[_S_co, tuple[int, int]], index: _Int | tuple[_Int], /
    ) -> SemaphoreArrayRef[_S_co, tuple[int]]: ...
    # Rank 3.
    @overload
    def __getitem__(
        self: _SemaphoreIndexer[_S_co, tuple[int, int, int]], index: tuple[_Int, _Int, _Int], /
    ) -> _S_co: ...
    @overload
    def __getitem__(
        self: _SemaphoreIndexer[_S_co, tuple[int, int, int]], index: tuple[_Int, _Int], /
    ) -> SemaphoreArrayRef[_S_co, tuple[int]]: ...
    @overload
    def __getitem__(
        self: _SemaphoreIndexer[_S_co, tuple[int, int, int]], index: _Int | tuple[_Int], /
    ) -> SemaphoreArrayRef[_S_co, tuple[int, int]]: ...
    # Parts of higher ranks, and ranks that the checker does not know.
    @overload
    def __getitem__(
        self: _SemaphoreIndexer[_S_co, tuple[int, int]],
        index: _Part | tuple[_Part, _Index] | tuple[_Int, _Part],
        /,
    ) -> Any: ...
    @overload
    def __getitem__(
        self: _SemaphoreIndexer[_S_co, tuple[int, int, int]], index: _Part | tuple[_Index, ...], /
    ) -> Any: ...
    @overload
    def __getitem__(
        self: _SemaphoreIndexer[_S_co, tuple[int, int, int, int]],
        index: _Index | tuple[_Index, ...],
        /,
    ) -> Any: ...

class SemaphoreRequest(Generic[_R_co]):
    """What ``SemaphoreType.DMA((2,))`` makes: memory for which the body gets a ref.

    At run time it is a `pl.MemoryRef`.
    """

    def __init__(self, never: Never, /) -> None: ...
    @property
    def inner_aval(self) -> Any: ...
    @property
    def memory_space(self) -> Any: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    def get_array_aval(self) -> jax.core.ShapedArray: ...
    def get_ref_aval(self) -> AbstractRef: ...

# What a scope may allocate besides semaphores, and trees of requests, whose refs stay untyped.
OtherRequest: TypeAlias = MemoryRef | tuple[Any, ...] | list[Any] | dict[Any, Any] | None
