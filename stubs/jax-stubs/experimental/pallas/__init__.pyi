"""A typed view of `jax.experimental.pallas`: semaphores have kinds, the rest is as in JAX.

Names that one of the supported versions of JAX does not have carry an ignore comment.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Concatenate, Final, Generic, Never, Protocol, TypeAlias, TypeVar, overload

import jax
import numpy as np
from jax._src import core as _jax_core
from jax._src.pallas.core import BlockDim as BlockDim
from jax._src.pallas.core import Blocked as Blocked
from jax._src.pallas.core import BlockSpec as BlockSpec
from jax._src.pallas.core import BoundedSlice as BoundedSlice
from jax._src.pallas.core import Buffered as Buffered
from jax._src.pallas.core import CompilerParams as CompilerParams
from jax._src.pallas.core import CostEstimate as CostEstimate
from jax._src.pallas.core import Element as Element
from jax._src.pallas.core import GridSpec as GridSpec
from jax._src.pallas.core import Indirect as Indirect
from jax._src.pallas.core import MemoryRef as MemoryRef
from jax._src.pallas.core import MemorySpace as MemorySpace
from jax._src.pallas.core import RevisitMode as RevisitMode
from jax._src.pallas.core import Squeezed as Squeezed
from jax._src.pallas.core import core_map as core_map  # type: ignore
from jax._src.pallas.core import debug_check as debug_check
from jax._src.pallas.core import debug_checks_enabled as debug_checks_enabled  # type: ignore
from jax._src.pallas.core import enable_debug_checks as enable_debug_checks
from jax._src.pallas.core import enable_poison_buffers as enable_poison_buffers
from jax._src.pallas.core import lower_as_mlir as lower_as_mlir
from jax._src.pallas.core import no_block_spec as no_block_spec
from jax._src.pallas.core import pallas_export_experimental as pallas_export_experimental
from jax._src.pallas.core import semaphore as semaphore
from jax._src.pallas.core import squeezed as squeezed
from jax._src.pallas.cost_estimate import estimate_cost as estimate_cost
from jax._src.pallas.helpers import empty as empty
from jax._src.pallas.helpers import empty_like as empty_like
from jax._src.pallas.helpers import empty_ref_like as empty_ref_like
from jax._src.pallas.helpers import kernel as kernel
from jax._src.pallas.helpers import loop as loop
from jax._src.pallas.helpers import select_ref as select_ref
from jax._src.pallas.helpers import when as when
from jax._src.pallas.pallas_call import pallas_call as pallas_call
from jax._src.pallas.pallas_call import pallas_call_p as pallas_call_p
from jax._src.pallas.primitives import DeviceIdType as DeviceIdType
from jax._src.pallas.primitives import debug_print as debug_print
from jax._src.pallas.primitives import delay as delay
from jax._src.pallas.primitives import dot as dot  # type: ignore
from jax._src.pallas.primitives import get_global as get_global
from jax._src.pallas.primitives import multiple_of as multiple_of
from jax._src.pallas.primitives import num_programs as num_programs
from jax._src.pallas.primitives import program_id as program_id
from jax._src.pallas.primitives import reciprocal as reciprocal
from jax._src.pallas.utils import align_to as align_to
from jax._src.pallas.utils import cdiv as cdiv
from jax._src.pallas.utils import next_power_of_2 as next_power_of_2
from jax._src.pallas.utils import strides_from_shape as strides_from_shape
from jax._src.state.discharge import run_state as run_state
from jax._src.state.indexing import Slice as Slice
from jax._src.state.indexing import ds as ds
from jax._src.state.indexing import dslice as dslice
from jax._src.state.primitives import broadcast_to as broadcast_to
from jax._src.state.types import AbstractRef as _AbstractRef
from jax.typing import ArrayLike as _ArrayLike

from safepallas.raw import BarrierSemaphoreRef as _BarrierSemaphoreRef
from safepallas.raw import DmaSemaphoreRef as _DmaSemaphoreRef
from safepallas.raw import SemaphoreRef as _SemaphoreRef

ANY: Final = MemorySpace.ANY
HOST: MemorySpace | _jax_core.MemorySpace

_R_co = TypeVar("_R_co", covariant=True)
_T = TypeVar("_T")
_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_D = TypeVar("_D")
_E = TypeVar("_E")
_F = TypeVar("_F")
_X = TypeVar("_X")
_Y = TypeVar("_Y")
_Z = TypeVar("_Z")
_W = TypeVar("_W")

_Axes: TypeAlias = Hashable | tuple[Hashable, ...]
_Amount: TypeAlias = int | jax.Array | np.integer[Any]
_DeviceId: TypeAlias = _Amount | tuple[_Amount, ...] | Mapping[Any, _Amount]

class _View(Protocol):
    # An index-update helper, `array.at[0]`, has no `at` of its own: an array is no ref.
    @property
    def at(self) -> Any: ...

class _ViewIndexer(Protocol):
    def __getitem__(self, index: Any, /) -> _View: ...

# What a copy takes for a ref that holds data: a `Ref`, a `jax.Ref`, a view of either.
class _RefLike(Protocol):
    @property
    def at(self) -> _ViewIndexer: ...
    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __setitem__(self, index: Any, value: _ArrayLike, /) -> None: ...

# What `SemaphoreType.DMA((2,))` makes: memory for which the body gets a ref. It is a `MemoryRef`
# at run time.
class _SemaphoreRequest(Generic[_R_co]):
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
    def get_ref_aval(self) -> _AbstractRef: ...

# What a scope may allocate besides semaphores, and trees of requests, whose refs stay untyped.
_OtherRequest: TypeAlias = MemoryRef | tuple[Any, ...] | list[Any] | dict[Any, Any] | None

def semaphore_read(
    sem_or_view: _SemaphoreRef | _BarrierSemaphoreRef | _DmaSemaphoreRef,
) -> jax.Array: ...
def semaphore_signal(
    sem_or_view: _SemaphoreRef | _BarrierSemaphoreRef,
    inc: _Amount = 1,
    *,
    device_id: _DeviceId | None = None,
    device_id_type: DeviceIdType | None = ...,
    core_index: _Amount | None = None,
) -> None: ...
def semaphore_wait(
    sem_or_view: _SemaphoreRef | _BarrierSemaphoreRef,
    value: _Amount = 1,
    *,
    decrement: bool = True,
) -> None: ...

# The body may take more than the positional requests yield: what `kw_types` names.
@overload
def run_scoped(
    f: Callable[[_A], _T] | Callable[Concatenate[_A, ...], _T],
    t0: _SemaphoreRequest[_A] | _OtherRequest,
    /,
    *,
    collective_axes: _Axes = ...,
    **kw_types: _SemaphoreRequest[Any] | _OtherRequest,
) -> _T: ...
@overload
def run_scoped(
    f: Callable[[_A, _B], _T] | Callable[Concatenate[_A, _B, ...], _T],
    t0: _SemaphoreRequest[_A] | _OtherRequest,
    t1: _SemaphoreRequest[_B] | _OtherRequest,
    /,
    *,
    collective_axes: _Axes = ...,
    **kw_types: _SemaphoreRequest[Any] | _OtherRequest,
) -> _T: ...
@overload
def run_scoped(
    f: Callable[[_A, _B, _C], _T] | Callable[Concatenate[_A, _B, _C, ...], _T],
    t0: _SemaphoreRequest[_A] | _OtherRequest,
    t1: _SemaphoreRequest[_B] | _OtherRequest,
    t2: _SemaphoreRequest[_C] | _OtherRequest,
    /,
    *,
    collective_axes: _Axes = ...,
    **kw_types: _SemaphoreRequest[Any] | _OtherRequest,
) -> _T: ...
@overload
def run_scoped(
    f: Callable[[_A, _B, _C, _D], _T] | Callable[Concatenate[_A, _B, _C, _D, ...], _T],
    t0: _SemaphoreRequest[_A] | _OtherRequest,
    t1: _SemaphoreRequest[_B] | _OtherRequest,
    t2: _SemaphoreRequest[_C] | _OtherRequest,
    t3: _SemaphoreRequest[_D] | _OtherRequest,
    /,
    *,
    collective_axes: _Axes = ...,
    **kw_types: _SemaphoreRequest[Any] | _OtherRequest,
) -> _T: ...
@overload
def run_scoped(
    f: Callable[[_A, _B, _C, _D, _E], _T] | Callable[Concatenate[_A, _B, _C, _D, _E, ...], _T],
    t0: _SemaphoreRequest[_A] | _OtherRequest,
    t1: _SemaphoreRequest[_B] | _OtherRequest,
    t2: _SemaphoreRequest[_C] | _OtherRequest,
    t3: _SemaphoreRequest[_D] | _OtherRequest,
    t4: _SemaphoreRequest[_E] | _OtherRequest,
    /,
    *,
    collective_axes: _Axes = ...,
    **kw_types: _SemaphoreRequest[Any] | _OtherRequest,
) -> _T: ...
@overload
def run_scoped(
    f: Callable[[_A, _B, _C, _D, _E, _F], _T]
    | Callable[Concatenate[_A, _B, _C, _D, _E, _F, ...], _T],
    t0: _SemaphoreRequest[_A] | _OtherRequest,
    t1: _SemaphoreRequest[_B] | _OtherRequest,
    t2: _SemaphoreRequest[_C] | _OtherRequest,
    t3: _SemaphoreRequest[_D] | _OtherRequest,
    t4: _SemaphoreRequest[_E] | _OtherRequest,
    t5: _SemaphoreRequest[_F] | _OtherRequest,
    /,
    *,
    collective_axes: _Axes = ...,
    **kw_types: _SemaphoreRequest[Any] | _OtherRequest,
) -> _T: ...
@overload
def run_scoped(
    f: Callable[..., _T],
    *,
    collective_axes: _Axes = ...,
    **kw_types: _SemaphoreRequest[Any] | _OtherRequest,
) -> _T: ...
@overload
def run_scoped(
    f: Callable[..., _T],
    t0: Any,
    t1: Any,
    t2: Any,
    t3: Any,
    t4: Any,
    t5: Any,
    t6: Any,
    /,
    *types: Any,
    collective_axes: _Axes = ...,
    **kw_types: Any,
) -> _T: ...

# What `with_scoped` gives: the body takes up to four arguments of the caller before the refs.
class _Scoped1(Generic[_A]):
    def __init__(self, never: Never, /) -> None: ...
    @overload
    def __call__(self, f: Callable[[_A], _T], /) -> Callable[[], _T]: ...
    @overload
    def __call__(self, f: Callable[[_X, _A], _T], /) -> Callable[[_X], _T]: ...
    @overload
    def __call__(self, f: Callable[[_X, _Y, _A], _T], /) -> Callable[[_X, _Y], _T]: ...
    @overload
    def __call__(self, f: Callable[[_X, _Y, _Z, _A], _T], /) -> Callable[[_X, _Y, _Z], _T]: ...
    @overload
    def __call__(
        self, f: Callable[[_X, _Y, _Z, _W, _A], _T], /
    ) -> Callable[[_X, _Y, _Z, _W], _T]: ...

class _Scoped2(Generic[_A, _B]):
    def __init__(self, never: Never, /) -> None: ...
    @overload
    def __call__(self, f: Callable[[_A, _B], _T], /) -> Callable[[], _T]: ...
    @overload
    def __call__(self, f: Callable[[_X, _A, _B], _T], /) -> Callable[[_X], _T]: ...
    @overload
    def __call__(self, f: Callable[[_X, _Y, _A, _B], _T], /) -> Callable[[_X, _Y], _T]: ...
    @overload
    def __call__(self, f: Callable[[_X, _Y, _Z, _A, _B], _T], /) -> Callable[[_X, _Y, _Z], _T]: ...
    @overload
    def __call__(
        self, f: Callable[[_X, _Y, _Z, _W, _A, _B], _T], /
    ) -> Callable[[_X, _Y, _Z, _W], _T]: ...

class _Scoped3(Generic[_A, _B, _C]):
    def __init__(self, never: Never, /) -> None: ...
    @overload
    def __call__(self, f: Callable[[_A, _B, _C], _T], /) -> Callable[[], _T]: ...
    @overload
    def __call__(self, f: Callable[[_X, _A, _B, _C], _T], /) -> Callable[[_X], _T]: ...
    @overload
    def __call__(self, f: Callable[[_X, _Y, _A, _B, _C], _T], /) -> Callable[[_X, _Y], _T]: ...
    @overload
    def __call__(
        self, f: Callable[[_X, _Y, _Z, _A, _B, _C], _T], /
    ) -> Callable[[_X, _Y, _Z], _T]: ...
    @overload
    def __call__(
        self, f: Callable[[_X, _Y, _Z, _W, _A, _B, _C], _T], /
    ) -> Callable[[_X, _Y, _Z, _W], _T]: ...

class _Scoped4(Generic[_A, _B, _C, _D]):
    def __init__(self, never: Never, /) -> None: ...
    @overload
    def __call__(self, f: Callable[[_A, _B, _C, _D], _T], /) -> Callable[[], _T]: ...
    @overload
    def __call__(self, f: Callable[[_X, _A, _B, _C, _D], _T], /) -> Callable[[_X], _T]: ...
    @overload
    def __call__(self, f: Callable[[_X, _Y, _A, _B, _C, _D], _T], /) -> Callable[[_X, _Y], _T]: ...
    @overload
    def __call__(
        self, f: Callable[[_X, _Y, _Z, _A, _B, _C, _D], _T], /
    ) -> Callable[[_X, _Y, _Z], _T]: ...
    @overload
    def __call__(
        self, f: Callable[[_X, _Y, _Z, _W, _A, _B, _C, _D], _T], /
    ) -> Callable[[_X, _Y, _Z, _W], _T]: ...

class _Scoped5(Generic[_A, _B, _C, _D, _E]):
    def __init__(self, never: Never, /) -> None: ...
    @overload
    def __call__(self, f: Callable[[_A, _B, _C, _D, _E], _T], /) -> Callable[[], _T]: ...
    @overload
    def __call__(self, f: Callable[[_X, _A, _B, _C, _D, _E], _T], /) -> Callable[[_X], _T]: ...
    @overload
    def __call__(
        self, f: Callable[[_X, _Y, _A, _B, _C, _D, _E], _T], /
    ) -> Callable[[_X, _Y], _T]: ...
    @overload
    def __call__(
        self, f: Callable[[_X, _Y, _Z, _A, _B, _C, _D, _E], _T], /
    ) -> Callable[[_X, _Y, _Z], _T]: ...
    @overload
    def __call__(
        self, f: Callable[[_X, _Y, _Z, _W, _A, _B, _C, _D, _E], _T], /
    ) -> Callable[[_X, _Y, _Z, _W], _T]: ...

class _Scoped6(Generic[_A, _B, _C, _D, _E, _F]):
    def __init__(self, never: Never, /) -> None: ...
    @overload
    def __call__(self, f: Callable[[_A, _B, _C, _D, _E, _F], _T], /) -> Callable[[], _T]: ...
    @overload
    def __call__(self, f: Callable[[_X, _A, _B, _C, _D, _E, _F], _T], /) -> Callable[[_X], _T]: ...
    @overload
    def __call__(
        self, f: Callable[[_X, _Y, _A, _B, _C, _D, _E, _F], _T], /
    ) -> Callable[[_X, _Y], _T]: ...
    @overload
    def __call__(
        self, f: Callable[[_X, _Y, _Z, _A, _B, _C, _D, _E, _F], _T], /
    ) -> Callable[[_X, _Y, _Z], _T]: ...
    @overload
    def __call__(
        self, f: Callable[[_X, _Y, _Z, _W, _A, _B, _C, _D, _E, _F], _T], /
    ) -> Callable[[_X, _Y, _Z, _W], _T]: ...

@overload
def with_scoped(
    t0: _SemaphoreRequest[_A] | _OtherRequest,
    /,
    *,
    collective_axes: _Axes = ...,
) -> _Scoped1[_A]: ...
@overload
def with_scoped(
    t0: _SemaphoreRequest[_A] | _OtherRequest,
    t1: _SemaphoreRequest[_B] | _OtherRequest,
    /,
    *,
    collective_axes: _Axes = ...,
) -> _Scoped2[_A, _B]: ...
@overload
def with_scoped(
    t0: _SemaphoreRequest[_A] | _OtherRequest,
    t1: _SemaphoreRequest[_B] | _OtherRequest,
    t2: _SemaphoreRequest[_C] | _OtherRequest,
    /,
    *,
    collective_axes: _Axes = ...,
) -> _Scoped3[_A, _B, _C]: ...
@overload
def with_scoped(
    t0: _SemaphoreRequest[_A] | _OtherRequest,
    t1: _SemaphoreRequest[_B] | _OtherRequest,
    t2: _SemaphoreRequest[_C] | _OtherRequest,
    t3: _SemaphoreRequest[_D] | _OtherRequest,
    /,
    *,
    collective_axes: _Axes = ...,
) -> _Scoped4[_A, _B, _C, _D]: ...
@overload
def with_scoped(
    t0: _SemaphoreRequest[_A] | _OtherRequest,
    t1: _SemaphoreRequest[_B] | _OtherRequest,
    t2: _SemaphoreRequest[_C] | _OtherRequest,
    t3: _SemaphoreRequest[_D] | _OtherRequest,
    t4: _SemaphoreRequest[_E] | _OtherRequest,
    /,
    *,
    collective_axes: _Axes = ...,
) -> _Scoped5[_A, _B, _C, _D, _E]: ...
@overload
def with_scoped(
    t0: _SemaphoreRequest[_A] | _OtherRequest,
    t1: _SemaphoreRequest[_B] | _OtherRequest,
    t2: _SemaphoreRequest[_C] | _OtherRequest,
    t3: _SemaphoreRequest[_D] | _OtherRequest,
    t4: _SemaphoreRequest[_E] | _OtherRequest,
    t5: _SemaphoreRequest[_F] | _OtherRequest,
    /,
    *,
    collective_axes: _Axes = ...,
) -> _Scoped6[_A, _B, _C, _D, _E, _F]: ...
@overload
def with_scoped(
    *types: _SemaphoreRequest[Any] | _OtherRequest,
    collective_axes: _Axes = ...,
    **kw_types: _SemaphoreRequest[Any] | _OtherRequest,
) -> Callable[[Callable[..., _T]], Callable[..., _T]]: ...
