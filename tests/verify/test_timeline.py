"""A schedule in logical time, and the trace that is made of it."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from safepallas._verify.analysis.analyse import Analysis
from safepallas._verify.diagnostics.details import Stated
from safepallas._verify.diagnostics.finding import Finding, FindingKind
from safepallas._verify.program import (
    Allocate,
    Enter,
    Leave,
    Program,
    Region,
    Release,
    Semaphore,
    Signal,
    Start,
    Step,
    Wait,
    Where,
)
from safepallas._verify.report.report import Report
from safepallas._verify.report.timeline import Timeline, complete, lay_out

from . import drawn

# Logical time.


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


def check(program: Program, order: list[Step], timeline: Timeline) -> None:
    """What holds of every timeline."""
    for core, moments in enumerate(timeline.moments):
        assert len(moments) == sum(step.core == core and not step.part for step in order)
        for moment, following in itertools.pairwise(moments):
            assert moment.begin <= moment.end < following.begin
        assert all(moment.end < timeline.length for moment in moments)
    for hop in timeline.hops:
        assert hop.departure < hop.arrival < timeline.length
        if hop.into is not None:
            assert hop.arrival <= timeline.moments[hop.into.core][hop.into.at].end
            assert isinstance(program.cores[hop.into.core][hop.into.at], Wait)


@pytest.mark.parametrize("cores", [2, 3, 8])
def test_cores_run_side_by_side(cores: int) -> None:
    program = drawn.ring(cores)
    order = greedy(program)
    timeline = lay_out(program, order)
    check(program, order, timeline)
    assert not timeline.blocked
    # All devices do the same, so they do it at the same times, whatever the order says.
    assert all(moments == timeline.moments[0] for moments in timeline.moments)
    assert timeline.length < 20
    waits = Counter(hop.into for hop in timeline.hops)
    assert all(hop.into is not None for hop in timeline.hops)
    assert max(waits.values()) == 2  # a barrier takes two


def test_a_wait_begins_when_its_core_is_there_and_ends_when_there_is_enough() -> None:
    sem, line = Semaphore(0, 1), drawn.at(1)
    signals = [Signal(sem, 1, line) for _ in range(3)]
    program = Program([[Wait(sem, 2, line), Wait(sem, 1, line)], [*signals]], {}, [])
    order = [Step(1, 0), Step(1, 1), Step(0, 0), Step(1, 2), Step(0, 1)]
    timeline = lay_out(program, order)
    check(program, order, timeline)
    assert timeline.moments[0] == [(0, 2), (3, 3)]
    assert [hop.into for hop in timeline.hops] == [(0, 0), (0, 0), (0, 1)]


def test_a_wait_takes_no_more_than_it_asks_for() -> None:
    sem, line = Semaphore(0, 1), drawn.at(1)
    waits = [Wait(sem, 1, line) for _ in range(3)]
    program = Program([[*waits], [Signal(sem, 1, line) for _ in range(3)]], {}, [])
    order = [Step(1, 0), Step(1, 1), Step(1, 2), Step(0, 0), Step(0, 1), Step(0, 2)]
    timeline = lay_out(program, order)
    check(program, order, timeline)
    assert [hop.into for hop in timeline.hops] == [(0, 0), (0, 1), (0, 2)]
    assert timeline.moments[0] == [(0, 1), (2, 2), (3, 3)]


def test_all_enter_at_once_behind_the_barrier_of_a_call() -> None:
    line = drawn.at(1)
    sem = Semaphore(1, 1)
    early = [Enter(0, True, line), Leave(0, line)]
    late = [Signal(sem, 1, line)] * 5 + early
    program = Program([early, late], {}, ["call"])
    order = [*(Step(1, i) for i in range(6)), Step(0, 0), Step(0, 1), Step(1, 6)]
    timeline = lay_out(program, order)
    check(program, order, timeline)
    assert timeline.moments[0][0] == (0, 5)
    assert timeline.moments[1][5] == (5, 5)


def test_a_copy_is_in_flight_from_its_start_to_its_end() -> None:
    report = drawn.racing()
    assert report.program is not None
    timeline = lay_out(report.program, greedy(report.program))
    assert timeline.flights == {(0, 1): (1, 4), (0, 2): (2, 5)}


def test_what_is_held_back_comes_late() -> None:
    """In the schedule that shows a race the copy ends after what does not wait for it."""
    report = drawn.racing()
    assert report.program is not None
    timeline, _ = report._timeline()
    read = timeline.moments[0][4]
    ended = timeline.flights[Where(0, 1)].end
    assert ended is not None
    assert ended > read.end
    assert len(timeline.moments[0]) == len(report.program.cores[0])


def test_a_late_copy_is_read_before_it_is_written() -> None:
    report = drawn.racing()
    assert report.program is not None
    ends = [Step(0, 1, "read"), Step(0, 1, "write")]
    order = [step for step in greedy(report.program) if step not in ends] + ends
    timeline = lay_out(report.program, order, late=ends[0])
    assert timeline.flights[Where(0, 1)].end == timeline.moments[0][-1].end + 2


def test_a_copy_that_comes_too_early_comes_before_what_is_held_back() -> None:
    """Device 0 writes to device 1 before that has entered: the whole copy comes before it."""
    program = drawn.ring(2)
    start, entry = Where(0, 4), Where(1, 0)
    signals = [Step(0, i) for i in range(3)]
    schedule = [*signals, Step(*start)]  # as if there were no barrier
    finding = Finding(
        FindingKind.RACE, (drawn.at(15),), Stated("Too early."), (start, entry), schedule
    )
    order, late = complete(program, finding, greedy(program))
    assert late == Step(1, 0)
    assert order[4:7] == [Step(0, 4, "read"), Step(0, 4, "write"), Step(1, 0)]
    assert sorted(order) == sorted(greedy(program))
    timeline = lay_out(program, order, late)
    written = timeline.flights[start].end
    assert written is not None
    assert written < timeline.moments[1][0].begin


def test_a_blocked_core_is_known() -> None:
    program = drawn.ring(3, wait_for=2 * drawn.BYTES)
    timeline = lay_out(program, greedy(program))
    assert set(timeline.blocked) == {0, 1, 2}
    assert [len(moments) for moments in timeline.moments] == [6, 6, 6]
    assert all(since < timeline.length for since in timeline.blocked.values())


# The trace, by the rules of the Trace Event Format.

REQUIRED = {
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid"},
    "s": {"name", "cat", "ph", "ts", "pid", "tid", "id"},
    "f": {"name", "cat", "ph", "ts", "pid", "tid", "id"},
    "M": {"name", "ph", "pid", "tid", "args"},
}
OPTIONAL = {"X": {"args", "cname"}, "s": {"args"}, "f": {"args", "bp"}, "M": {"ts"}}
METADATA = {
    "process_name": {"name": str},
    "thread_name": {"name": str},
    "thread_sort_index": {"sort_index": int},
}
CNAMES = {"terrible"}  # of the colours that the format names, those that are used


def check_trace(trace: dict[str, Any]) -> None:
    assert set(trace) == {"displayTimeUnit", "traceEvents"}
    assert trace["displayTimeUnit"] in ("ms", "ns")
    flows: defaultdict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    lanes: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    named: set[tuple[int, int]] = set()
    for event in trace["traceEvents"]:
        phase = event["ph"]
        assert REQUIRED[phase] <= set(event) <= REQUIRED[phase] | OPTIONAL[phase]
        for key in ("ts", "dur", "pid", "tid", "id"):
            assert isinstance(event.get(key, 0), int)
            assert event.get(key, 0) >= 0
        lane = event["pid"], event["tid"]
        if phase == "M":
            kinds = METADATA[event["name"]]
            assert {key: type(value) for key, value in event["args"].items()} == kinds
            if event["name"] == "thread_name":
                assert lane not in named
                named.add(lane)
            continue
        assert event["name"]
        assert event["cat"]
        assert event.get("cname", "terrible") in CNAMES
        assert lane in named
        if phase == "X":
            assert event["dur"] > 0
            lanes[lane].append((event["ts"], event["ts"] + event["dur"]))
        else:
            assert event.get("bp", "e") == "e"
            flows[event["cat"], event["id"]].append(event)
    for slices in lanes.values():
        check_nesting(slices)
    ids = [number for _, number in flows]
    assert len(set(ids)) == len(ids)
    for begin, end in flows.values():  # of each exactly two
        assert (begin["ph"], end["ph"]) == ("s", "f")
        assert begin["ts"] <= end["ts"]
        for flow in begin, end:
            assert any(a <= flow["ts"] < b for a, b in lanes[flow["pid"], flow["tid"]]), (
                "an arrow binds to the slice that encloses its end"
            )


def check_nesting(slices: list[tuple[int, int]]) -> None:
    """Slices of a thread come in time, and of two one holds the other or they are apart."""
    assert [begin for begin, _ in slices] == sorted(begin for begin, _ in slices)
    open_ends: list[int] = []
    for begin, end in slices:
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1]
        open_ends.append(end)


def trace_of(report: Report, tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "trace.json"
    report.to_perfetto(path)
    trace: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return trace


REPORTS = {
    "one device": drawn.racing,
    "two devices": lambda: drawn.safe_ring(2),
    "three steps": lambda: drawn.safe_ring(4, 3),
    "deadlock": lambda: drawn.blocked_ring(3),
    "more than a picture shows": lambda: drawn.safe_ring(12),
    "scopes and copies that never end": lambda: scopes(),
}


def scopes() -> Report:
    """A scope in a call, a copy that nobody waits for, another that the schedule does not end."""
    line = drawn.at(1)
    sem, own = Semaphore(1, 7), Semaphore(0, 8)
    here, there = Region(0, 5), Region(1, 5)
    program = Program(
        [
            [
                Enter(0, False, line),
                Allocate((8,), line),
                Start(here, there, own, sem, 4, line),
                Start(here, there, own, sem, 4, line),
                Wait(own, 4, line),
                Release((8,), line),
                Leave(0, line),
            ],
            [],
        ],
        {},
        ["call"],
        (("x", 2),),
    )
    order = [*map(Step, [0] * 4, range(4)), Step(0, 2, "read"), Step(0, 2, "write")]
    order += [Step(0, 4), Step(0, 5), Step(0, 6)]
    finding = Finding(FindingKind.UNAWAITED_COPY, (line,), Stated("Nobody waits."), (Where(0, 3),))
    return Report("unsafe", [finding], program, Analysis([finding], order, {}))


@pytest.mark.parametrize("name", REPORTS)
def test_a_trace_keeps_the_rules_of_its_format(name: str, tmp_path: Path) -> None:
    check_trace(trace_of(REPORTS[name](), tmp_path))


def test_the_rules_are_checked() -> None:
    slices = [{"name": "a", "cat": "b", "ph": "X", "ts": t, "dur": 3, "pid": 1, "tid": 1}
              for t in (0, 2)]  # fmt: skip
    name = {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "x"}}
    arrow = {"name": "a", "cat": "b", "ph": "s", "ts": 1, "pid": 1, "tid": 1, "id": 1}
    for events in ([slices[0]], [name, *slices], [name, slices[0], arrow]):
        with pytest.raises((AssertionError, ValueError)):
            check_trace({"displayTimeUnit": "ms", "traceEvents": events})
    check_trace({"displayTimeUnit": "ms", "traceEvents": [name, slices[0]]})


def test_a_trace_has_an_arrow_for_each_copy_and_signal_between_cores(tmp_path: Path) -> None:
    events = trace_of(drawn.safe_ring(4, 2), tmp_path)["traceEvents"]
    arrows = Counter(event["cat"] for event in events if event["ph"] == "s")
    assert arrows == {"copy": 8, "signal": 8}
    threads = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    assert threads == [f"device x={i}{what}" for i in range(4) for what in ("", " copies")]
    assert Counter(e["cat"] for e in events if e["ph"] == "X") == {
        "call": 4 + 4 + 4,  # the call itself, with its first and its last event in it
        "signal": 8,
        "wait": 20,
        "start": 8,
        "copy": 8,
        "access": 16,
    }


def test_copies_in_flight_at_once_have_threads_of_their_own(tmp_path: Path) -> None:
    events = trace_of(drawn.racing(), tmp_path)["traceEvents"]
    threads = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    assert threads == ["device", "device copies", "device copies"]


def test_a_trace_marks_findings(tmp_path: Path) -> None:
    events = trace_of(drawn.racing(), tmp_path)["traceEvents"]
    marked = {e["name"] for e in events if "finding" in e.get("args", {})}
    assert marked == {"[race] copy a_ref to va", "[race] read va"}
    blocked = trace_of(drawn.blocked_ring(3), tmp_path)["traceEvents"]
    names = [e["name"] for e in blocked if e["name"].startswith("[blocked]")]
    assert len(names) == 3
    assert names[0] == "[blocked] [deadlock] wait recv_sems[0] for 8,192"


def test_what_no_wait_takes_arrives_all_the_same(tmp_path: Path) -> None:
    events = trace_of(scopes(), tmp_path)["traceEvents"]
    (arrival,) = (e for e in events if e.get("cat") == "arrival")
    assert (arrival["name"], arrival["ts"]) == ("arrives, and no wait takes it", 5)
    (thread,) = (
        e["args"]["name"]
        for e in events
        if e["name"] == "thread_name" and e["tid"] == arrival["tid"]
    )
    assert thread == "device x=1 arrivals"
    assert any(
        e["name"] == "[never ends] [unawaited-copy] copy allocation 5 to allocation 5 of device x=1"
        for e in events
    )
