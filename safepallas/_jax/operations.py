"""Equations inside kernels as typed operations: what each does, and to which operands.

`reader` tells which primitive is which operation.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
from jax.extend.core import Jaxpr, JaxprEqn

from safepallas._jax import compat, jaxprs
from safepallas._jax.core_meshes import Argument, Memory, arguments_of, memory_of
from safepallas._jax.jaxprs import AnyJaxpr
from safepallas._jax.views import (
    Slot,
    View,
    indices_of,
    slots_of,
    view_if_any,
    view_of,
)

# Semaphores

DeviceId: TypeAlias = Mapping[Hashable, Slot] | Sequence[Slot] | Slot | None


class Target(NamedTuple):
    """What names the core that an operation goes to; the core itself where nothing does."""

    device_id: DeviceId
    core_index: Slot | None
    is_logical: bool  # an id counts through the whole mesh


class Signal(NamedTuple):
    view: View
    amount: Slot
    target: Target


class Wait(NamedTuple):
    view: View
    amount: Slot
    decrement: Slot  # whether it takes what it waits for


class Read(NamedTuple):
    """Of the value of a semaphore."""

    view: View


class BarrierSemaphore(NamedTuple):
    tag: Hashable  # JAX 0.12: which one, where there are several
    dtype: object


def signal(equation: JaxprEqn) -> Signal:
    ref, transforms, amount, device_id, core_index = _by_tree(equation, "args_tree")
    target = Target(device_id, core_index, compat.is_logical(equation))
    return Signal(view_of(ref, transforms), amount, target)


def wait(equation: JaxprEqn) -> Wait:
    ref, transforms, amount, decrement = _by_tree(equation, "args_tree")
    return Wait(view_of(ref, transforms), amount, decrement)


def read(equation: JaxprEqn) -> Read:
    ref, transforms, *_ = _by_tree(equation, "args_tree")
    return Read(view_of(ref, transforms))


def barrier_semaphore(equation: JaxprEqn) -> BarrierSemaphore:
    return BarrierSemaphore(equation.params.get("tag"), jaxprs.dtype_of(equation.outvars[0]))


def _by_tree(equation: JaxprEqn, key: str) -> list[Any]:
    """The operands as the caller of the primitive had them, slots in place of values."""
    return [*jax.tree_util.tree_unflatten(equation.params[key], slots_of(equation))]


# Copies


class CopyStart(NamedTuple):
    source: View
    destination: View
    recv: View | None
    send: View | None
    target: Target
    adds: bool
    indices: tuple[View, ...]  # of the refs by which it gathers or scatters


class CopyWait(NamedTuple):
    """Waits on `recv` for as many bytes as `destination` holds."""

    destination: View
    recv: View | None


class _CopyOperands(NamedTuple):
    source: View
    destination: View
    recv: View | None
    send: View | None
    device_id: DeviceId


def copy_start(equation: JaxprEqn) -> CopyStart:
    copy = _copy_operands(equation.params["tree"], len(equation.invars))
    views = (copy.source, copy.destination)
    return CopyStart(
        *copy[:4],
        Target(copy.device_id, None, compat.is_logical(equation)),
        bool(equation.params.get("add")),
        tuple(index for view in views for index in indices_of(equation, view)),
    )


def copy_wait(equation: JaxprEqn) -> CopyWait:
    copy = _copy_operands(equation.params["tree"], len(equation.invars))
    return CopyWait(copy.destination, copy.recv)


@functools.lru_cache(maxsize=1024)  # a loop that is written out has the same copy many times
def _copy_operands(tree: Any, count: int) -> _CopyOperands:
    source, destination, recv, send, device_id = tree.unflatten([Slot(i) for i in range(count)])
    return _CopyOperands(
        view_of(source), view_of(destination), view_if_any(recv), view_if_any(send), device_id
    )


# Loads and stores


class RefAccess(NamedTuple):
    """A load or a store of a TensorCore."""

    view: View
    stored: Slot | None  # the value, of a store
    dtype: object  # of the ref
    is_masked: bool  # perhaps only some elements of the view
    adds: bool

    @property
    def is_write(self) -> bool:
        return self.stored is not None


class VectorAccess(NamedTuple):
    """A load or a store of a vector subcore."""

    view: View
    stored: Slot | None
    dtype: object
    is_partial: bool  # some of the view only, or elsewhere in it than it says

    @property
    def is_write(self) -> bool:
        return self.stored is not None


def get(equation: JaxprEqn) -> RefAccess:
    return _ref_access(equation, None, 1)


def swap(equation: JaxprEqn) -> RefAccess | VectorAccess:
    """Of JAX's refs; SparseCores use the same name."""
    if "has_mask" in equation.params:
        return _vector_access(equation, Slot(1), 2)
    return _ref_access(equation, Slot(1), 2)


