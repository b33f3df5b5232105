"""Inside a kernel: from its operations on refs to events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safepallas._jax import core_meshes, jaxprs
from safepallas._verify.diagnostics.finding import FindingKind
from safepallas._verify.extract.core import SEMAPHORES
from safepallas._verify.extract.device_ids import finder
from safepallas._verify.extract.interpreter import Compiler, Do, Env, Equation, Rule, run
from safepallas._verify.extract.memory import Box, Ref
from safepallas._verify.extract.values import UNKNOWN
from safepallas._verify.extract.views import Look, value_of
from safepallas._verify.program import (
    Access,
    Allocate,
    Allocation,
    Line,
    Region,
    Release,
    Semaphore,
    Signal,
    Start,
    UndecidedError,
    Wait,
)

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core

_COLLECTIVE = (
    "run_scoped over collective_axes is not followed: JAX's TPU compiler (0.10.2 to 0.12.0.1) does "
    "not take it either."
)
COUNTING = ("semaphore", "barrier_semaphore")


def _region(core: int, ref: Ref, box: Box) -> Region:
    return Region(ref.owner(core), ref.allocation, box.low, box.high, box.step, box.is_exact)


def region_of(core: Core, ref: Ref, box: Box, line: Line) -> Region:
    """What a core itself reaches."""
    _mine(core, ref, line)
    return _region(core.number, ref, box)


def _mine(core: Core, ref: Ref, line: Line) -> None:
    """Some things a core does with its own memory only."""
    if ref.lives_on:
        raise UndecidedError(f"{_name(core, ref)} is on cores of another kind.", line)


def _name(core: Core, ref: Ref) -> str:
    allocated = core.shared.program.allocations[ref.allocation]
    return f"{allocated.name} ({allocated.what})"


def _require(core: Core, ref: Ref, kinds: tuple[str, ...], verb: str, line: Line) -> None:
    if ref.kind not in kinds:
        wanted = " or ".join("a " + SEMAPHORES[k] for k in kinds)
        core.wrong(
            FindingKind.KIND, f"{verb} takes {wanted}, but got {_name(core, ref)}: pass one.", line
        )


def _semaphore(core: Core, ref: Ref, box: Box, owner: int, line: Line) -> Semaphore:
    if not box.is_exact:
        raise UndecidedError(
            f"Which of the semaphores {_name(core, ref)} is meant depends on data that is not "
            "known before it runs.",
            line,
        )
    if box.at is None and any(not 0 <= i < n for i, n in zip(box.low, ref.shape, strict=True)):
        index = ", ".join(map(str, box.low))
        sizes = ", ".join(map(str, ref.shape))
        core.wrong(
            FindingKind.OUT_OF_RANGE,
            f"{core.place} uses index [{index}] of {_name(core, ref)}, whose shape is ({sizes}): "
            "it is another semaphore, or none. Allocate more, or fix the index.",
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
    parts, line = jaxprs.semaphore_parts(equation.jax), equation.line
    look = Look(equation, parts.view)
    find = finder(equation, parts.device_id, parts.core_index, parts.is_logical)

    def do(core: Core, env: Env) -> None:
        ref, box = look(env)
        _require(core, ref, COUNTING, "semaphore_signal", line)
        owner = find(core, env, ref.lives_on)
        amount = _amount(value_of(equation, env)(parts.amount), "signalled", line)
        core.emit(Signal(_semaphore(core, ref, box, owner, line), amount, line))

    return do


def _wait(compiler: Compiler, equation: Equation) -> Do:
    parts, line = jaxprs.semaphore_parts(equation.jax), equation.line
    look = Look(equation, parts.view)

    def do(core: Core, env: Env) -> None:
        value, (ref, box) = value_of(equation, env), look(env)
        _require(core, ref, COUNTING, "semaphore_wait", line)
        _mine(core, ref, line)
        amount = _amount(value(parts.amount), "waited for", line)
        core.emit(Wait(_semaphore(core, ref, box, core.number, line), amount, line))

    return do


def _read(compiler: Compiler, equation: Equation) -> Do:
    look, line = Look(equation, jaxprs.semaphore_parts(equation.jax).view), equation.line
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
            key, lambda: Allocation("the barrier semaphore", "barrier semaphore", -1, (), line)
        )
        env[out] = Ref(number, (), aval.dtype, True)

    return do


def _access(compiler: Compiler, equation: Equation) -> Do:
    name, line = equation.name, equation.line
    masked = name.startswith("masked")
    view, stored = (jaxprs.view_masked if masked else jaxprs.view_accessed)(equation.jax)
    look = Look(equation, view)
    out = equation.outputs[0] if equation.outputs else None
    stored_at = None if stored is None else equation.inputs[stored.at]

    def do(core: Core, env: Env) -> None:
        if not core.is_inside:
            return  # a ref of JAX between kernels: its reads and writes keep their order
        ref, box = look(env)
        if not ref.is_quiet:
            core.emit(Access(region_of(core, ref, box, line), stored is not None, line))
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
    parts, line = jaxprs.copy_parts(equation.jax), equation.line
    source_of, target_of = Look(equation, parts.source), Look(equation, parts.target)
    recv_of = None if parts.recv is None else Look(equation, parts.recv)
    send_of = None if parts.send is None else Look(equation, parts.send)
    find = finder(equation, parts.device_id, None, parts.is_logical)
    adds = bool(equation.params.get("add"))
    indices = [
        Look(equation, index)
        for view in (parts.source, parts.target)
        for index in jaxprs.indices_of(equation.jax, view)
    ]

    def do(core: Core, env: Env) -> None:
        source, taken = source_of(env)
        to, filled = target_of(env)
        told = None if recv_of is None else recv_of(env)
        lives_on = "" if told is None else told[0].lives_on
        if lives_on and parts.device_id is None and not core_meshes.KEEPS_CORE_AXES:
            text = "JAX 0.10.2 does not say which core of another kind a copy of this device tells."
            raise UndecidedError(text, line)
        owner = find(core, env, lives_on)
        _mine(core, source, line)
        _reaches(core, to, owner, line)
        send = recv = None
        amount = counted = 0
        if send_of is not None:
            send, amount = _told(core, *send_of(env), core.number, filled.amount, line)
        if told is not None:
            recv, counted = _told(core, *told, owner, filled.amount, line)
        if send is not None and recv is not None and amount != counted:
            raise UndecidedError("A copy with two kinds of semaphores is not followed.", line)
        event = Start(
            _region(core.number, source, taken),
            _region(owner, to, filled),
            send,
            recv,
            max(amount, counted),
            line,
        )
        if indices:
            regions = [_region(core.number, *index(env)) for index in indices]
            event = event._replace(indices=tuple(regions))
        core.emit(event)
        if to.contents is not None:
            numbers: Any = UNKNOWN
            if source.contents is not None and not adds and taken.shape == filled.shape:
                numbers = source.contents.load(taken.at)
            _move(core, to, filled, owner, numbers)

    return do


def _reaches(core: Core, to: Ref, owner: int, line: Line) -> None:
    """What a copy fills must be there where it goes to."""
    kind = core.shared.mesh.part_of(owner).kind if core.shared.mesh.cores > 1 else core.part.kind
    if to.shared_by is None and kind != (to.lives_on or core.part.kind):
        text = f"A copy goes to {_name(core, to)} on cores of another kind than its semaphore."
        raise UndecidedError(text, line)


def _told(
    core: Core, ref: Ref, box: Box, owner: int, size: int, line: Line
) -> tuple[Semaphore, int]:
    """A semaphore that a copy signals, and how much: its bytes, or one where it counts."""
    if ref.kind != "dma_sem":
        _require(core, ref, ("dma_sem", "semaphore"), "a copy", line)
        size = 1
    return _semaphore(core, ref, box, owner, line), size


def _move(core: Core, to: Ref, filled: Box, owner: int, numbers: Any) -> None:
    """The numbers go with the copy. Who reads them too early has a race anyway."""
    owner = to.owner(owner)
    if owner != to.owner(core.number):
        if core.shared.lockstep is not None:
            core.shared.lockstep.send(owner, to.allocation, filled.at, numbers)
    elif to.contents is not None:
        to.contents.store(filled.at, numbers)


def _wait_for_copy(compiler: Compiler, equation: Equation) -> Do:
    parts, line = jaxprs.copy_parts(equation.jax), equation.line
    target_of = Look(equation, parts.target)
    recv_of = None if parts.recv is None else Look(equation, parts.recv)

    def do(core: Core, env: Env) -> None:
        if recv_of is None:
            return
        ref, box = recv_of(env)
        _require(core, ref, ("dma_sem",), "the wait of a copy", line)
        _mine(core, ref, line)
        amount = target_of(env)[1].amount
        core.emit(Wait(_semaphore(core, ref, box, core.number, line), amount, line))

    return do


def _run_scoped(compiler: Compiler, equation: Equation) -> Do:
    jaxpr = jaxprs.open_jaxpr(equation.params["jaxpr"])[0]
    code, line = compiler.open_code(jaxpr), equation.line
    avals = [v.aval for v in jaxpr.invars]
    names = jaxprs.argument_names(jaxpr, len(avals))
    inputs, outputs, me = equation.inputs, equation.outputs, id(equation.jax)
    is_shared = bool(equation.params.get("collective_axes"))

    def do(core: Core, env: Env) -> None:
        if is_shared:
            raise UndecidedError(_COLLECTIVE, line)
        if core.shared.mesh.cores > 1 and not all(
            core_meshes.sharing_of(a) == core_meshes.OWN for a in avals
        ):
            text = "run_scoped of memory that several cores may share is not followed."
            raise UndecidedError(text, line)
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
        if not all(n in core.at for n in names):
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
