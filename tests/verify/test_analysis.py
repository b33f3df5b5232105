"""The analysis on programs written by hand: each kind of finding, word for word, and its cost."""

from __future__ import annotations

import pytest

from safepallas._verify.analysis.analyse import Analysis, analyse
from safepallas._verify.analysis.semaphore_machine import number_program, reach, replay, schedule
from safepallas._verify.diagnostics.details import BlockedWait, Deadlock, Leak, Race
from safepallas._verify.diagnostics.finding import Finding, FindingKind
from safepallas._verify.program import (
    Access,
    Enter,
    Event,
    Leave,
    Semaphore,
    Signal,
    Start,
    Step,
    UndecidedError,
    Wait,
    Where,
)

from .by_hand import (
    CASES,
    INPUT,
    OUT,
    RECV,
    SCOPED,
    SEM,
    SEND,
    barrier,
    circular_wait,
    inside,
    line,
    local,
    neighbours,
    no_barrier,
    over_signal,
    program,
    read_early,
    region,
    remote,
    send_not_waited,
    shift,
)


@pytest.mark.parametrize("name", CASES)
def test_finding(name: str) -> None:
    make, kind, numbers, text = CASES[name]
    analysis = analyse(make())
    finding = analysis.findings[0]
    assert finding.kind is kind
    assert [line.number for line in finding.lines] == numbers
    assert finding.text == text
    assert analyse(make()) == analysis  # the same every time


def test_a_finding_is_data() -> None:
    """Cores, semaphores and accesses, by the numbers of the program; the text is made of them."""
    (finding,) = analyse(circular_wait()).findings
    deadlock = finding.detail
    assert isinstance(deadlock, Deadlock)
    assert [blocked.core for blocked in deadlock.cause] == [0, 1]
    assert [blocked.waits_for for blocked in deadlock.cause] == [1, 0]
    assert deadlock.behind == (2,)
    blocked = deadlock.cause[0]
    assert isinstance(blocked, BlockedWait)
    assert (blocked.semaphore, blocked.amount, blocked.value) == (barrier(0), 1, 0)
    leak = analyse(over_signal()).findings[0].detail
    assert isinstance(leak, Leak)
    assert (leak.semaphore, leak.balance, leak.added, leak.taken) == (Semaphore(0, SEM), 1, 2, 1)
    race = analyse(read_early()).findings[0].detail
    assert isinstance(race, Race)
    assert (race.first.is_copy, race.first.is_write, race.first.begin) == (True, True, (0, 1))
    assert (race.second.is_copy, race.second.is_write, race.second.begin) == (False, False, (0, 2))
    assert race.first.region == race.second.region == region(0, OUT)
    finding.program = None
    with pytest.raises(ValueError, match="a finding with a Deadlock needs the program"):
        _ = finding.text


def test_who_shares_the_memory_does_not_know_of_the_copy_of_another() -> None:
    """It is no use to wait for the copy: only the core that started it can."""
    buffer, copy = region(0, OUT), remote(3, 1, 0)
    cores = [
        # Core 0 is late, so that the copy comes first in the schedule.
        inside(*[Access(region(0, INPUT), False, line(5))] * 6, Access(buffer, False, line(2))),
        inside(copy._replace(recv=None), Wait(Semaphore(1, SEND), 512, line(4))),
    ]
    whole = program(cores)
    whole.allocations[OUT].shared_by = {0: (0, 1), 1: (0, 1)}
    whole.mesh, whole.parts = (), ("core 0", "core 1")
    texts = [finding.text for finding in analyse(whole).findings]
    assert any("Let core 0 wait for a signal that core 1 gives" in text for text in texts), texts


# The machine.


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"negative_signal"}))
def test_all_schedules_reach_the_same(name: str) -> None:
    """Depth first without a record, in turns, and replayed; also with anything held back."""
    numbered = number_program(CASES[name][0]())
    run = schedule(numbered)
    assert reach(numbered) == run.done
    again = replay(numbered, run.order)
    assert (again.order, again.done, again.value) == (run.order, run.done, run.value)
    for held in run.order:
        without = schedule(numbered, held)
        assert reach(numbered, held) == without.done
        assert held not in without.order
        assert set(without.order) <= set(run.order)


