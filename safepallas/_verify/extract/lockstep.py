"""Cores that go through their programs in lockstep, where numbers travel from one to another.

What a peer sends may decide which branch is taken: counts before data, in an all-to-all. Then each
core is followed until it must wait for another, and goes on when what it waits for is there. Who
reads before the number is sure to have come has a race, which is found later as any other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Hashable, Sequence
from typing import TypeAlias

from safepallas._verify.extract.memory import Contents, NumpyIndex, Value
from safepallas._verify.extract.values import Known
from safepallas._verify.program import Barrier, Enter, Event, Semaphore, Signal, Start, Wait

# What a core still does, up to each place where it waits for another. It yields there.
Pause: TypeAlias = Generator[None, None, None]


def _until_resumed() -> Pause:
    yield


class Lockstep:
    """Counts semaphores and keeps what buffers hold while the cores run in turns."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._ready = deque(range(size))
        self._values: dict[Semaphore, int] = {}
        self._waiting: dict[Semaphore, int] = {}
        self._arrived: dict[Hashable, list[int]] = {}
        self._given: dict[Hashable, dict[int, Value]] = {}
        self.exchanging: set[int] = set()  # the cores that wait for others to come to a collective
        self._contents: dict[tuple[int, Hashable], Contents] = {}
        self._early: dict[tuple[int, Hashable], list[tuple[NumpyIndex, Known]]] = {}

    def run(self, cores: Sequence[Pause]) -> None:
        """Resume one core after the other, until all have ended or none can go on."""
        try:
            while self._ready:
                next(cores[self._ready.popleft()], None)
        finally:
            for core in cores:
                core.close()

    def apply(self, event: Event) -> None:
        """Do what an event does to semaphores at once."""
        if isinstance(event, Signal):
            self._add(event.semaphore, event.amount)
        elif isinstance(event, Start):
            self._add(event.send, event.amount)
            self._add(event.recv, event.amount)

    def block(self, core: int, event: Enter | Barrier | Wait) -> Pause | None:
        """What a core does where it waits; None where it need not."""
        if isinstance(event, Wait):
            return self._wait(core, event)
        if isinstance(event, Barrier):
            return self._arrive(core, ("barrier", event.key), len(event.among))
        return self._arrive(core, event.call, self._size) if event.barrier else None

    def exchange(
        self, core: int, key: Hashable, value: Value
    ) -> Generator[None, None, dict[int, Value]]:
        """Say what this core has; when all have, get what each of them has."""
        given = self._given.setdefault(key, {})
        given[core] = value
        pause = self._arrive(core, ("exchange", key), self._size)
        if pause is not None:
            self.exchanging.add(core)
            yield from pause
            self.exchanging.remove(core)
        return given

    def _wait(self, core: int, event: Wait) -> Pause | None:
        if self._values.get(event.semaphore, 0) < event.amount:
            return self._wait_for_more(core, event)
        self._values[event.semaphore] = self._values.get(event.semaphore, 0) - event.amount
        return None

    def _wait_for_more(self, core: int, event: Wait) -> Pause:
        while self._values.get(event.semaphore, 0) < event.amount:
            self._waiting[event.semaphore] = core
            yield
        self._values[event.semaphore] -= event.amount

    def _arrive(self, core: int, key: Hashable, size: int) -> Pause | None:
        here = self._arrived.setdefault(key, [])
        here.append(core)
        if len(here) < size:
            return _until_resumed()
        self._ready.extend(other for other in here if other != core)
        return None

    def _add(self, semaphore: Semaphore | None, amount: int) -> None:
        if semaphore is None:
            return
        self._values[semaphore] = self._values.get(semaphore, 0) + amount
        waiting = self._waiting.pop(semaphore, None)
        if waiting is not None:
            self._ready.append(waiting)

    def hold(self, core: int, allocation: Hashable, contents: Contents) -> None:
        """From now on, that is what the allocation, or the place, of that core holds."""
        self._contents[core, allocation] = contents
        for at, value in self._early.pop((core, allocation), ()):
            contents.store(at, value)

    def send(self, core: int, allocation: Hashable, at: NumpyIndex, value: Known) -> None:
        """Numbers arrive at another core."""
        contents = self._contents.get((core, allocation))
        if contents is None:  # that core has not come to its allocation yet
            self._early.setdefault((core, allocation), []).append((at, value))
        else:
            contents.store(at, value)
