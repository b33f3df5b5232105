"""What a program does, as far as its protocol goes: the events of each core, in order.

Extraction makes it, the analysis reads it, and reports show it.
Nothing in here knows of JAX. Cores are numbered as the devices of the mesh are, row by row.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from safepallas._verify.diagnostics.finding import Finding


class Line(NamedTuple):
    """A line of the user's source."""

    file: str
    number: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


@dataclasses.dataclass(frozen=True, order=True, slots=True)
class Semaphore:
    """One counting semaphore of one core. Equal where it is the same one.

    One of a scope is a place on a stack: `allocation` is then that of all such semaphores of the
    call, and `indices` is the place. `scope` and `index` are what the scope calls it (rule 5).
    """

    core: int
    allocation: int  # equal on all cores for the same request of the same call
    indices: tuple[int, ...] = ()
    is_global: bool = False  # the barrier semaphore, which outlives the call
    scope: int = dataclasses.field(default=-1, compare=False)  # an allocation; -1: of no scope
    index: tuple[int, ...] = dataclasses.field(default=(), compare=False)

    @property
    def named(self) -> tuple[int, tuple[int, ...]]:
        """The allocation that has its name, and the indices there."""
        if self.scope < 0:
            return self.allocation, self.indices
        return self.scope, self.index


class Region(NamedTuple):
    """A box in a buffer of one core: from `low` (inclusive) to `high` (exclusive), by dimension.

    ``()`` for both is the whole buffer. With `step` it is only every so many-th of a dimension,
    counted from `low`; ``()`` stands for all. Not `exact`, it may be any part of that. A box
    without elements overlaps nothing (rule 1).
    """

    core: int
    allocation: int
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()
    step: tuple[int, ...] = ()
    exact: bool = True

    @property
    def is_empty(self) -> bool:
        return any(a >= b for a, b in zip(self.low, self.high, strict=True))

    def overlaps(self, other: Region) -> bool:
        if self.core != other.core or self.allocation != other.allocation:
            return False
        # Boxes of another rank are views that were not understood: the whole buffer.
        if len(self.low) != len(other.low):
            return not (self.is_empty or other.is_empty)
        boxes_overlap = all(
            a < d and c < b and a < b and c < d
            for a, b, c, d in zip(self.low, self.high, other.low, other.high, strict=True)
        )
        if not boxes_overlap or not (self.step or other.step):
            return boxes_overlap
        ones = (1,) * len(self.low)
        ends = zip(self.low, self.high, other.low, other.high, strict=True)
        steps = zip(self.step or ones, other.step or ones, strict=True)
        return all(_intersect(*end, *step) for end, step in zip(ends, steps, strict=True))


