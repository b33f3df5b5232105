"""One core while its program is written down, and what all cores share."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NoReturn

from safepallas.verify._memory import Contents, Ref, may_be_kept
from safepallas.verify._model import (
    Allocated,
    Event,
    Finding,
    Kind,
    Line,
    Program,
    Region,
    UndecidedError,
    WrongError,
)
from safepallas.verify._together import Stage
from safepallas.verify._values import UNKNOWN

NOWHERE = Line("<unknown>", 0)


@dataclasses.dataclass(slots=True)
class Mesh:
    """The devices, row by row, and the cores of each."""

    devices: dict[Any, int]
    core_axis: Any = None
    cores: int = 1

    @property
    def axes(self) -> dict[Any, int]:
        return (
            self.devices if self.core_axis is None else {**self.devices, self.core_axis: self.cores}
        )

    @property
    def size(self) -> int:
        return math.prod(self.axes.values())

    def coordinates(self, core: int) -> dict[Any, int]:
        at: dict[Any, int] = {}
        for name, size in reversed(self.axes.items()):
            core, at[name] = divmod(core, size)
        return at

    def number(self, at: Mapping[Any, int]) -> int:
        core = 0
        for name, size in self.axes.items():
            core = core * size + at[name]
        return core


class Shared:
    """What the cores of one extraction have in common."""

    def __init__(self, mesh: Mesh, limit: int, stage: Stage | None) -> None:
        self.mesh = mesh
        self.limit = limit
        self.stage = stage  # where all cores run together
        self.program = Program([], {}, [], tuple((str(k), v) for k, v in mesh.axes.items()))
        self.events = 0
        self.turns = 0
        self.call_ids: list[Hashable] = []
        self.assumed: dict[str, None] = {}
        self._numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable, describe: Callable[[], Allocated]) -> int:
        """The number of an allocation: the same on all cores for the same request."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self.program.allocations[number] = describe()
        return number


class Core:
    """A core that goes through its program."""

    def __init__(self, shared: Shared, number: int) -> None:
        self.shared = shared
        self.number = number
        self.at = shared.mesh.coordinates(number)
        self.events: list[Event] = []
        self.inexact: list[Event] = []  # accesses that may be smaller than they look
        self.call = -1
        self.calls = 0
        self.collective_id: Any = None
        self.grid: tuple[int, ...] = ()  # the sizes
        self.step: tuple[int, ...] = ()  # and where it is
        self.is_muted = False  # index maps run outside the kernel
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
        if shared.stage is not None:
            shared.stage.happen(self.number, event)

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
        self, key: Hashable, aval: Any, name: str, line: Line | None, numbers: Any = UNKNOWN
    ) -> Ref:
        """A ref to memory of the running call."""
        shape, dtype, call = tuple(aval.shape), aval.dtype, self.call
        number = self.shared.number(
            key, lambda: Allocated(name, describe(shape, dtype), call, shape, line)
        )
        contents = None
        if may_be_kept(shape, dtype):
            contents = Contents(shape, dtype, UNKNOWN if isinstance(numbers, Ref) else numbers)
            if self.shared.stage is not None:
                self.shared.stage.hold(self.number, number, contents)
        return Ref(number, shape, dtype, False, contents)

    def hold(self, ref: Ref) -> Ref:
        """A ref that an earlier call has handed on belongs to this call too."""
        allocated = self.shared.program.allocations[ref.allocation]
        allocated.until = max(allocated.until, self.call)
        return ref

    def wrong(self, kind: Kind, text: str, line: Line) -> NoReturn:
        raise WrongError(Finding(kind, text, (line,)))

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
