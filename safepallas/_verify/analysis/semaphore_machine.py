"""Run a program as far as it goes: one run decides for all schedules.

Only the owner of a semaphore takes from it and everyone else adds, so a wait that could go on can
still go on later, whatever happens in between. All runs that go as far as they can therefore hold
the same events, whatever the order (Keller 1975). The same is true when one thing is held back for
ever, which is how `reach` tells what can happen without it.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Hashable
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
)

# What an event does to the machine, as small tuples: the loops below run millions of them.
NOTHING, SIGNAL, WAIT, START, ENTER = range(5)
Op: TypeAlias = tuple[int, int, int]
_NOTHING: Op = (NOTHING, 0, 0)


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
class Net:
    """A program by numbers."""

    program: Program
    ops: list[list[Op]]  # by core
    copies: list[Copy]
    semaphores: list[Semaphore]
    number: dict[Semaphore, int]
    meetings: list[BarrierGroup]

    @property
    def events(self) -> int:
        return sum(len(ops) for ops in self.ops)


@dataclasses.dataclass(slots=True)
class Run:
    """How far it went."""

    order: list[Step]
    done: list[int]  # by core: how many of its events
    value: list[int]  # by semaphore: what is left


def build(program: Program) -> Net:
    """Number the semaphores and the copies of a program."""
    number: dict[Semaphore, int] = {}
    copies: list[Copy] = []
    ops: list[list[Op]] = []
    meetings: list[BarrierGroup] = []
    met: dict[Hashable, int] = {}
    all_cores = tuple(range(len(program.cores)))

    def of(semaphore: Semaphore | None) -> int:
        return -1 if semaphore is None else number.setdefault(semaphore, len(number))

    def meet(key: Hashable, meeting: BarrierGroup) -> Op:
        if key not in met:
            met[key] = len(meetings)
            meetings.append(meeting)
        return ENTER, met[key], len(meeting.among)

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
                mine.append(meet(event.call, BarrierGroup(all_cores, event.call)))
            elif isinstance(event, Barrier):
                mine.append(meet(("meet", event.key), BarrierGroup(event.among, -1)))
            else:
                mine.append(_NOTHING)
        ops.append(mine)
    return Net(program, ops, copies, list(number), number, meetings)


def _gifts(copy: Copy, held: Step | None) -> tuple[int, int]:
    """What a copy gives to its two semaphores: all, but for the last byte of what is held back.

    Bytes may arrive in any parts, so a copy that never ends still gives all but one. What has not
    been read has not been written.
    """
    if held is None or held.part == "" or (held.core, held.at) != (copy.core, copy.at):
        return copy.amount, copy.amount
    rest = max(copy.amount - 1, 0)
    return (copy.amount, rest) if held.part == "write" else (rest, rest)


def _stops(net: Net, held: Step | None) -> list[int]:
    stops = [len(ops) for ops in net.ops]
    if held is not None and held.part == "":
        stops[held.core] = held.at
    return stops


def reach(net: Net, held: Step | None = None) -> list[int]:
    """By core, how many events can happen if `held` never does."""
    ops, copies = net.ops, net.copies
    stops = _stops(net, held)
    done = [0] * len(ops)
    value = [0] * len(net.semaphores)
    sleeper = [-1] * len(net.semaphores)
    arrived: dict[int, list[int]] = {}
    ready = list(range(len(ops)))
    while ready:
        core = ready.pop()
        at, stop, mine = done[core], stops[core], ops[core]
        while at < stop:
            code, x, y = mine[at]
            if code == WAIT:
                if value[x] < y:
                    sleeper[x] = core
                    break
                value[x] -= y
            elif code == SIGNAL:
                value[x] += y
                if sleeper[x] >= 0:
                    ready.append(sleeper[x])
                    sleeper[x] = -1
            elif code == START:
                copy = copies[x]
                for semaphore, gift in zip(copy[2:4], _gifts(copy, held), strict=True):
                    if semaphore >= 0:
                        value[semaphore] += gift
                        if sleeper[semaphore] >= 0:
                            ready.append(sleeper[semaphore])
                            sleeper[semaphore] = -1
            elif code == ENTER:
                here = arrived.setdefault(x, [])
                if len(here) < y:
                    here.append(core)
                    if len(here) < y:
                        break
                    ready.extend(other for other in here if other != core)
            at += 1
        done[core] = at
    return done


def schedule(net: Net, held: Step | None = None) -> Run:
    """The same run in turns, each core and each copy a step at a time, written down."""
    ops = net.ops
    stops = _stops(net, held)
    run = Run([], [0] * len(ops), [0] * len(net.semaphores))
    sleeper = [-1] * len(net.semaphores)
    arrived: dict[int, list[int]] = {}
    # A core by its number, or a copy by its number and the part that it does next.
    turns: deque[tuple[int, str]] = deque((core, "") for core in range(len(ops)))

    def give(semaphore: int, amount: int) -> None:
        if semaphore >= 0:
            run.value[semaphore] += amount
            if sleeper[semaphore] >= 0:
                turns.append((sleeper[semaphore], ""))
                sleeper[semaphore] = -1

    while turns:
        who, part = turns.popleft()
        if part:
            copy = net.copies[who]
            step = Step(copy.core, copy.at, part)
            send, recv = _gifts(copy, held)
            if step != held:
                run.order.append(step)
            give(*((copy.send, send) if part == "read" else (copy.recv, recv)))
            # A copy whose read is held back still goes on, to give all but its last byte.
            if part == "read" and step != held:
                turns.append((who, "write"))
            elif part == "read":
                give(copy.recv, recv)
            continue
        at = run.done[who]
        if at >= stops[who]:
            continue
        code, x, y = ops[who][at]
        if code == WAIT:
            if run.value[x] < y:
                sleeper[x] = who
                continue
            run.value[x] -= y
        elif code == SIGNAL:
            give(x, y)
        elif code == START:
            turns.append((x, "read"))
        elif code == ENTER:
            here = arrived.setdefault(x, [])
            if len(here) < y:
                here.append(who)
                if len(here) < y:
                    continue
                turns.extend((other, "") for other in here if other != who)
        run.done[who] += 1
        run.order.append(Step(who, at))
        turns.append((who, ""))
    return run
