"""The devices of a program, and the cores of each.

A core is known by its number: device by device, row by row, and on each device the TensorCores
before the scalar and the vector subcores of its SparseCores.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from safepallas._jax.core_meshes import Cores
from safepallas._jax.core_types import CoreType
from safepallas._verify.program import Line, UndecidedError

NAMES: Final = {
    CoreType.TENSOR_CORE: "TensorCore",
    CoreType.SCALAR_SUBCORE: "scalar subcore",
    CoreType.VECTOR_SUBCORE: "vector subcore",
}

# What a kernel of `pallas_call` runs on.
ONE: Final = Cores(CoreType.TENSOR_CORE, ())


@dataclasses.dataclass(frozen=True)
class Mesh:
    """The axes of the devices, and what cores each device has."""

    devices: dict[Hashable, int]
    parts: tuple[Cores, ...] = (ONE,)

    @functools.cached_property
    def axes(self) -> dict[Hashable, int]:
        """Of the devices and of all cores."""
        return {**self.devices, **{name: n for part in self.parts for name, n in part.axes}}

    @functools.cached_property
    def cores(self) -> int:
        """On each device."""
        return sum(part.size for part in self.parts)

    @functools.cached_property
    def size(self) -> int:
        return math.prod(self.devices.values()) * self.cores

    def part(self, core_type: CoreType) -> Cores | None:
        """The cores of a type."""
        return next((part for part in self.parts if part.core_type == core_type), None)

    def part_of(self, core: int) -> Cores:
        place = core % self.cores
        return next(part for part in self.parts[::-1] if self._before(part) <= place)

    def coordinates(self, core: int) -> dict[Hashable, int]:
        """Where it is: along the axes of the devices, and along those of its own mesh."""
        device, at = divmod(core, self.cores)
        found: dict[Hashable, int] = {}
        for name, size in reversed(self.devices.items()):
            device, found[name] = divmod(device, size)
        part = self.part_of(core)
        at -= self._before(part)
        for name, size in reversed(part.axes):
            at, found[name] = divmod(at, size)
        return found

    def number(self, at: Mapping[Hashable, int], part: Cores) -> int:
        """The core of that part at these coordinates."""
        device = within = 0
        for name, size in self.devices.items():
            device = device * size + at[name]
        for name, size in part.axes:
            within = within * size + at[name]
        return device * self.cores + self._before(part) + within

    def _before(self, part: Cores) -> int:
        return sum(other.size for other in self.parts[: self.parts.index(part)])

    def places(self, parts: Sequence[Cores]) -> tuple[int, ...]:
        """Which of the cores of a device are of these parts."""
        wanted = [part in parts for part in self.parts for _ in range(part.size)]
        return tuple(place for place, is_wanted in enumerate(wanted) if is_wanted)

    def members(self, places: Sequence[int]) -> tuple[int, ...]:
        """Those cores of all devices."""
        firsts = range(0, self.size, self.cores)
        return tuple(first + place for first in firsts for place in places)

    def names(self) -> tuple[str, ...]:
        """What messages call the cores of a device; () where it has but one."""
        if self.cores == 1:
            return ()
        found: list[str] = []
        for part in self.parts:
            for at in itertools.product(*(range(size) for _, size in part.axes)):
                axes = [f"{name}={i}" for (name, _), i in zip(part.axes, at, strict=True)]
                found.append(" ".join([NAMES[part.core_type], ", ".join(axes)]).rstrip())
        return tuple(found)


def add_part(parts: list[Cores], part: Cores, line: Line) -> None:
    """Note that there are such cores.

    Raises:
        UndecidedError: there are others of that type.
    """
    for i, other in enumerate(parts):
        if other.core_type == part.core_type:
            if part == ONE or other == part:
                return
            if other != ONE:
                text = f"Kernels on different meshes of {NAMES[part.core_type]}s are not followed."
                raise UndecidedError(text, line)
            parts[i] = part
            return
    parts.append(part)
    parts.sort(key=lambda known: [*NAMES].index(known.core_type))
