"""Kernel calls, grid step by grid step, the maps over devices around them, and where a core is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jax.extend.core import Jaxpr

from safepallas._jax import jaxprs
from safepallas._jax import kernel_calls as calls
from safepallas._jax import operations as ops
from safepallas._jax.jaxprs import AnyJaxpr
from safepallas._semaphores.kinds import kind_of
from safepallas._verify.extract import values as _values
from safepallas._verify.extract.core import describe
from safepallas._verify.extract.interpreter import (
    Compiler,
    Do,
    Env,
    Equation,
    Rules,
    given_twice,
    run,
    run_inside,
    set_all,
)
from safepallas._verify.extract.lockstep import Pause
from safepallas._verify.extract.memory import Ref, Value
from safepallas._verify.extract.pipeline import Window
from safepallas._verify.extract.transfers import Transfers, are_known, is_usual
from safepallas._verify.extract.values import UNKNOWN, Unknown
from safepallas._verify.program import (
    Allocation,
    Assumption,
    Barrier,
    Enter,
    Leave,
    Line,
    UndecidedError,
)

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core


def line_of_call(equation: Equation, body: Jaxpr) -> Line:
    """The user's line of a call; that of the kernel where the call itself is made by JAX."""
    line = equation.line
    return line if line.number else Line(*jaxprs.definition_of(body))


def has_entry_barrier(
    compiler: Compiler, bodies: Iterable[AnyJaxpr], call: calls.KernelCall | calls.CoreCall
) -> bool:
    """Whether Pallas puts a barrier of all devices before a kernel, where there are several.

    What the compiler looks at is the text of the kernel, untaken branches too (libtpu 0.0.52;
    `tests/tpu/test_compiler_facts.py`): a ``device_id`` somewhere, and no barrier semaphore.
    """
    if call.collective_id is not None or call.skips_barrier:
        return False
    communicates = False
    for body in bodies:
        for equation in jaxprs.all_equations(body):
            operation = compiler.read(equation)
            if isinstance(operation, ops.BarrierSemaphore):
                return False
            if isinstance(operation, (ops.CopyStart, ops.Signal)):
                communicates |= operation.target.device_id is not None
    return communicates


class Call(NamedTuple):
    """What a core begins."""

    name: str
    collective_id: Hashable
    has_barrier: bool  # of all devices at its start, where there are several
    places: tuple[int, ...]  # which of the cores of each device run it
    id: int
    line: Line


def enter(core: Core, call: Call) -> Generator[None, None, bool]:
    """Begin the next call, if the core runs it.

    All cores make the same calls, or nothing is known of their memory.
    """
    shared = core.shared
    core.call, core.collective_id = core.calls, call.collective_id
    core.calls += 1
    core.stack = 0
    if core.call == len(shared.call_ids):
        if core.number and shared.lockstep is None:
            raise UndecidedError("Not all devices call the same kernels.", call.line)
        shared.call_ids.append(call.id)
        shared.program.calls.append(call.name)
    elif shared.call_ids[core.call] != call.id:
        raise UndecidedError("Not all devices call the same kernels.", call.line)
    mesh = shared.mesh
    place = core.number % mesh.cores
    if place not in call.places:
        return False
    core.is_inside = True
    is_alone = mesh.size == mesh.cores  # one device: its cores start at the same time
    if call.has_barrier and not is_alone:
        shared.assumed[_ENTRY_BARRIER] = None
    all_devices_wait = call.has_barrier or is_alone
    all_cores_wait = all_devices_wait and len(call.places) == mesh.cores
    pause = core.block(Enter(core.call, all_cores_wait, call.line))
    if pause is not None:
        yield from pause
    if not all_cores_wait:
        among = shared.members(call.places)
        if not all_devices_wait:
            among = tuple([core.number - place + other for other in call.places])
        if len(among) > 1:
            pause = core.block(Barrier((core.call, among[0]), among, call.line))
            if pause is not None:
                yield from pause
    return True


def leave(core: Core, line: Line) -> None:
    core.emit(Leave(core.call, line))
    core.is_inside = False


def _grid(sizes: Sequence[int | None], given: list[Value], line: Line) -> tuple[int, ...]:
    found = []
    for size in sizes:
        number = given.pop(0) if size is None else size
        if not isinstance(number, int):
            raise UndecidedError("The size of the grid is not known before it runs.", line)
        found.append(int(number))
    return tuple(found)


