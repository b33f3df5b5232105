"""Requests to the allocator, and the class that names a group of them."""

from __future__ import annotations

import copy
import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Never, Self, TypeVar, final, overload

import jax
from jax.experimental.pallas import tpu as pltpu
from jax.typing import DTypeLike

from safepallas._errors import semaphore_errors
from safepallas._semaphores import kinds
from safepallas._semaphores.arrays import MAX_RANK, SemaphoreArray
from safepallas._semaphores.handles import BarrierSemaphore, DmaSemaphore, Semaphore
from safepallas._semaphores.lifetime import Named
from safepallas._semaphores.meshes import CoreMesh, cores_asked, mesh_of, on_cores
from safepallas._semaphores.names import describe
from safepallas._semaphores.refs import Ref
from safepallas._semaphores.sizes import sizes_of

T_co = TypeVar("T_co", covariant=True)


@final
class Spec(Generic[T_co]):
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

    _kind: kinds.Kind | None  # None for data
    _name: str | None  # the Scratch field that holds it
    _raw: Any  # what raw Pallas allocates for it
    _request: str  # the function that made it
    _shape: tuple[int, ...]
    _dtype: Any  # of data
    _code: types.CodeType  # where it was made
    _line: int

    def __init__(self, never: Never, /) -> None: ...

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        raise semaphore_errors.constructed_elsewhere("Spec", "sp.dma_semaphore()")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        raise semaphore_errors.subclassed("Spec")

    def __copy__(self) -> Spec[T_co]:
        twin: Spec[T_co] = object.__new__(Spec)
        for slot in Spec.__slots__:
            setattr(twin, slot, getattr(self, slot))
        return twin

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape asked for; ``()`` for one semaphore."""
        return self._shape

    @overload
    def __get__(self, instance: None, owner: type[Any], /) -> Self: ...
    @overload
    def __get__(self, instance: Scratch, owner: type[Any], /) -> T_co: ...
    def __get__(self, instance: Scratch | None, owner: type[Any], /) -> Any:
        if self._name is None or not isinstance(instance, Scratch):
            return self
        return instance._values[self._name]

    def __set__(self, instance: Scratch, value: Never, /) -> None:
        raise AttributeError(f"{self._name!r} of a Scratch cannot be set: the allocator fills it.")

    def __matmul__(self, mesh: CoreMesh, /) -> Spec[T_co]:
        """The same on the cores of `mesh`, as in raw Pallas: ``sp.semaphore() @ mesh``.

        `kernel` with several bodies needs it, to know which of the cores allocate.

        Args:
            mesh: of cores, as `kernel` takes it.

        Raises:
            SpecError: where `mesh` is no mesh of cores, or its cores have no such memory.
        """
        twin = copy.copy(self)
        twin._raw = on_cores(self._raw, mesh, str(self))
        return twin

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


def _spec(
    request: str, kind: kinds.Kind | None, shape: tuple[int, ...], dtype: Any, raw: Any
) -> Any:
    """A spec made on the line that called the public function that called the caller of this."""
    frame = sys._getframe(3)
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
    sizes = sizes_of(request, shape)
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
    sizes = sizes_of(request, shape)
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


class Scratch:
    """Named allocations. Subclass it, with a request for each field.

    The class goes to ``scratch_shapes=`` (or to `run_scoped`), and the kernel receives an instance
    as its last parameter. A field is the request on the class and what it yields on an instance:
    nothing is declared twice, and no annotation is needed. A subclass adds fields after those of
    its base. Only the allocator makes instances: calling the class raises `TypeError`.

    JAX keeps a class that it knows as a tree for ever: where sizes are known at run time only,
    define it once for each size, not once for each call.

    Raises:
        SpecError: where a field is a raw Pallas request or a container of requests.

    Example::

        class Buffers(sp.Scratch):
            done = sp.dma_semaphore(2)
            acc = sp.vmem((8, 128), jnp.float32)

        def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
            sp.async_copy(x, s.acc, s.done.at[0]).wait()
            sp.async_copy(s.acc, o, s.done.at[1]).wait()

        sp.pallas_call(kernel, like, scratch_shapes=Buffers)(x)
    """

    __slots__ = ("_values",)

    _values: dict[str, Any]
    _fields: ClassVar[dict[str, Spec[Any]]] = {}

    def __init__(self, never: Never, /) -> None: ...

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        raise semaphore_errors.constructed_elsewhere(cls.__name__, f"scratch_shapes={cls.__name__}")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("_fields", "_values"):
            if name in vars(cls):
                raise semaphore_errors.spec(
                    f"{cls.__name__}.{name}: the name is taken", name, "Rename it."
                )
        fields = dict(cls._fields)  # of the base
        for name, value in list(vars(cls).items()):
            fields.pop(name, None)
            if isinstance(value, Spec):
                fields[name] = field = _named(value, name)
                type.__setattr__(cls, name, field)
            else:
                _refuse_hidden_request(cls.__name__, name, value)
        cls._fields = fields
        jax.tree_util.register_pytree_with_keys(
            cls,
            _flatten_with_keys,
            lambda names, values: fill(cls, dict(zip(names, values, strict=True))),
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(self._values)}>"


def _named(spec: Spec[Any], name: str) -> Spec[Any]:
    named = copy.copy(spec)
    named._name = name
    return named


def _refuse_hidden_request(cls: str, name: str, value: Any) -> None:
    """A request that is not a Spec would be no field, and go unnoticed."""
    leaves = jax.tree_util.tree_leaves(value) if isinstance(value, (tuple, list, dict)) else [value]
    requests = (semaphore, barrier_semaphore, dma_semaphore, vmem, smem)
    for leaf in leaves:
        uncalled = any(leaf is request for request in requests)
        is_class = isinstance(leaf, type) and issubclass(leaf, (Named, Scratch))
        if uncalled or is_class or isinstance(leaf, Spec) or hasattr(leaf, "get_ref_aval"):
            raise semaphore_errors.spec(
                f"{cls}.{name}: a field of a Scratch must be one request of safepallas",
                describe(value),
                "Write sp.vmem, sp.smem or sp.dma_semaphore(...), and a field for each.",
            )


def _flatten_with_keys(scratch: Scratch) -> tuple[list[tuple[Any, Any]], tuple[str, ...]]:
    values = scratch._values
    return [(jax.tree_util.GetAttrKey(k), v) for k, v in values.items()], tuple(values)


def fill(cls: type[Scratch], values: dict[str, Any]) -> Any:
    """The instance that a kernel receives."""
    scratch = object.__new__(cls)
    scratch._values = values
    return scratch
