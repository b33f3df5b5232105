"""Kernel calls, grid step by grid step, and the maps over devices around them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from safepallas import _compat_verify as _jax
from safepallas.verify import _values
from safepallas.verify._code import Compiler, Do, Env, Equation, Rule, run
from safepallas.verify._core import SEMAPHORES
from safepallas.verify._memory import Ref
from safepallas.verify._model import Enter, Leave, Line, UndecidedError
from safepallas.verify._values import UNKNOWN
from safepallas.verify._windows import Window

if TYPE_CHECKING:
    from safepallas.verify._core import Core


def _line(equation: Equation, body: Any) -> Line:
    """The user's line of a call; that of the kernel where the call itself is made by JAX."""
    line = equation.line
    return line if line.number else Line(*_jax.definition_of(body))


def _enter(core: Core, name: str, collective_id: Any, me: int, line: Line) -> None:
    """Begin the next call. All cores make the same calls, or nothing is known of their memory."""
    shared = core.shared
    core.call, core.collective_id = core.calls, collective_id
    core.calls += 1
    if core.call == len(shared.call_ids):
        if core.number and shared.stage is None:
            raise UndecidedError("Not all devices call the same kernels.", line)
        shared.call_ids.append(me)
        shared.program.calls.append(name)
    elif shared.call_ids[core.call] != me:
        raise UndecidedError("Not all devices call the same kernels.", line)
    has_barrier = collective_id is None or shared.mesh.size == 1
    core.emit(Enter(core.call, has_barrier, line))


def _leave(core: Core, line: Line) -> None:
    core.emit(Leave(core.call, line))


def _grid(sizes: Sequence[int | None], given: list[Any], line: Line) -> tuple[int, ...]:
    found = []
    for size in sizes:
        number = given.pop(0) if size is None else size
        if number is UNKNOWN:
            raise UndecidedError("The size of the grid is not known before it runs.", line)
        found.append(int(number))
    return tuple(found)


def _pallas_call(compiler: Compiler, equation: Equation) -> Do:
    call = _jax.call_parts(equation.jax)
    body, line, me = compiler.open_code(call.jaxpr), _line(equation, call.jaxpr), id(equation.jax)
    maps = [compiler.code(o.index_map) for o in (*call.inputs, *call.outputs)]
    names = _jax.argument_names(call.jaxpr, len(call.jaxpr.invars))
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
        grid = _grid(call.grid, operands[:dynamic], line)
        _enter(core, call.name, call.collective_id, me, line)

        def ref(i: int, numbers: Any = UNKNOWN) -> Ref:
            aval = call.jaxpr.invars[i].aval
            return core.new_ref((core.call, i), aval, names[i] or f"argument {i}", line, numbers)

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
            if _jax.stays_in_place(operand.aval):
                aliased = (
                    in_place.get(alias_of.get(k - len(call.inputs), -1)) if is_output else None
                )
                mine = core.hold(given) if isinstance(given, Ref) else aliased or ref(i, given)
                in_place[k] = mine
            else:
                mine = ref(i)
                windows.append(Window(operand, mine, maps[k], given, is_output, line))
            refs.append(mine)
        scratch = [ref(i) for i in range(scratch_at, len(call.jaxpr.invars))]
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
        _leave(core, line)
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


def _core_map(compiler: Compiler, equation: Equation) -> Do:
    """``pl.kernel``: every core of the device runs the body once, on whole operands."""
    parts = _jax.core_call_parts(equation.jax)
    if parts is None:
        return _not_followed("This mesh of cores is not followed yet.", equation.line)
    jaxpr = parts.jaxpr
    line, me = _line(equation, jaxpr), id(equation.jax)
    body = compiler.open_code(jaxpr)
    names = _jax.argument_names(jaxpr, len(jaxpr.invars))
    inputs, outputs = equation.inputs, equation.outputs
    aliases = {output: operand for operand, output in parts.aliases}

    def do(core: Core, env: Env) -> None:
        if parts.cores != core.shared.mesh.cores:
            raise UndecidedError("Kernels on different numbers of cores are not followed.", line)
        _enter(core, parts.name, parts.collective_id, me, line)
        refs: list[Ref] = []
        for i, var in enumerate(jaxpr.invars):
            operand = aliases.get(i - len(inputs))
            if operand is not None:
                refs.append(refs[operand])
                continue
            given = env[inputs[i]] if i < len(inputs) else UNKNOWN
            name = names[i] or f"argument {i}"
            if not isinstance(given, Ref):
                given = core.new_ref((core.call, i), var.aval, name, line, given)
            refs.append(given)
        run(body, core, refs)
        _leave(core, line)
        for at in outputs:
            env[at] = UNKNOWN

    return do


def _not_followed(text: str, line: Line) -> Do:
    def do(core: Core, env: Env) -> None:
        raise UndecidedError(text, line)

    return do


def _shard_map(compiler: Compiler, equation: Equation) -> Do:
    params = equation.params
    code, inputs, outputs = compiler.code(params["jaxpr"]), equation.inputs, equation.outputs
    ranks = [len(v.aval.shape) for v in equation.jax.invars]
    splits = [
        _jax.partition_axes(spec, rank)
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
    "mpmd_map": _core_map,
    "shard_map": _shard_map,
}
