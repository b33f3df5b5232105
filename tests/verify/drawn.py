"""Small programs with their reports, for the tests of texts, traces and pictures."""

from __future__ import annotations

from safepallas._verify.analysis.analyse import analyse
from safepallas._verify.program import (
    Access,
    Allocation,
    Assumption,
    Enter,
    Event,
    Leave,
    Line,
    Program,
    Region,
    Semaphore,
    Signal,
    Start,
    Wait,
)
from safepallas._verify.report.report import Report
from safepallas._verify.run import judge

X, OUT, SEND, RECV, BARRIER = range(5)
BYTES = 4096


def at(number: int) -> Line:
    return Line("ring.py", number, "kernel")


def ring(n: int, *, wait_for: int = BYTES, steps: int = 1) -> Program:
    """Each device signals its neighbours, sends to the right and reads what the left one sends."""
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
        [Assumption("values", f"no values were needed on {n} devices")],
    )


def report(program: Program) -> Report:
    return judge(program, analyse(program))


def safe_ring(n: int = 4, steps: int = 1) -> Report:
    return report(ring(n, steps=steps))


def blocked_ring(n: int = 4) -> Report:
    """It waits for twice as many bytes as come."""
    return report(ring(n, wait_for=2 * BYTES))


def racing() -> Report:
    """Two copies on one semaphore: after the first wait the first may still be in flight."""
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
    allocations = {number: Allocation(name, "", 0) for number, name in names.items()}
    return report(
        Program(
            [events],
            allocations,
            ["two <copies>"],
            (),
            [Assumption("values", "no values were needed")],
        )
    )
