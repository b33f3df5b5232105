"""Programs written by hand, most of them wrong in one way."""

from __future__ import annotations

from safepallas._verify.program import (
    Access,
    Allocate,
    Allocation,
    Enter,
    Event,
    Leave,
    Line,
    Program,
    Region,
    Release,
    Semaphore,
    Signal,
    Start,
    Wait,
)

INPUT, OUT, SEM, SEND, RECV, SCOPED, GLOBAL = range(7)


def line(number: int) -> Line:
    return Line("kernel.py", number, "kernel")


def program(cores: list[list[Event]], calls: int = 1) -> Program:
    """A program of one kernel; a core's memory is x, o, a regular and two DMA semaphores."""
    allocations = {
        INPUT: Allocation("x_ref", "float32[8,128]", 0),
        OUT: Allocation("o_ref", "float32[8,128]", 0),
        SEM: Allocation("sem", "regular semaphore", 0),
        SEND: Allocation("send_sem", "dma semaphore", 0),
        RECV: Allocation("recv_sems", "dma semaphores", 0),
        SCOPED: Allocation("inner", "regular semaphore", 0),
        GLOBAL: Allocation("barrier", "barrier semaphore", -1),
    }
    mesh = (("x", len(cores)),) if len(cores) > 1 else ()
    return Program(cores, allocations, ["kernel", "second"][:calls], mesh)


def barrier(core: int) -> Semaphore:
    return Semaphore(core, GLOBAL, (), True)


def inside(*events: Event, barrier: bool = False) -> list[Event]:
    return [Enter(0, barrier, line(1)), *events, Leave(0, line(99))]


def region(core: int, buffer: int, *rows: int) -> Region:
    return Region(core, buffer, *([(rows[0],), (rows[1],)] if rows else []))


def local(number: int, source: int, target: int, amount: int = 512, *rows: int) -> Start:
    send = Semaphore(0, SEND)
    return Start(region(0, source), region(0, target, *rows), None, send, amount, line(number))


def remote(number: int, sender: int, receiver: int, amount: int = 512) -> Start:
    return Start(
        region(sender, INPUT),
        region(receiver, OUT),
        Semaphore(sender, SEND),
        Semaphore(receiver, RECV, (0,)),
        amount,
        line(number),
    )


def neighbours(core: int, n: int) -> list[Event]:
    targets = [(core - 1) % n, (core + 1) % n]
    signals: list[Event] = [Signal(barrier(target), 1, line(2)) for target in targets]
    return [*signals, Wait(barrier(core), 2, line(3))]


def shift(core: int, n: int) -> list[Event]:
    """Send to the right behind a barrier of neighbours: safe."""
    return [
        *neighbours(core, n),
        remote(4, core, (core + 1) % n),
        Wait(Semaphore(core, SEND), 512, line(5)),
        Wait(Semaphore(core, RECV, (0,)), 512, line(6)),
    ]


def under_signal() -> Program:
    return program(
        [inside(Signal(Semaphore(0, SEM), 1, line(2)), Wait(Semaphore(0, SEM), 2, line(3)))]
    )


def nobody_sends() -> Program:
    return program([inside(Wait(Semaphore(c, RECV, (0,)), 512, line(2))) for c in range(3)])


def too_little_to_come() -> Program:
    """Core 1 is stuck as well, but could not give enough anyway."""
    events: list[Event] = [
        Wait(Semaphore(1, SEM), 2, line(3)),
        Signal(Semaphore(0, SEM), 2, line(4)),
    ]
    return program([inside(Wait(Semaphore(0, SEM), 3, line(2))), inside(*events)])


def signal_after_wait() -> Program:
    return program(
        [inside(Wait(Semaphore(0, SEM), 1, line(2)), Signal(Semaphore(0, SEM), 1, line(3)))]
    )


def circle() -> Program:
    """Both wait before they signal, and a third waits for one of them."""
    cores = [
        inside(Wait(barrier(c), 1, line(2)), Signal(barrier(1 - c), 1, line(3))) for c in range(2)
    ]
    cores[0].insert(3, Signal(barrier(2), 1, line(5)))
    cores.append(inside(Wait(barrier(2), 1, line(4))))
    return program(cores)


