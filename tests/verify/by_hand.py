"""Programs written by hand, most of them wrong in one way, and what is said of those."""

from __future__ import annotations

from collections.abc import Callable

from safepallas._verify.diagnostics.finding import FindingKind
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


# Programs that are wrong in one way, and what is said of them.

CASES: dict[str, tuple[Callable[[], Program], FindingKind, list[int], str]] = {}


def finds(
    kind: FindingKind, *numbers: int
) -> Callable[[Callable[[], Program]], Callable[[], Program]]:
    """The first finding of a program: its kind, the lines, and as docstring the text."""

    def add(make: Callable[[], Program]) -> Callable[[], Program]:
        CASES[make.__name__] = make, kind, [*numbers], " ".join((make.__doc__ or "").split())
        return make

    return add


@finds(FindingKind.DEADLOCK, 3)
def under_signal() -> Program:
    """The device waits at kernel.py:3 for 2 on `sem`, which holds 1 (the device has added 1):
    nobody adds to it any more. Add what is missing, or wait for less.
    """
    return program(
        [inside(Signal(Semaphore(0, SEM), 1, line(2)), Wait(Semaphore(0, SEM), 2, line(3)))]
    )


@finds(FindingKind.DEADLOCK, 2)
def nobody_sends() -> Program:
    """Device x=0 waits at kernel.py:2 for 512 bytes on `recv_sems[0]`, which holds 0: nobody
    adds to it any more. 2 more devices likewise. Add what is missing, or wait for less.
    """
    return program([inside(Wait(Semaphore(c, RECV, (0,)), 512, line(2))) for c in range(3)])


@finds(FindingKind.DEADLOCK, 2)
def too_little_to_come() -> Program:
    """Device x=0 waits at kernel.py:2 for 3 on `sem`, which holds 0: no more than 2 could
    still come. Add what is missing, or wait for less.
    """
    # Core 1 is stuck as well, but could not give enough anyway.
    events: list[Event] = [
        Wait(Semaphore(1, SEM), 2, line(3)),
        Signal(Semaphore(0, SEM), 2, line(4)),
    ]
    return program([inside(Wait(Semaphore(0, SEM), 3, line(2))), inside(*events)])


@finds(FindingKind.DEADLOCK, 2)
def signal_after_wait() -> Program:
    """The device waits at kernel.py:2 for 1 on `sem`, which holds 0: only lines after that
    wait would add to it. Signal, or start the copy, before the wait.
    """
    return program(
        [inside(Wait(Semaphore(0, SEM), 1, line(2)), Signal(Semaphore(0, SEM), 1, line(3)))]
    )


@finds(FindingKind.DEADLOCK, 2)
def signals_too_little_after_the_wait() -> Program:
    """The device waits at kernel.py:2 for 3 on `sem`, which holds 0: no more than 2 could still
    come. Add what is missing, or wait for less.
    """
    return program(
        [inside(Wait(Semaphore(0, SEM), 3, line(2)), Signal(Semaphore(0, SEM), 2, line(3)))]
    )


@finds(FindingKind.DEADLOCK, 2, 4)
def circular_wait() -> Program:
    """Device x=0 waits at kernel.py:2 for 1 on the barrier semaphore, which holds 0: only
    device x=1 could still add to it. Device x=1 waits at kernel.py:2 for 1 on the barrier
    semaphore, which holds 0: only device x=0 could still add to it. This is a circular
    wait. Behind that 1 more device waits. Signal, or start the copy, before the wait.
    """
    # Both wait before they signal, and a third waits for one of them.
    cores = [
        inside(Wait(barrier(c), 1, line(2)), Signal(barrier(1 - c), 1, line(3))) for c in range(2)
    ]
    cores[0].insert(3, Signal(barrier(2), 1, line(5)))
    cores.append(inside(Wait(barrier(2), 1, line(4))))
    return program(cores)


@finds(FindingKind.DEADLOCK, 1)
def never_enters() -> Program:
    """Device x=0 waits at kernel.py:1 until all devices have come to `kernel`, and device x=1
    never comes there. 1 more device likewise. All devices must make the same calls in the
    same order.
    """
    return program([inside(barrier=True), [], inside(barrier=True)])


@finds(FindingKind.DEADLOCK, 1, 7)
def never_enters_and_enters_late() -> Program:
    """Device x=0 waits at kernel.py:1 until all devices have come to `kernel`, and device x=2
    never comes there. Behind that 1 more device waits. All devices must make the same calls in the
    same order.
    """
    late: list[Event] = [Wait(barrier(1), 1, line(7)), *inside(barrier=True)]
    return program([[*inside(barrier=True), Signal(barrier(1), 1, line(8))], late, []])


