"""Whether all that a kernel does with its one barrier semaphore goes together."""

import os
from typing import Any

from safepallas._jax import compat
from safepallas._semaphores.kinds import BARRIER, kind_of

_RINGS = os.path.join(os.path.dirname(__file__), "device_barriers.py")


class BarrierUses:
    """The uses of the barrier semaphore that the equations of a kernel show."""

    __slots__ = ("by_hand", "first", "rings")

    def __init__(self) -> None:
        self.first: Any = None  # the first equation that gets it
        self.by_hand: Any = None  # the first that is none of `barrier_neighbors`, `barrier_all`
        self.rings: dict[frozenset[Any], Any] = {}  # by their axes, a signal of each ring

    def got(self, equation: Any) -> None:
        """Note an equation that gets the semaphore."""
        self.first = self.first or equation
        if self.by_hand is None and not compat.is_made_in(equation, _RINGS):
            self.by_hand = equation

    def signalled(self, equation: Any) -> None:
        """Note an equation that signals some semaphore."""
        if kind_of(compat.dtype_signalled(equation)) is BARRIER:
            axes = compat.axes_signalled(equation)
            # A ring of one device signals itself, and is in nobody's way.
            if axes and axes not in self.rings and compat.is_made_in(equation, _RINGS):
                self.rings[axes] = equation

    def conflict(self) -> tuple[str, str] | None:
        """Two uses that do not go together, in words; None where there are none."""
        uses = [
            f"a barrier over {', '.join(sorted(map(repr, axes)))} ({compat.line_of(equation)})"
            for axes, equation in self.rings.items()
        ]
        if uses and self.by_hand is not None:
            uses.append(f"sp.get_barrier_semaphore() by hand ({compat.line_of(self.by_hand)})")
        return (uses[0], uses[1]) if len(uses) > 1 else None