def add_update(equation: JaxprEqn) -> RefAccess:
    return _ref_access(equation, Slot(1), 2)._replace(adds=True)


def masked_load(equation: JaxprEqn) -> RefAccess:
    ref, transforms, *_ = _by_tree(equation, "args_tree")
    dtype = jaxprs.dtype_of(equation.invars[0])
    return RefAccess(view_of(ref, transforms), None, dtype, True, False)


def masked_swap(equation: JaxprEqn) -> RefAccess:
    stored = _by_tree(equation, "args_tree")[2]
    return masked_load(equation)._replace(stored=stored)


def vector_load(equation: JaxprEqn) -> VectorAccess:
    return _vector_access(equation, None, 1)


def gather(equation: JaxprEqn) -> VectorAccess:
    ref, transforms, *_ = _by_tree(equation, "tree")
    dtype = jaxprs.dtype_of(equation.invars[0])
    return VectorAccess(view_of(ref, transforms), None, dtype, True)


def scatter(equation: JaxprEqn) -> VectorAccess:
    stored = _by_tree(equation, "tree")[-2]
    return gather(equation)._replace(stored=stored)


def _ref_access(equation: JaxprEqn, stored: Slot | None, first: int) -> RefAccess:
    ref, *rest = slots_of(equation)
    transforms = jax.tree_util.tree_unflatten(equation.params["tree"], rest[first - 1 :])
    dtype = jaxprs.dtype_of(equation.invars[0])
    return RefAccess(view_of(ref, transforms), stored, dtype, False, False)


def _vector_access(equation: JaxprEqn, stored: Slot | None, first: int) -> VectorAccess:
    slots, has_mask = slots_of(equation), bool(equation.params["has_mask"])
    rest = slots[first : len(slots) - has_mask]
    transforms = jax.tree_util.tree_unflatten(equation.params["tree"], rest)
    dtype = jaxprs.dtype_of(equation.invars[0])
    return VectorAccess(view_of(slots[0], transforms), stored, dtype, has_mask)


# Scopes, places, barriers


class RunScoped(NamedTuple):
    body: Jaxpr  # what it closes over are operands
    allocated: tuple[Argument, ...]
    is_collective: bool  # over several cores


class ProgramId(NamedTuple):
    """Where the kernel is along an axis of the grid."""

    axis: int


class NumPrograms(NamedTuple):
    """How long an axis of the grid is."""

    axis: int


class AxisIndex(NamedTuple):
    """Where the core is along axes of a mesh, the last one going fastest."""

    names: tuple[Hashable, ...]


class SubcoreBarrier(NamedTuple):
    """``plsc.subcore_barrier``: all vector subcores of a SparseCore wait for each other."""


def run_scoped(equation: JaxprEqn) -> RunScoped:
    body = jaxprs.open_jaxpr(equation.params["jaxpr"])[0]
    allocated = arguments_of(body)[len(body.constvars) :]
    return RunScoped(body, tuple(allocated), bool(equation.params.get("collective_axes")))


def program_id(equation: JaxprEqn) -> ProgramId:
    return ProgramId(equation.params["axis"])


