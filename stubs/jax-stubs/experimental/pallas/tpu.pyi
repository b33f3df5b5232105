"""A typed view of `jax.experimental.pallas.tpu`: semaphores have kinds, the rest is as in JAX.

Names that one of the supported versions of JAX does not have carry an ignore comment.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, ClassVar, Final, Generic, Self, TypeAlias, overload

import jax
import numpy as np
from jax._src import core as _jax_core
from jax._src.pallas import core as _pl_core
from jax._src.pallas.core import semaphore as semaphore
from jax._src.pallas.einshape import einshape as einshape
from jax._src.pallas.mosaic import core as core
from jax._src.pallas.mosaic.core import AccMemorySpace as _AccMemorySpace  # type: ignore
from jax._src.pallas.mosaic.core import CompilerParams as CompilerParams
from jax._src.pallas.mosaic.core import CoreType as CoreType
from jax._src.pallas.mosaic.core import GridDimensionSemantics as GridDimensionSemantics
from jax._src.pallas.mosaic.core import MemorySpace as MemorySpace
from jax._src.pallas.mosaic.core import PrefetchScalarGridSpec as PrefetchScalarGridSpec
from jax._src.pallas.mosaic.core import SideEffectType as SideEffectType
from jax._src.pallas.mosaic.core import TensorCoreMesh as TensorCoreMesh  # type: ignore
from jax._src.pallas.mosaic.core import create_tensorcore_mesh as create_tensorcore_mesh
from jax._src.pallas.mosaic.core import dma_semaphore as dma_semaphore
from jax._src.pallas.mosaic.helpers import join_bits as join_bits  # type: ignore
from jax._src.pallas.mosaic.helpers import pack_fp6 as pack_fp6  # type: ignore
from jax._src.pallas.mosaic.helpers import run_on_first_core as run_on_first_core
from jax._src.pallas.mosaic.helpers import split_bits as split_bits  # type: ignore
from jax._src.pallas.mosaic.helpers import unpack_fp6 as unpack_fp6  # type: ignore
from jax._src.pallas.mosaic.interpret.interpret_pallas_call import (
    force_tpu_interpret_mode as force_tpu_interpret_mode,
)
from jax._src.pallas.mosaic.interpret.interpret_pallas_call import (
    reset_tpu_interpret_mode_state as reset_tpu_interpret_mode_state,
)
from jax._src.pallas.mosaic.interpret.interpret_pallas_call import (
    set_tpu_interpret_mode as set_tpu_interpret_mode,
)
from jax._src.pallas.mosaic.interpret.params import InterpretParams as InterpretParams
from jax._src.pallas.mosaic.lowering import LoweringException as LoweringException
from jax._src.pallas.mosaic.pipeline import BufferedRef as BufferedRef
from jax._src.pallas.mosaic.pipeline import BufferedRefBase as BufferedRefBase
from jax._src.pallas.mosaic.pipeline import BufferType as BufferType
from jax._src.pallas.mosaic.pipeline import PipelineStep as PipelineStep  # type: ignore
from jax._src.pallas.mosaic.pipeline import emit_pipeline as emit_pipeline
from jax._src.pallas.mosaic.pipeline import (
    emit_pipeline_with_allocations as emit_pipeline_with_allocations,
)
from jax._src.pallas.mosaic.prefetch import (  # type: ignore
    emit_pipeline_with_async_prefetch as emit_pipeline_with_async_prefetch,
)
from jax._src.pallas.mosaic.primitives import AsyncCopyDescriptor as _AsyncCopyDescriptor
from jax._src.pallas.mosaic.primitives import annotate as annotate  # type: ignore
from jax._src.pallas.mosaic.primitives import bitcast as bitcast
from jax._src.pallas.mosaic.primitives import conv as conv  # type: ignore
from jax._src.pallas.mosaic.primitives import has_memory_space as has_memory_space  # type: ignore
from jax._src.pallas.mosaic.primitives import load as load
from jax._src.pallas.mosaic.primitives import matmul_acc_lhs as matmul_acc_lhs
from jax._src.pallas.mosaic.primitives import matmul_lhs_fifo as matmul_lhs_fifo  # type: ignore
from jax._src.pallas.mosaic.primitives import matmul_pop as matmul_pop
from jax._src.pallas.mosaic.primitives import matmul_pop_fifo as matmul_pop_fifo  # type: ignore
from jax._src.pallas.mosaic.primitives import matmul_push_rhs as matmul_push_rhs
from jax._src.pallas.mosaic.primitives import pack_elementwise as pack_elementwise
from jax._src.pallas.mosaic.primitives import prng_random_bits as prng_random_bits
from jax._src.pallas.mosaic.primitives import prng_seed as prng_seed
from jax._src.pallas.mosaic.primitives import roll as roll
from jax._src.pallas.mosaic.primitives import stochastic_round as stochastic_round
from jax._src.pallas.mosaic.primitives import store as store
from jax._src.pallas.mosaic.primitives import touch as touch
from jax._src.pallas.mosaic.primitives import trace_value as trace_value
from jax._src.pallas.mosaic.primitives import unpack_elementwise as unpack_elementwise
from jax._src.pallas.mosaic.primitives import (
    with_memory_space_constraint as with_memory_space_constraint,
)
from jax._src.pallas.mosaic.random import sample_block as sample_block
from jax._src.pallas.mosaic.random import stateful_bernoulli as stateful_bernoulli
from jax._src.pallas.mosaic.random import stateful_bits as stateful_bits
from jax._src.pallas.mosaic.random import stateful_normal as stateful_normal
from jax._src.pallas.mosaic.random import stateful_uniform as stateful_uniform
from jax._src.pallas.mosaic.random import to_pallas_key as to_pallas_key
from jax._src.pallas.mosaic.tpu_info import ChipVersion as ChipVersion
from jax._src.pallas.mosaic.tpu_info import Tiling as Tiling
from jax._src.pallas.mosaic.tpu_info import TpuInfo as TpuInfo
from jax._src.pallas.mosaic.tpu_info import get_tpu_info as get_tpu_info
from jax._src.pallas.mosaic.tpu_info import get_tpu_info_for_chip as get_tpu_info_for_chip
from jax._src.pallas.mosaic.tpu_info import is_tpu_device as is_tpu_device
from jax._src.pallas.primitives import DeviceIdType as DeviceIdType
from jax._src.pallas.primitives import reciprocal as reciprocal
from jax.experimental.pallas import _RefLike as _Ref
from jax.experimental.pallas import _SemaphoreRequest
from jax.experimental.pallas import semaphore_read as semaphore_read
from jax.experimental.pallas import semaphore_signal as semaphore_signal
from jax.experimental.pallas import semaphore_wait as semaphore_wait
from typing_extensions import TypeVar

from safepallas.raw import BarrierSemaphoreRef as _BarrierSemaphoreRef
from safepallas.raw import DmaSemaphoreRef as _DmaSemaphoreRef
from safepallas.raw import SemaphoreArrayRef as _SemaphoreArrayRef
from safepallas.raw import SemaphoreRef as _SemaphoreRef

PARALLEL: Final = GridDimensionSemantics.PARALLEL
CORE_PARALLEL: Final = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL: Final = GridDimensionSemantics.SUBCORE_PARALLEL
ARBITRARY: Final = GridDimensionSemantics.ARBITRARY

CMEM: Final = MemorySpace.CMEM
SMEM: Final = MemorySpace.SMEM
VMEM: Final = MemorySpace.VMEM
VMEM_SHARED: Final = MemorySpace.VMEM_SHARED
HBM: Final = MemorySpace.HBM
SEMAPHORE: Final = MemorySpace.SEMAPHORE
ACC = _AccMemorySpace
HOST: _pl_core.MemorySpace | _jax_core.MemorySpace

_R_co = TypeVar("_R_co", covariant=True, default=Any)

_DeviceId: TypeAlias = (
    int
    | jax.Array
    | np.integer[Any]
    | tuple[int | jax.Array | np.integer[Any], ...]
    | Mapping[Any, int | jax.Array | np.integer[Any]]
)
_Refs: TypeAlias = _Ref | tuple[Any, ...] | list[Any] | dict[Any, Any]

class _SemaphoreTypes(type):
    def __iter__(cls) -> Iterator[SemaphoreType]: ...
    def __len__(cls) -> int: ...
    def __getitem__(cls, name: str, /) -> SemaphoreType: ...
    @property
    def __members__(cls) -> Mapping[str, SemaphoreType]: ...

# An enumeration at run time. Its members are requests for refs of different types.
class SemaphoreType(_SemaphoreRequest[_R_co], Generic[_R_co], metaclass=_SemaphoreTypes):
    REGULAR: ClassVar[SemaphoreType[_SemaphoreRef]]
    DMA: ClassVar[SemaphoreType[_DmaSemaphoreRef]]
    BARRIER: ClassVar[SemaphoreType[_BarrierSemaphoreRef]]

    def __new__(cls, value: object) -> Self: ...
    def __init__(self, value: object) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str: ...
    @overload
    def __call__(self, shape: tuple[()]) -> _SemaphoreRequest[_R_co]: ...
    @overload
    def __call__(
        self, shape: tuple[int]
    ) -> _SemaphoreRequest[_SemaphoreArrayRef[_R_co, tuple[int]]]: ...
    @overload
    def __call__(
        self, shape: tuple[int, int]
    ) -> _SemaphoreRequest[_SemaphoreArrayRef[_R_co, tuple[int, int]]]: ...
    @overload
    def __call__(
        self, shape: tuple[int, int, int]
    ) -> _SemaphoreRequest[_SemaphoreArrayRef[_R_co, tuple[int, int, int]]]: ...
    @overload
    def __call__(
        self, shape: tuple[int, int, int, int]
    ) -> _SemaphoreRequest[_SemaphoreArrayRef[_R_co, tuple[int, int, int, int]]]: ...
    @overload
    def __call__(self, shape: tuple[int, ...]) -> _SemaphoreRequest[Any]: ...
    def __matmul__(self, other: Any, /) -> Any: ...

def get_barrier_semaphore(tag: Hashable | None = None) -> _BarrierSemaphoreRef: ...
def core_barrier(sem: _SemaphoreRef, *, core_axis_name: str) -> None: ...
def sync_copy(src_ref: _Refs, dst_ref: _Refs, *, add: bool = False) -> None: ...
@overload
def make_async_copy(
    src_ref: _Ref, dst_ref: _Ref, sem: _DmaSemaphoreRef, *, src_sem: _DmaSemaphoreRef | None = None
) -> _AsyncCopyDescriptor: ...
@overload  # JAX 0.12
def make_async_copy(
    src_ref: _Ref, dst_ref: _Ref, sem: None = None, *, src_sem: _DmaSemaphoreRef
) -> _AsyncCopyDescriptor: ...
@overload
def async_copy(
    src_ref: _Ref,
    dst_ref: _Ref,
    sem: _DmaSemaphoreRef,
    *,
    src_sem: _DmaSemaphoreRef | None = None,
    priority: int = 0,
    add: bool = False,
) -> _AsyncCopyDescriptor: ...
@overload  # JAX 0.12
def async_copy(
    src_ref: _Ref,
    dst_ref: _Ref,
    sem: None = None,
    *,
    src_sem: _DmaSemaphoreRef,
    priority: int = 0,
    add: bool = False,
) -> _AsyncCopyDescriptor: ...
def make_async_remote_copy(
    src_ref: _Ref,
    dst_ref: _Ref,
    send_sem: _DmaSemaphoreRef,
    recv_sem: _DmaSemaphoreRef,
    device_id: _DeviceId | None,
    device_id_type: DeviceIdType | None = ...,
) -> _AsyncCopyDescriptor: ...
def async_remote_copy(
    src_ref: _Ref,
    dst_ref: _Ref,
    send_sem: _DmaSemaphoreRef,
    recv_sem: _DmaSemaphoreRef,
    device_id: _DeviceId | None,
    device_id_type: DeviceIdType | None = ...,
) -> _AsyncCopyDescriptor: ...
