"""A timeline as a picture: a column for each core, time goes down, arrows between the columns.

What has nothing to do with a finding and does not synchronise (reads and writes one after the
other) is drawn in one row; times at which nothing is drawn take no room.
"""

from __future__ import annotations

import bisect
import textwrap
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

from safepallas._verify.diagnostics.finding import Finding
from safepallas._verify.diagnostics.naming import Names, is_known, short_paths
from safepallas._verify.program import (
    Access,
    Barrier,
    Enter,
    Event,
    Leave,
    Line,
    Program,
    Signal,
    Start,
    Wait,
    Where,
)
from safepallas._verify.report.svg import LETTER, Canvas, fit
from safepallas._verify.report.timeline import Timeline

MOST_CORES: Final = 8
MOST_ROWS: Final = 150

INK, FAINT, LINE, BOX, EDGE = "#1f2328", "#6e7781", "#8c959f", "#f6f8fa", "#d0d7de"
RED, BLUE, GREEN, AMBER = "#cf222e", "#0969da", "#1a7f37", "#d4a72c"
VERDICTS: Final = {"safe": GREEN, "unsafe": RED, "undecided": "#9a6700"}
ROW, MARGIN, TRACK = 19, 20, 7
NARROWEST, WIDEST = 200, 400  # of the column of a core


class _Row(NamedTuple):
    """What one core does at one time, or several reads and writes in a row."""

    at: int
    begin: int
    end: int
    text: str
    event: Event


def picture(
    verdict: str,
    program: Program,
    timeline: Timeline,
    findings: Sequence[Finding],
    about: tuple[str, str],
) -> str:
    """The text of an SVG file. At most `MOST_CORES` cores, which the caller has checked.

    `about` says how much there is, and which schedule it is.
    """
    return _Picture(verdict, program, timeline, findings, about).draw()


