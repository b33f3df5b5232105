"""A search through all interleavings of what the devices of a mesh do.

A state is how far each device has come, and which signals are under way. From each state every
device may do its next step, and every signal under way may arrive: late, and in any order.

`search` leaves the delays out, as they add nothing: a run with delays is one without, if each
signal is moved to when it was sent. Every wait still finds what it found, as counts are only
higher, and each device comes as far. What a late signal can do wrong is to arrive where its
semaphore is gone; then the device that had it left with fewer signals than were sent to it, and
moved to when it was sent, the signal is left over there. (`search_with_delays` shows it for few
devices.) So all counts follow from how far each device has come, and that is the state.

For more devices `search(..., eager=True)` also lets each device send its signals at once with the
step before them. For the same reasons it misses nothing: of all runs with the same other steps it
looks at the one that signals the earliest.
"""

import collections
import itertools
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from .programs import (
    BARRIER,
    Enter,
    Exit,
    Mesh,
    Program,
    Semaphore,
    Signal,
    Step,
    Wait,
    coordinates,
)

Place: TypeAlias = tuple[int, Semaphore]  # a semaphore of a device
State: TypeAlias = tuple[int, ...]  # how far each device has come

MOST_STATES = 3_000_000


class Begin(NamedTuple):
    """A device enters a use of a barrier."""

    use: int


class End(NamedTuple):
    """A device leaves a use. Those named must have entered it."""

    use: int
    who: frozenset[int]


class Use(NamedTuple):
    """One use of a barrier: its programs, and for each device those it must have waited for."""

    programs: list[Program]
    waits_for: list[frozenset[int]]


def along(mesh: Mesh, axes: tuple[str, ...]) -> list[frozenset[int]]:
    """For each device those that differ from it in no other axis."""
    places = coordinates(mesh)
    others = [axis for axis in mesh if axis not in axes]
    return [
        frozenset(i for i, q in enumerate(places) if all(p[axis] == q[axis] for axis in others))
        for p in places
    ]


def neighbors(mesh: Mesh, axis: str) -> list[frozenset[int]]:
    """For each device itself and its neighbours on the ring along an axis."""
    places, size = coordinates(mesh), mesh[axis]
    rings = along(mesh, (axis,))
    return [
        frozenset(i for i in ring if (places[i][axis] - p[axis]) % size in (0, 1 % size, size - 1))
        for p, ring in zip(places, rings, strict=True)
    ]


def sequence(uses: Sequence[Use]) -> list[list[Step | Begin | End]]:
    """What each device does in these uses one after the other.

    Whether in one kernel or in kernels one after the other: the scopes of each use are its own.
    """
    devices: list[list[Step | Begin | End]] = []
    for device in range(len(uses[0].programs)):
        steps: list[Step | Begin | End] = []
        for number, use in enumerate(uses):

            def own(sem: Semaphore, number: int = number) -> Semaphore:
                return sem if sem == BARRIER else (sem[0] + 1000 * number, sem[1])

            steps.append(Begin(number))
            for step in use.programs[device]:
                if isinstance(step, (Signal, Wait)):
                    steps.append(step._replace(sem=own(step.sem)))
                else:
                    steps.append(step._replace(scope=own((step.scope, 0))[0]))
            steps.append(End(number, use.waits_for[device]))
        devices.append(steps)
    return devices


class _Run:
    """The devices, stopped somewhere."""

    def __init__(self, devices: list[list[Step | Begin | End]]) -> None:
        self.devices = devices
        self.begins = [
            {step.use: at for at, step in enumerate(steps) if isinstance(step, Begin)}
            for steps in devices
        ]
        self.spans = [self._spans(steps) for steps in devices]

    @staticmethod
    def _spans(steps: list[Step | Begin | End]) -> dict[int, tuple[int, int]]:
        begin = {step.scope: at for at, step in enumerate(steps) if isinstance(step, Enter)}
        return {
            step.scope: (begin[step.scope], at)
            for at, step in enumerate(steps)
            if isinstance(step, Exit)
        }

    def lives(self, device: int, sem: Semaphore, at: int) -> bool:
        """Whether a device that has come so far has the semaphore."""
        if sem == BARRIER:
            return True
        begin, end = self.spans[device].get(sem[0], (0, -1))
        return begin < at <= end

    def early(self, device: int, state: State) -> str | None:
        """What is wrong with the device leaving the use that it is at the end of."""
        step = self.devices[device][state[device]]
        assert isinstance(step, End)
        for other in step.who:
            if state[other] <= self.begins[other][step.use]:
                return f"{device} leaves use {step.use} before {other} has entered it"
        return None


