"""Copies, and the waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safepallas._jax import operations as ops
from safepallas._jax.core_meshes import KEEPS_CORE_AXES
from safepallas._jax.views import View
from safepallas._semaphores.kinds import DMA, REGULAR
from safepallas._verify.extract.boxes import Box
from safepallas._verify.extract.core import region_on
from safepallas._verify.extract.device_ids import finder
from safepallas._verify.extract.interpreter import Compiler, Do, Env, Equation, Rules
from safepallas._verify.extract.lockstep import Pause
from safepallas._verify.extract.memory import Ref
from safepallas._verify.extract.rules.semaphores import require_kind, semaphore_at
from safepallas._verify.extract.values import UNKNOWN, Known
from safepallas._verify.extract.views import ViewReader
from safepallas._verify.program import Line, Semaphore, Start, UndecidedError, Wait

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core


def _reader(equation: Equation, view: View | None) -> ViewReader | None:
    return None if view is None else ViewReader(equation, view)


def _start(compiler: Compiler, equation: Equation, copy: ops.CopyStart) -> Do:
    source_of, destination_of = (ViewReader(equation, v) for v in (copy.source, copy.destination))
    recv_of, send_of = _reader(equation, copy.recv), _reader(equation, copy.send)
    find, line = finder(equation, copy.target), equation.line
    indices = [ViewReader(equation, index) for index in copy.indices]
    is_local = copy.target.device_id is None

    def do(core: Core, env: Env) -> None:
        source, taken = source_of(env)
        to, filled = destination_of(env)
        receiver = None if recv_of is None else recv_of(env)
        lives_on = None if receiver is None else receiver[0].lives_on
        if lives_on is not None and is_local and not KEEPS_CORE_AXES:
            raise UndecidedError(_UNTOLD, line)
        owner = find(core, env, lives_on)
        core.require_own(source, line)
        _require_there(core, to, owner, line)
        core.check_bounds(source, taken, "copies from", line)
        core.check_bounds(to, filled, "copies to", line)
        send = recv = None
        amount = counted = 0
        if send_of is not None:
            send, amount = _signalled(core, *send_of(env), core.number, filled.amount, line)
        if receiver is not None:
            recv, counted = _signalled(core, *receiver, owner, filled.amount, line)
        if send is not None and recv is not None and amount != counted:
            raise UndecidedError("A copy with two kinds of semaphores is not followed.", line)
        event = Start(
            region_on(core.number, source, taken),
            region_on(owner, to, filled),
            send,
            recv,
            max(amount, counted),
            line,
        )
        if indices:
            regions = [region_on(core.number, *index(env)) for index in indices]
            event = event._replace(indices=tuple(regions))
        core.emit(event)
        if to.contents is not None:
            numbers: Known = UNKNOWN
            if source.contents is not None and not copy.adds and taken.shape == filled.shape:
                numbers = source.contents.load(taken.at)
            _move(core, to, filled, owner, numbers)

    return do


_UNTOLD = "JAX 0.10.2 does not say which core of another type a copy of this device tells."


def _require_there(core: Core, to: Ref, owner: int, line: Line) -> None:
    """What a copy fills must be there where it goes to."""
    mesh = core.shared.mesh
    there = mesh.part_of(owner) if mesh.cores > 1 else core.part
    if to.shared_by is None and there.core_type != (to.lives_on or core.part.core_type):
        text = f"A copy goes to {core.name_of(to)} on cores of another type than its semaphore."
        raise UndecidedError(text, line)


def _signalled(
    core: Core, ref: Ref, box: Box, owner: int, size: int, line: Line
) -> tuple[Semaphore, int]:
    """A semaphore that a copy signals, and how much: its bytes, or one where it counts."""
    if ref.kind is not DMA:
        require_kind(core, ref, (DMA, REGULAR), "a copy", line)
        size = 1
    return semaphore_at(core, ref, box, owner, line), size


def _move(core: Core, to: Ref, filled: Box, owner: int, numbers: Known) -> None:
    """The numbers go with the copy. Who reads them too early has a race anyway."""
    owner = to.owner(owner)
    if owner != to.owner(core.number):
        if core.shared.lockstep is not None:
            place = core.shared.program.allocations[to.allocation].place
            where = to.allocation if place is None else place
            core.shared.lockstep.send(owner, where, filled.at, numbers)
    elif to.contents is not None:
        to.contents.store(filled.at, numbers)


def _wait(compiler: Compiler, equation: Equation, wait: ops.CopyWait) -> Do:
    destination_of, recv_of = ViewReader(equation, wait.destination), _reader(equation, wait.recv)
    line = equation.line

    def do(core: Core, env: Env) -> Pause | None:
        if recv_of is None:
            return None
        ref, box = recv_of(env)
        require_kind(core, ref, (DMA,), "the wait of a copy", line)
        core.require_own(ref, line)
        amount = destination_of(env)[1].amount
        return core.block(Wait(semaphore_at(core, ref, box, core.number, line), amount, line))

    return do


RULES: Rules = {ops.CopyStart: _start, ops.CopyWait: _wait}