class _Picture:
    def __init__(
        self,
        verdict: str,
        program: Program,
        timeline: Timeline,
        findings: Sequence[Finding],
        about: tuple[str, str],
    ) -> None:
        self.verdict, self.program, self.timeline = verdict, program, timeline
        self.findings, self.about = findings, about
        self.names = Names(program)
        self.canvas = Canvas()
        self.numbers: dict[Where, list[int]] = {}  # of the findings that name an event
        for number, finding in enumerate(findings, 1):
            for where in finding.events:
                self.numbers.setdefault(where, []).append(number)
        self.cores = len(program.cores)
        lines = {event.line for core in program.cores for event in core if is_known(event.line)}
        self.files = sorted({line.file for line in lines})
        self.rows = [self.rows_of(core) for core in range(self.cores)]
        self.tracks = [self.tracks_of(core) for core in range(self.cores)]
        self.set_times()
        self.top = 112.0
        texts = [
            self.left(core) + LETTER * len(self.text(core, row))
            for core in range(self.cores)
            for row in [*self.rows[core], *self.blocked_row(core)]
        ]
        self.lane = min(max(max(texts, default=0) + 30, NARROWEST), WIDEST)
        self.width = max(2 * MARGIN + self.cores * self.lane, 840)

    # What there is to draw.

    def rows_of(self, core: int) -> list[_Row]:
        events, moments = self.program.cores[core], self.timeline.moments[core]
        rows: list[_Row] = []
        for at, (begin, end) in enumerate(moments):
            event = events[at]
            text = self.names.event(core, event)
            last = rows[-1] if rows else None
            if (
                isinstance(event, Access)
                and Where(core, at) not in self.numbers
                and last is not None
                and isinstance(last.event, Access)
                and Where(core, last.at) not in self.numbers
            ):
                if text not in last.text.split(", "):
                    rows[-1] = last._replace(text=f"{last.text}, {text}")
                continue
            rows.append(_Row(at, begin, end, text, event))
        return rows

    def tracks_of(self, core: int) -> dict[Where, int]:
        """For each copy of a core the track that it is drawn on, so that none hides another."""
        ends: list[int] = []
        tracks: dict[Where, int] = {}
        for where, flight in self.timeline.flights.items():
            if where.core != core:
                continue
            end = self.timeline.length if flight.end is None else flight.end
            free = (i for i, taken in enumerate(ends) if taken < flight.begin)
            track = next(free, len(ends))
            if track == len(ends):
                ends.append(end)
            ends[track] = end
            tracks[where] = track
        return tracks

    def set_times(self) -> None:
        """The times that have a row, and which of them are drawn."""
        timeline = self.timeline
        times = {t for rows in self.rows for row in rows for t in (row.begin, row.end)}
        times |= {t for f in timeline.flights.values() for t in (f.begin, f.end) if t is not None}
        times |= {hop.arrival for hop in timeline.hops}
        if timeline.blocked:
            times |= {*timeline.blocked.values(), timeline.length}
        self.times = sorted(times) or [0]
        first = 0
        if len(self.times) > MOST_ROWS:
            wrong = [
                row.begin
                for core, rows in enumerate(self.rows)
                for row in rows
                if Where(core, row.at) in self.numbers
            ]
            if wrong:
                middle = bisect.bisect_left(self.times, min(wrong))
                first = max(0, min(middle - MOST_ROWS // 2, len(self.times) - MOST_ROWS))
        self.first = first
        self.drawn = self.times[first : first + MOST_ROWS]

    # Where it is drawn.

    def x(self, core: int) -> float:
        """The line of life of a core."""
        return MARGIN + core * self.lane + 14

    def y(self, time: int) -> float:
        row = bisect.bisect_left(self.drawn, time)
        return self.top + (row + 0.5) * ROW

    def is_drawn(self, begin: int, end: int) -> bool:
        return begin <= self.drawn[-1] and end >= self.drawn[0]

    def where(self, line: Line) -> str:
        if not is_known(line):
            return ""
        stem = f"{PurePath(line.file).name}:" if len(self.files) > 1 else ""
        return f"{stem}{line.number}"

    def source(self, event: Event) -> str:
        """The line of an event, for a title. Without folders: the picture may go anywhere."""
        if not is_known(event.line):
            return ""
        return f" ({PurePath(event.line.file).name}:{event.line.number})"

    # The drawing.

    def draw(self) -> str:
        self.draw_heading()
        bottom = self.top + len(self.drawn) * ROW
        for core in range(self.cores):
            self.draw_calls(core)
        for core in range(self.cores):
            self.canvas.line(self.x(core), self.top - 4, self.x(core), bottom + 4, LINE)
            self.draw_copies(core)
        self.draw_hops()
        for core in range(self.cores):
            self.draw_events(core)
        height = self.draw_findings(self.draw_legend(bottom + 34))
        return self.canvas.document(self.width, height, self.title())

    def title(self) -> str:
        return f"{self.names.calls()} on {self.names.mesh()}: {self.verdict}"

    def draw_heading(self) -> None:
        self.canvas.text(MARGIN, 34, self.title(), VERDICTS[self.verdict], bold=True, size=17)
        self.canvas.text(MARGIN, 54, fit(self.about[0], self.width - 2 * MARGIN), FAINT)
        about = f"{self.about[1]}; numbers in front are lines"
        if len(self.files) == 1:
            about += f" of {PurePath(self.files[0]).name}"
        if len(self.drawn) < len(self.times):
            rows = f"{self.first + 1} to {self.first + len(self.drawn)} of {len(self.times)}"
            about += f"; rows {rows} (to_perfetto: all)"
        self.canvas.text(MARGIN, 70, fit(about, self.width - 2 * MARGIN), FAINT)
        for core in range(self.cores):
            x = MARGIN + core * self.lane
            self.canvas.box(x, 82, self.lane - 10, 22, "#eaeef2", round_=4)
            self.canvas.text(x + 8, 97, self.names.core(core), INK, bold=True, size=12)

    def draw_calls(self, core: int) -> None:
        opened: _Row | None = None
        for row in self.rows[core]:
            if isinstance(row.event, Enter):
                opened = row
            elif isinstance(row.event, Leave) and opened is not None:
                self.draw_call(core, opened, row.end)
                opened = None
        if opened is not None:
            self.draw_call(core, opened, self.timeline.length)

    def draw_call(self, core: int, row: _Row, end: int) -> None:
        if self.is_drawn(row.begin, end):
            y1 = self.y(max(row.begin, self.drawn[0])) - ROW / 2 + 1
            y2 = self.y(min(end, self.drawn[-1])) + ROW / 2 - 1
            x = MARGIN + core * self.lane
            self.canvas.box(x, y1, self.lane - 10, y2 - y1, BOX, stroke=EDGE, round_=5)

    def draw_copies(self, core: int) -> None:
        for where, track in self.tracks[core].items():
            flight = self.timeline.flights[where]
            end = self.timeline.length if flight.end is None else flight.end
            if not self.is_drawn(flight.begin, end):
                continue
            y1 = self.y(max(flight.begin, self.drawn[0]))
            y2 = self.y(min(end, self.drawn[-1]))
            color = RED if where in self.numbers else BLUE
            event = self.program.cores[core][where.at]
            title = f"{self.names.event(core, event)}: in flight{self.source(event)}"
            x = self.x(core) + 7 + TRACK * track
            self.canvas.box(x, y1, 5, y2 - y1, color, round_=2, opacity=0.75, title=title)

    def draw_hops(self) -> None:
        for hop in self.timeline.hops:
            if not (self.drawn[0] <= hop.departure and hop.arrival <= self.drawn[-1]):
                continue
            wrong = hop.source in self.numbers
            color = RED if wrong else BLUE if hop.is_copy else GREEN
            event = self.program.cores[hop.source.core][hop.source.at]
            text = self.names.event(hop.source.core, event)
            self.canvas.arrow(
                self.x(hop.source.core),
                self.y(hop.departure),
                self.x(hop.core) + (-6 if hop.core > hop.source.core else 6),
                self.y(hop.arrival),
                color,
                dashed=not hop.is_copy,
                width=2 if wrong else 1.3,
                title=f"{text}{self.source(event)}",
            )

    def draw_events(self, core: int) -> None:
        for row in self.rows[core]:
            if self.is_drawn(row.begin, row.end):
                self.draw_event(core, row)
        for row in self.blocked_row(core):
            if self.is_drawn(row.begin, row.end):
                self.draw_event(core, row, blocked=True)

    def blocked_row(self, core: int) -> list[_Row]:
        """The event that a core never gets past, if there is one."""
        if core not in self.timeline.blocked:
            return []
        at, begin = len(self.timeline.moments[core]), self.timeline.blocked[core]
        event = self.program.cores[core][at]
        text = self.names.event(core, event) + ", never ends"
        return [_Row(at, begin, self.timeline.length, text, event)]

    def left(self, core: int) -> float:
        """Where text begins, from the line of life on: beyond the tracks of the copies."""
        return 12 + TRACK * max((t + 1 for t in self.tracks[core].values()), default=0)

    def text(self, core: int, row: _Row) -> str:
        """The text of a row, with its line and the numbers of findings."""
        numbers = self.numbers.get(Where(core, row.at), [])
        text, event = row.text, row.event
        if row.at < len(self.timeline.moments[core]):
            if isinstance(event, Enter) and not numbers:
                text = self.names.call(event.call)
                if row.end > row.begin:
                    text += ": waits for all to enter"
            elif isinstance(event, Leave) and not numbers:
                text = "end"
        mark = f"({', '.join(map(str, numbers))}) " if numbers else ""
        return f"{self.where(event.line)} {mark}{text}".lstrip()

    def draw_event(self, core: int, row: _Row, *, blocked: bool = False) -> None:
        x, y = self.x(core), self.y(max(row.begin, self.drawn[0]))
        wrong = blocked or Where(core, row.at) in self.numbers
        event = row.event
        color = RED if wrong else INK
        waits = isinstance(event, Wait) or (
            isinstance(event, Enter | Barrier) and row.end > row.begin
        )
        if waits or blocked:
            y2 = self.y(min(row.end, self.drawn[-1]))
            self.canvas.box(
                x - 4, y - 5, 8, y2 - y + 10, RED if wrong else AMBER, round_=2, title=row.text
            )
        elif isinstance(event, Start | Signal):
            own = BLUE if isinstance(event, Start) else GREEN
            self.canvas.box(x - 4, y - 4, 8, 8, RED if wrong else own, round_=4)
        else:
            self.canvas.box(x - 3, y - 1.5, 6, 3, RED if wrong else LINE)
        left = x + self.left(core)
        room = MARGIN + (core + 1) * self.lane - 14 - left
        text = fit(self.text(core, row), room)
        self.canvas.box(left - 2, y - 7, len(text) * LETTER + 4, 14, BOX, opacity=0.7)
        self.canvas.text(
            left,
            y + 4,
            text,
            color if wrong or isinstance(event, Enter | Barrier | Wait | Start | Signal) else FAINT,
            bold=wrong or isinstance(event, Enter),
            title=f"{row.text}{self.source(event)}",
        )

    def draw_legend(self, y: float) -> float:
        canvas, x = self.canvas, float(MARGIN)
        for text, color, what in (
            ("waits", AMBER, "wait"),
            ("copy in flight", BLUE, "copy"),
            ("copy to another core", BLUE, "arrow"),
            ("signal to another core", GREEN, "dashed"),
            ("of a finding", RED, "wait"),
        ):
            if what == "wait":
                canvas.box(x, y - 6, 8, 12, color, round_=2)
                x += 16
            elif what == "copy":
                canvas.box(x, y - 6, 5, 12, color, round_=2, opacity=0.75)
                x += 13
            else:
                canvas.arrow(x, y, x + 28, y, color, dashed=what == "dashed")
                x += 36
            canvas.text(x, y + 4, text, FAINT)
            x += len(text) * LETTER + 22
        return y + 20

    def draw_findings(self, y: float) -> float:
        letters = int((self.width - 2 * MARGIN) / LETTER) - 5
        for number, finding in enumerate(self.findings, 1):
            y += 14
            lines = [*dict.fromkeys(self.where(line) for line in finding.lines if is_known(line))]
            noun = "line" if len(lines) == 1 else "lines"
            head = f"({number}) {finding.kind.value}, {noun} {', '.join(lines)}"
            self.canvas.text(MARGIN, y, fit(head, self.width - 2 * MARGIN), RED, bold=True)
            for line in textwrap.wrap(short_paths(finding.text, finding.lines), min(letters, 130)):
                y += 16
                self.canvas.text(MARGIN + 26, y, line, INK)
            y += 8
        return y + MARGIN