class _Counts:
    """How high each semaphore stands, given how far each device has come."""

    def __init__(self, devices: list[list[Step | Begin | End]]) -> None:
        # For each semaphore of each device: who signals it, and the sums up to each step.
        self.signalled: dict[Place, list[tuple[int, list[int]]]] = {}
        self.taken: dict[Place, list[int]] = {}
        for device, steps in enumerate(devices):
            out = {(x.device, x.sem) for x in steps if isinstance(x, Signal)}
            for place in sorted(out):
                amounts = (
                    x.amount if isinstance(x, Signal) and (x.device, x.sem) == place else 0
                    for x in steps
                )
                sums = [0, *itertools.accumulate(amounts)]
                self.signalled.setdefault(place, []).append((device, sums))
            for sem in {x.sem for x in steps if isinstance(x, Wait)}:
                amounts = (x.amount if isinstance(x, Wait) and x.sem == sem else 0 for x in steps)
                self.taken[device, sem] = [0, *itertools.accumulate(amounts)]

    def count(self, place: Place, state: State) -> int:
        arrived = sum(sums[state[device]] for device, sums in self.signalled.get(place, ()))
        return arrived - (self.taken[place][state[place[0]]] if place in self.taken else 0)

    def left_in(self, device: int, scope: int, state: State) -> bool:
        """Whether a device has a count on a semaphore of a scope."""
        places = (place for place in self.signalled if place[0] == device and place[1][0] == scope)
        return any(self.count(place, state) for place in places)


class Result(NamedTuple):
    """The first fault that some interleaving shows, if any, and the number of states seen."""

    fault: str | None
    states: int


def search(uses: Sequence[Use], *, eager: bool = False) -> Result:
    """Search through all interleavings, signals arriving when they are sent."""
    run = _Run(sequence(uses))
    devices, counts = run.devices, _Counts(run.devices)
    start: State = (0,) * len(devices)
    seen, todo = {start}, collections.deque([start])

    def wrong(device: int, state: State) -> str | None:
        """What is wrong with the next step of a device."""
        step = devices[device][state[device]]
        if isinstance(step, Signal) and not run.lives(step.device, step.sem, state[step.device]):
            return f"{device} signals {step.device}, which has no {step.sem}"
        if isinstance(step, Exit) and counts.left_in(device, step.scope, state):
            return f"{device} leaves a count on scope {step.scope}"
        if isinstance(step, End):
            return run.early(device, state)
        return None

    while todo:
        state = todo.popleft()
        stuck = True
        for device, steps in enumerate(devices):
            if state[device] == len(steps):
                continue
            step = steps[state[device]]
            if isinstance(step, Wait) and counts.count((device, step.sem), state) < step.amount:
                continue
            stuck = False
            following = state
            while following is state or (
                eager
                and following[device] < len(steps)
                and isinstance(steps[following[device]], Signal)
            ):
                fault = wrong(device, following)
                if fault is not None:
                    return Result(fault, len(seen))
                at = following[device] + 1
                following = (*following[:device], at, *following[device + 1 :])
            if following not in seen:
                seen.add(following)
                todo.append(following)
                assert len(seen) < MOST_STATES, "too many states"
        if stuck:
            if any(at < len(steps) for at, steps in zip(state, devices, strict=True)):
                return Result("deadlock", len(seen))
            if any(counts.left_in(device, BARRIER[0], state) for device in range(len(devices))):
                return Result("a count is left on the barrier semaphore", len(seen))
    return Result(None, len(seen))


def search_with_delays(uses: Sequence[Use]) -> Result:
    """The same with every delay and order of arrival, without any short cut."""
    run = _Run(sequence(uses))
    devices = run.devices
    start: tuple[State, tuple[Place, ...], tuple[Place, ...]] = ((0,) * len(devices), (), ())
    seen, todo = {start}, collections.deque([start])

    def visit(state: State, under_way: list[Place], arrived: list[Place]) -> None:
        following = (state, tuple(sorted(under_way)), tuple(sorted(arrived)))
        if following not in seen:
            seen.add(following)
            todo.append(following)
            assert len(seen) < MOST_STATES, "too many states"

    while todo:
        state, under_way, arrived = todo.popleft()
        stuck = True
        for place in set(under_way):
            stuck = False
            if not run.lives(*place, state[place[0]]):
                return Result(f"a signal comes to {place[0]}, which has no {place[1]}", len(seen))
            rest = list(under_way)
            rest.remove(place)
            visit(state, rest, [*arrived, place])
        for device, steps in enumerate(devices):
            at = state[device]
            if at == len(steps):
                continue
            step, here, gone = steps[at], list(arrived), list(under_way)
            if isinstance(step, Wait):
                if here.count((device, step.sem)) < step.amount:
                    continue
                for _ in range(step.amount):
                    here.remove((device, step.sem))
            elif isinstance(step, Signal):
                gone += [(step.device, step.sem)] * step.amount
            elif isinstance(step, Exit) and any(
                owner == device and sem[0] == step.scope for owner, sem in here
            ):
                return Result(f"{device} leaves a count on scope {step.scope}", len(seen))
            elif isinstance(step, End) and (early := run.early(device, state)):
                return Result(early, len(seen))
            stuck = False
            visit((*state[:device], at + 1, *state[device + 1 :]), gone, here)
        if stuck:
            if any(at < len(steps) for at, steps in zip(state, devices, strict=True)):
                return Result("deadlock", len(seen))
            if arrived:
                return Result("a count is left on the barrier semaphore", len(seen))
    return Result(None, len(seen))
