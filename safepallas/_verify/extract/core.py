"""One core while its program is written down, and what all cores share."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NoReturn

import numpy as np

from safepallas._jax.arithmetic import is_integer
from safepallas._jax.core_meshes import Memory, Sharing
from safepallas._semaphores.kinds import DMA, Kind, kind_of
from safepallas._verify.diagnostics.finding import FindingKind, WrongError, stated
from safepallas._verify.extract.boxes import Box
from safepallas._verify.extract.lockstep import Lockstep, Pause
from safepallas._verify.extract.memory import (
    Contents,
    NumpyIndex,
    Ref,
    Sharers,
    Value,
    may_be_kept,
)
from safepallas._verify.extract.mesh import Mesh
from safepallas._verify.extract.values import UNKNOWN, Known, Unknown
from safepallas._verify.program import (
    Allocation,
    Assumption,
    Barrier,
    Enter,
    Event,
    Line,
    Program,
    Region,
    UndecidedError,
    Wait,
)


class Shared:
    """What the cores of one extraction have in common."""

    def __init__(self, mesh: Mesh, limit: int, lockstep: Lockstep | None) -> None:
        self.mesh = mesh
        self.limit = limit
        self.lockstep = lockstep  # None where each core is followed alone
        devices = tuple((str(name), size) for name, size in mesh.devices.items())
        self.program = Program([], {}, [], devices, parts=mesh.names())
        self.events = 0
        self.turns = 0
        self.call_ids: list[Hashable] = []
        self.assumed: dict[Assumption, None] = {}
        # Of prefetched values, by call and argument: as they are on each device.
        self.prefetched: dict[tuple[int, str], dict[int, str]] = {}
        self._not_checked: set[tuple[str, Line]] = set()
        self._found: set[tuple[str, Line]] = set()
        self._numbers: dict[Hashable, int] = {}
        self._contents: dict[tuple[int, int], Contents] = {}  # of what several cores have
        self._members: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.sharers: dict[int, dict[Sharing, Sharers | None]] = {}  # by call

    @property
    def is_full(self) -> bool:
        """Whether there are more events, or turns of loops, than the limit."""
        return self.events > self.limit or self.turns > 20 * self.limit

    def number(self, key: Hashable, describe: Callable[[], Allocation]) -> int:
        """The number of an allocation: the same on all cores for the same request."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self.program.allocations[number] = describe()
        return number

    def require_turns(self, more: int, line: Line) -> None:
        """There is a limit to the turns of all loops, and to the steps of grids."""
        if self.turns + more > 20 * self.limit:
            raise UndecidedError(
                f"The loops of the program run more than {20 * self.limit:,} times, "
                "which the limit on events implies.",
                line,
            )

    def not_bounded(self, name: str, line: Line) -> None:
        """Nothing is known of where an access goes: once for each buffer and line."""
        if (name, line) not in self._not_checked:
            self._not_checked.add((name, line))
            text = f"whether the access to `{name}` at {line} is in bounds: its index is not known"
            self.program.not_checked.append(text)

    def add(self, kind: FindingKind, name: str, text: str, line: Line) -> None:
        """What is wrong and can be gone past: once for each allocation and line."""
        if (name, line) not in self._found:
            self._found.add((name, line))
            self.program.found.append(stated(kind, text, line))

    def members(self, places: tuple[int, ...]) -> tuple[int, ...]:
        """The cores at these places of all devices: the same tuple each time."""
        if places not in self._members:
            self._members[places] = self.mesh.members(places)
        return self._members[places]

    def contents(
        self, owner: int, number: int, shape: Sequence[int], dtype: np.dtype, numbers: Known
    ) -> Contents:
        """What memory holds that several cores share: the same object for all of them."""
        key = owner, number
        if key not in self._contents:
            kept = Contents if self.lockstep is not None else _ReadOnly
            self._contents[key] = kept(shape, dtype, numbers)
        return self._contents[key]


class LockstepError(Exception):
    """What one core writes another may read: they have to be followed in lockstep."""


class _ReadOnly(Contents):
    """What several cores share, while each is followed alone."""

    __slots__ = ()

    def store(self, at: NumpyIndex, value: Known, adds: bool = False) -> None:
        if not isinstance(value, Unknown) or self.is_known.any():
            raise LockstepError


