"""Arrays of semaphores, which must be indexed before use."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    TypeAlias,
    TypeVar,
    cast,
    final,
    overload,
)

import jax
import numpy as np

from safepallas._errors import semaphore_errors
from safepallas._jax import compat
from safepallas._semaphores.handles import BarrierSemaphore, DmaSemaphore, Handle, Semaphore, make
from safepallas._semaphores.kinds import kind_of
from safepallas._semaphores.lifetime import (
    Aux,
    Named,
    Origin,
    Part,
    Scope,
    allocated,
    describe,
    short_type,
)
from safepallas.raw import SemaphoreArrayRef

S_co = TypeVar("S_co", bound=Semaphore | BarrierSemaphore | DmaSemaphore, covariant=True)
Shape_co = TypeVar("Shape_co", bound="tuple[int, ...]", covariant=True)
Index: TypeAlias = int | np.integer[Any] | jax.Array

MAX_RANK = 4


class ArrayIndexer(Generic[S_co, Shape_co]):
    """What ``array.at`` is: index it, as ``ref.at`` of Pallas."""

    __slots__ = ()

    # fmt: off
    @overload
    def __getitem__(self: ArrayIndexer[S_co, tuple[int]], i: Index, /) -> S_co: ...
    @overload
    def __getitem__(self: ArrayIndexer[S_co, tuple[int, int]], i: tuple[Index, Index], /) -> S_co: ...
    @overload
    def __getitem__(self: ArrayIndexer[S_co, tuple[int, int, int]], i: tuple[Index, Index, Index], /) -> S_co: ...
    @overload
    def __getitem__(self: ArrayIndexer[S_co, tuple[int, int, int, int]], i: tuple[Index, Index, Index, Index], /) -> S_co: ...
    @overload
    def __getitem__(self: ArrayIndexer[S_co, tuple[int, int]], i: Index, /) -> SemaphoreArray[S_co, tuple[int]]: ...
    @overload
    def __getitem__(self: ArrayIndexer[S_co, tuple[int, int, int]], i: Index, /) -> SemaphoreArray[S_co, tuple[int, int]]: ...
    @overload
    def __getitem__(self: ArrayIndexer[S_co, tuple[int, int, int]], i: tuple[Index, Index], /) -> SemaphoreArray[S_co, tuple[int]]: ...
    @overload
    def __getitem__(self: ArrayIndexer[S_co, tuple[int, int, int, int]], i: Index, /) -> SemaphoreArray[S_co, tuple[int, int, int]]: ...
    @overload
    def __getitem__(self: ArrayIndexer[S_co, tuple[int, int, int, int]], i: tuple[Index, Index], /) -> SemaphoreArray[S_co, tuple[int, int]]: ...
    @overload
    def __getitem__(self: ArrayIndexer[S_co, tuple[int, int, int, int]], i: tuple[Index, Index, Index], /) -> SemaphoreArray[S_co, tuple[int]]: ...
    # fmt: on
    def __getitem__(self, i: Any, /) -> Any:
        array: Any = self  # the one class that is an ArrayIndexer
        return element(array, i)


@final
class SemaphoreArray(ArrayIndexer[S_co, Shape_co], Named):
    """Semaphores of one kind in an array of rank 1 to 4. Index it before use.

    ``array.at[i, j]`` is an element, ``array.at[i]`` of a rank 2 array an array of rank 1, and
    ``array[i]`` is short for ``array.at[i]``. An index is an int (negative counts from the end) or
    a traced integer scalar; a traced one cannot be checked. Iterating gives the elements, or the
    arrays of lower rank, and ``len(array)`` is the first size.

    `Shape` follows NumPy's convention: ``SemaphoreArray[sp.DmaSemaphore, tuple[int, int]]`` is of
    rank 2. It comes from ``sp.dma_semaphore(2, 3)`` in a scope, or from `adopt`. Calling the class
    raises `TypeError`.

    Raises:
        IndexRangeError: while tracing, for an int out of bounds or for too many indices.
        IndexTypeError: for an index that is a float, a bool, a slice or an array.
        NotASemaphoreError, ScopeEndedError, WrongKindError: see there.
        TypeError: where the array is used as a value.

    Example, in a kernel::

        def finish(sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]) -> None:
            (count,) = sems.shape
            for i in range(count):
                sp.wait_bytes(sems.at[i], o.at[i])

        for i, sem in enumerate(sems):
            sp.async_copy(x.at[i], o.at[i], sem)
        finish(sems)
        sp.adopt(sems.ref, sp.dma_semaphore(8))  # raw Pallas takes the ref
    """

    __slots__ = ("_cls", "_origin", "_ref", "_scope", "_shape", "_vetted")

    _instead = allocated("sp.dma_semaphore(n)")
    _cls: type[Handle]
    _shape: tuple[int, ...]

    @property
    def shape(self) -> Shape_co:
        """The number of semaphores along each dimension."""
        return cast(Shape_co, self._shape)

    @property
    def ref(self) -> SemaphoreArrayRef[Any, Shape_co]:
        """The raw Pallas ref, the way back to raw Pallas.

        Raises:
            ScopeEndedError: after the scope that allocated the semaphores.
        """
        return cast(SemaphoreArrayRef[Any, Shape_co], self._live_ref())

    @property
    def at(self) -> ArrayIndexer[S_co, Shape_co]:
        """What is indexed for an element or an array of lower rank, ``array.at[i]``."""
        return self

    def __len__(self) -> int:
        return self._shape[0]

    @overload
    def __iter__(self: SemaphoreArray[S_co, tuple[int]]) -> Iterator[S_co]: ...
    @overload
    def __iter__(
        self: SemaphoreArray[S_co, tuple[int, int]],
    ) -> Iterator[SemaphoreArray[S_co, tuple[int]]]: ...
    @overload
    def __iter__(
        self: SemaphoreArray[S_co, tuple[int, int, int]],
    ) -> Iterator[SemaphoreArray[S_co, tuple[int, int]]]: ...
    @overload
    def __iter__(
        self: SemaphoreArray[S_co, tuple[int, int, int, int]],
    ) -> Iterator[SemaphoreArray[S_co, tuple[int, int, int]]]: ...
    def __iter__(self) -> Iterator[Any]:
        return (element(self, i) for i in range(self._shape[0]))

    def __str__(self) -> str:
        return f"SemaphoreArray[{self._cls.__name__}] of shape {self._shape} {self._origin}"

    def __repr__(self) -> str:
        return f"<{self}>"

    if not TYPE_CHECKING:  # checkers reject these, and say it better without them

        def __bool__(self):
            raise semaphore_errors.used_as_value(str(self), "has no truth value")

        def __contains__(self, item):
            raise semaphore_errors.used_as_value(str(self), "cannot be searched")

        __array__ = Handle.__array__
        __eq__ = Handle.__eq__
        __hash__ = object.__hash__


def make_array(
    cls: type[Handle],
    ref: Any,
    shape: tuple[int, ...],
    origin: Origin | Part,
    scope: Scope,
    *,
    vetted: bool = True,
) -> SemaphoreArray[Any, Any]:
    """An array on `ref`, which the caller knows to hold semaphores of the class's kind."""
    array: SemaphoreArray[Any, Any] = object.__new__(SemaphoreArray)
    array._cls = cls
    array._ref = ref
    array._shape = shape
    array._origin = origin
    array._scope = scope
    array._vetted = vetted
    return array


