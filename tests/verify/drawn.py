"""Small programs made by hand, with their reports, for the tests of texts, traces and pictures."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from safepallas._verify.program import (
    Access,
    Allocation,
    Enter,
    Event,
    Finding,
    FindingKind,
    Leave,
    Line,
    Program,
    Region,
    Semaphore,
    Signal,
    Start,
    Step,
    Wait,
    Where,
)
from safepallas._verify.report.report import Report, Verdict

X, OUT, SEND, RECV, BARRIER = range(5)
BYTES = 4096


def at(number: int) -> Line:
    return Line("ring.py", number, "kernel")


@dataclasses.dataclass
class Schedule:
    """As an analysis, for a report."""

    order: list[Step]
    counts: dict[str, int]


def ring(n: int, *, wait_for: int = BYTES, steps: int = 1) -> Program:
    """Each device greets its neighbours, sends to the right and reads what came from the left."""
    cores: list[list[Event]] = []
    for me in range(n):
        left, right = (me - 1) % n, (me + 1) % n
        events: list[Event] = [Enter(0, False, at(10))]
        for other in (left, right):
            events.append(Signal(Semaphore(other, BARRIER, (), True), 1, at(12)))
        events.append(Wait(Semaphore(me, BARRIER, (), True), 2, at(13)))
        for step in range(steps):
            target = Region(right, OUT, (step + 1, 0), (step + 2, 128))
            events += [
                Start(
                    Region(me, X, (0, 0), (8, 128)),
                    target,
                    Semaphore(me, SEND, (step,)),
                    Semaphore(right, RECV, (step,)),
                    BYTES,
                    at(15),
                ),
                Wait(Semaphore(me, SEND, (step,)), BYTES, at(16)),
                Wait(Semaphore(me, RECV, (step,)), wait_for, at(16)),
                Access(Region(me, OUT, (step + 1, 0), (step + 2, 128)), False, at(17)),
                Access(Region(me, X, (0, 0), (8, 128)), True, at(18)),
            ]
        events.append(Leave(0, at(10)))
        cores.append(events)
    return Program(
        cores,
        {
            X: Allocation("x_ref", "float32[8,128]", 0, (8, 128)),
            OUT: Allocation("o_ref", "float32[9,128]", 0, (9, 128)),
            SEND: Allocation("send_sems", "dma semaphores", 0, (steps,)),
            RECV: Allocation("recv_sems", "dma semaphores", 0, (steps,)),
            BARRIER: Allocation("barrier", "the barrier semaphore", -1),
        },
        ["ring"],
        (("x", n),),
        [f"{n} devices, x={n}", "no values were needed"],
    )


def greedy(program: Program) -> list[Step]:
    """One schedule, each core in turn, copies as soon as they are begun."""
    order: list[Step] = []
    value: dict[Semaphore, int] = {}
    done = [0] * len(program.cores)
    moved = True
    while moved:
        moved = False
        for core, events in enumerate(program.cores):
            if done[core] == len(events):
                continue
            here, event = done[core], events[done[core]]
            if isinstance(event, Wait):
                if value.get(event.semaphore, 0) < event.amount:
                    continue
                value[event.semaphore] -= event.amount
            if isinstance(event, Enter) and event.barrier:
                others = zip(program.cores, done, strict=True)
                if any(i < here for _, i in others):
                    continue
            order.append(Step(core, here))
            if isinstance(event, Signal):
                value[event.semaphore] = value.get(event.semaphore, 0) + event.amount
            if isinstance(event, Start):
                for part, semaphore in ("read", event.send), ("write", event.recv):
                    order.append(Step(core, here, part))
                    if semaphore is not None:
                        value[semaphore] = value.get(semaphore, 0) + event.amount
            done[core] += 1
            moved = True
    return order


def report(program: Program, verdict: Verdict = "safe", findings: Sequence[Finding] = ()) -> Report:
    events = [event for core in program.cores for event in core]
    counts = {"events": len(events)}
    for word, kind in ("copies", Start), ("waits", Wait), ("signals", Signal):
        counts[word] = sum(isinstance(event, kind) for event in events)
    return Report(verdict, list(findings), program, Schedule(greedy(program), counts))


def safe_ring(n: int = 4, steps: int = 1) -> Report:
    return report(ring(n, steps=steps))


def blocked_ring(n: int = 4) -> Report:
    """It waits for twice as many bytes as come."""
    finding = Finding(
        FindingKind.DEADLOCK,
        "device x=0 waits at ring.py:16 for 8,192 on recv_sems[0], and 4,096 is there. Nobody "
        "that still runs signals it. Wait for as many bytes as are sent.",
        (at(16), at(15)),
        (Where(0, 6),),
    )
    return report(ring(n, wait_for=2 * BYTES), "unsafe", [finding])


def racing() -> Report:
    """Two copies on one semaphore: after the first wait the first may still be on its way."""
    sem = Semaphore(0, SEND)
    a, b, va, vb, o = range(10, 15)
    events: list[Event] = [
        Enter(0, True, at(30)),
        Start(Region(0, a), Region(0, va), None, sem, BYTES, at(31)),
        Start(Region(0, b), Region(0, vb), None, sem, BYTES, at(32)),
        Wait(sem, BYTES, at(33)),
        Access(Region(0, va), False, at(34)),
        Access(Region(0, o, (0, 0), (1, 128)), True, at(34)),
        Wait(sem, BYTES, at(35)),
        Access(Region(0, vb), False, at(36)),
        Access(Region(0, o, (1, 0), (2, 128)), True, at(36)),
        Leave(0, at(30)),
    ]
    names = {a: "a_ref", b: "b_ref", va: "va", vb: "vb", o: "o_ref", SEND: "sem"}
    program = Program(
        [events],
        {number: Allocation(name, "", 0) for number, name in names.items()},
        ["two <copies>"],
        (),
        ["one device"],
    )
    start, read = Where(0, 1), Where(0, 4)
    witness = [step for step in greedy(program) if step != (*start, "write")][:8]
    finding = Finding(
        FindingKind.RACE,
        "the read of va at ring.py:34 may come before the copy of a_ref to va, begun at "
        "ring.py:31, has written it: the wait at ring.py:33 is satisfied by any 4,096 bytes of "
        "the copies that share sem. Give each copy a semaphore of its own.",
        (at(34), at(31)),
        (start, read),
        witness,
    )
    return report(program, "unsafe", [finding])
