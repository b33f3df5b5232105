"""What comes before what in every schedule: a quick rule, and an exact test for the rest.

Two questions only: has this event, or this end of a copy, happened for certain when that event
begins? The rule (see `_Clocks`) says yes or nothing. The exact test holds the first back
and looks whether the second is reached all the same: each such run answers for every event at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from safepallas._verify.analysis.semaphore_machine import (
    ENTER,
    SIGNAL,
    START,
    WAIT,
    NumberedProgram,
    Run,
    reach,
)
from safepallas._verify.diagnostics.naming import count
from safepallas._verify.program import Step, UndecidedError, Where

# Events of all runs, for each event that a program may have: by default about a minute.
RUNS = 50

# Rounds to find out which of the supposed orders hold; and if that takes longer, to build up the
# orders from nothing, where one may stop at any time.
ROUNDS_DOWN = 50
ROUNDS_UP = 12
EVENTS = 5_000_000  # in all rounds no more than this, but for a few rounds anyway


# By signal or start (core, place, number of the semaphore): the place of the wait that proves it.
Proofs: TypeAlias = dict[tuple[int, int, int], int]


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


class Ordering:
    """Answers `certain(first, then)`, as far as there is a budget for it."""

    def __init__(self, numbered: NumberedProgram, run: Run, budget: Budget) -> None:
        self._numbered = numbered
        self._budget = budget
        self._clocks = _Clocks(numbered, run, budget)
        self._reached: dict[Step, list[int]] = {}

    def certain(self, first: Step, then: Where, *, exactly: bool = True) -> bool:
        """Whether `first` has happened in every schedule by the time `then` begins.

        If not `exactly`, False also stands for "the rule does not tell".
        """
        if self._clocks.certain(first, then):
            return True
        if not exactly:
            return False
        reached = self._reached.get(first)
        if reached is None:
            self._budget.run(self._numbered.events)
            reached = self._reached[first] = reach(self._numbered, first)
            if len(self._reached) * len(reached) > 20_000_000:  # keep memory in bounds
                self._reached.clear()
        return reached[then.core] <= then.at


class _Clocks:
    """For each event, how many events of each core have certainly happened before it.

    For a wait w on a semaphore let D be what its owner has waited for up to and with w, and M the
    total of all signals that are not known to come after w. Without a signal of amount a there
    would be M - a: if that is less than D, the signal comes before w in every schedule. A copy's
    end is the arrival of its last byte: a is 1. What adds nothing proves nothing (rule 1): a is 0.

    What is known to come after w depends on other such orders, and those on others. So all that one
    schedule shows is supposed first, and what the rule does not confirm is dropped, until the rule
    confirms all that is left. Then it is all true: in a schedule that broke one of these orders,
    look at the first moment at which one is broken. Until then all of them hold, so what the rule
    counts at that wait is right, and the rule says that it is not broken.
    """

    def __init__(self, numbered: NumberedProgram, run: Run, budget: Budget) -> None:
        self._numbered = numbered
        self._budget = budget
        self._cores = len(numbered.ops)
        self._done = run.done
        self._joins = [  # where a core may come to know of others, in the order of a schedule
            (core, at, *numbered.ops[core][at][:2])
            for core, at, part in run.order
            if not part and numbered.ops[core][at][0] in (WAIT, ENTER)
        ]
        self._signals, self._waits = self._by_semaphore()
        self._copies = {(copy.core, copy.at): copy for copy in numbered.copies}
        self._seen: Proofs = {}
        self._arrivals: dict[int, dict[int, int]] = defaultdict(dict)  # barrier -> core -> place
        for core, ops in enumerate(numbered.ops):
            for at, (code, call, _) in enumerate(ops):
                if code == ENTER:
                    self._arrivals[call][core] = at
        self._rows: list[NDArray[np.int32]] = []
        self._row_of = [[-1] * (done + 1) for done in run.done]
        if not self._narrow(self._supposed(run)):
            self._widen()

    def _narrow(self, supposed: Proofs) -> bool:
        """Drop what the rule does not confirm, until it confirms all; False if that takes long."""
        for turn in range(self._rounds(ROUNDS_DOWN)):
            self._tell(turn)
            self._sweep(supposed)
            confirmed = self._confirmed()
            left = {
                key: max(place, confirmed[key])
                for key, place in supposed.items()
                if key in confirmed
            }
            if left == supposed:
                return True
            supposed = left
        return False

    def _widen(self) -> None:
        """Build up from nothing: each round is true by what was known before it."""
        known: Proofs = {}
        for turn in range(self._rounds(ROUNDS_UP)):
            self._tell(turn)
            self._sweep(known)
            confirmed = self._confirmed()
            if confirmed == known:
                break
            known = confirmed

    def _rounds(self, most: int) -> int:
        return min(most, max(4, EVENTS // (self._numbered.events + 1)))

    def _tell(self, turn: int) -> None:
        self._budget.tell(f"orders, round {turn + 1}, events: {self._numbered.events:,}")

    def _supposed(self, run: Run) -> Proofs:
        """Every signal, and end of a copy, with the next wait on its semaphore."""
        found: Proofs = {}
        come: dict[int, list[Where]] = defaultdict(list)
        for core, at, part in run.order:
            code, x, _ = self._numbered.ops[core][at]
            if part:
                copy = self._numbered.copies[x]
                last = copy.recv if part == "write" else copy.send
                if part == "write" or copy.send != copy.recv:
                    come[last].append(Where(core, at))
            elif code == SIGNAL:
                come[x].append(Where(core, at))
            elif code == WAIT:
                found.update({(c, place, x): at for c, place in come.pop(x, ())})
        return found

    def _by_semaphore(
        self,
    ) -> tuple[list[list[tuple[int, int, int, int]]], list[list[tuple[int, int]]]]:
        """By semaphore: signals (core, at, amount, that of the last part) and waits (at, D)."""
        signals: list[list[tuple[int, int, int, int]]] = [[] for _ in self._numbered.semaphores]
        waits: list[list[tuple[int, int]]] = [[] for _ in self._numbered.semaphores]
        for core, ops in enumerate(self._numbered.ops):
            for at in range(self._done[core]):
                code, x, y = ops[at]
                if code == SIGNAL:
                    signals[x].append((core, at, y, y))
                elif code == WAIT:
                    sofar = waits[x][-1][1] if waits[x] else 0
                    waits[x].append((at, sofar + y))
                elif code == START:
                    copy = self._numbered.copies[x]
                    for semaphore in {copy.send, copy.recv} - {-1}:
                        twice = copy.send == copy.recv
                        amount = copy.amount * (2 if twice else 1)
                        signals[semaphore].append((core, at, amount, min(amount, 1)))
        return signals, waits

    def _sweep(self, proofs: Proofs) -> None:
        """Set the clocks by what is known, along a schedule: all that is certain runs forward."""
        self._seen = proofs
        before: list[dict[int, list[Where]]] = [defaultdict(list) for _ in range(self._cores)]
        for (core, at, semaphore), place in proofs.items():
            owner = self._numbered.semaphores[semaphore].core
            if owner != core:  # of itself a core knows all
                before[owner][place].append(Where(core, at))
        latest = [np.zeros(self._cores, np.int32) for _ in before]
        rows: list[NDArray[np.int32]] = []
        number, since = [-1] * self._cores, [0] * self._cores  # of the latest row, and its place
        entered: dict[int, NDArray[np.int32]] = {}
        for core, at, code, x in self._joins:
            if code == ENTER:
                if x not in entered:
                    entered[x] = self._joined(latest, x)
                row = np.maximum(latest[core], entered[x])
            elif at in before[core]:
                row = latest[core].copy()
                for other, place in before[core][at]:
                    late = place >= since[other]
                    index = number[other] if late else self._row_of[other][place]
                    if index >= 0:
                        np.maximum(row, rows[index], out=row)
                    if row[other] <= place:
                        row[other] = place + 1
            else:
                continue
            self._row_of[core][since[core] : at] = [number[core]] * (at - since[core])
            number[core], since[core] = len(rows), at
            rows.append(row)
            latest[core] = row
        for core, places in enumerate(self._row_of):
            places[since[core] :] = [number[core]] * (len(places) - since[core])
        self._rows = rows

    def _joined(self, latest: list[NDArray[np.int32]], barrier: int) -> NDArray[np.int32]:
        """All have come to a barrier: what each has done, and its own arrival."""
        among = self._numbered.barriers[barrier].among
        joined = latest[among[0]].copy()
        for other in among[1:]:
            np.maximum(joined, latest[other], out=joined)
        for other in among:
            joined[other] = max(joined[other], self._arrivals[barrier][other] + 1)
        return joined

    def _known(self, core: int, at: int, other: int) -> int:
        """How many events of `other` have certainly happened when event `at` of `core` begins."""
        if core == other:
            return at
        index = self._row_of[core][at]
        return 0 if index < 0 else self._rows[index].item(other)

    def _confirmed(self) -> Proofs:
        """What the rule gives with the clocks as they are: the first wait that proves a signal."""
        found: Proofs = {}
        for semaphore, (signals, waits) in enumerate(zip(self._signals, self._waits, strict=True)):
            if not waits or not signals:
                continue
            owner = self._numbered.semaphores[semaphore].core
            # By how many of the owner's events come before it: more than `at`, and it is after w.
            ranked = sorted(
                (self._known(core, at, owner), core, at, amount, last)
                for core, at, amount, last in signals
            )
            total, largest, i = 0, 0, 0
            new: list[tuple[int, int, int]] = []
            for place, needed in waits:
                while i < len(ranked) and ranked[i][0] <= place:
                    _, core, at, amount, last = ranked[i]
                    total, largest = total + amount, max(largest, last)
                    new.append((last, core, at))
                    i += 1
                if total - largest >= needed:
                    continue
                found.update({(c, at, semaphore): place for a, c, at in new if total - a < needed})
                new = [entry for entry in new if total - entry[0] >= needed]
                largest = max((entry[0] for entry in new), default=0)
        return found

    def certain(self, first: Step, then: Where) -> bool:
        if first.part == "":
            return self._known(then.core, then.at, first.core) > first.at
        core, at, part = first
        copy = self._copies[core, at]
        # Its read is also over once its write is.
        for semaphore in (copy.send, copy.recv) if part == "read" else (copy.recv,):
            place = self._seen.get((core, at, semaphore))
            if place is not None:
                owner = self._numbered.semaphores[semaphore].core
                if self._known(then.core, then.at, owner) > place:
                    return True
        return False
