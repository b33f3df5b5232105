"""Run a program as far as it goes: one run decides for all schedules.

Only the owner of a semaphore takes from it and everyone else adds, so a wait that could go on can
still go on later, whatever happens in between. All runs that go as far as they can therefore hold
the same events, whatever the order (Keller 1975). The same is true when one thing is held back for
ever, which is how `reach` tells what can happen without it.

There is one machine, and three ways to choose what goes on next: `reach` lets each core run as far
as it can and writes nothing down, `schedule` takes turns, `replay` follows a given order.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Hashable, Iterable
from typing import NamedTuple, TypeAlias

from safepallas._verify.program import (
    Access,
    Barrier,
    Enter,
    Program,
    Semaphore,
    Signal,
    Start,
    Step,
    Wait,
    Where,
)

# What an event does to the machine, as small tuples: the loops below run millions of them.
NOTHING, SIGNAL, WAIT, START, ENTER = range(5)
Op: TypeAlias = tuple[int, int, int]
_NOTHING: Op = (NOTHING, 0, 0)

PARTS = "read", "write"  # of a copy, in order
_NONE = -1  # no semaphore, no sleeper, no copy
_ALL = 1 << 62  # more events than any core has


class Copy(NamedTuple):
    """A copy by numbers: who starts it, and the semaphores (-1: none) that it signals."""

    core: int
    at: int
    send: int
    recv: int
    amount: int


class BarrierGroup(NamedTuple):
    """Cores that wait for each other: at a barrier, or at the start of a call."""

    among: tuple[int, ...]
    call: int  # -1 for a barrier


@dataclasses.dataclass(slots=True)
class NumberedProgram:
    """A program whose semaphores, copies and barriers have numbers."""

    program: Program
    ops: list[list[Op]]  # by core
    copies: list[Copy]
    semaphores: list[Semaphore]
    number: dict[Semaphore, int]
    barriers: list[BarrierGroup]

    @property
    def events(self) -> int:
        return sum(len(ops) for ops in self.ops)


def number_program(program: Program) -> NumberedProgram:
    """Number the semaphores, the copies and the barriers of a program."""
    number: dict[Semaphore, int] = {}
    copies: list[Copy] = []
    ops: list[list[Op]] = []
    barriers: list[BarrierGroup] = []
    barrier_number: dict[Hashable, int] = {}
    all_cores = tuple(range(len(program.cores)))

    def of(semaphore: Semaphore | None) -> int:
        return _NONE if semaphore is None else number.setdefault(semaphore, len(number))

    def enter(key: Hashable, group: BarrierGroup) -> Op:
        if key not in barrier_number:
            barrier_number[key] = len(barriers)
            barriers.append(group)
        return ENTER, barrier_number[key], len(group.among)

    for core, events in enumerate(program.cores):
        mine: list[Op] = []
        for at, event in enumerate(events):
            if isinstance(event, Access):
                mine.append(_NOTHING)
            elif isinstance(event, Wait):
                mine.append((WAIT, of(event.semaphore), event.amount))
            elif isinstance(event, Signal):
                mine.append((SIGNAL, of(event.semaphore), event.amount))
            elif isinstance(event, Start):
                mine.append((START, len(copies), 0))
                copies.append(Copy(core, at, of(event.send), of(event.recv), event.amount))
            elif isinstance(event, Enter) and event.barrier:
                mine.append(enter(event.call, BarrierGroup(all_cores, event.call)))
            elif isinstance(event, Barrier):
                mine.append(enter(("barrier", event.key), BarrierGroup(event.among, -1)))
            else:
                mine.append(_NOTHING)
        ops.append(mine)
    return NumberedProgram(program, ops, copies, list(number), number, barriers)


@dataclasses.dataclass(slots=True)
class Run:
    """How far it went."""

    order: list[Step]
    done: list[int]  # by core: how many of its events
    value: list[int]  # by semaphore: what is left
    # By wait: the signals and the ends of copies whose amounts it took. Of a `replay` only.
    satisfied_by: dict[Where, list[Step]] = dataclasses.field(default_factory=dict)


def reach(numbered: NumberedProgram, held: Step | None = None) -> list[int]:
    """By core, how many events can happen if `held` never does."""
    machine = _Machine(numbered, held)
    turns = machine.turns
    while turns:
        machine.advance(turns.pop(), _ALL)
    return machine.done


def schedule(numbered: NumberedProgram, held: Step | None = None) -> Run:
    """The same run in turns, each core and each copy a step at a time, written down."""
    order: list[Step] = []
    machine = _Machine(numbered, held, order)
    turns, cores = machine.turns, len(numbered.ops)
    while turns:
        turn = turns.popleft()
        if turn >= cores:  # see `turns`
            copy, part = divmod(turn - cores, 2)
            machine.end_copy(copy, part)
        elif machine.advance(turn, 1):
            turns.append(turn)
    return Run(order, machine.done, machine.value)


def replay(numbered: NumberedProgram, order: Iterable[Step]) -> Run:
    """A run in the order that is given, and which signals satisfy which waits.

    Of what has been added to a semaphore, the first is taken first. A wait of an order in
    which too little has come takes what there is.
    """
    steps: list[Step] = []
    satisfied = _Satisfied(len(numbered.semaphores))
    machine = _Machine(numbered, None, steps, satisfied)
    for step in order:
        if step.part:
            number = numbered.ops[step.core][step.at][1]
            machine.end_copy(number, PARTS.index(step.part))
        else:
            machine.done[step.core] = step.at
            machine.advance(step.core, 1, is_forced=True)
    return Run(steps, machine.done, machine.value, satisfied.by_wait)


class _Satisfied:
    """A recorder of which signals, and ends of copies, satisfy which waits."""

    def __init__(self, semaphores: int) -> None:
        self.by_wait: dict[Where, list[Step]] = {}
        self._queues: list[deque[tuple[Step, int]]] = [deque() for _ in range(semaphores)]
        self._rest = [0] * semaphores  # above zero: taken from the queue and not asked for yet

    def add(self, semaphore: int, amount: int, step: Step) -> None:
        self._queues[semaphore].append((step, amount))

    def take(self, semaphore: int, amount: int, wait: Where) -> None:
        steps = self.by_wait[wait] = []
        queue, rest = self._queues[semaphore], self._rest[semaphore] - amount
        while rest < 0 and queue:
            step, more = queue.popleft()
            steps.append(step)
            rest += more
        self._rest[semaphore] = rest


class _Machine:
    """Semaphores, and how far each core has come.

    Whoever drives it takes turns from `turns`, where those stand that may go on: a core by its
    number, and a copy, where the order is written down, by ``cores + 2 * copy + part``. (Without an
    order a copy is over at once.) What is `held` back never happens.
    """

    __slots__ = (
        "_arrived", "_copies", "_held_copy", "_held_part", "_ops", "_order", "_satisfied",
        "_sleeper", "_stops", "done", "turns", "value",
    )  # fmt: skip

    def __init__(
        self,
        numbered: NumberedProgram,
        held: Step | None,
        order: list[Step] | None = None,
        satisfied: _Satisfied | None = None,
    ) -> None:
        self._ops, self._copies = numbered.ops, numbered.copies
        self._order, self._satisfied = order, satisfied
        self._stops = [len(ops) for ops in self._ops]
        self._held_copy, self._held_part = _NONE, 0
        if held is not None and held.part:
            self._held_copy = self._ops[held.core][held.at][1]
            self._held_part = PARTS.index(held.part)
        elif held is not None:
            self._stops[held.core] = held.at
        self._sleeper = [_NONE] * len(numbered.semaphores)
        self._arrived: dict[int, list[int]] = {}
        self.done = [0] * len(self._ops)
        self.value = [0] * len(numbered.semaphores)
        self.turns: deque[int] = deque(range(len(self._ops)))

    def advance(self, core: int, most: int, *, is_forced: bool = False) -> int:
        """Let a core go on for at most so many events, until it must wait; returns how many.

        If `is_forced` it goes on even where it would have to wait.
        """
        ops, value, sleeper, order = self._ops[core], self.value, self._sleeper, self._order
        first = at = self.done[core]
        stop = min(self._stops[core], at + most)
        while at < stop:
            code, x, y = ops[at]
            if code == WAIT:
                if value[x] < y and not is_forced:
                    sleeper[x] = core
                    break
                value[x] -= y
                if self._satisfied is not None:
                    self._satisfied.take(x, y, Where(core, at))
            elif code == SIGNAL:
                value[x] += y
                if sleeper[x] >= 0:
                    self._wake(x)
                if self._satisfied is not None:
                    self._satisfied.add(x, y, Step(core, at))
            elif code == START:
                if order is None:
                    self.end_copy(x, 0)
                    self.end_copy(x, 1)
                else:
                    self.turns.append(len(self._ops) + 2 * x)
            elif code == ENTER and not is_forced and not self._enter(core, x, y):
                break
            if order is not None:
                order.append(Step(core, at))
            at += 1
        self.done[core] = at
        return at - first

    def end_copy(self, number: int, part: int) -> None:
        """A copy has read its source (part 0), or written its target (part 1).

        Bytes arrive in any parts, so a copy of which an end is held back still signals all but its
        last byte. What has not been read has not been written.
        """
        _, _, send, recv, amount = copy = self._copies[number]
        semaphore = recv if part else send
        if number == self._held_copy and part >= self._held_part:
            amount = max(amount - 1, 0)
        elif self._order is not None:
            step = Step(copy.core, copy.at, PARTS[part])
            self._order.append(step)
            if self._satisfied is not None and semaphore >= 0:
                self._satisfied.add(semaphore, amount, step)
        if semaphore >= 0:
            self.value[semaphore] += amount
            if self._sleeper[semaphore] >= 0:
                self._wake(semaphore)
        if part == 0 and self._order is not None:
            self.turns.append(len(self._ops) + 2 * number + 1)

    def _wake(self, semaphore: int) -> None:
        self.turns.append(self._sleeper[semaphore])
        self._sleeper[semaphore] = _NONE

    def _enter(self, core: int, barrier: int, size: int) -> bool:
        """Whether all are at a barrier, now that this core is."""
        here = self._arrived.setdefault(barrier, [])
        if len(here) < size:
            here.append(core)
            if len(here) < size:
                return False
            self.turns.extend(other for other in here if other != core)
        return True
