"""Which primitive of JAX is which operation: the one table of their names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from jax.extend.core import JaxprEqn

from safepallas._jax import jaxprs
from safepallas._jax import kernel_calls as calls
from safepallas._jax import operations as ops
from safepallas._jax.collectives import Collective, collective

KernelOperation: TypeAlias = (
    ops.Signal
    | ops.Wait
    | ops.Read
    | ops.BarrierSemaphore
    | ops.CopyStart
    | ops.CopyWait
    | ops.RefAccess
    | ops.VectorAccess
    | ops.RunScoped
    | ops.ProgramId
    | ops.NumPrograms
    | ops.AxisIndex
    | ops.SubcoreBarrier
)
Control: TypeAlias = ops.Call | ops.Cond | ops.While | ops.Scan | ops.ParallelLoop
Operation: TypeAlias = (
    KernelOperation
    | Control
    | calls.KernelCall
    | calls.CoreCall
    | calls.ShardMap
    | ops.PassThrough
    | Collective
    | ops.NewRef
    | ops.RunState
    | ops.RefBoundary
    | ops.Other
)


def _of_refs(reader: Callable[[JaxprEqn], Operation]) -> Callable[[JaxprEqn], Operation]:
    """Names that JAX uses twice: on refs, and on arrays."""

    def read_either(equation: JaxprEqn) -> Operation:
        return reader(equation) if jaxprs.takes_refs(equation) else ops.other(equation)

    return read_either


_READERS: Final[dict[str, Callable[[JaxprEqn], Operation]]] = {
    # semaphores
    "semaphore_signal": ops.signal,
    "semaphore_wait": ops.wait,
    "semaphore_read": ops.read,
    "get_barrier_semaphore": ops.barrier_semaphore,
    # copies
    "dma_start": ops.copy_start,
    "dma_wait": ops.copy_wait,
    # loads and stores
    "get": ops.get,
    "swap": ops.swap,
    "addupdate": ops.add_update,
    "masked_load": ops.masked_load,
    "masked_swap": ops.masked_swap,
    "load": ops.vector_load,
    "gather": _of_refs(ops.gather),
    "scatter": _of_refs(ops.scatter),
    # scopes, places, barriers
    "run_scoped": ops.run_scoped,
    "program_id": ops.program_id,
    "num_programs": ops.num_programs,
    "axis_index": ops.axis_index,
    "barrier": ops.subcore_barrier,
    # control
    "jit": partial(ops.call, key="jaxpr", is_jit=True),
    "pjit": partial(ops.call, key="jaxpr", is_jit=True),
    "closed_call": partial(ops.call, key="call_jaxpr"),
    "core_call": partial(ops.call, key="call_jaxpr"),
    "custom_jvp_call": partial(ops.call, key="call_jaxpr"),
    "custom_vjp_call": partial(ops.call, key="call_jaxpr"),
    "custom_vjp_call_jaxpr": partial(ops.call, key="fun_jaxpr"),
    "checkpoint": partial(ops.call, key="jaxpr"),
    "remat": partial(ops.call, key="jaxpr"),
    "remat2": partial(ops.call, key="jaxpr"),
    "cond": ops.cond,
    "while": ops.while_loop,
    "scan": ops.scan,
    "parallel_loop": ops.parallel_loop,
    # kernels and maps
    "pallas_call": calls.kernel_call,
    "mpmd_map": calls.core_call,
    "core_map": calls.core_map,
    "shard_map": calls.shard_map,
    # between kernels
    **dict.fromkeys(
        ("all_gather", "psum", "pmax", "pmin", "ppermute", "all_to_all", "reduce_scatter"),
        collective,
    ),
    # neither
    "optimization_barrier": ops.pass_through,
    "with_memory_space_constraint": ops.pass_through,
    # refs of JAX, between kernels
    "new_ref": ops.new_ref,
    "run_state": ops.run_state,
    "freeze": ops.ref_boundary,
    "free_ref": ops.ref_boundary,
}


def read(equation: JaxprEqn) -> Operation:
    """What an equation does."""
    return _READERS.get(equation.primitive.name, ops.other)(equation)
