"""A timeline as a trace that Perfetto and ``chrome://tracing`` open.

The format is the JSON of the Trace Event Format: complete events (``X``) on threads, flow events
(``s``, ``f``) for arrows, metadata (``M``) for names. One step of logical time is a microsecond.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from safepallas._verify.diagnostics.finding import Finding
from safepallas._verify.diagnostics.naming import Names, is_known
from safepallas._verify.program import (
    Allocate,
    Barrier,
    Enter,
    Event,
    Leave,
    Line,
    Program,
    Release,
    Signal,
    Start,
    Wait,
    Where,
)
from safepallas._verify.report.timeline import Flight, Timeline

_PROCESS = 1
_CATEGORIES: Mapping[type, str] = {
    Enter: "call",
    Leave: "call",
    Allocate: "scope",
    Release: "scope",
    Signal: "signal",
    Start: "start",
    Wait: "wait",
    Barrier: "wait",
}


class _Event(TypedDict):
    name: str
    ph: str  # the phase: which event it is
    ts: int  # microseconds
    pid: int
    tid: int


class Slice(_Event):
    cat: str
    dur: int
    args: dict[str, str | int]
    cname: NotRequired[str]  # a colour


class FlowEnd(_Event):
    """One end of an arrow."""

    cat: str
    id: int
    bp: NotRequired[str]


class Metadata(_Event):
    args: dict[str, str | int]


class Trace(TypedDict):
    """A whole file."""

    displayTimeUnit: str
    traceEvents: list[Slice | FlowEnd | Metadata]


def trace(program: Program, timeline: Timeline, findings: Sequence[Finding]) -> Trace:
    """The trace, ready for `json.dump`: a thread for each core, and one or more for its copies."""
    return _Trace(program, timeline, findings).build()


class _Trace:
    def __init__(self, program: Program, timeline: Timeline, findings: Sequence[Finding]) -> None:
        self.program = program
        self.names = Names(program)
        self.timeline = timeline
        self.findings: dict[Where, list[Finding]] = {}
        for finding in findings:
            for where in finding.events:
                self.findings.setdefault(where, []).append(finding)
        self.flights: list[list[tuple[Where, Flight]]] = [[] for _ in program.cores]
        for where, flight in timeline.flights.items():
            self.flights[where.core].append((where, flight))
        self.slices: list[Slice] = []
        self.arrows: list[FlowEnd] = []
        self.metadata_events: list[Metadata] = []
        self.threads = 0
        self.core_threads: list[int] = []
        self.copy_threads: dict[Where, int] = {}

    def build(self) -> Trace:
        title = f"{self.names.calls()} on {self.names.mesh()}"
        self.metadata("process_name", 0, name=title)
        for core in range(len(self.program.cores)):
            self.add_core(core)
        for hop in self.timeline.hops:
            self.add_arrow(
                self.copy_threads[hop.source]
                if hop.is_copy
                else self.core_threads[hop.source.core],
                hop.departure,
                *self.end_of(hop.core, hop.arrival, hop.into),
                "copy" if hop.is_copy else "signal",
            )
        # Viewers sort by time themselves; enclosing slices must come before what they enclose.
        self.slices.sort(key=lambda x: (x["tid"], x["ts"], -x["dur"]))
        return {
            "displayTimeUnit": "ms",
            "traceEvents": [*self.metadata_events, *self.slices, *self.arrows],
        }

    def add_core(self, core: int) -> None:
        place = self.names.core(core)
        thread = self.new_thread(place)
        self.core_threads.append(thread)
        events = self.program.cores[core]
        moments = self.timeline.moments[core]
        open_slices: list[Slice] = []  # the kernel call and the scopes that we are in
        for at, (begin, end) in enumerate(moments):
            event = events[at]
            if isinstance(event, Leave | Release):
                if open_slices:
                    opened = open_slices.pop()
                    opened["dur"] = end + 1 - opened["ts"]
                self.add_slice(thread, begin, end + 1, core, at, event)
                continue
            if isinstance(event, Enter | Allocate):
                name = (
                    self.names.call(event.call)
                    if isinstance(event, Enter)
                    else self.names.event(core, event)
                )
                opened = self.slice(thread, begin, self.timeline.length, name, event.line)
                opened["cat"] = _CATEGORIES[type(event)]
                open_slices.append(opened)
                if isinstance(event, Allocate):
                    continue
            self.add_slice(thread, begin, end + 1, core, at, event)
        if core in self.timeline.blocked:
            at, begin = len(moments), self.timeline.blocked[core]
            blocked = self.add_slice(thread, begin, self.timeline.length, core, at, events[at])
            blocked["name"] = "[blocked] " + blocked["name"]
            blocked["cname"] = "terrible"
        self.add_copies(core, place)

    def add_copies(self, core: int, place: str) -> None:
        """Slices of one thread must nest, and copies need not: as many threads as are in flight."""
        free: list[tuple[int, int]] = []  # a heap: when a thread is free, and which
        for where, flight in self.flights[core]:
            end = self.timeline.length if flight.end is None else flight.end
            if free and free[0][0] <= flight.begin:
                thread = heapq.heappop(free)[1]
            else:
                thread = self.new_thread(f"{place} copies")
            heapq.heappush(free, (end, thread))
            self.copy_threads[where] = thread
            event = self.program.cores[core][where.at]
            added = self.add_slice(thread, flight.begin, end, core, where.at, event)
            added["cat"] = "copy"
            if isinstance(event, Start):
                added["args"]["amount"] = event.amount
            if flight.end is None:
                added["name"] = "[never ends] " + added["name"]

    def end_of(self, core: int, arrival: int, into: Where | None) -> tuple[int, int]:
        """The thread and the time at which an arrow ends: in the wait that took what arrived."""
        if into is not None:
            return self.core_threads[into.core], self.timeline.moments[into.core][into.at].end
        thread = self.new_thread(f"{self.names.core(core)} arrivals")
        name = "arrives, and no wait takes it"
        self.slice(thread, arrival, arrival + 1, name, None)["cat"] = "arrival"
        return thread, arrival

    def add_slice(
        self, thread: int, begin: int, end: int, core: int, at: int, event: Event
    ) -> Slice:
        name = self.names.event(core, event)
        added = self.slice(thread, begin, end, name, event.line)
        added["cat"] = _CATEGORIES.get(type(event), "access")
        for finding in self.findings.get(Where(core, at), ()):
            added["name"] = f"[{finding.kind.value}] {added['name']}"
            added["cname"] = "terrible"
            added["args"]["finding"] = finding.text
        return added

    def slice(self, thread: int, begin: int, end: int, name: str, line: Line | None) -> Slice:
        args: dict[str, str | int] = {"line": str(line)} if line and is_known(line) else {}
        added: Slice = {
            "name": name,
            "cat": "",
            "ph": "X",
            "ts": begin,
            "dur": end - begin,
            "pid": _PROCESS,
            "tid": thread,
            "args": args,
        }
        self.slices.append(added)
        return added

    def add_arrow(self, source: int, begin: int, target: int, end: int, category: str) -> None:
        number = len(self.arrows) // 2 + 1
        for phase, time, thread in ("s", begin, source), ("f", end, target):
            arrow: FlowEnd = {
                "name": category,
                "cat": category,
                "id": number,
                "ph": phase,
                "ts": time,
                "pid": _PROCESS,
                "tid": thread,
            }
            if phase == "f":
                arrow["bp"] = "e"
            self.arrows.append(arrow)

    def new_thread(self, name: str) -> int:
        """Threads from 1 on: viewers take thread 0 for the idle one."""
        self.threads += 1
        self.metadata("thread_name", self.threads, name=name)
        self.metadata("thread_sort_index", self.threads, sort_index=self.threads)
        return self.threads

    def metadata(self, kind: str, thread: int, **args: str | int) -> None:
        self.metadata_events.append(
            {"name": kind, "ph": "M", "ts": 0, "pid": _PROCESS, "tid": thread, "args": args}
        )