def _intersect(a: int, b: int, c: int, d: int, s: int, t: int) -> bool:
    """Whether a, a + s, ... below b, and c, c + t, ... below d, have a number in common."""
    common = math.gcd(s, t)
    if (c - a) % common:
        return False
    # The smallest a + k s that is c modulo t; all common ones are so many apart.
    k = (c - a) // common * pow(s // common, -1, t // common) % (t // common)
    apart = s // common * t
    first = a + k * s
    return first + max(0, -(-(max(a, c) - first) // apart)) * apart < min(b, d)


class Enter(NamedTuple):
    """A core begins a kernel: the memory of the call is its own from here on.

    With `barrier` it waits here until all cores have entered this call: Pallas puts that before a
    kernel that communicates with other devices and has no barrier of its own.
    """

    call: int
    barrier: bool
    line: Line


class Barrier(NamedTuple):
    """Some cores wait here for each other: none goes on before all of them are there."""

    key: Hashable  # equal for the cores of one barrier, and another one the next time
    among: tuple[int, ...]
    line: Line


class Allocate(NamedTuple):
    """A scope inside the kernel (``run_scoped``) begins."""

    allocations: tuple[int, ...]
    line: Line


class Release(NamedTuple):
    """A scope inside the kernel ends: its semaphores must be zero, and no copy use its buffers."""

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
    """Start a copy: an agent that reads `source`, signals `send`, writes `target`, signals `recv`.

    It does so at any later time, reading all before it has written all, and in any order of the
    elements (rule 2). The amounts arrive in any parts: bytes one by one, or, for a copy that
    counts, the one. A copy of amount 0 does nothing at all (rule 1).
    """

    source: Region
    target: Region
    send: Semaphore | None  # None for a copy on one core
    recv: Semaphore | None  # on the core of `target`; None where nothing tells of its end
    amount: int  # bytes; 1 for a copy that counts on regular semaphores
    line: Line
    indices: tuple[Region, ...] = ()  # what it reads besides: the indices that it gathers by


class Access(NamedTuple):
    """The core itself reads or writes."""

    region: Region
    is_write: bool
    line: Line
    value: Hashable = None  # what a write stores everywhere, if that is a known constant (rule 11)


Event: TypeAlias = Enter | Barrier | Allocate | Release | Leave | Signal | Wait | Start | Access


class Assumption(NamedTuple):
    """What a verdict takes for granted: a name, which the docs explain, and what it is here."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


@dataclasses.dataclass(slots=True)
class Allocation:
    """What messages call an allocation, and what it holds."""

    name: str  # the kernel's own name for it: "recv_sems", "o_ref"
    what: str  # "dma semaphores", "float32[8,128]"
    call: int  # the kernel call that it belongs to; -1 for what outlives calls
    shape: tuple[int, ...] = ()
    line: Line | None = None  # where it was allocated, if known
    place: Hashable = None  # of a buffer of a scope: equal for those at the same place
    until: int = -1  # the last call that holds it, where `call` hands it on to a later one
    # By core, those that share it, the owner first; None where each has its own.
    shared_by: Mapping[int, tuple[int, ...]] | None = None

    @property
    def last_call(self) -> int:
        """The call at whose end it must be zero, and in use by no copy."""
        return max(self.call, self.until)


@dataclasses.dataclass(slots=True)
class Program:
    """All that happens, core by core. Nothing in it depends on a schedule."""

    cores: list[list[Event]]
    allocations: dict[int, Allocation]
    calls: list[str]  # the names of the kernel calls, in order
    mesh: tuple[tuple[str, int], ...] = ()  # axis names and sizes; () for one device
    assumed: list[Assumption] = dataclasses.field(default_factory=list)
    not_checked: list[str] = dataclasses.field(default_factory=list)  # bounds of unknown indices
    # What extraction has found wrong and gone past: accesses out of bounds.
    found: list[Finding] = dataclasses.field(default_factory=list)
    parts: tuple[str, ...] = ()  # the cores of a device, where it has several
    # Cores of which only a beginning is known, and why: what they do after it may be anything.
    open_cores: frozenset[int] = frozenset()
    unknown: UndecidedError | None = None
    # What the cores that share memory are called as one, where that is not a device.
    groups: dict[tuple[int, ...], str] = dataclasses.field(default_factory=dict)

    @property
    def is_alone(self) -> bool:
        """Whether there is but one core."""
        return not self.mesh and not self.parts

    def place(self, core: int) -> str:
        """A core as messages call it: ``device x=2``, ``TensorCore core=1 of device x=2``."""
        if not self.parts:
            return self.device(core)
        device, part = divmod(core, len(self.parts))
        return self.parts[part] + (f" of {self.device(device)}" if self.mesh else "")

    def device(self, number: int) -> str:
        if not self.mesh:
            return "the device"
        rest, coordinates = number, []
        for name, size in reversed(self.mesh):
            rest, i = divmod(rest, size)
            coordinates.append(f"{name}={i}")
        return "device " + ", ".join(reversed(coordinates))

    def sharers(self, core: int, allocation: int) -> tuple[int, ...]:
        """The cores that share an allocation with that core, itself among them, the owner first."""
        allocated = self.allocations.get(allocation)
        if allocated is None or allocated.shared_by is None:
            return (core,)
        return allocated.shared_by[core]

    def owner(self, core: int, allocation: int) -> str:
        """Whose memory it is, as messages call them: a device, where its cores share it."""
        sharers = self.sharers(core, allocation)
        if sharers in self.groups:
            return self.groups[sharers]
        return self.place(core) if sharers == (core,) else self.device(core // len(self.parts))


class Where(NamedTuple):
    """An event: the core and its place in the order of that core."""

    core: int
    at: int


class Step(NamedTuple):
    """What happens at one moment of a schedule: an event, or an end of the copy that it starts."""

    core: int
    at: int
    part: str = ""  # "read": the copy has read its source; "write": it has written its target


class UndecidedError(Exception):
    """What control depends on is not known, or a limit was reached."""

    def __init__(self, text: str, line: Line | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.line = line
        self.found: list[Finding] = []  # what was certain before