def test_a_replay_tells_what_satisfies_each_wait() -> None:
    """What comes first is taken first; of two bytes one may be left for the next wait."""
    sem = Semaphore(0, SEM)
    cores: list[list[Event]] = [
        [Wait(sem, 1, line(1)), Wait(sem, 2, line(2)), Wait(sem, 1, line(3))],
        [Signal(sem, 2, line(4)), Signal(sem, 1, line(5)), remote(6, 1, 0)._replace(recv=sem)],
    ]
    cores[1][2] = cores[1][2]._replace(amount=1)  # type: ignore[call-arg]
    run = replay(number_program(program(cores)), schedule(number_program(program(cores))).order)
    assert run.satisfied_by == {
        Where(0, 0): [Step(1, 0)],
        Where(0, 1): [Step(1, 1)],
        Where(0, 2): [Step(1, 2, "write")],
    }


def test_all_schedules_do_not_reach_the_same_where_an_amount_is_negative() -> None:
    numbered = number_program(CASES["negative_signal"][0]())
    assert reach(numbered) != schedule(numbered).done


# What is found, in which order, and how much work it takes.


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1
    return findings[0]


# Rule 1: zero bytes.


def zero_bytes(number: int, sender: int, receiver: int, *rows: int) -> Start:
    """A remote copy of no rows, from where the first of these would be."""
    copy, first = remote(number, sender, receiver, 0), rows[0]
    source, target = copy.source, copy.target
    return copy._replace(
        source=source._replace(low=(first,), high=(first,)),
        target=target._replace(low=(first,), high=(first,)),
    )


def test_a_copy_of_zero_bytes_does_nothing() -> None:
    """Amid what another copy writes, before the entry of its target, and waited for by nobody."""
    copy = local(2, INPUT, OUT, 512, 0, 8)
    cores = [
        inside(copy, zero_bytes(3, 0, 1, 3), Wait(Semaphore(0, SEND), 512, line(4))),
        inside(),
    ]
    cores[0].insert(3, zero_bytes(5, 0, 0, 3))
    assert analyse(program(cores)).findings == []
    whole = remote(3, 0, 1)
    cores[0][2] = whole
    assert analyse(program(cores)).findings != []


def test_zero_bytes_satisfy_a_wait_for_zero_and_no_other() -> None:
    sem = Semaphore(0, SEND)
    for amount in (0, 1):
        whole = program([inside(Wait(sem, amount, line(2)), zero_bytes(3, 0, 0, 3))])
        kinds = [finding.kind for finding in analyse(whole).findings]
        assert kinds == [FindingKind.DEADLOCK] * amount


@pytest.mark.parametrize("amount", [0, 512])
def test_the_end_of_a_copy_of_zero_bytes_proves_nothing(amount: int) -> None:
    """Core 1 waits for its own copy; only if core 0 sends there too, that may be its end."""
    recv = Semaphore(1, RECV, (0,))
    to_there = remote(3, 0, 1, amount) if amount else zero_bytes(3, 0, 1, 0)
    cores = [
        inside(
            Access(region(0, OUT), False, line(2)),
            to_there,
            Wait(Semaphore(0, SEND), amount, line(4)),
            Wait(Semaphore(0, RECV, (0,)), 512, line(5)),
            barrier=True,
        ),
        inside(
            # Late, so that the read comes first in the schedule.
            *[Access(region(1, INPUT), False, line(6))] * 6,
            local(7, INPUT, SCOPED)._replace(
                source=region(1, INPUT), target=region(1, SCOPED), send=None, recv=recv
            ),
            Wait(recv, 512 + amount, line(8)),
            remote(9, 1, 0),
            Wait(Semaphore(1, SEND), 512, line(10)),
            barrier=True,
        ),
    ]
    findings = analyse(program(cores)).findings
    assert [finding.kind for finding in findings] == [FindingKind.RACE] * (not amount)


# Rule 3: amounts.