class _CompiledCall:
    """A call as it is compiled: what is the same for all cores."""

    def __init__(self, compiler: Compiler, equation: Equation, call: calls.KernelCall) -> None:
        self.call = call
        self.line, self.id = line_of_call(equation, call.body), id(equation.jax)
        self.code, self.never_copied = (
            compiler.open_code(call.body),
            compiler.never_copied(call.body),
        )
        self.operands = (*call.inputs, *call.outputs)
        self.index_maps = [compiler.code(operand.index_map) for operand in self.operands]
        self.inputs, self.outputs = equation.inputs, equation.outputs
        self.has_barrier = has_entry_barrier(compiler, [call.body], call)
        self.dynamic = sum(size is None for size in call.grid)
        self.closed_over = len(call.closed_over)
        self.first_input = self.closed_over + self.dynamic + call.prefetched
        self.scratch = range(call.prefetched + len(self.operands), len(call.arguments))
        memories = [o.memory for o in self.operands]
        memories += [memory for _, memory in call.closed_over if memory is not None]
        self.hands_on = any(kind_of(memory.dtype) for memory in memories)
        # What is an output's too is another array: XLA copies it where it is needed elsewhere.
        self.reused = {operand - call.prefetched for operand, _ in call.aliases}
        self.alias_of = {output: operand - call.prefetched for operand, output in call.aliases}

    def __call__(self, core: Core, env: Env) -> Pause:
        call, line = self.call, self.line
        given = [env[i] for i in self.inputs]
        # Of several TensorCores the first one runs it.
        entered = yield from enter(
            core, Call(call.name, call.collective_id, self.has_barrier, (0,), self.id, line)
        )
        if not entered:
            return
        closed_over, given = given[: self.closed_over], given[self.closed_over :]
        for value, (name, _) in zip(closed_over, call.closed_over, strict=True):
            if isinstance(value, Ref):
                core.hold(value, name)
        grid = _grid(call.grid, given[: self.dynamic], line)
        if call.is_parallel:
            core.shared.assumed[_IN_ORDER] = None
        prefetched = self._prefetched(core, given[self.dynamic :])
        values = given[self.dynamic + call.prefetched :]
        refs, windows = self._operands(core, values)
        fetches, write_backs = self._transfers(core, values, refs, windows, grid, prefetched)
        scratch = [self._private_ref(core, i) for i in self.scratch]
        arguments = [*closed_over, *prefetched, *refs, *scratch]
        core.grid = self._visible(grid)
        yield from _all(core, fetches, [0], [])
        for at, step in enumerate(itertools.product(*map(range, grid))):
            core.turn(line)
            core.step = self._visible(step)
            yield from _all(core, fetches, [at + 1], [at])
            for window in windows.values():
                window.begin(core, step, prefetched)
            yield from run(self.code, core, arguments)
            yield from _all(core, write_backs, [at], [at - 1])
        yield from _all(core, write_backs, [], [math.prod(grid) - 1])
        for window in windows.values():
            window.end(core)
        core.grid = core.step = ()
        leave(core, line)
        self._give(env, refs, windows)

    def _visible(self, grid: tuple[int, ...]) -> tuple[int, ...]:
        """Without the dimensions that ``jax.vmap`` has added."""
        return tuple([n for i, n in enumerate(grid) if i not in self.call.vmapped])

    def _ref(self, core: Core, i: int, given: Value = UNKNOWN) -> Ref:
        name, memory = self.call.arguments[i]
        if memory is None:
            raise UndecidedError(f"An argument of the kernel, {name}, is no ref.", self.line)
        return core.new_ref((core.call, i), memory, name or f"argument {i}", self.line, given)

    def _private_ref(self, core: Core, i: int) -> Ref:
        """Of this core and this call alone."""
        ref = self._ref(core, i)
        ref.is_private = self.never_copied[i]
        return ref

    def _prefetched(self, core: Core, given: Sequence[Value]) -> list[Ref]:
        """The refs of scalar prefetch. The verdict holds for the values that they have."""
        refs = []
        for i, value in zip(range(self.call.prefetched), given, strict=False):
            refs.append(self._ref(core, i, value))
            if not isinstance(value, (_values.Unknown, Ref)):
                text = np.array2string(np.asarray(value), threshold=8, separator=", ")
                key = core.call, self.call.arguments[i].name or f"argument {i}"
                core.shared.prefetched.setdefault(key, {})[core.number] = text
        return refs

    def _transfers(
        self,
        core: Core,
        given: Sequence[Value],
        refs: Sequence[Ref],
        windows: Mapping[int, Window],
        grid: tuple[int, ...],
        prefetched: Sequence[Ref],
    ) -> tuple[list[Transfers], list[Transfers]]:
        """What the pipeline fetches from, and writes back to, arrays that are reached otherwise."""
        count = len(self.call.inputs)
        # What another kernel has handed on may be in use there still.
        arrays = {
            k: core.hold(value)
            for k, value in enumerate(given)
            if k in windows and isinstance(value, Ref)
            if value.kind is None and value.shape == self.operands[k].array_shape
        }
        pairs = [(a, count + output) for output, a in self.alias_of.items() if a >= 0]
        for pair in pairs:
            blocked = [k for k in pair if k in windows]
            if not blocked:
                continue
            if len(blocked) == 2 and pair[0] not in arrays:
                steps = self._steps(core, grid)
                inner, outer = (self.operands[k] for k in pair)
                blocks = windows[pair[0]].blocks(core, steps, prefetched)
                if is_usual(inner, outer, blocks):
                    if not are_known(blocks):
                        core.shared.assumed[_IN_ONE_GO] = None
                    continue
            in_place = [refs[k] for k in pair if k not in windows]
            array = in_place[0] if in_place else arrays.get(pair[0]) or self._array(core, *pair)
            arrays.update(dict.fromkeys(blocked, array))
        found: tuple[list[Transfers], list[Transfers]] = ([], [])
        steps = self._steps(core, grid) if arrays else []
        for k, array in arrays.items():
            operand, name = self.operands[k], self.call.arguments[self.call.prefetched + k].name
            blocks = windows[k].blocks(core, steps, prefetched)
            transfers = Transfers(core, operand, array, blocks, k >= count, name, self.line)
            found[k >= count].append(transfers)
        return found

    def _steps(self, core: Core, grid: tuple[int, ...]) -> list[tuple[int, ...]]:
        core.shared.require_turns(math.prod(grid), self.line)
        return [*itertools.product(*map(range, grid))]

    def _array(self, core: Core, k: int, other: int) -> Ref:
        """The array that two blocked operands are in."""
        operand, call = self.operands[k], core.call
        names = [self.call.arguments[self.call.prefetched + i].name for i in (k, other)]
        shape, dtype = operand.array_shape, operand.memory.dtype
        number = core.shared.number(
            (call, "array", k),
            lambda: Allocation(" and ".join(names), describe(shape, dtype), call, shape, self.line),
        )
        return Ref(number, shape, dtype)

    def _operands(self, core: Core, given: Sequence[Value]) -> tuple[list[Ref], dict[int, Window]]:
        """The refs of inputs and outputs, and the windows of those that come in blocks."""
        refs: list[Ref] = []
        windows: dict[int, Window] = {}
        first_output = len(self.call.inputs)
        for k, operand in enumerate(self.operands):
            i, is_output = self.call.prefetched + k, k >= first_output
            value = UNKNOWN if is_output else given[k]
            alias = self.alias_of.get(k - first_output, -1) if is_output else -1
            if not self._is_in_place(k, value) and not (alias >= 0 and refs[alias].stays):
                refs.append(self._private_ref(core, i))
                window = Window(operand, refs[-1], self.index_maps[k], value, is_output, self.line)
                windows[k] = window
            elif isinstance(value, Ref):
                refs.append(core.hold(value, self.call.arguments[i].name))
            elif alias >= 0 and alias not in windows:
                refs.append(refs[alias])
            elif (
                same_array := self._same_array(k, given)
            ) is not None and same_array not in windows:
                refs.append(refs[same_array])
            else:
                refs.append(self._ref(core, i, value))
                refs[-1].stays = operand.stays
        return refs, windows

    def _same_array(self, k: int, given: Sequence[Value]) -> int | None:
        """The first input that is the same array as this one, if there is one before it."""
        places = self.inputs[self.first_input :]
        if k >= len(places) or k in self.reused:
            return None
        is_marked = given[k] is not UNKNOWN and isinstance(given[k], Unknown)
        for i in range(k):
            is_same = places[i] == places[k] or (is_marked and given[i] is given[k])
            if is_same and i not in self.reused:
                return i
        return None

    def _is_in_place(self, k: int, value: Value) -> bool:
        """Whether the kernel gets the memory itself, and no copy of a block of it."""
        operand = self.operands[k]
        return (
            operand.memory.is_in_place
            or (operand.stays and operand.block == operand.array_shape)
            or (isinstance(value, Ref) and value.stays)
        )

    def _give(self, env: Env, refs: Sequence[Ref], windows: Mapping[int, Window]) -> None:
        """Give refs where semaphores come or go, else the numbers that are known.

        What is in flight may be on its way from an input: the next call gets that one too.
        """
        count = len(self.call.inputs)
        if self.hands_on:
            inputs = [*enumerate(self.inputs[self.first_input :])]
            for k, at in sorted(inputs, key=lambda one: one[0] not in self.reused):
                if k not in windows:
                    env[at] = refs[k]
        for k, at in enumerate(self.outputs, count):
            is_whole = k not in windows or self.operands[k].block == self.operands[k].array_shape
            contents = refs[k].contents if is_whole else None
            if self.hands_on and k not in windows:
                env[at] = refs[k]
            else:
                env[at] = UNKNOWN if contents is None else contents.load(...)


