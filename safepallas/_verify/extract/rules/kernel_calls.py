"""Kernel calls, grid step by grid step, and the maps over devices around them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from safepallas._jax import jaxprs
from safepallas._verify.extract import values as _values
from safepallas._verify.extract.core import SEMAPHORES
from safepallas._verify.extract.interpreter import Compiler, Do, Env, Equation, Rule, run
from safepallas._verify.extract.memory import Ref
from safepallas._verify.extract.pipeline import Window
from safepallas._verify.extract.values import UNKNOWN
from safepallas._verify.program import Barrier, Enter, Leave, Line, UndecidedError

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core


def line_of_call(equation: Equation, body: Any) -> Line:
    """The user's line of a call; that of the kernel where the call itself is made by JAX."""
    line = equation.line
    return line if line.number else Line(*jaxprs.definition_of(body))


class Call(NamedTuple):
    """What a core begins."""

    name: str
    collective_id: Any
    places: tuple[int, ...]  # which of the cores of each device run it
    id: int
    line: Line


def enter(core: Core, call: Call) -> bool:
    """Begin the next call, if the core runs it.

    All cores make the same calls, or nothing is known of their memory.
    """
    shared = core.shared
    core.call, core.collective_id = core.calls, call.collective_id
    core.calls += 1
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
    all_meet = call.collective_id is None or mesh.size == mesh.cores
    everybody = all_meet and len(call.places) == mesh.cores
    core.emit(Enter(core.call, everybody, call.line))
    if not everybody:
        among = shared.members(call.places)
        if not all_meet:
            among = tuple([core.number - place + other for other in call.places])
        if len(among) > 1:
            core.emit(Barrier((core.call, among[0]), among, call.line))
    return True


def leave(core: Core, line: Line) -> None:
    core.emit(Leave(core.call, line))
    core.is_inside = False


def _grid(sizes: Sequence[int | None], given: list[Any], line: Line) -> tuple[int, ...]:
    found = []
    for size in sizes:
        number = given.pop(0) if size is None else size
        if number is UNKNOWN:
            raise UndecidedError("The size of the grid is not known before it runs.", line)
        found.append(int(number))
    return tuple(found)


def _pallas_call(compiler: Compiler, equation: Equation) -> Do:
    call = jaxprs.call_parts(equation.jax)
    line, me = line_of_call(equation, call.jaxpr), id(equation.jax)
    body, quiet = compiler.open_code(call.jaxpr), compiler.quiet(call.jaxpr)
    maps = [compiler.code(o.index_map) for o in (*call.inputs, *call.outputs)]
    names = jaxprs.argument_names(call.jaxpr, len(call.jaxpr.invars))
    inputs, outputs = equation.inputs, equation.outputs
    dynamic = sum(size is None for size in call.grid)
    first_input = dynamic + call.prefetched
    scratch_at = call.prefetched + len(call.inputs) + len(call.outputs)
    outs = [v.aval for v in call.jaxpr.invars[scratch_at - len(call.outputs) : scratch_at]]
    semantics = getattr(equation.params["compiler_params"], "dimension_semantics", None)
    is_parallel = any("parallel" in str(s).lower() for s in semantics or ())
    hands_on = any(str(aval.dtype) in SEMAPHORES for aval in outs)
    alias_of = {output: operand - call.prefetched for operand, output in call.aliases}

    def do(core: Core, env: Env) -> None:
        operands = [env[i] for i in inputs]
        # Of several TensorCores the first one runs it.
        if not enter(core, Call(call.name, call.collective_id, (0,), me, line)):
            return
        grid = _grid(call.grid, operands[:dynamic], line)

        def ref(i: int, numbers: Any = UNKNOWN) -> Ref:
            aval = call.jaxpr.invars[i].aval
            return core.new_ref((core.call, i), aval, names[i] or f"argument {i}", line, numbers)

        def own(i: int) -> Ref:
            """Of this core and this call alone."""
            made = ref(i)
            made.is_quiet = quiet[i]
            return made

        prefetched = [ref(i, operands[dynamic + i]) for i in range(call.prefetched)]
        if is_parallel:
            core.shared.assumed["parallel dimensions of a grid run in order, on one core"] = None
        _assume(core, [names[i] for i in range(call.prefetched)], operands[dynamic:])
        refs: list[Ref] = []
        windows: list[Window] = []
        in_place: dict[int, Ref] = {}
        for k, operand in enumerate((*call.inputs, *call.outputs)):
            i, is_output = call.prefetched + k, k >= len(call.inputs)
            given = UNKNOWN if is_output else operands[first_input + k]
            if jaxprs.stays_in_place(operand.aval):
                aliased = (
                    in_place.get(alias_of.get(k - len(call.inputs), -1)) if is_output else None
                )
                mine = core.hold(given) if isinstance(given, Ref) else aliased or ref(i, given)
                in_place[k] = mine
            else:
                mine = own(i)
                windows.append(Window(operand, mine, maps[k], given, is_output, line))
            refs.append(mine)
        scratch = [own(i) for i in range(scratch_at, len(call.jaxpr.invars))]
        core.grid = tuple(n for i, n in enumerate(grid) if i not in call.vmapped)
        everything = [*prefetched, *refs, *scratch]
        for step in itertools.product(*map(range, grid)):
            core.turn(line)
            core.step = tuple(n for i, n in enumerate(step) if i not in call.vmapped)
            for window in windows:
                window.begin(core, step, prefetched)
            run(body, core, everything)
        for window in windows:
            window.end(core)
        core.grid = core.step = ()
        leave(core, line)
        for j, at in enumerate(outputs):
            env[at] = in_place.get(len(call.inputs) + j, UNKNOWN) if hands_on else UNKNOWN
        if hands_on:
            # What is in flight may be on its way from an input: the next call gets that one too.
            for k in range(len(call.inputs)):
                env[inputs[first_input + k]] = in_place.get(k, UNKNOWN)

    return do


def _assume(core: Core, names: Sequence[str], values: Sequence[Any]) -> None:
    """Say which values of scalar prefetch the verdict holds for."""
    for name, value in zip(names, values, strict=False):
        if value is not UNKNOWN and core.number == 0:
            text = np.array2string(np.asarray(value), threshold=8, separator=", ")
            core.shared.assumed[f"{name} = {text}"] = None


def _shard_map(compiler: Compiler, equation: Equation) -> Do:
    params = equation.params
    code, inputs, outputs = compiler.code(params["jaxpr"]), equation.inputs, equation.outputs
    ranks = [len(v.aval.shape) for v in equation.jax.invars]
    splits = [
        jaxprs.partition_axes(spec, rank)
        for spec, rank in zip(params["in_specs"], ranks, strict=True)
    ]

    def do(core: Core, env: Env) -> None:
        operands = [_part(core, env[i], split) for i, split in zip(inputs, splits, strict=True)]
        run(code, core, operands)
        for at in outputs:
            env[at] = UNKNOWN

    return do


def _part(core: Core, value: Any, split: Sequence[tuple[Any, ...]]) -> Any:
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
    return _values.known(value[tuple(index)], 1 << 20)


def _pass(compiler: Compiler, equation: Equation) -> Do:
    """What hands its operands on as they are: semaphores and buffers in flight, too."""
    inputs, outputs = equation.inputs, equation.outputs

    def do(core: Core, env: Env) -> None:
        for source, at in zip(inputs, outputs, strict=True):
            env[at] = env[source]

    return do


RULES: dict[str, Rule] = {
    "optimization_barrier": _pass,
    "with_memory_space_constraint": _pass,
    "pallas_call": _pallas_call,
    "shard_map": _shard_map,
}