class Core:
    """A core that goes through its program."""

    def __init__(self, shared: Shared, number: int) -> None:
        self.shared = shared
        self.number = number
        self.at = shared.mesh.coordinates(number)
        self.part = shared.mesh.part_of(number)
        self.events: list[Event] = []
        self.call = -1
        self.calls = 0
        self.collective_id: Hashable = None
        self.grid: tuple[int, ...] = ()  # the sizes
        self.step: tuple[int, ...] = ()  # and where it is
        self.is_muted = False  # index maps run outside the kernel
        self.is_inside = False  # a kernel
        self.stack = 0  # how many semaphores the scopes have that are open
        self.open: list[Memory] = []  # the buffers that they have
        self._counts: dict[Hashable, int] = {}

    def emit(self, event: Event) -> None:
        """Write an event down, and do at once what it does to others."""
        if self.is_muted:
            return
        self.events.append(event)
        shared = self.shared
        shared.events += 1
        if shared.events > shared.limit:
            raise UndecidedError(
                f"The program has more than {shared.limit:,} events, the limit that was set.",
                event.line,
            )
        if shared.lockstep is not None:
            shared.lockstep.apply(event)

    def block(self, event: Enter | Barrier | Wait) -> Pause | None:
        """Write down an event at which the core may have to wait, and tell if it does here."""
        self.emit(event)
        lockstep = self.shared.lockstep
        return None if lockstep is None else lockstep.block(self.number, event)

    def turn(self, line: Line) -> None:
        """Another turn of a loop: there is a limit to them too."""
        self.shared.turns += 1
        self.shared.require_turns(0, line)

    def count(self, key: Hashable) -> int:
        """How often this core has come here before, in this call."""
        seen = self._counts.get(key, 0)
        self._counts[key] = seen + 1
        return seen

    def new_ref(
        self,
        key: Hashable,
        memory: Memory,
        name: str,
        line: Line | None,
        given: Value = UNKNOWN,
        sharers: Sharers | None = None,
    ) -> Ref:
        """A ref to memory of the running call, of this core or of those that share it.

        Args:
            key: the same for the same request of all cores.
            memory: what it is a ref to.
            name: what messages call it.
            line: where it was allocated.
            given: the numbers that it begins with, where it is an operand.
            sharers: None where each core has its own.
        """
        shape, dtype, call = memory.shape, memory.dtype, self.call
        number = self.shared.number(
            key,
            lambda: Allocation(name, describe(shape, dtype), call, shape, line, shared_by=sharers),
        )
        contents = None
        if is_integer(dtype) and may_be_kept(shape, dtype):
            numbers = UNKNOWN if isinstance(given, Ref) else given
            owner = self.number if sharers is None else sharers[self.number][0]
            if sharers is None:
                contents = Contents(shape, dtype, numbers)
            else:
                contents = self.shared.contents(owner, number, shape, dtype, numbers)
            if self.shared.lockstep is not None:
                self.shared.lockstep.hold(owner, number, contents)
        named = memory.core_type
        lives_on = None if named == self.part.core_type else named
        return Ref(number, shape, dtype, contents=contents, shared_by=sharers, lives_on=lives_on)

    def new_scoped_ref(self, key: Hashable, memory: Memory, name: str, line: Line) -> Ref:
        """A ref to memory of a scope that begins, on top of the scopes around it.

        The semaphores of all scopes of a call are one stack, without regard to their kinds. Buffers
        are at the same place where the same request is made on top of the same buffers.
        """
        ref = self.new_ref(key, memory, name, line)
        if ref.lives_on is not None:
            return ref
        if ref.kind is not None:
            call = self.call
            stack = self.shared.number(
                ("stack", call), lambda: Allocation("scopes", "semaphores of scopes", call)
            )
            ref.place = stack, self.stack
            self.stack += math.prod(memory.shape)
            return ref
        beneath = [one for one in self.open if one.space == memory.space]
        place = self.call, line, memory, *beneath
        self.shared.program.allocations[ref.allocation].place = place
        if ref.contents is not None and self.shared.lockstep is not None:
            self.shared.lockstep.hold(self.number, place, ref.contents)
        self.open.append(memory)
        return ref

    def new_ref_of_jax(self, key: Hashable, memory: Memory, line: Line, value: Value) -> Ref:
        """A ref between kernels: to what it is made of, or to a copy of an array.

        It is there from the next call on, and its name is that of the first kernel that gets it.
        """
        if isinstance(value, Ref):
            return value
        call, self.call = self.call, self.calls
        number = self.count(("ref of JAX", key))
        ref = self.new_ref(("ref of JAX", key, number), memory, "", line, value)
        self.call = call
        ref.is_of_jax = True
        return ref

    def is_new(self, ref: Ref) -> bool:
        """Whether no call has held it yet."""
        return self.shared.program.allocations[ref.allocation].until < 0

    def hold(self, ref: Ref, name: str = "") -> Ref:
        """A ref that an earlier call has handed on belongs to this call too."""
        allocated = self.shared.program.allocations[ref.allocation]
        allocated.name = allocated.name or name or "ref"
        allocated.until = max(allocated.until, self.call)
        return ref

    def wrong(self, kind: FindingKind, text: str, line: Line) -> NoReturn:
        raise WrongError(stated(kind, text, line))

    @property
    def place(self) -> str:
        return self.shared.program.place(self.number)

    def name_of(self, ref: Ref) -> str:
        """What messages call what a ref is to."""
        allocated = self.shared.program.allocations[ref.allocation]
        return f"{allocated.name} ({allocated.what})"

    def check_bounds(
        self, ref: Ref, box: Box, verb: str, line: Line, *, is_partial: bool = False
    ) -> None:
        """What an access is known to reach must be in its buffer.

        Args:
            ref: what is accessed.
            box: which part of it.
            verb: what happens there: ``copies to``.
            line: that of the access.
            is_partial: a mask may leave out what is outside.
        """
        if box.outside is None and box.is_bounded:
            return
        name = self.shared.program.allocations[ref.allocation].name
        if box.outside is None or is_partial:
            self.shared.not_bounded(name, line)
            return
        low, high, shape = box.outside
        what = "" if shape == ref.shape else f" in a view of shape {shape}"
        text = f"{self.place_and_step} {verb} `{name}[{_spans(low, high)}]`{what}, "
        text += f"but {f'`{name}`' if not what else 'the view'} has the shape {shape}: "
        self.shared.add(
            FindingKind.OUT_OF_BOUNDS, name, text + _which_leaves(low, high, shape), line
        )

    @property
    def place_and_step(self) -> str:
        """``Device x=2, in grid step (1, 0),``."""
        place = self.place[0].upper() + self.place[1:]
        if not self.grid:
            return place
        return f"{place}, in grid step ({', '.join(map(str, self.step))}),"

    def require_own(self, ref: Ref, line: Line) -> None:
        """Some things a core does with its own memory only."""
        if ref.lives_on is not None:
            raise UndecidedError(f"{self.name_of(ref)} is on cores of another type.", line)

    def own_region(self, ref: Ref, box: Box, line: Line) -> Region:
        """What the core itself accesses."""
        self.require_own(ref, line)
        return region_on(self.number, ref, box)

    def whole_region(self, ref: Ref) -> Region:
        return Region(self.number, ref.allocation, (0,) * len(ref.shape), ref.shape)


