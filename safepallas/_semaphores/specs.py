"""Requests to the allocator, and the refs that those for data yield."""

from __future__ import annotations

import copy
import operator
import types
from collections.abc import Iterable, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Never,
    Protocol,
    Self,
    TypeVar,
    final,
    overload,
    runtime_checkable,
)

import jax
from jax.experimental.pallas import tpu as pltpu
from jax.typing import ArrayLike, DTypeLike

from safepallas._errors import semaphore_errors, user_frame
from safepallas._errors.no_public_constructor import NoPublicConstructor
from safepallas._semaphores import kinds
from safepallas._semaphores.arrays import MAX_RANK, SemaphoreArray
from safepallas._semaphores.handles import BarrierSemaphore, DmaSemaphore, Semaphore
from safepallas._semaphores.lifetime import describe
from safepallas._semaphores.meshes import CoreMesh, cores_asked, mesh_of, on_cores

T_co = TypeVar("T_co", covariant=True)


class RefIndexer(Protocol):
    """``ref.at``: index it for a view of a part of the ref."""

    def __getitem__(self, index: Any, /) -> Ref: ...


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


class Filled(NoPublicConstructor):
    """The base of `Scratch`: what its requests have yielded, by their names."""

    __slots__ = ("_values",)

    _values: dict[str, Any]


