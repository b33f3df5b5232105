"""Semaphores: signals, waits, reads, and the one that a call has by its id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safepallas._jax import operations as ops
from safepallas._semaphores.kinds import BARRIER, REGULAR, Kind
from safepallas._verify.diagnostics.finding import FindingKind
from safepallas._verify.extract.boxes import Box
from safepallas._verify.extract.core import semaphore_noun
from safepallas._verify.extract.device_ids import finder
from safepallas._verify.extract.interpreter import Compiler, Do, Env, Equation, Rules
from safepallas._verify.extract.lockstep import Pause
from safepallas._verify.extract.memory import Ref, Value
from safepallas._verify.extract.values import UNKNOWN
from safepallas._verify.extract.views import ViewReader
from safepallas._verify.program import (
    Allocation,
    Line,
    Semaphore,
    Signal,
    UndecidedError,
    Wait,
)

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core

_COUNTING = (REGULAR, BARRIER)


def require_kind(core: Core, ref: Ref, kinds: tuple[Kind, ...], verb: str, line: Line) -> None:
    if ref.kind not in kinds:
        wanted = " or ".join("a " + semaphore_noun(kind) for kind in kinds)
        text = f"{verb} takes {wanted}, but got {core.name_of(ref)}: pass one."
        core.wrong(FindingKind.KIND, text, line)


def semaphore_at(core: Core, ref: Ref, box: Box, owner: int, line: Line) -> Semaphore:
    """The one semaphore that a view is of, on the core that has it."""
    if not box.is_exact:
        raise UndecidedError(
            f"Which of the semaphores {core.name_of(ref)} is meant depends on data that is not "
            "known before it runs.",
            line,
        )
    if box.at is None and any(not 0 <= i < n for i, n in zip(box.low, ref.shape, strict=True)):
        index = ", ".join(map(str, box.low))
        sizes = ", ".join(map(str, ref.shape))
        core.wrong(
            FindingKind.OUT_OF_RANGE,
            f"{core.place} uses index [{index}] of {core.name_of(ref)}, whose shape is ({sizes}): "
            "it is another semaphore, or none. Allocate more, or fix the index.",
            line,
        )
    if ref.place is None:
        return Semaphore(owner, ref.allocation, box.low, ref.is_global)
    stack, place = ref.place
    offset = 0
    for i, n in zip(box.low, ref.shape, strict=True):
        offset = offset * n + i
    return Semaphore(owner, stack, (place + offset,), scope=ref.allocation, index=box.low)


def _amount(value: Value, what: str, line: Line) -> int:
    if not isinstance(value, int):
        text = f"How much is {what} depends on data that is not known before it runs."
        raise UndecidedError(text, line)
    return int(value)


def _signal(compiler: Compiler, equation: Equation, signal: ops.Signal) -> Do:
    view, find = ViewReader(equation, signal.view), finder(equation, signal.target)
    amount_at, line = equation.inputs[signal.amount.at], equation.line

    def do(core: Core, env: Env) -> None:
        ref, box = view(env)
        require_kind(core, ref, _COUNTING, "semaphore_signal", line)
        owner = find(core, env, ref.lives_on)
        amount = _amount(env[amount_at], "signalled", line)
        core.emit(Signal(semaphore_at(core, ref, box, owner, line), amount, line))

    return do


def _wait(compiler: Compiler, equation: Equation, wait: ops.Wait) -> Do:
    view, line = ViewReader(equation, wait.view), equation.line
    amount_at, takes_at = equation.inputs[wait.amount.at], equation.inputs[wait.decrement.at]

    def do(core: Core, env: Env) -> Pause | None:
        ref, box = view(env)
        require_kind(core, ref, _COUNTING, "semaphore_wait", line)
        core.require_own(ref, line)
        amount = _amount(env[amount_at], "waited for", line)
        takes = env[takes_at]
        if isinstance(takes, int) and not takes:
            name = core.name_of(ref)
            text = (
                f"{core.place_and_step} waits for {amount} on {name} with decrement=False, which "
                "JAX's TPU compiler (0.10.2 to 0.12.0.1) ignores without a word: the wait takes "
                "what it waits for. Leave decrement out, and signal it again where it is to stay."
            )
            core.shared.add(FindingKind.AMOUNT, name, text, line)
        return core.block(Wait(semaphore_at(core, ref, box, core.number, line), amount, line))

    return do


def _read(compiler: Compiler, equation: Equation, read: ops.Read) -> Do:
    view, line = ViewReader(equation, read.view), equation.line
    (out,) = equation.outputs

    def do(core: Core, env: Env) -> None:
        semaphore_at(core, *view(env), core.number, line)
        env[out] = UNKNOWN  # it is another in every schedule

    return do


def _barrier_semaphore(
    compiler: Compiler, equation: Equation, operation: ops.BarrierSemaphore
) -> Do:
    line = equation.line
    (out,) = equation.outputs

    def do(core: Core, env: Env) -> None:
        number = core.shared.number(
            ("barrier", core.collective_id, operation.tag),
            lambda: Allocation("the barrier semaphore", "barrier semaphore", -1, (), line),
        )
        env[out] = Ref(number, (), operation.dtype, is_global=True)

    return do


RULES: Rules = {
    ops.Signal: _signal,
    ops.Wait: _wait,
    ops.Read: _read,
    ops.BarrierSemaphore: _barrier_semaphore,
}
