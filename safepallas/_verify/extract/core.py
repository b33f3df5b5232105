"""One core while its program is written down, and what all cores share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NoReturn, TypeAlias

from safepallas._jax import core_meshes
from safepallas._verify.diagnostics.finding import FindingKind, WrongError, stated
from safepallas._verify.extract.lockstep import Lockstep
from safepallas._verify.extract.memory import Contents, Ref, may_be_kept
from safepallas._verify.extract.mesh import Mesh
from safepallas._verify.extract.values import UNKNOWN
from safepallas._verify.program import (
    Allocation,
    Event,
    Line,
    Program,
    Region,
    UndecidedError,
)

NOWHERE = Line("<unknown>", 0)

# By core, those who have some memory together, the owner first.
Sharing: TypeAlias = Mapping[int, tuple[int, ...]]


class Shared:
    """What the cores of one extraction have in common."""

    def __init__(self, mesh: Mesh, limit: int, lockstep: Lockstep | None) -> None:
        self.mesh = mesh
        self.limit = limit
        self.lockstep = lockstep  # where all cores run together
        devices = tuple((str(name), size) for name, size in mesh.devices.items())
        self.program = Program([], {}, [], devices, parts=mesh.names())
        self.events = 0
        self.turns = 0
        self.call_ids: list[Hashable] = []
        self.assumed: dict[str, None] = {}
        self._numbers: dict[Hashable, int] = {}
        self._contents: dict[tuple[int, int], Contents] = {}  # of what several cores have
        self._members: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.shared_by: dict[int, dict[str, Sharing | None]] = {}  # by call: see `_core_calls`

    def number(self, key: Hashable, describe: Callable[[], Allocation]) -> int:
        """The number of an allocation: the same on all cores for the same request."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self.program.allocations[number] = describe()
        return number

    def members(self, places: tuple[int, ...]) -> tuple[int, ...]:
        """The cores at these places of all devices: the same tuple each time."""
        if places not in self._members:
            self._members[places] = self.mesh.members(places)
        return self._members[places]

    def contents(self, owner: int, number: int, shape: Any, dtype: Any, numbers: Any) -> Contents:
        """What several cores have shared_by: the same for all of them."""
        key = owner, number
        if key not in self._contents:
            kept = Contents if self.lockstep is not None else _ReadOnly
            self._contents[key] = kept(shape, dtype, numbers)
        return self._contents[key]


class LockstepError(Exception):
    """What one core writes another may read: they have to be followed together."""


class _ReadOnly(Contents):
    """What several cores have, while each is followed alone."""

    def store(self, at: Any, value: Any, adds: bool = False) -> None:
        if value is not UNKNOWN or self.is_known.any():
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
        self.collective_id: Any = None
        self.grid: tuple[int, ...] = ()  # the sizes
        self.step: tuple[int, ...] = ()  # and where it is
        self.is_muted = False  # index maps run outside the kernel
        self.is_inside = False  # a kernel
        self._counts: dict[Hashable, int] = {}

    def emit(self, event: Event) -> None:
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
            shared.lockstep.happen(self.number, event)

    def turn(self, line: Line) -> None:
        """Another turn of a loop: there is a limit to them too."""
        self.shared.turns += 1
        if self.shared.turns > 20 * self.shared.limit:
            raise UndecidedError(
                f"The loops of the program run more than {20 * self.shared.limit:,} times, "
                "which the limit on events implies.",
                line,
            )

    def count(self, key: Hashable) -> int:
        """How often this core has come here before, in this call."""
        seen = self._counts.get(key, 0)
        self._counts[key] = seen + 1
        return seen

    def new_ref(
        self,
        key: Hashable,
        aval: Any,
        name: str,
        line: Line | None,
        numbers: Any = UNKNOWN,
        shared_by: Sharing | None = None,
    ) -> Ref:
        """A ref to memory of the running call, of this core or of those that share it."""
        shape, dtype, call = tuple(aval.shape), aval.dtype, self.call
        number = self.shared.number(
            key,
            lambda: Allocation(
                name, describe(shape, dtype), call, shape, line, shared_by=shared_by
            ),
        )
        contents = None
        if may_be_kept(shape, dtype):
            given = UNKNOWN if isinstance(numbers, Ref) else numbers
            owner = self.number if shared_by is None else shared_by[self.number][0]
            if shared_by is None:
                contents = Contents(shape, dtype, given)
            else:
                contents = self.shared.contents(owner, number, shape, dtype, given)
            if self.shared.lockstep is not None:
                self.shared.lockstep.hold(owner, number, contents)
        named = core_meshes.cores_named_by(aval)
        lives_on = "" if named == self.part.kind else named
        return Ref(number, shape, dtype, False, contents, "", shared_by, lives_on)

    def hold(self, ref: Ref) -> Ref:
        """A ref that an earlier call has handed on belongs to this call too."""
        allocated = self.shared.program.allocations[ref.allocation]
        allocated.until = max(allocated.until, self.call)
        return ref

    def wrong(self, kind: FindingKind, text: str, line: Line) -> NoReturn:
        raise WrongError(stated(kind, text, line))

    @property
    def place(self) -> str:
        return self.shared.program.place(self.number)

    def region_of_all(self, ref: Ref) -> Region:
        return Region(self.number, ref.allocation, (0,) * len(ref.shape), ref.shape)


SEMAPHORES = {
    "dma_sem": "DMA semaphore",
    "semaphore": "regular semaphore",
    "barrier_semaphore": "barrier semaphore",
}


def describe(shape: tuple[Any, ...], dtype: Any) -> str:
    """What an allocation holds, for messages."""
    kind = SEMAPHORES.get(str(dtype))
    sizes = ",".join(map(str, shape))
    if kind is None:
        return f"{dtype}[{sizes}]"
    return kind if not shape else f"{kind}s [{sizes}]"