def test_what_comes_after_a_deadlock_is_not_negative() -> None:
    waits_for_ever = Wait(Semaphore(0, SEM), 1, line(2))
    events: list[Event] = [waits_for_ever, Signal(Semaphore(0, SEM), -1, line(3))]
    kinds = [f.kind for f in analyse(program([inside(*events)])).findings]
    assert kinds == [FindingKind.DEADLOCK]
    kinds = [f.kind for f in analyse(program([inside(*reversed(events))])).findings]
    assert kinds == [FindingKind.AMOUNT]


def test_a_wait_or_a_copy_of_less_than_nothing() -> None:
    for event in (Wait(Semaphore(0, SEM), -1, line(2)), local(2, INPUT, OUT, -4)):
        finding = only(analyse(program([inside(event)])).findings)
        assert (finding.kind, finding.lines) == (FindingKind.AMOUNT, (line(2),))
    assert analyse(program([inside(Wait(Semaphore(0, SEM), 0, line(2)))])).findings == []
    assert analyse(program([inside(Signal(Semaphore(0, SEM), 0, line(2)))])).findings == []


def test_a_sum_may_be_as_much_as_a_semaphore_holds() -> None:
    def sums(sem: int, *amounts: int) -> list[FindingKind]:
        one = Semaphore(0, sem)
        signals: list[Event] = [Signal(one, amount, line(2)) for amount in amounts]
        events: list[Event] = [*signals, Wait(one, sum(amounts), line(3))]
        return [finding.kind for finding in analyse(program([inside(*events)])).findings]

    assert sums(SEM, 2**30, 2**30 - 1) == []
    assert sums(SEM, 2**30, 2**30) == [FindingKind.AMOUNT]
    # Copies are counted by 32 bytes.
    assert sums(SEND, 2**30, 2**30) == []
    assert sums(SEND, 2**35, 2**35) == [FindingKind.AMOUNT]


def test_a_wait_in_between_keeps_a_sum_small() -> None:
    sem = Semaphore(0, SEM)
    once: list[Event] = [Signal(sem, 2**30, line(2)), Wait(sem, 2**30, line(3))]
    analysis = analyse(program([inside(*once * 3)]))
    assert analysis.findings == []
    assert analysis.counts["exact runs"] == 4  # before each wait, and at the end


# Rule 11: the same bytes twice.


def twice(*between: Event) -> Analysis:
    """A block is copied to the same place twice, with no happens-before order."""
    waits: list[Event] = [Wait(Semaphore(0, SEND), 512, line(4))] * 2
    copies = [local(2, INPUT, OUT, 512, 0, 1), local(3, INPUT, OUT, 512, 0, 1)]
    return analyse(program([inside(copies[0], *between, copies[1], *waits)]))


def test_the_same_bytes_twice_are_a_note() -> None:
    analysis = twice()
    assert analysis.findings == []
    (note,) = analysis.notes
    assert [one.number for one in note.lines] == [3, 2]
    assert note.text == (
        "The copy started at kernel.py:3 may write `o_ref[0]` before or after the copy started at "
        "kernel.py:2 writes `o_ref[0]`: both copy `x_ref`, which nothing in the program writes, so "
        "the order makes no difference."
    )


def test_bytes_that_are_written_are_not_the_same_twice() -> None:
    """Whoever writes the source, whenever; and where it is read from is not known."""
    wrote = Access(region(0, INPUT, 3, 4), True, line(5))
    kinds = {finding.kind for finding in twice(wrote).findings}
    assert kinds == {FindingKind.RACE}
    assert twice(wrote).notes == []
    unknown = local(3, INPUT, OUT, 512, 0, 1)
    unknown = unknown._replace(source=unknown.source._replace(exact=False))
    assert twice(unknown).findings != []


def test_a_read_races_with_the_same_bytes_as_with_any() -> None:
    """The second copy waits for the read, the third does not."""
    copy, wait = local(2, INPUT, OUT, 512, 0, 1), Wait(Semaphore(0, SEND), 512, line(4))
    other = copy._replace(line=line(3), recv=Semaphore(0, RECV, (0,)))
    read = Access(region(0, OUT, 0, 1), False, line(5))
    events = [copy, wait, read, copy, wait]
    assert analyse(program([inside(*events)])).findings == []
    cores = [inside(other, *events, Wait(Semaphore(0, RECV, (0,)), 512, line(6)))]
    finding = only(analyse(program(cores)).findings)
    assert [one.number for one in finding.lines] == [5, 3]


