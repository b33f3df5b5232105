"""Kernels over meshes of cores: every core runs the body of its type once, on whole operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from safepallas._jax import kernel_calls as calls
from safepallas._jax import operations as ops
from safepallas._jax.core_meshes import Memory, Sharing
from safepallas._jax.core_types import CoreType
from safepallas._verify.extract.interpreter import (
    Compiler,
    Do,
    Env,
    Equation,
    Rules,
    refuse,
    run,
)
from safepallas._verify.extract.lockstep import Pause
from safepallas._verify.extract.memory import Ref, Sharers, Value
from safepallas._verify.extract.mesh import Mesh
from safepallas._verify.extract.rules.kernel_calls import (
    Call,
    enter,
    has_entry_barrier,
    leave,
    line_of_call,
)
from safepallas._verify.extract.values import UNKNOWN
from safepallas._verify.program import Assumption, Barrier, Line, Program, UndecidedError

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core

_AT_ONCE = Assumption(
    "cores-enter-at-once", "the cores of a device enter a kernel at the same time"
)

# By what it is that cores share: who shares it. None where each core has its own.
_SharersOf: TypeAlias = dict[Sharing, Sharers | None]


def _core_call(compiler: Compiler, equation: Equation, call: calls.CoreCall) -> Do:
    if not call.bodies:
        return refuse("This mesh of cores is not followed yet.", equation.line)
    parts = [body.cores for body in call.bodies]
    bodies = {body.cores: (compiler.open_code(body.body), body.arguments) for body in call.bodies}
    line, me = line_of_call(equation, call.bodies[0].body), id(equation.jax)
    inputs, operands = equation.inputs, len(equation.inputs) + len(equation.outputs)
    aliases = {output: operand for operand, output in call.aliases}
    has_barrier = has_entry_barrier(compiler, [body.body for body in call.bodies], call)
    known = call.name, call.collective_id, has_barrier

    def do(core: Core, env: Env) -> Pause:
        mesh = core.shared.mesh
        places = mesh.places(parts)
        entered = yield from enter(core, Call(*known, places, me, line))
        if not entered:
            return
        sharers = core.shared.sharers.get(me)
        if sharers is None:
            sharers = _sharers(mesh, core.shared.members(places), core.shared.program)
            core.shared.sharers[me] = sharers
        if len(places) > 1:
            core.shared.assumed[_AT_ONCE] = None
        code, arguments = bodies[core.part]
        refs: list[Value] = []
        for i, (name, memory) in enumerate(arguments):
            given = env[inputs[i]] if i < len(inputs) else UNKNOWN
            operand = aliases.get(i - len(inputs))
            if operand is not None:
                refs.append(refs[operand])
            elif isinstance(given, Ref):
                is_apart = given.is_of_jax and given.kind is None
                if len(places) > 1 and is_apart and core.is_new(given) and memory is not None:
                    # Each call is followed for itself: nothing is in flight between two of them.
                    shared_by = _sharers_of(sharers, memory, i < operands, f"`{name}`", line)
                    ref = core.new_ref((core.call, i), memory, name, line, UNKNOWN, shared_by)
                    if given.contents is not None:
                        given.contents.store(None, UNKNOWN)
                    refs.append(ref)
                    continue
                if len(places) > 1:
                    text = "What an earlier call hands on to several cores is not followed."
                    raise UndecidedError(text, line)
                refs.append(core.hold(given, name))
            elif memory is None:  # a number that the body closes over
                refs.append(given)
            else:
                name = name or f"argument {i}"
                shared_by = _sharers_of(sharers, memory, i < operands, f"`{name}`", line)
                key = (core.call, i)
                refs.append(core.new_ref(key, memory, name, line, given, shared_by))
        yield from run(code, core, refs)
        leave(core, line)

    return do


def _sharers(mesh: Mesh, members: Sequence[int], program: Program) -> _SharersOf:
    """Who shares memory, by what it is that they share."""
    by_device: dict[int, list[int]] = {}
    by_sparse_core: dict[str, list[int]] = {}
    for core in members:
        part, at, device = mesh.part_of(core), mesh.coordinates(core), core // mesh.cores
        by_device.setdefault(device, []).append(core)
        if part.core_type != CoreType.TENSOR_CORE:
            axis = part.axes[0][0]  # of the meshes of both types it goes over SparseCores
            name = f"SparseCore {axis}={at[axis]}"
            name += f" of {program.device(device)}" if program.mesh else ""
            by_sparse_core.setdefault(name, []).append(core)
    for name, group in by_sparse_core.items():
        if len(group) > 1 and group not in by_device.values():
            program.groups[tuple(group)] = name
    if len(by_device) == len(members):
        return {Sharing.DEVICE: None, Sharing.SPARSE_CORE: None}
    return {
        Sharing.DEVICE: _by_core(list(by_device.values())),
        Sharing.SPARSE_CORE: _by_core(list(by_sparse_core.values())),
    }


def _by_core(groups: Sequence[Sequence[int]]) -> Sharers:
    return {core: tuple(group) for group in groups for core in group}


def _sharers_of(
    sharers: _SharersOf, memory: Memory, is_operand: bool, name: str, line: Line
) -> Sharers | None:
    if sharers[Sharing.DEVICE] is None:
        return None
    is_private = memory.sharing is Sharing.CORE
    if memory.sharing is Sharing.UNCLEAR or (is_private and is_operand):
        text = f"Whether the cores share {name} or each has its own is not known."
        raise UndecidedError(text, line)
    return None if is_private else sharers[memory.sharing]


def _subcore_barrier(compiler: Compiler, equation: Equation, barrier: ops.SubcoreBarrier) -> Do:
    line = equation.line

    def do(core: Core, env: Env) -> Pause | None:
        mesh, part = core.shared.mesh, core.part
        if part.core_type != CoreType.VECTOR_SUBCORE:
            raise UndecidedError("A barrier of subcores on other cores is not followed.", line)
        _, (axis, size) = part.axes
        among = tuple([mesh.number({**core.at, axis: i}, part) for i in range(size)])
        turn = core.count((core.call, "barrier"))
        if size == 1:
            return None
        return core.block(Barrier((core.call, among[0], turn, "subcores"), among, line))

    return do


def _ref_boundary(compiler: Compiler, equation: Equation, operation: ops.RefBoundary) -> Do:
    """What makes a ref of JAX an array again: nothing is known of it."""
    line = equation.line

    def do(core: Core, env: Env) -> None:
        if core.is_inside:
            text = f"sp.verify does not know the operation {operation.name} in a kernel."
            raise UndecidedError(text, line)

    return do


def _new_ref(compiler: Compiler, equation: Equation, new: ops.NewRef) -> Do:
    (at,), (out,), line, me = equation.inputs, equation.outputs, equation.line, id(equation.jax)

    def do(core: Core, env: Env) -> None:
        env[out] = core.new_ref_of_jax(me, new.memory, line, env[at])

    return do


def _run_state(compiler: Compiler, equation: Equation, state: ops.RunState) -> Do:
    code, line, me = compiler.code(state.body), equation.line, id(equation.jax)
    inputs, outputs = equation.inputs, equation.outputs

    def do(core: Core, env: Env) -> Pause:
        refs: list[Value] = []
        for i, (at, (_, memory)) in enumerate(zip(inputs, state.allocated, strict=True)):
            if memory is None or core.is_inside:
                raise UndecidedError("run_state in a kernel is not followed.", line)
            refs.append(core.new_ref_of_jax((me, i), memory, line, env[at]))
        yield from run(code, core, refs)
        # A number is no ref: only arrays and semaphores are known by their memory from here on.
        for at, ref in zip(outputs, refs, strict=True):
            env[at] = ref if isinstance(ref, Ref) and ref.shape else UNKNOWN

    return do


RULES: Rules = {
    ops.NewRef: _new_ref,
    ops.RunState: _run_state,
    calls.CoreCall: _core_call,
    ops.SubcoreBarrier: _subcore_barrier,
    ops.RefBoundary: _ref_boundary,
}
