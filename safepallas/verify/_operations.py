"""Inside a kernel: from its operations on refs to events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from safepallas import _compat_verify as _jax
from safepallas.verify import _memory
from safepallas.verify._code import Compiler, Do, Env, Equation, Rule, run
from safepallas.verify._core import SEMAPHORES
from safepallas.verify._memory import Box, Ref
from safepallas.verify._model import (
    Access,
    Allocate,
    Allocated,
    Kind,
    Line,
    Region,
    Release,
    Semaphore,
    Signal,
    Start,
    UndecidedError,
    Wait,
)
from safepallas.verify._targets import target
from safepallas.verify._values import UNKNOWN

if TYPE_CHECKING:
    from safepallas.verify._core import Core

Look: TypeAlias = "Callable[[Env], tuple[Ref, Box]]"
COUNTING = ("semaphore", "barrier_semaphore")


def value_of(equation: Equation, env: Env) -> Callable[[Any], Any]:
    """What is known of a part of an operation: of a slot, or a number as it is."""
    inputs = equation.inputs

    def value(part: Any) -> Any:
        return env[inputs[part.at]] if type(part) is _jax.Slot else part

    return value


def _slots_in(view: Any) -> list[int]:
    found = []
    for step in view.steps:
        if isinstance(step, _jax.Index):
            for part in (*step.parts, *step.gathered):
                ends = (part.start, part.size) if isinstance(part, _jax.Span) else (part,)
                found += [p.at for p in ends if type(p) is _jax.Slot]
    return found


def _looker(equation: Equation, view: Any) -> Look:
    """How to resolve a view. The same indices give the same box, so it is worked out once."""
    ref_at = equation.inputs[view.ref.at]
    slots = [equation.inputs[i] for i in _slots_in(view)]
    line = equation.line
    cache: dict[Any, Box] = {}

    def look(env: Env) -> tuple[Ref, Box]:
        ref = env[ref_at]
        if type(ref) is not Ref:
            raise UndecidedError("A ref comes from outside the kernel; that is not followed.", line)
        key: Any = (ref.shape, *[env[i] for i in slots]) if slots else ref.shape
        try:
            found = cache.get(key)
        except TypeError:  # by arrays of indices
            found, key = None, None
        if found is None:
            try:
                found = _memory.resolve(ref, view.steps, value_of(equation, env))
            except _memory.UnknownIndexError:
                raise UndecidedError(
                    "The size of a slice depends on data that is not known before it runs.", line
                ) from None
            if key is not None:
                cache[key] = found
        return ref, found

    return look


def _region(core: int, ref: Ref, box: Box) -> Region:
    return Region(core, ref.allocation, box.low, box.high)


def _name(core: Core, ref: Ref) -> str:
    allocated = core.shared.program.allocations[ref.allocation]
    return f"{allocated.name} ({allocated.what})"


def _require(core: Core, ref: Ref, kinds: tuple[str, ...], verb: str, line: Line) -> None:
    if ref.kind not in kinds:
        wanted = " or ".join("a " + SEMAPHORES[k] for k in kinds)
        core.wrong(Kind.KIND, f"{verb} takes {wanted}, but got {_name(core, ref)}: pass one.", line)


def _semaphore(core: Core, ref: Ref, box: Box, owner: int, line: Line) -> Semaphore:
    if not box.is_exact:
        raise UndecidedError(
            f"Which of the semaphores {_name(core, ref)} is meant depends on data that is not "
            "known before it runs.",
            line,
        )
    if ref.shape and any(not 0 <= i < n for i, n in zip(box.low, ref.shape, strict=True)):
        index = ", ".join(map(str, box.low))
        sizes = ", ".join(map(str, ref.shape))
        core.wrong(
            Kind.OUT_OF_RANGE,
            f"{core.place} uses index [{index}] of {_name(core, ref)}, whose shape is ({sizes}): "
            "it is another semaphore, or none. Allocate more, or mend the index.",
            line,
        )
    return Semaphore(owner, ref.allocation, box.low, ref.is_global)


def _amount(value: Any, what: str, line: Line) -> int:
    if value is UNKNOWN:
        raise UndecidedError(
            f"How much is {what} depends on data that is not known before it runs.", line
        )
    return int(value)


def _signal(compiler: Compiler, equation: Equation) -> Do:
    parts, line = _jax.semaphore_parts(equation.jax), equation.line
    look = _looker(equation, parts.view)

    def do(core: Core, env: Env) -> None:
        value, (ref, box) = value_of(equation, env), look(env)
        _require(core, ref, COUNTING, "semaphore_signal", line)
        owner = target(core, parts.device_id, parts.core_index, parts.is_logical, value, line)
        amount = _amount(value(parts.amount), "signalled", line)
        core.emit(Signal(_semaphore(core, ref, box, owner, line), amount, line))

    return do


def _wait(compiler: Compiler, equation: Equation) -> Do:
    parts, line = _jax.semaphore_parts(equation.jax), equation.line
    look = _looker(equation, parts.view)

    def do(core: Core, env: Env) -> None:
        value, (ref, box) = value_of(equation, env), look(env)
        _require(core, ref, COUNTING, "semaphore_wait", line)
        amount = _amount(value(parts.amount), "waited for", line)
        core.emit(Wait(_semaphore(core, ref, box, core.number, line), amount, line))

    return do


def _read(compiler: Compiler, equation: Equation) -> Do:
    look, line = _looker(equation, _jax.semaphore_parts(equation.jax).view), equation.line
    (out,) = equation.outputs

    def do(core: Core, env: Env) -> None:
        _semaphore(core, *look(env), core.number, line)
        env[out] = UNKNOWN  # it is another in every schedule

    return do


def _barrier_semaphore(compiler: Compiler, equation: Equation) -> Do:
    line, aval = equation.line, equation.jax.outvars[0].aval
    (out,) = equation.outputs
    tag = equation.params.get("tag")

    def do(core: Core, env: Env) -> None:
        key = ("barrier", core.collective_id, tag)
        number = core.shared.number(
            key, lambda: Allocated("the barrier semaphore", "barrier semaphore", -1, (), line)
        )
        env[out] = Ref(number, (), aval.dtype, True)

    return do


def _access(compiler: Compiler, equation: Equation) -> Do:
    name, line = equation.name, equation.line
    masked = name.startswith("masked")
    view, stored = (_jax.view_masked if masked else _jax.view_accessed)(equation.jax)
    look = _looker(equation, view)
    out = equation.outputs[0] if equation.outputs else None
    stored_at = None if stored is None else equation.inputs[stored.at]

    def do(core: Core, env: Env) -> None:
        ref, box = look(env)
        event = Access(_region(core.number, ref, box), stored is not None, line)
        core.emit(event)
        if not box.is_exact:
            core.inexact.append(event)
        contents = ref.contents
        if contents is None:
            return
        at = None if masked else box.at
        if out is not None:
            env[out] = contents.load(at)
        if stored_at is not None:
            contents.store(at, env[stored_at], name == "addupdate")

    return do


def _start(compiler: Compiler, equation: Equation) -> Do:
    parts, line = _jax.copy_parts(equation.jax), equation.line
    source_of, target_of = _looker(equation, parts.source), _looker(equation, parts.target)
    came_of = None if parts.came is None else _looker(equation, parts.came)
    sent_of = None if parts.sent is None else _looker(equation, parts.sent)
    adds = bool(equation.params.get("add"))

    def do(core: Core, env: Env) -> None:
        source, taken = source_of(env)
        to, filled = target_of(env)
        owner = target(core, parts.device_id, None, parts.is_logical, value_of(equation, env), line)
        amounts = []
        semaphores: list[Semaphore | None] = []
        for look, at in ((sent_of, core.number), (came_of, owner)):
            if look is None:
                semaphores.append(None)
                continue
            ref, box = look(env)
            _require(core, ref, ("dma_sem", "semaphore"), "a copy", line)
            amounts.append(filled.amount if ref.kind == "dma_sem" else 1)
            semaphores.append(_semaphore(core, ref, box, at, line))
        if len(set(amounts)) > 1:
            raise UndecidedError("A copy with two kinds of semaphores is not followed.", line)
        sent, came = semaphores
        event = Start(
            _region(core.number, source, taken),
            _region(owner, to, filled),
            sent,
            came,
            max(amounts, default=0),
            line,
        )
        core.emit(event)
        if not (taken.is_exact and filled.is_exact):
            core.inexact.append(event)
        if to.contents is not None:
            numbers: Any = UNKNOWN
            if source.contents is not None and not adds and taken.shape == filled.shape:
                numbers = source.contents.load(taken.at)
            _move(core, to, filled, owner, numbers)

    return do


def _move(core: Core, to: Ref, filled: Box, owner: int, numbers: Any) -> None:
    """The numbers go with the copy. Who reads them too early has a race anyway."""
    if owner != core.number:
        if core.shared.stage is not None:
            core.shared.stage.send(owner, to.allocation, filled.at, numbers)
    elif to.contents is not None:
        to.contents.store(filled.at, numbers)


def _wait_for_copy(compiler: Compiler, equation: Equation) -> Do:
    parts, line = _jax.copy_parts(equation.jax), equation.line
    target_of = _looker(equation, parts.target)
    came_of = None if parts.came is None else _looker(equation, parts.came)

    def do(core: Core, env: Env) -> None:
        if came_of is None:
            return
        ref, box = came_of(env)
        _require(core, ref, ("dma_sem",), "the wait of a copy", line)
        amount = target_of(env)[1].amount
        core.emit(Wait(_semaphore(core, ref, box, core.number, line), amount, line))

    return do


def _run_scoped(compiler: Compiler, equation: Equation) -> Do:
    jaxpr = _jax.open_jaxpr(equation.params["jaxpr"])[0]
    code, line = compiler.open_code(jaxpr), equation.line
    avals = [v.aval for v in jaxpr.invars]
    names = _jax.argument_names(jaxpr, len(avals))
    inputs, outputs, me = equation.inputs, equation.outputs, id(equation.jax)
    is_shared = bool(equation.params.get("collective_axes"))

    def do(core: Core, env: Env) -> None:
        if is_shared:
            raise UndecidedError("run_scoped over collective_axes is not followed.", line)
        turn = core.count((core.call, me))
        refs = [
            core.new_ref((core.call, me, turn, i), aval, name or f"scoped {i}", line)
            for i, (aval, name) in enumerate(zip(avals, names, strict=True))
        ]
        allocations = tuple(ref.allocation for ref in refs)
        core.emit(Allocate(allocations, line))
        results = run(code, core, [*(env[i] for i in inputs), *refs])
        core.emit(Release(allocations, line))
        for at, result in zip(outputs, results, strict=True):
            env[at] = result

    return do


def _place(compiler: Compiler, equation: Equation) -> Do:
    """``program_id`` and ``num_programs``."""
    axis = equation.params["axis"]
    (out,) = equation.outputs
    counts = equation.name == "num_programs"

    def do(core: Core, env: Env) -> None:
        numbers = core.grid if counts else core.step
        env[out] = numbers[axis] if axis < len(numbers) else UNKNOWN

    return do


def _axis_index(compiler: Compiler, equation: Equation) -> Do:
    name = equation.params["axis_name"]
    names = name if isinstance(name, tuple) else (name,)
    (out,) = equation.outputs

    def do(core: Core, env: Env) -> None:
        sizes, index = core.shared.mesh.axes, 0
        if not all(n in sizes for n in names):
            env[out] = UNKNOWN
            return
        for n in names:
            index = index * sizes[n] + core.at[n]
        env[out] = index

    return do


RULES: dict[str, Rule] = {
    "semaphore_signal": _signal,
    "semaphore_wait": _wait,
    "semaphore_read": _read,
    "get_barrier_semaphore": _barrier_semaphore,
    "get": _access,
    "swap": _access,
    "addupdate": _access,
    "masked_load": _access,
    "masked_swap": _access,
    "dma_start": _start,
    "dma_wait": _wait_for_copy,
    "run_scoped": _run_scoped,
    "program_id": _place,
    "num_programs": _place,
    "axis_index": _axis_index,
}
