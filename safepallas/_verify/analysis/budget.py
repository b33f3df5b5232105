"""How much work the search for what is wrong may be, and who is told how far it is."""

from __future__ import annotations

from collections.abc import Callable

from safepallas._verify.diagnostics.naming import count
from safepallas._verify.program import UndecidedError

# Events of all runs together, for each event that a program may have: by default about a minute.
RUNS = 50


class Budget:
    """Work is counted in events: a run over the whole program costs as many as that has."""

    def __init__(self, limit: int, tell: Callable[[str], None], runs: int = RUNS) -> None:
        self._all = self._left = limit * runs
        self._runs = runs
        self.exact_runs = 0
        self.tell = tell

    def run(self, events: int) -> None:
        """Another run over so many events."""
        self.spend(events)
        self.exact_runs += 1
        self.tell(f"exact runs: {self.exact_runs:,}, of {events:,} events each")

    def spend(self, events: int) -> None:
        """Do work that is worth so many events.

        Raises:
            UndecidedError: no more is left.
        """
        self._left -= events
        if self._left < 0:
            raise UndecidedError(
                f"The search for races stopped at its limit of {self._all:,} events, {self._runs} "
                f"times `limit=`, after {count(self.exact_runs, 'exact run')}: raise `limit=`, or "
                "verify fewer devices or steps."
            )