def _all(
    core: Core, transfers: Sequence[Transfers], starts: Sequence[int], waits: Sequence[int]
) -> Pause:
    """Start the copies of some steps, then wait for those of others."""
    for step in starts:
        for one in transfers:
            one.start(core, step)
    for step in waits:
        for one in transfers:
            pause = one.wait(core, step)
            if pause is not None:
                yield from pause


_ENTRY_BARRIER = Assumption(
    "entry-barrier",
    "Pallas puts a barrier of all devices before a kernel that has a device_id, and no barrier "
    "semaphore or collective_id",
)
_IN_ONE_GO = Assumption(
    "blocks-in-one-go",
    "what Pallas fetches by an index that is not known, and writes back by the same one, it does "
    "not fetch again in one of the next two steps",
)
_IN_ORDER = Assumption(
    "parallel-in-order", "parallel dimensions of a grid run in order, on one core"
)


def _shard_map(compiler: Compiler, equation: Equation, shard_map: calls.ShardMap) -> Do:
    code, inputs, outputs = compiler.code(shard_map.body), equation.inputs, equation.outputs
    twice = given_twice(equation)

    def do(core: Core, env: Env) -> Pause:
        splits = zip(inputs, shard_map.splits, strict=True)
        parts = [_part(core, env[i], split) for i, split in splits]
        results = yield from run_inside(code, core, env, inputs, parts, twice)
        # Each device has its own, whatever the specs say; of numbers they are parts of a whole.
        set_all(env, outputs, [r if isinstance(r, Ref) else UNKNOWN for r in results])

    return do