def _spans(low: Sequence[int], high: Sequence[int]) -> str:
    spans = [str(a) if b == a + 1 else f"{a}:{b}" for a, b in zip(low, high, strict=True)]
    return ", ".join(spans)


def _which_leaves(low: Sequence[int], high: Sequence[int], shape: Sequence[int]) -> str:
    """The first dimension in which a box leaves a shape, and what to do."""
    dim = next(i for i, n in enumerate(shape) if low[i] < 0 or high[i] > n)
    return (
        f"dimension {dim} has the elements 0 to {shape[dim] - 1}, and the access reaches from "
        f"{low[dim]} to {high[dim] - 1}. What lies there belongs to something else. Bound the "
        "index, or access less."
    )


def region_on(core: int, ref: Ref, box: Box) -> Region:
    return Region(ref.owner(core), ref.allocation, box.low, box.high, box.step, box.is_exact)


def semaphore_noun(kind: Kind) -> str:
    """What messages call a semaphore of a kind: ``DMA semaphore``."""
    return f"{kind.name.upper() if kind is DMA else kind.name} semaphore"


def describe(shape: tuple[int, ...], dtype: object) -> str:
    """What an allocation holds, for messages."""
    kind = kind_of(dtype)
    sizes = ",".join(map(str, shape))
    if kind is None:
        return f"{dtype}[{sizes}]"
    return semaphore_noun(kind) if not shape else f"{semaphore_noun(kind)}s [{sizes}]"
