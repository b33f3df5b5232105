"""Cores that go through their programs together, where numbers travel from one to another.

What a peer sends may decide which branch is taken: counts before data, in an all-to-all. Then each
core runs in a thread of its own, only ever one at a time, until it must wait for another. Who
reads before the number is sure to have come has a race, which is found later as any other.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

import jax

from safepallas._jax import compat
from safepallas._verify.extract.memory import Contents
from safepallas._verify.program import Barrier, Enter, Event, Semaphore, Signal, Start, Wait


class _EndOfRun(BaseException):
    """Nothing goes on any more: unwinds the thread of a core."""


class Lockstep:
    """Counts semaphores and keeps what buffers hold while the cores run in turns."""

    def __init__(self, size: int) -> None:
        self._go = [threading.Semaphore(0) for _ in range(size)]
        self._back = threading.Semaphore(0)
        self._ready = deque(range(size))
        self._values: dict[Semaphore, int] = {}
        self._sleepers: dict[Semaphore, int] = {}
        self._arrived: dict[Hashable, list[int]] = {}
        self._contents: dict[tuple[int, int], Contents] = {}
        self._early: dict[tuple[int, int], list[tuple[Any, Any]]] = {}
        self._is_over = False
        self._error: BaseException | None = None

    def run(self, bodies: list[Callable[[], None]]) -> None:
        """Run one body for each core, until all have ended or none can go on."""
        x64 = compat.x64_enabled()
        threads = [
            threading.Thread(target=self._act, args=(core, body, x64), daemon=True)
            for core, body in enumerate(bodies)
        ]
        for thread in threads:
            thread.start()
        while self._ready and self._error is None:
            self._go[self._ready.popleft()].release()
            self._back.acquire()
        self._is_over = True
        for core, thread in enumerate(threads):
            self._go[core].release()
            thread.join()
        if self._error is not None:
            raise self._error

    def _act(self, core: int, body: Callable[[], None], x64: bool) -> None:
        self._go[core].acquire()
        try:
            if not self._is_over:
                with jax.enable_x64(x64):  # this setting belongs to a thread
                    body()
        except _EndOfRun:
            pass
        except BaseException as error:
            self._error = self._error or error
        finally:
            self._back.release()

    def _block(self, core: int) -> None:
        self._back.release()
        self._go[core].acquire()
        if self._is_over:
            raise _EndOfRun

    def happen(self, core: int, event: Event) -> None:
        """Do what an event does to semaphores, and wait where it waits."""
        if isinstance(event, Signal):
            self._give(event.semaphore, event.amount)
        elif isinstance(event, Start):
            self._give(event.send, event.amount)
            self._give(event.recv, event.amount)
        elif isinstance(event, Wait):
            while self._values.get(event.semaphore, 0) < event.amount:
                self._sleepers[event.semaphore] = core
                self._block(core)
            self._values[event.semaphore] -= event.amount
        elif isinstance(event, Enter) and event.barrier:
            self._meet(core, event.call, len(self._go))
        elif isinstance(event, Barrier):
            self._meet(core, ("meet", event.key), len(event.among))

    def _meet(self, core: int, key: Hashable, size: int) -> None:
        here = self._arrived.setdefault(key, [])
        here.append(core)
        if len(here) < size:
            self._block(core)
        else:
            self._ready.extend(other for other in here if other != core)

    def _give(self, semaphore: Semaphore | None, amount: int) -> None:
        if semaphore is None:
            return
        self._values[semaphore] = self._values.get(semaphore, 0) + amount
        sleeper = self._sleepers.pop(semaphore, None)
        if sleeper is not None:
            self._ready.append(sleeper)

    def hold(self, core: int, allocation: int, contents: Contents) -> None:
        """From now on, that is what the allocation of that core holds."""
        self._contents[core, allocation] = contents
        for at, value in self._early.pop((core, allocation), ()):
            contents.store(at, value)

    def send(self, core: int, allocation: int, at: Any, value: Any) -> None:
        """Numbers arrive at another core."""
        contents = self._contents.get((core, allocation))
        if contents is None:  # the owner is not there yet
            self._early.setdefault((core, allocation), []).append((at, value))
        else:
            contents.store(at, value)