def _part(core: Core, value: Value, split: Sequence[tuple[Hashable, ...]]) -> Value:
    """The part of an array that a device gets."""
    if not isinstance(value, np.ndarray):
        return value
    sizes = core.shared.mesh.axes
    index = []
    for length, axes in zip(value.shape, split, strict=True):
        parts, at = 1, 0
        for axis in axes:
            parts, at = parts * sizes[axis], at * sizes[axis] + core.at[axis]
        each = length // parts
        index.append(slice(at * each, (at + 1) * each))
    return _values.known(value[tuple(index)], _values.MOST_OF_ARGUMENT)


def _program_id(compiler: Compiler, equation: Equation, operation: ops.ProgramId) -> Do:
    axis, (out,) = operation.axis, equation.outputs

    def do(core: Core, env: Env) -> None:
        env[out] = core.step[axis] if axis < len(core.step) else UNKNOWN

    return do


def _num_programs(compiler: Compiler, equation: Equation, operation: ops.NumPrograms) -> Do:
    axis, (out,) = operation.axis, equation.outputs

    def do(core: Core, env: Env) -> None:
        env[out] = core.grid[axis] if axis < len(core.grid) else UNKNOWN

    return do


def _axis_index(compiler: Compiler, equation: Equation, operation: ops.AxisIndex) -> Do:
    names, (out,) = operation.names, equation.outputs

    def do(core: Core, env: Env) -> None:
        sizes, index = core.shared.mesh.axes, 0
        if not all(name in core.at for name in names):
            env[out] = UNKNOWN
            return
        for name in names:
            index = index * sizes[name] + core.at[name]
        env[out] = index

    return do


def _pass_through(compiler: Compiler, equation: Equation, operation: ops.PassThrough) -> Do:
    inputs, outputs = equation.inputs, equation.outputs

    def do(core: Core, env: Env) -> None:
        set_all(env, outputs, [env[i] for i in inputs])

    return do


RULES: Rules = {
    calls.KernelCall: _CompiledCall,
    calls.ShardMap: _shard_map,
    ops.ProgramId: _program_id,
    ops.NumPrograms: _num_programs,
    ops.AxisIndex: _axis_index,
    ops.PassThrough: _pass_through,
}
