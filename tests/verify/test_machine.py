"""Each kind of finding on a program written by hand, word for word."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from safepallas._verify.analysis.analyse import analyse
from safepallas._verify.program import (
    Access,
    Enter,
    Event,
    Finding,
    FindingKind,
    Leave,
    Program,
    Semaphore,
    Signal,
    Step,
    UndecidedError,
    Wait,
)

from . import by_hand as made
from .by_hand import (
    INPUT,
    OUT,
    RECV,
    SEM,
    SEND,
    barrier,
    inside,
    line,
    local,
    neighbours,
    program,
    region,
    remote,
    shift,
)

CASES: list[tuple[Callable[[], Program], FindingKind, list[int], str]] = [
    (
        made.under_signal,
        FindingKind.DEADLOCK,
        [3],
        "The device waits at kernel.py:3 for 2 on `sem`, which holds 1 (the device has "
        "added 1): nobody adds to it any more. Add what is missing, or wait for less.",
    ),
    (
        made.nobody_sends,
        FindingKind.DEADLOCK,
        [2],
        "Device x=0 waits at kernel.py:2 for 512 bytes on `recv_sems[0]`, which holds 0: "
        "nobody adds to it any more. 2 more devices likewise. Add what is missing, or wait "
        "for less.",
    ),
    (
        made.too_little_to_come,
        FindingKind.DEADLOCK,
        [2],
        "Device x=0 waits at kernel.py:2 for 3 on `sem`, which holds 0: no more than 2 "
        "could still come. Add what is missing, or wait for less.",
    ),
    (
        made.signal_after_wait,
        FindingKind.DEADLOCK,
        [2],
        "The device waits at kernel.py:2 for 1 on `sem`, which holds 0: only lines after "
        "that wait would add to it. Signal, or start the copy, before the wait.",
    ),
    (
        made.circle,
        FindingKind.DEADLOCK,
        [2, 4],
        "Device x=0 waits at kernel.py:2 for 1 on the barrier semaphore, which holds 0: "
        "only device x=1 could still add to it. Device x=1 waits at kernel.py:2 for 1 on "
        "the barrier semaphore, which holds 0: only device x=0 could still add to it. So "
        "they wait for each other in a circle, for ever. Behind that 1 more device waits. "
        "Signal, or start the copy, before the wait.",
    ),
    (
        made.never_enters,
        FindingKind.DEADLOCK,
        [1],
        "Device x=0 waits at kernel.py:1 until all devices have come to `kernel`, and "
        "device x=1 never comes there. 1 more device likewise. All devices must make the "
        "same calls in the same order.",
    ),
    (
        made.enters_behind_a_wait,
        FindingKind.DEADLOCK,
        [1, 7],
        "Device x=0 waits at kernel.py:1 until all devices have come to `kernel`, and "
        "device x=1 has not come there. Device x=1 waits at kernel.py:7 for 1 on the "
        "barrier semaphore, which holds 0: only device x=0 could still add to it. So they "
        "wait for each other in a circle, for ever. Signal, or start the copy, before the "
        "wait.",
    ),
    (
        made.over_signal,
        FindingKind.LEAK,
        [2, 99],
        "`sem` is left at 1 when `kernel` ends: it gets 2 in all, the last by a signal of 2"
        " by the device at kernel.py:2, and 1 wait takes 1. Wait for as much as is "
        "signalled.",
    ),
    (
        made.send_not_waited,
        FindingKind.LEAK,
        [4, 99],
        "`send_sem` of device x=0 is left at 512 bytes when `kernel` ends: it gets 512 "
        "bytes in all, the last by a copy of 512 bytes by device x=0 at kernel.py:4, and "
        "nothing waits for it. 1 more semaphore likewise. Wait for each copy that is "
        "started, for as much as it copies.",
    ),
    (
        made.left_in_a_scope,
        FindingKind.LEAK,
        [3, 4],
        "`inner` is left at 1 when its scope ends: it gets 1 in all, the last by a signal "
        "of 1 by the device at kernel.py:3, and nothing waits for it. Wait for as much as "
        "is signalled.",
    ),
    (
        made.left_on_the_barrier,
        FindingKind.LEAK,
        [2],
        "The barrier semaphore of device x=1 is left at 1 after the last call: it gets 1 in"
        " all, the last by a signal of 1 by device x=0 at kernel.py:2, and nothing waits "
        "for it. Wait for as much as is signalled.",
    ),
    (
        made.read_early,
        FindingKind.RACE,
        [3, 2],
        "The device may read `o_ref` at kernel.py:3 before the copy started at kernel.py:2 "
        "has written it: nothing orders the two. Wait for that copy before, on a semaphore "
        "that no other copy adds to in the meantime.",
    ),
    (
        made.overwrites_source,
        FindingKind.RACE,
        [3, 2],
        "The device may write `x_ref` at kernel.py:3 before the copy started at kernel.py:2"
        " has read it: nothing orders the two. Wait for that copy before, on a semaphore "
        "that no other copy adds to in the meantime.",
    ),
    (
        made.shared_semaphore,
        FindingKind.RACE,
        [5, 2],
        "The device may read `o_ref[0]` at kernel.py:5 before the copy started at "
        "kernel.py:2 has written it: nothing orders the two. Wait for that copy before, on "
        "a semaphore that no other copy adds to in the meantime.",
    ),
    (
        made.loop_in_one_slot,
        FindingKind.RACE,
        [2, 2],
        "The copy started at kernel.py:2 may write `o_ref[0]` before an earlier copy of the"
        " same line has written it: nothing orders the two. Wait for that copy before, on a"
        " semaphore that no other copy adds to in the meantime.",
    ),
    (
        made.reads_while_the_neighbour_writes,
        FindingKind.RACE,
        [9, 4],
        "Device x=1 may read `o_ref` of device x=1 at kernel.py:9 before the copy that "
        "device x=0 starts at kernel.py:4 has written it: nothing orders the two. Wait for "
        "that copy before, on a semaphore that no other copy adds to in the meantime.",
    ),
    (
        made.no_barrier,
        FindingKind.RACE,
        [4, 1],
        "The copy that device x=0 starts at kernel.py:4 may write `o_ref` of device x=1 "
        "before device x=1 has entered the kernel: the memory may still be in use for "
        "something else. Start the copy after a barrier that waits for that device.",
    ),
    (
        made.barrier_twice,
        FindingKind.RACE,
        [4, 1],
        "The copy that device x=0 starts at kernel.py:4 may write `o_ref[0]` of device x=1 "
        "before device x=1 has entered the kernel: the memory may still be in use for "
        "something else. Start the copy after a barrier that waits for that device.",
    ),
    (
        made.signal_without_barrier,
        FindingKind.REMOTE_BEFORE_ENTRY,
        [2, 1],
        "Device x=0 may signal `sem` of device x=1 at kernel.py:2 before device x=1 has "
        "entered the kernel. Signal it after a barrier that waits for that device.",
    ),
    (
        made.written_after_exit,
        FindingKind.RACE,
        [4, 99],
        "The copy that device x=0 starts at kernel.py:4 may write `o_ref` of device x=1 "
        "after device x=1 has left the kernel. Let that device wait for the copy.",
    ),
    (
        made.unawaited,
        FindingKind.UNAWAITED_COPY,
        [2, 99],
        "The copy started at kernel.py:2 may still be under way when the kernel, or the "
        "scope of its memory, ends: no wait makes sure that it is over. Wait for it before.",
    ),
]


@pytest.mark.parametrize(
    ("make", "kind", "numbers", "text"), CASES, ids=[c[0].__name__ for c in CASES]
)
def test_finding(
    make: Callable[[], Program], kind: FindingKind, numbers: list[int], text: str
) -> None:
    finding = analyse(make()).findings[0]
    assert finding.kind is kind
    assert [line.number for line in finding.lines] == numbers
    assert finding.text == text


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1
    return findings[0]


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_a_safe_program_has_no_finding(n: int) -> None:
    analysis = analyse(program([inside(*shift(core, n)) for core in range(n)]))
    assert analysis.findings == []
    assert analysis.counts == {
        "cores": n,
        "events": 8 * n,
        "copies": n,
        "waits": 3 * n,
        "signals": 2 * n,
        "accesses": 0,
        "exact runs": analysis.counts["exact runs"],
    }


@pytest.mark.parametrize("make", [case[0] for case in CASES])
def test_the_findings_are_the_same_every_time(make: Callable[[], Program]) -> None:
    assert analyse(make()) == analyse(make())


def test_the_order_is_a_schedule() -> None:
    whole = program([inside(*shift(core, 3)) for core in range(3)])
    order = analyse(whole).order
    assert sorted(set(order)) == sorted(order)
    ends = {Step(core, 4, part) for core in range(3) for part in ("read", "write")}
    assert set(order) == {Step(c, at) for c in range(3) for at in range(len(whole.cores[c]))} | ends
    for core in range(3):
        places = [step.at for step in order if step.core == core and not step.part]
        assert places == sorted(places)
        steps = [Step(core, 4), Step(core, 4, "read"), Step(core, 4, "write")]
        assert [order.index(step) for step in steps] == sorted(map(order.index, steps))


def test_the_witness_shows_the_race() -> None:
    """The read happens, and the copy has not been written."""
    finding = only(analyse(made.read_early()).findings)
    assert list(finding.witness) == [Step(0, 0), Step(0, 1), Step(0, 1, "read"), Step(0, 2)]


def test_a_race_is_told_once_for_a_pair_of_lines() -> None:
    read = Access(region(0, OUT), False, line(3))
    whole = program(
        [inside(local(2, INPUT, OUT), *[read] * 5, Wait(Semaphore(0, SEND), 512, line(4)))]
    )
    assert only(analyse(whole).findings).events == ((0, 2), (0, 1))


def test_a_leak_comes_before_the_deadlock_of_a_later_call() -> None:
    events: list[Event] = [
        *inside(Signal(Semaphore(0, SEM), 1, line(2))),
        Enter(1, False, line(3)),
        Wait(Semaphore(0, SEND), 1, line(4)),
        Leave(1, line(5)),
    ]
    findings = analyse(program([events], calls=2)).findings
    assert [finding.kind for finding in findings] == [FindingKind.LEAK, FindingKind.DEADLOCK]


def test_a_barrier_in_two_phases_may_be_used_again() -> None:
    """The same as `barrier_twice`, with a second phase: the rule alone proves it."""
    cores = []
    for core in range(4):
        right = (core + 1) % 4
        both: list[Event] = []
        for phase in range(2):
            ready: list[Event] = [
                Signal(Semaphore(other, SEM), 1, line(5)) for other in ((core - 1) % 4, right)
            ]
            copy = remote(8, core, right)._replace(target=region(right, OUT, phase, phase + 1))
            second: list[Event] = [*ready, Wait(Semaphore(core, SEM), 2, line(6))]
            both += [*neighbours(core, 4), *second, copy]
        waits: list[Event] = [
            Wait(Semaphore(core, SEND), 1024, line(9)),
            Wait(Semaphore(core, RECV, (0,)), 1024, line(10)),
        ]
        cores.append(inside(*both, *waits))
    analysis = analyse(program(cores))
    assert analysis.findings == []
    assert analysis.counts["exact runs"] == 0


def test_barriers_in_a_loop_are_proved_by_the_rule_alone() -> None:
    """Each time round depends on the next one: to build that up takes a round for each."""
    cores = []
    for core in range(3):
        left, right = (core - 1) % 3, (core + 1) % 3
        ready: list[Event] = [Signal(Semaphore(other, SEM), 1, line(5)) for other in (left, right)]
        once = [
            *neighbours(core, 3),
            *ready,
            Wait(Semaphore(core, SEM), 2, line(6)),
            *shift(core, 3)[3:],
            Access(region(core, OUT), False, line(7)),
        ]
        cores.append(inside(*once * 30))
    analysis = analyse(program(cores))
    assert analysis.findings == []
    assert analysis.counts["exact runs"] == 0


def test_what_the_rule_leaves_open_is_decided_exactly() -> None:
    """Core 0 waits for one of two signals, and each of them tells that core 1 has entered."""
    cores = [
        inside(
            Wait(barrier(0), 1, line(2)),
            remote(3, 0, 1),
            Wait(Semaphore(0, SEND), 512, line(4)),
            Wait(barrier(0), 1, line(5)),
        ),
        inside(
            Signal(barrier(0), 1, line(6)),
            Signal(barrier(2), 1, line(7)),
            Wait(Semaphore(1, RECV, (0,)), 512, line(8)),
        ),
        inside(Wait(barrier(2), 1, line(9)), Signal(barrier(0), 1, line(10))),
    ]
    analysis = analyse(program(cores))
    assert analysis.findings == []
    assert analysis.counts["exact runs"] == 1


def test_a_later_touch_stands_for_an_earlier_one_only_where_it_covers_it() -> None:
    """Core 1 may write over the second row while core 0 still reads it."""
    cores = [inside(*neighbours(0, 2)), inside(*neighbours(1, 2))]
    both, one = region(0, OUT, 0, 2), region(0, OUT, 0, 1)
    cores[0][4:4] = [Access(both, False, line(5)), Access(one, True, line(6))]
    cores[0][6:6] = [Wait(Semaphore(0, RECV, (0,)), 512, line(7))]
    copy = remote(8, 1, 0)._replace(target=region(0, OUT, 1, 2))
    # Core 1 is late, so that the copy comes last in the schedule.
    late: list[Event] = [Access(region(1, INPUT), False, line(10))] * 4
    cores[1][4:4] = [*late, copy, Wait(Semaphore(1, SEND), 512, line(9))]
    finding = only(analyse(program(cores)).findings)
    assert [line.number for line in finding.lines] == [8, 5]


def test_a_copy_that_nobody_waits_for_is_told_once() -> None:
    assert [finding.kind for finding in analyse(made.send_not_waited()).findings] == [
        FindingKind.LEAK
    ]


def test_what_is_supposed_and_not_confirmed_is_dropped() -> None:
    """The neighbours come in the order of the schedule, which proves nothing."""
    cores = [
        inside(Wait(barrier(0), 1, line(2)), remote(3, 0, 1), Wait(barrier(0), 1, line(4))),
        inside(Signal(barrier(0), 1, line(5)), Wait(Semaphore(1, RECV, (0,)), 512, line(6))),
        inside(Signal(barrier(0), 1, line(7))),
    ]
    cores[0].insert(4, Wait(Semaphore(0, SEND), 512, line(8)))
    finding = only(analyse(program(cores)).findings)
    assert (finding.kind, [line.number for line in finding.lines]) == (FindingKind.RACE, [3, 1])


def test_a_limit() -> None:
    whole = program([inside(*shift(core, 2)) for core in range(2)])
    with pytest.raises(UndecidedError, match=r"16 events: more than `limit=15`"):
        analyse(whole, limit=15)
    # What is wrong is wrong, however far the search for races came.
    assert analyse(made.send_not_waited(), limit=14).findings[0].kind is FindingKind.LEAK
    stopped = (
        "The search for races stopped at its limit of 10 events, 1 times `limit=`, after 0 exact "
        "runs: raise `limit=`, or verify fewer devices or steps."
    )
    with pytest.raises(UndecidedError) as caught:
        analyse(made.no_barrier(), limit=10, runs=1)
    assert caught.value.text == stopped


def test_each_phase_tells_what_it_does() -> None:
    said: list[str] = []
    analyse(made.no_barrier(), tell=said.append)
    assert said == [
        "deadlocks and leaks, events: 10",
        "orders, round 1, events: 10",
        "races: buffer 1, accesses: 1",
        "races: buffer 2, accesses: 1",
        "lifetimes of memory, accesses: 4",
        "exact runs: 1, of 10 events each",
    ]


def test_many_accesses_are_told_of_on_the_way() -> None:
    read = Access(region(0, OUT), False, line(3))
    wait = Wait(Semaphore(0, SEND), 512, line(4))
    said: list[str] = []
    analyse(program([inside(local(2, INPUT, OUT), wait, *[read] * 5000)]), tell=said.append)
    assert "races: buffer 1, accesses: 4,096 of 5,001" in said