@finds(FindingKind.DEADLOCK, 1, 7)
def enters_behind_a_wait() -> Program:
    """Device x=0 waits at kernel.py:1 until all devices have come to `kernel`, and device x=1
    has not come there. Device x=1 waits at kernel.py:7 for 1 on the barrier semaphore,
    which holds 0: only device x=0 could still add to it. This is a circular wait. Signal,
    or start the copy, before the wait.
    """
    cores = [inside(barrier=True), inside(barrier=True)]
    cores[1].insert(0, Wait(barrier(1), 1, line(7)))
    cores[0].append(Signal(barrier(1), 1, line(8)))
    return program(cores)


@finds(FindingKind.LEAK, 2, 99)
def over_signal() -> Program:
    """`sem` is left at 1 when `kernel` ends: it gets 2 in all, the last by a signal of 2 by
    the device at kernel.py:2, and 1 wait takes 1. Wait for as much as is signalled.
    """
    return program(
        [inside(Signal(Semaphore(0, SEM), 2, line(2)), Wait(Semaphore(0, SEM), 1, line(3)))]
    )


@finds(FindingKind.LEAK, 4, 99)
def send_not_waited() -> Program:
    """`send_sem` of device x=0 is left at 512 bytes when `kernel` ends: it gets 512 bytes in
    all, the last by a copy of 512 bytes by device x=0 at kernel.py:4, and nothing waits for
    it. 1 more semaphore likewise. Wait for each copy that is started, for as much as it
    copies.
    """
    cores = [inside(*shift(core, 2)) for core in range(2)]
    for events in cores:
        del events[5]
    return program(cores)


@finds(FindingKind.LEAK, 3, 4)
def left_in_a_scope() -> Program:
    """`inner` is left at 1 when its scope ends: it gets 1 in all, the last by a signal of 1 by
    the device at kernel.py:3, and nothing waits for it. Wait for as much as is signalled.
    """
    scope: list[Event] = [
        Allocate((SCOPED,), line(2)),
        Signal(Semaphore(0, SCOPED), 1, line(3)),
        Release((SCOPED,), line(4)),
    ]
    return program([inside(*scope)])


@finds(FindingKind.LEAK, 2)
def left_on_the_barrier() -> Program:
    """The barrier semaphore of device x=1 is left at 1 after the last call: it gets 1 in all,
    the last by a signal of 1 by device x=0 at kernel.py:2, and nothing waits for it. Wait
    for as much as is signalled.
    """
    return program([inside(Signal(barrier(1), 1, line(2))), inside()])


@finds(FindingKind.RACE, 3, 2)
def read_early() -> Program:
    """The device may read `o_ref` at kernel.py:3 before the copy started at kernel.py:2 has
    written it: there is no happens-before order. Wait for that copy before, on a semaphore
    that no other copy adds to in the meantime.
    """
    # Reads before the wait.
    read = Access(region(0, OUT), False, line(3))
    return program([inside(local(2, INPUT, OUT), read, Wait(Semaphore(0, SEND), 512, line(4)))])


@finds(FindingKind.RACE, 3, 2)
def overwrites_source() -> Program:
    """The device may write `x_ref` at kernel.py:3 before the copy started at kernel.py:2 has
    read it: there is no happens-before order. Wait for that copy before, on a semaphore
    that no other copy adds to in the meantime.
    """
    write = Access(region(0, INPUT), True, line(3))
    return program([inside(local(2, INPUT, OUT), write, Wait(Semaphore(0, SEND), 512, line(4)))])


@finds(FindingKind.RACE, 5, 2)
def shared_semaphore() -> Program:
    """The device may read `o_ref[0]` at kernel.py:5 before the copy started at kernel.py:2 has
    written it: there is no happens-before order. Wait for that copy before, on a semaphore
    that no other copy adds to in the meantime.
    """
    # Two copies on one semaphore, and a read when one of them must have come.
    wait = Wait(Semaphore(0, SEND), 512, line(4))
    read = Access(region(0, OUT, 0, 1), False, line(5))
    copies = [local(2, INPUT, OUT, 512, 0, 1), local(3, INPUT, OUT, 512, 1, 2)]
    return program([inside(*copies, wait, read, wait)])


@finds(FindingKind.RACE, 2, 2)
def loop_in_one_slot() -> Program:
    """The copy started at kernel.py:2 may write `o_ref[0]` before an earlier copy of the same
    line has written it: there is no happens-before order. Wait for that copy before, on a
    semaphore that no other copy adds to in the meantime.
    """
    copies = [
        local(2, INPUT, OUT, 512, 0, 1)._replace(source=region(0, INPUT, i, i + 1))
        for i in range(2)
    ]
    return program([inside(*copies, *[Wait(Semaphore(0, SEND), 512, line(4))] * 2)])