def never_enters() -> Program:
    return program([inside(barrier=True), [], inside(barrier=True)])


def enters_behind_a_wait() -> Program:
    cores = [inside(barrier=True), inside(barrier=True)]
    cores[1].insert(0, Wait(barrier(1), 1, line(7)))
    cores[0].append(Signal(barrier(1), 1, line(8)))
    return program(cores)


def over_signal() -> Program:
    return program(
        [inside(Signal(Semaphore(0, SEM), 2, line(2)), Wait(Semaphore(0, SEM), 1, line(3)))]
    )


def send_not_waited() -> Program:
    cores = [inside(*shift(core, 2)) for core in range(2)]
    for events in cores:
        del events[5]
    return program(cores)


def left_in_a_scope() -> Program:
    scope: list[Event] = [
        Allocate((SCOPED,), line(2)),
        Signal(Semaphore(0, SCOPED), 1, line(3)),
        Release((SCOPED,), line(4)),
    ]
    return program([inside(*scope)])


def left_on_the_barrier() -> Program:
    return program([inside(Signal(barrier(1), 1, line(2))), inside()])


def read_early() -> Program:
    """Reads before the wait."""
    read = Access(region(0, OUT), False, line(3))
    return program([inside(local(2, INPUT, OUT), read, Wait(Semaphore(0, SEND), 512, line(4)))])


def overwrites_source() -> Program:
    write = Access(region(0, INPUT), True, line(3))
    return program([inside(local(2, INPUT, OUT), write, Wait(Semaphore(0, SEND), 512, line(4)))])


def shared_semaphore() -> Program:
    """Two copies on one semaphore, and a read when one of them must have come."""
    wait = Wait(Semaphore(0, SEND), 512, line(4))
    read = Access(region(0, OUT, 0, 1), False, line(5))
    copies = [local(2, INPUT, OUT, 512, 0, 1), local(3, INPUT, OUT, 512, 1, 2)]
    return program([inside(*copies, wait, read, wait)])


def loop_in_one_slot() -> Program:
    copies = [local(2, INPUT, OUT, 512, 0, 1)] * 2
    return program([inside(*copies, *[Wait(Semaphore(0, SEND), 512, line(4))] * 2)])


def reads_while_the_neighbour_writes() -> Program:
    cores = [inside(*shift(core, 2)) for core in range(2)]
    cores[1].insert(4, Access(region(1, OUT), False, line(9)))
    return program(cores)


def no_barrier() -> Program:
    cores = [inside(*shift(core, 2)[3:]) for core in range(2)]
    return program(cores)


def barrier_twice() -> Program:
    """One phase of a neighbour barrier proves nothing the second time round, with 4 devices."""
    cores = []
    for core in range(4):
        right = (core + 1) % 4
        first, second = remote(4, core, right), remote(8, core, right)
        first = first._replace(target=region(right, OUT, 0, 1))
        second = second._replace(target=region(right, OUT, 1, 2))
        events: list[Event] = [*neighbours(core, 4), first, *neighbours(core, 4), second]
        waits: list[Event] = [
            Wait(Semaphore(core, SEND), 1024, line(9)),
            Wait(Semaphore(core, RECV, (0,)), 1024, line(10)),
        ]
        cores.append(inside(*events, *waits))
    return program(cores)


def signal_without_barrier() -> Program:
    cores = [inside(Signal(Semaphore(1, SEM), 1, line(2)))]
    cores.append(inside(Wait(Semaphore(1, SEM), 1, line(3))))
    return program(cores)


def written_after_exit() -> Program:
    """The receiver does not wait, and nothing tells of the end of the copy there."""
    cores = [inside(*shift(core, 2)) for core in range(2)]
    for core, events in enumerate(cores):
        events[4] = remote(4, core, 1 - core)._replace(recv=None)
        del events[6]
    return program(cores)


def unawaited() -> Program:
    return program([inside(local(2, INPUT, OUT)._replace(recv=None))])
