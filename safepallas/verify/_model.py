"""What a program does, as far as its protocol goes: the events of each core, in order.

Extraction writes it, the machine and the search for races read it, reports and timelines show it.
Nothing in here knows of JAX. Cores are numbered as the devices of the mesh are, row by row.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias


class Line(NamedTuple):
    """A line of the user's source."""

    file: str
    number: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


class Semaphore(NamedTuple):
    """One counting semaphore of one core. Equal where it is the same one."""

    core: int
    allocation: int  # equal on all cores for the same request of the same call
    indices: tuple[int, ...] = ()
    is_global: bool = False  # the barrier semaphore, which outlives the call


class Region(NamedTuple):
    """A box in a buffer of one core: from `low` (inclusive) to `high` (exclusive), by dimension.

    ``()`` for both is the whole buffer.
    """

    core: int
    allocation: int
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()

    def overlaps(self, other: Region) -> bool:
        if self.core != other.core or self.allocation != other.allocation:
            return False
        # Boxes of another rank are views that were not understood: the whole buffer.
        if len(self.low) != len(other.low):
            return True
        return all(
            a < d and c < b
            for a, b, c, d in zip(self.low, self.high, other.low, other.high, strict=True)
        )


class Enter(NamedTuple):
    """A core begins a kernel: the memory of the call is its own from here on.

    With `barrier` it waits here until all cores have come to this call: JAX puts that before every
    kernel without a ``collective_id``.
    """

    call: int
    barrier: bool
    line: Line


class Allocate(NamedTuple):
    """A scope inside the kernel (``run_scoped``) begins."""

    allocations: tuple[int, ...]
    line: Line


class Release(NamedTuple):
    """A scope inside the kernel ends: its semaphores must be zero, its buffers in no copy's way."""

    allocations: tuple[int, ...]
    line: Line


class Leave(NamedTuple):
    """A core ends a kernel: all semaphores of the call must be zero, no copy in flight."""

    call: int
    line: Line


class Signal(NamedTuple):
    semaphore: Semaphore  # of this core or another
    amount: int
    line: Line


class Wait(NamedTuple):
    """Block until the semaphore is at least `amount`, then take that."""

    semaphore: Semaphore  # of this core
    amount: int
    line: Line


class Start(NamedTuple):
    """Start a copy: an agent that reads `source`, signals `sent`, writes `target`, signals `came`.

    It does so at any later time, reading all before it has written all. The amounts arrive in any
    parts: bytes one by one, or, for a copy that counts, the one.
    """

    source: Region
    target: Region
    sent: Semaphore | None  # None for a copy on one core
    came: Semaphore | None  # on the core of `target`; None where nothing tells of its end
    amount: int  # bytes; 1 for a copy that counts on regular semaphores
    line: Line


class Access(NamedTuple):
    """The core itself reads or writes."""

    region: Region
    is_write: bool
    line: Line


Event: TypeAlias = Enter | Allocate | Release | Leave | Signal | Wait | Start | Access


@dataclasses.dataclass(slots=True)
class Allocated:
    """What messages call an allocation, and what it holds."""

    name: str  # the kernel's own name for it: "recv_sems", "o_ref"
    what: str  # "dma semaphores", "float32[8,128]"
    call: int  # the kernel call that it belongs to; -1 for what outlives calls
    shape: tuple[int, ...] = ()
    line: Line | None = None  # where it was allocated, if known
    until: int = -1  # the last call that holds it, where `call` hands it on to a later one

    @property
    def last_call(self) -> int:
        """The call at whose end it must be zero, and in no copy's way."""
        return max(self.call, self.until)


@dataclasses.dataclass(slots=True)
class Program:
    """All that happens, core by core. Nothing in it depends on a schedule."""

    cores: list[list[Event]]
    allocations: dict[int, Allocated]
    calls: list[str]  # the names of the kernel calls, in order
    mesh: tuple[tuple[str, int], ...] = ()  # axis names and sizes; () for one device
    assumed: list[str] = dataclasses.field(default_factory=list)  # devices, prefetched values, ...

    def place(self, core: int) -> str:
        """A core as messages call it: ``device x=2``."""
        if not self.mesh:
            return "the device"
        rest, coordinates = core, []
        for name, size in reversed(self.mesh):
            rest, i = divmod(rest, size)
            coordinates.append(f"{name}={i}")
        return "device " + ", ".join(reversed(coordinates))


class Where(NamedTuple):
    """An event: the core and its place in the order of that core."""

    core: int
    at: int


class Step(NamedTuple):
    """What happens at one moment of a schedule: an event, or an end of the copy that it starts."""

    core: int
    at: int
    part: str = ""  # "read": the copy has read its source; "write": it has written its target


class Kind(enum.Enum):
    """What is wrong."""

    DEADLOCK = "deadlock"
    LEAK = "leak"
    RACE = "race"
    UNWAITED_COPY = "unwaited-copy"
    OUT_OF_RANGE = "out-of-range"
    REMOTE_BEFORE_ENTRY = "remote-before-entry"
    KIND = "kind"


@dataclasses.dataclass(slots=True)
class Finding:
    """One thing that is wrong, with the lines of both sides."""

    kind: Kind
    text: str  # a paragraph: who, on which semaphore, how much, and what to change
    lines: tuple[Line, ...]  # the first is the one to point at
    events: tuple[Where, ...] = ()
    witness: Sequence[Step] = ()  # a schedule that shows it: the order in which things happen


class UndecidedError(Exception):
    """What control depends on is not known, or a limit was reached."""

    def __init__(self, text: str, line: Line | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.line = line


class WrongError(Exception):
    """Extraction itself has found what is wrong: an index or an id out of range, a wrong kind."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.text)
        self.finding = finding