@finds(FindingKind.RACE, 9, 4)
def reads_while_the_neighbour_writes() -> Program:
    """Device x=1 may read `o_ref` of device x=1 at kernel.py:9 before the copy that device x=0
    starts at kernel.py:4 has written it: there is no happens-before order. Wait for that
    copy before, on a semaphore that no other copy adds to in the meantime.
    """
    cores = [inside(*shift(core, 2)) for core in range(2)]
    cores[1].insert(4, Access(region(1, OUT), False, line(9)))
    return program(cores)


@finds(FindingKind.RACE, 4, 1)
def no_barrier() -> Program:
    """The copy that device x=0 starts at kernel.py:4 may write `o_ref` of device x=1 before
    device x=1 has entered the kernel: the memory may still be in use for something else.
    Start the copy after a barrier that waits for that device.
    """
    cores = [inside(*shift(core, 2)[3:]) for core in range(2)]
    return program(cores)


@finds(FindingKind.RACE, 4, 1)
def barrier_twice() -> Program:
    """The copy that device x=0 starts at kernel.py:4 may write `o_ref[0]` of device x=1 before
    device x=1 has entered the kernel: the memory may still be in use for something else.
    Start the copy after a barrier that waits for that device.
    """
    # One phase of a neighbour barrier proves nothing the second time round, with 4 devices.
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


@finds(FindingKind.REMOTE_BEFORE_ENTRY, 2, 1)
def signal_without_barrier() -> Program:
    """Device x=0 may signal `sem` of device x=1 at kernel.py:2 before device x=1 has entered
    the kernel. Signal it after a barrier that waits for that device.
    """
    cores = [inside(Signal(Semaphore(1, SEM), 1, line(2)))]
    cores.append(inside(Wait(Semaphore(1, SEM), 1, line(3))))
    return program(cores)


@finds(FindingKind.AMOUNT, 5)
def negative_signal() -> Program:
    """Device x=2 signals `sem` by -1 at kernel.py:5: only the owner of a semaphore may take from
    it, with a wait, or a wait that could go on may be held up again. Signal 0 or more.
    """
    # If that comes before the wait of core 1, there is a deadlock; in the usual order there is not.
    sem, ack = Semaphore(1, SEM), Semaphore(2, SEM)
    return program(
        [
            inside(Signal(sem, 1, line(2)), barrier=True),
            inside(Wait(sem, 1, line(3)), Signal(ack, 1, line(4)), barrier=True),
            inside(
                Signal(sem, -1, line(5)),
                Wait(ack, 1, line(6)),
                Signal(sem, 1, line(7)),
                barrier=True,
            ),
        ]
    )


@finds(FindingKind.AMOUNT, 3)
def too_much() -> Program:
    """`sem` may come to 2147483648, with what the device adds at kernel.py:3: it can hold no more
    than 2147483647. Signal less, or wait in between.
    """
    sem = Semaphore(0, SEM)
    signals: list[Event] = [Signal(sem, 2**30, line(number)) for number in (2, 3)]
    waits: list[Event] = [Wait(sem, 2**30, line(number)) for number in (4, 5)]
    return program([inside(*signals, *waits)])


@finds(FindingKind.RACE, 2)
def overlaps_itself() -> Program:
    """The copy started at kernel.py:2 reads `o_ref[0:4]` and writes `o_ref[2:6]`, which share
    elements: a copy moves its elements in any order, so it may write one before it has read it.
    Copy by way of another buffer.
    """
    copy = local(2, OUT, OUT, 512, 2, 6)._replace(source=region(0, OUT, 0, 4))
    return program([inside(copy, Wait(Semaphore(0, SEND), 512, line(3)))])


@finds(FindingKind.RACE, 4, 99)
def written_after_exit() -> Program:
    """The copy that device x=0 starts at kernel.py:4 may write `o_ref` of device x=1 after
    device x=1 has left the kernel. Let that device wait for the copy.
    """
    # The receiver does not wait, and nothing tells of the end of the copy there.
    cores = [inside(*shift(core, 2)) for core in range(2)]
    for core, events in enumerate(cores):
        events[4] = remote(4, core, 1 - core)._replace(recv=None)
        del events[6]
    return program(cores)


@finds(FindingKind.UNAWAITED_COPY, 2, 99)
def unawaited() -> Program:
    """The copy started at kernel.py:2 may still be under way when the kernel, or the scope of
    its memory, ends: no wait makes sure that it is over. Wait for it before.
    """
    return program([inside(local(2, INPUT, OUT)._replace(recv=None))])