def _checked_index(array: SemaphoreArray[Any, Any], axis: int, index: Any) -> Any:
    """The index to hand to Pallas: an int from zero up, or a traced integer scalar."""
    size = array._shape[axis]
    if type(index) is int and 0 <= index < size:
        return index
    if compat.is_traced_int32(index):
        return index
    if isinstance(index, jax.Array):
        if index.ndim or not np.issubdtype(index.dtype, np.integer):
            raise semaphore_errors.index_type(str(array), f"an array {short_type(index)}")
        if compat.is_tracer(index):
            # The TPU lowering of JAX refuses an int64 here.
            return index if index.dtype.itemsize < 8 else index.astype(np.int32)
        number = int(index)
    elif isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        number = operator.index(index)
    else:
        raise semaphore_errors.index_type(str(array), f"{type(index).__name__} {index!r}")
    if not -size <= number < size:
        raise semaphore_errors.index_range(str(array), axis, number, size)
    return number if number >= 0 else number + size


def _vet(array: SemaphoreArray[Any, Any]) -> None:
    """Look at what an array holds that has been through a pytree."""
    ref = compat.ref_type(array._ref)
    kind = ref and kind_of(ref.dtype)
    if ref is not None and kind is array._cls._kind and ref.shape == array._shape:
        array._vetted = True
        return
    expected = f"SemaphoreArray[{array._cls.__name__}] of shape {array._shape}"
    got = f"{array}, which holds {describe(array._ref)}"
    if ref is None or kind is None or ref.shape != array._shape:
        raise semaphore_errors.not_a_semaphore("indexing", "the array", expected, got)
    raise semaphore_errors.wrong_kind("indexing", "the array", expected, got, kind.fix)


def element(array: SemaphoreArray[Any, Any], index: Any) -> Any:
    """``array.at[index]``."""
    if not (array._scope.alive or array._is_alive()):
        raise semaphore_errors.scope_ended("indexing", str(array), array._scope.label)
    if not array._vetted:
        _vet(array)
    shape = array._shape
    given: tuple[Any, ...] = index if type(index) is tuple else (index,)
    count = len(given)
    if not 0 < count <= len(shape):
        if not given:
            raise semaphore_errors.no_indices(str(array))
        raise semaphore_errors.too_many_indices(str(array), len(shape), count)
    indices = tuple([_checked_index(array, axis, i) for axis, i in enumerate(given)])
    origin = Part(array._origin, indices)
    ref = array._ref.at[compat.as_int32(indices)]
    if count == len(shape):
        return make(array._cls, ref, origin, array._scope)
    return make_array(array._cls, ref, shape[count:], origin, array._scope)


def _flatten(array: SemaphoreArray[Any, Any]) -> tuple[tuple[Any], Any]:
    return (array._ref,), (array._cls, array._shape, Aux(array._origin, array._scope))


def _flatten_with_keys(array: SemaphoreArray[Any, Any]) -> tuple[tuple[tuple[Any, Any]], Any]:
    (ref,), aux = _flatten(array)
    return ((jax.tree_util.GetAttrKey("ref"), ref),), aux


def _unflatten(aux: Any, children: Iterable[Any]) -> SemaphoreArray[Any, Any]:
    cls, shape, rest = aux
    (ref,) = children
    return make_array(cls, ref, shape, rest.origin, rest.scope, vetted=False)


jax.tree_util.register_pytree_with_keys(SemaphoreArray, _flatten_with_keys, _unflatten, _flatten)