def num_programs(equation: JaxprEqn) -> NumPrograms:
    return NumPrograms(equation.params["axis"])


def axis_index(equation: JaxprEqn) -> AxisIndex:
    name = equation.params["axis_name"]
    return AxisIndex(name if isinstance(name, tuple) else (name,))


def subcore_barrier(equation: JaxprEqn) -> SubcoreBarrier:
    return SubcoreBarrier()


# Control


class Call(NamedTuple):
    """Of a function, in place."""

    body: AnyJaxpr
    is_jit: bool
    takes_arrays: bool


class Cond(NamedTuple):
    """The first operand tells which branch; the rest are its arguments."""

    branches: tuple[AnyJaxpr, ...]


class While(NamedTuple):
    """Operands: constants of the test, those of the body, and what is carried."""

    test: AnyJaxpr
    body: AnyJaxpr
    test_consts: int
    body_consts: int


class Scan(NamedTuple):
    """Operands: constants, what is carried, and what is gone through."""

    body: AnyJaxpr
    consts: int
    carried: int
    length: int
    is_reverse: bool


class ParallelLoop(NamedTuple):
    """Of SparseCores. Its body takes constants, the number of the turn, and what is carried."""

    ends: tuple[Slot, Slot, Slot]  # lower, upper, step
    consts: tuple[Slot, ...]
    carried: tuple[Slot, ...]
    body: Jaxpr


def call(equation: JaxprEqn, key: str, is_jit: bool = False) -> Call:
    takes_arrays = any(jaxprs.shape_of(atom) for atom in equation.invars)
    return Call(equation.params[key], is_jit, takes_arrays)


def cond(equation: JaxprEqn) -> Cond:
    return Cond(tuple(equation.params["branches"]))


def while_loop(equation: JaxprEqn) -> While:
    params = equation.params
    return While(
        params["cond_jaxpr"], params["body_jaxpr"], params["cond_nconsts"], params["body_nconsts"]
    )


def scan(equation: JaxprEqn) -> Scan:
    params = equation.params
    if "num_consts" in params:
        consts, carried = params["num_consts"], params["num_carry"]
    else:  # 0.12
        consts, carried = (len(part) for part in params["ft_in"].unpack()[:2])
    return Scan(params["jaxpr"], consts, carried, params["length"], params["reverse"])


def parallel_loop(equation: JaxprEqn) -> ParallelLoop:
    lower, upper, step, consts, carried = _by_tree(equation, "tree")
    body = jaxprs.open_jaxpr(equation.params["jaxpr"])[0]
    return ParallelLoop((lower, upper, step), tuple(consts), tuple(carried), body)


# What does nothing to the protocol


class PassThrough(NamedTuple):
    """Hands its operands on as they are: semaphores and buffers in flight, too."""


class NewRef(NamedTuple):
    """``jax.new_ref``: an array, or a semaphore, becomes a ref that outlives kernels."""

    memory: Memory


class RunState(NamedTuple):
    """``pl.run_state``: the same for all operands, as long as the body runs."""

    body: AnyJaxpr
    allocated: tuple[Argument, ...]


class RefBoundary(NamedTuple):
    """Where a ref of JAX, between kernels, becomes an array again."""

    name: str


class Other(NamedTuple):
    """It only computes, or it is not known."""

    name: str


def pass_through(equation: JaxprEqn) -> PassThrough:
    return PassThrough()


def new_ref(equation: JaxprEqn) -> NewRef:
    return NewRef(memory_of(equation.outvars[0].aval))


def run_state(equation: JaxprEqn) -> RunState:
    body = equation.params["jaxpr"]
    return RunState(body, tuple(arguments_of(jaxprs.open_jaxpr(body)[0])))


def ref_boundary(equation: JaxprEqn) -> RefBoundary:
    return RefBoundary(equation.primitive.name)


def other(equation: JaxprEqn) -> Other:
    return Other(equation.primitive.name)