@pytest.mark.parametrize("values", [(0, 0), (0, 1), (0, None), (None, None)])
def test_equal_constants_are_the_same_bytes(values: tuple[int | None, int | None]) -> None:
    cores = [
        inside(Access(region(0, OUT), True, line(2 + core), value), barrier=True)
        for core, value in enumerate(values)
    ]
    whole = program(cores)
    whole.allocations[OUT].shared_by = {0: (0, 1), 1: (0, 1)}
    whole.mesh, whole.parts = (), ("core 0", "core 1")
    analysis = analyse(whole)
    is_same = values == (0, 0)
    assert (len(analysis.findings), len(analysis.notes)) == (not is_same, is_same)


def test_what_a_repeated_write_stands_for() -> None:
    """Core 1 stores 0, as core 0 does in the end; before that core 0 stores 1."""
    stored = [Access(region(0, OUT), True, line(2 + value), value) for value in (1, 0)]
    cores = [inside(*stored, barrier=True), inside(stored[1]._replace(line=line(9)), barrier=True)]
    whole = program(cores)
    whole.allocations[OUT].shared_by = {0: (0, 1), 1: (0, 1)}
    whole.mesh, whole.parts = (), ("core 0", "core 1")
    analysis = analyse(whole)
    assert {one.number for one in only(analysis.findings).lines} == {3, 9}
    assert {one.number for one in analysis.notes[0].lines} == {2, 9}


# Rule 2: a copy that overlaps itself.


def test_a_copy_may_read_beside_what_it_writes() -> None:
    copy = local(2, OUT, OUT, 512, 4, 8)._replace(source=region(0, OUT, 0, 4))
    wait = Wait(Semaphore(0, SEND), 512, line(3))
    assert analyse(program([inside(copy, wait)])).findings == []
    overlapping = copy._replace(source=region(0, OUT, 1, 5))
    finding = only(analyse(program([inside(overlapping, wait)])).findings)
    assert (finding.events, finding.is_sure) == (((0, 1), (0, 1)), True)
    unknown = overlapping._replace(source=overlapping.source._replace(exact=False))
    assert not only(analyse(program([inside(unknown, wait)])).findings).is_sure


def test_a_remote_copy_to_oneself_may_overlap_itself() -> None:
    copy = remote(2, 0, 0)._replace(source=region(0, OUT))
    waits: list[Event] = [
        Wait(Semaphore(0, SEND), 512, line(3)),
        Wait(Semaphore(0, RECV, (0,)), 512, line(4)),
    ]
    assert only(analyse(program([inside(copy, *waits)])).findings).kind is FindingKind.RACE


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


def test_the_schedule_shows_the_race() -> None:
    """The read happens, and the copy has not been written."""
    finding = only(analyse(read_early()).findings)
    assert list(finding.schedule) == [Step(0, 0), Step(0, 1), Step(0, 1, "read"), Step(0, 2)]


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


def test_a_later_access_stands_for_an_earlier_one_only_where_it_covers_it() -> None:
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
    assert [finding.kind for finding in analyse(send_not_waited()).findings] == [FindingKind.LEAK]


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
    # What is wrong is wrong, however far the search for races went.
    assert analyse(send_not_waited(), limit=14).findings[0].kind is FindingKind.LEAK
    stopped = (
        "The search for races stopped at its limit of 10 events, 1 times `limit=`, after 0 exact "
        "runs: raise `limit=`, or verify fewer devices or steps."
    )
    with pytest.raises(UndecidedError) as caught:
        analyse(no_barrier(), limit=10, runs=1)
    assert caught.value.text == stopped


def test_each_phase_tells_what_it_does() -> None:
    said: list[str] = []
    analyse(no_barrier(), tell=said.append)
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