@final
class Spec(NoPublicConstructor, Generic[T_co]):
    """A request to the allocator, which yields a `T` inside the scope.

    Made by `semaphore`, `barrier_semaphore`, `dma_semaphore`, `vmem` and `smem`; given to
    ``scratch_shapes=``, `run_scoped`, `with_scoped`, `adopt`, ``out_shape=`` or as a field of a
    `Scratch`. Two specs are equal where they ask for the same, on the same line. Calling the class
    raises `TypeError`, ``spec @ mesh`` may raise `SpecError`, setting a field `AttributeError`.

    For a request that is one of two, mypy refuses ``scratch_shapes=(spec,)`` with
    ``spec: sp.Spec[A] | sp.Spec[B]``; ``sp.Spec[A | B]`` passes, and means the same.

    Example::

        def slots(n: int) -> sp.Spec[sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]]:
            return sp.dma_semaphore(n)

        assert slots(3).shape == (3,)
    """

    __slots__ = ("_code", "_dtype", "_kind", "_line", "_name", "_raw", "_request", "_shape")

    _instead = "sp.dma_semaphore()"
    _kind: kinds.Kind | None  # None for data
    _name: str | None  # the Scratch field that holds it
    _raw: Any  # what raw Pallas allocates for it
    _request: str  # the function that made it
    _shape: tuple[int, ...]
    _dtype: Any  # of data
    _code: types.CodeType  # where it was made
    _line: int

    def __copy__(self) -> Spec[T_co]:
        copied: Spec[T_co] = object.__new__(Spec)
        for slot in Spec.__slots__:
            setattr(copied, slot, getattr(self, slot))
        return copied

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape asked for; ``()`` for one semaphore."""
        return self._shape

    @overload
    def __get__(self, instance: None, owner: type[Any], /) -> Self: ...
    @overload
    def __get__(self, instance: Filled, owner: type[Any], /) -> T_co: ...
    def __get__(self, instance: Filled | None, owner: type[Any], /) -> Any:
        if self._name is None or not isinstance(instance, Filled):
            return self
        return instance._values[self._name]

    def __set__(self, instance: Filled, value: Never, /) -> None:
        raise AttributeError(f"{self._name!r} of a Scratch cannot be set: the allocator fills it.")

    def __matmul__(self, mesh: CoreMesh, /) -> Spec[T_co]:
        """The same on the cores of `mesh`, as in raw Pallas: ``sp.semaphore() @ mesh``.

        `kernel` with several bodies needs it, to know which of the cores allocate.

        Args:
            mesh: of cores, as `kernel` takes it.

        Raises:
            SpecError: where `mesh` is no mesh of cores, or its cores have no such memory.
        """
        placed = copy.copy(self)
        placed._raw = on_cores(self._raw, mesh, str(self))
        return placed

    @property
    def _where(self) -> str:
        return f"{self._code.co_filename}:{self._line}"

    def __str__(self) -> str:
        mesh = mesh_of(self._raw)
        cores = "" if mesh is None else f" @ {type(mesh).__name__}"
        if self._kind is None:
            return f"{self._request}({self._shape}, {self._dtype}){cores}"
        return f"{self._request}({', '.join(map(str, self._shape))}){cores}"

    def __repr__(self) -> str:
        return f"<Spec {self} at {self._where}>"

    if not TYPE_CHECKING:  # identity for checkers; value for JAX's cache of traces

        def __eq__(self, other):
            return isinstance(other, Spec) and self._key() == other._key()

        def __hash__(self):
            return hash((self._request, self._shape, self._line, self._name))

        def _key(self):
            asked = (self._request, self._shape, self._dtype, cores_asked(mesh_of(self._raw)))
            return (*asked, self._code, self._line, self._name)


def _sizes_of(request: str, shape: Any) -> tuple[int, ...]:
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


def _spec(
    request: str, kind: kinds.Kind | None, shape: tuple[int, ...], dtype: Any, raw: Any
) -> Any:
    """A spec made on the line of the user that is running."""
    frame = user_frame.outside("safepallas")
    spec: Spec[Any] = object.__new__(Spec)
    spec._request = request
    spec._kind = kind
    spec._shape = shape
    spec._dtype = dtype
    spec._raw = raw
    spec._code = frame.f_code
    spec._line = frame.f_lineno
    spec._name = None
    return spec


def _semaphore_spec(request: str, kind: kinds.Kind, shape: tuple[Any, ...]) -> Any:
    sizes = _sizes_of(request, shape)
    if len(sizes) > MAX_RANK:
        what = f"{request}: an array of semaphores has 1 to {MAX_RANK} dimensions"
        raise semaphore_errors.spec(what, str(len(sizes)), "Fold some of them into one.")
    return _spec(request, kind, sizes, None, kind.raw(sizes) if sizes else kind.raw)


# fmt: off
@overload
def semaphore() -> Spec[Semaphore]: ...
@overload
def semaphore(n: int, /) -> Spec[SemaphoreArray[Semaphore, tuple[int]]]: ...
@overload
def semaphore(n: int, m: int, /) -> Spec[SemaphoreArray[Semaphore, tuple[int, int]]]: ...
@overload
def semaphore(n: int, m: int, k: int, /) -> Spec[SemaphoreArray[Semaphore, tuple[int, int, int]]]: ...
@overload
def semaphore(n: int, m: int, k: int, l: int, /) -> Spec[SemaphoreArray[Semaphore, tuple[int, int, int, int]]]: ...  # noqa: E741
# fmt: on
def semaphore(*shape: int) -> Any:
    """Ask for one regular semaphore, or for an array of them.

    Args:
        shape: the sizes of the array, 1 to 4 of them; none for one `Semaphore`.

    Returns:
        A `Spec` of a `Semaphore`, or of a `SemaphoreArray` of that rank. A semaphore takes 4 bytes
        of the TPU's semaphore memory.

    Raises:
        SpecError: for a size that is no int or negative, or for more than 4.

    Example::

        class Flags(sp.Scratch):
            ready = sp.semaphore()
            free = sp.semaphore(2)
    """
    return _semaphore_spec("semaphore", kinds.REGULAR, shape)


# fmt: off
@overload
def barrier_semaphore() -> Spec[BarrierSemaphore]: ...
@overload
def barrier_semaphore(n: int, /) -> Spec[SemaphoreArray[BarrierSemaphore, tuple[int]]]: ...
@overload
def barrier_semaphore(n: int, m: int, /) -> Spec[SemaphoreArray[BarrierSemaphore, tuple[int, int]]]: ...
@overload
def barrier_semaphore(n: int, m: int, k: int, /) -> Spec[SemaphoreArray[BarrierSemaphore, tuple[int, int, int]]]: ...
@overload
def barrier_semaphore(n: int, m: int, k: int, l: int, /) -> Spec[SemaphoreArray[BarrierSemaphore, tuple[int, int, int, int]]]: ...  # noqa: E741
# fmt: on
def barrier_semaphore(*shape: int) -> Any:
    """Ask for one barrier semaphore, or for an array of them, as `semaphore` does.

    The semaphore that `collective_id` names is not asked for: see `get_barrier_semaphore`.

    Args:
        shape: the sizes of the array, 1 to 4 of them; none for one `BarrierSemaphore`.

    Returns:
        A `Spec` of a `BarrierSemaphore`, or of a `SemaphoreArray` of that rank.

    Raises:
        SpecError: for a size that is no int or negative, or for more than 4.

    Example, in a kernel::

        barrier = sp.adopt(pltpu.get_barrier_semaphore(), sp.barrier_semaphore())
        sp.signal(barrier, device_id={"x": right})
        sp.wait(barrier)
    """
    return _semaphore_spec("barrier_semaphore", kinds.BARRIER, shape)


# fmt: off
@overload
def dma_semaphore() -> Spec[DmaSemaphore]: ...
@overload
def dma_semaphore(n: int, /) -> Spec[SemaphoreArray[DmaSemaphore, tuple[int]]]: ...
@overload
def dma_semaphore(n: int, m: int, /) -> Spec[SemaphoreArray[DmaSemaphore, tuple[int, int]]]: ...
@overload
def dma_semaphore(n: int, m: int, k: int, /) -> Spec[SemaphoreArray[DmaSemaphore, tuple[int, int, int]]]: ...
@overload
def dma_semaphore(n: int, m: int, k: int, l: int, /) -> Spec[SemaphoreArray[DmaSemaphore, tuple[int, int, int, int]]]: ...  # noqa: E741
# fmt: on
def dma_semaphore(*shape: int) -> Any:
    """Ask for one DMA semaphore, or for an array of them.

    Args:
        shape: the sizes of the array, 1 to 4 of them; none for one `DmaSemaphore`.

    Returns:
        A `Spec` of a `DmaSemaphore`, or of a `SemaphoreArray` of that rank.

    Raises:
        SpecError: for a size that is no int or negative, or for more than 4.

    Example::

        class Copies(sp.Scratch):
            send = sp.dma_semaphore()
            recv = sp.dma_semaphore(7)  # for each of 7 other devices
            slots = sp.dma_semaphore(2, 3)
    """
    return _semaphore_spec("dma_semaphore", kinds.DMA, shape)


def _data_spec(request: str, space: Any, shape: Sequence[int], dtype: DTypeLike) -> Any:
    sizes = _sizes_of(request, shape)
    return _spec(request, None, sizes, jax.numpy.dtype(dtype), space(sizes, dtype))


def vmem(shape: Sequence[int], dtype: DTypeLike) -> Spec[Ref]:
    """Ask for a buffer in VMEM.

    Args:
        shape: in elements.
        dtype: of an element.

    Returns:
        A `Spec` of a `Ref`.

    Raises:
        SpecError: for a size that is no int or negative.

    Example::

        class Buffers(sp.Scratch):
            acc = sp.vmem((8, 128), jnp.float32)
    """
    return _data_spec("vmem", pltpu.VMEM, shape, dtype)  # type: ignore[no-any-return]


def smem(shape: Sequence[int], dtype: DTypeLike) -> Spec[Ref]:
    """Ask for a buffer in SMEM, for scalars.

    Args:
        shape: in elements.
        dtype: of an element.

    Returns:
        A `Spec` of a `Ref`.

    Raises:
        SpecError: for a size that is no int or negative.

    Example::

        class Buffers(sp.Scratch):
            counts = sp.smem((4,), jnp.int32)
    """
    return _data_spec("smem", pltpu.SMEM, shape, dtype)  # type: ignore[no-any-return]
