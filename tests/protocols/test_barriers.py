"""`barrier_neighbors` and `barrier_all` under every interleaving of few devices."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest

import safepallas as sp
from safepallas._operations import barriers

from .programs import BARRIER, Enter, Mesh, Program, Signal, Wait, programs_of
from .search import Use, along, neighbors, search, search_with_delays

KINDS = ("neighbors", "all")


def use(kind: str, mesh: Mesh, *axes: str) -> Use:
    """One use of a barrier over these axes, as it is now in the library."""
    if kind == "neighbors":
        (axis,) = axes
        return Use(programs_of(lambda: sp.barrier_neighbors(axis), mesh), neighbors(mesh, axis))
    return Use(programs_of(lambda: sp.barrier_all(axes), mesh), along(mesh, axes))


def line(size: int, kinds: Sequence[str]) -> list[Use]:
    """Uses of these kinds one after the other on a mesh of one axis."""
    made = {kind: use(kind, {"x": size}, "x") for kind in set(kinds)}
    return [made[kind] for kind in kinds]


def ids(kinds: Sequence[str]) -> str:
    return "-then-".join(kinds)


TWO = list(itertools.product(KINDS, repeat=2))
THREE = list(itertools.product(KINDS, repeat=3))


@pytest.fixture
def two_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rings of 4 and 5 take the protocol of larger ones."""
    monkeypatch.setattr(barriers, "ALL_TO_ALL", 3)


@pytest.mark.parametrize("kinds", THREE, ids=ids)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_small_rings(size: int, kinds: Sequence[str]) -> None:
    assert search(line(size, kinds)).fault is None


def test_ring_of_five() -> None:
    assert search(line(5, ("neighbors", "all"))).fault is None


# Two rounds do the same for both kinds on so few devices: one stands for the other.


@pytest.mark.usefixtures("two_rounds")
def test_two_rounds_on_four() -> None:
    one, other = line(4, KINDS)
    assert one.programs == other.programs
    assert search([other, other, other]).fault is None


@pytest.mark.usefixtures("two_rounds")
def test_two_rounds_on_five() -> None:
    assert search(line(5, ("all", "all"))).fault is None


@pytest.mark.parametrize("kinds", TWO, ids=ids)
def test_ring_of_six(kinds: Sequence[str]) -> None:
    """Three rounds for all."""
    assert search(line(6, kinds), eager=True).fault is None


def test_ring_of_six_twice_each() -> None:
    uses = line(6, ("neighbors", "all", "all", "neighbors"))
    assert search(uses, eager=True).fault is None


def test_ring_of_seven() -> None:
    assert search(line(7, ("neighbors", "all")), eager=True).fault is None


@pytest.mark.parametrize("kinds", THREE, ids=ids)
@pytest.mark.parametrize("size", [2, 3])
def test_late_signals(size: int, kinds: Sequence[str]) -> None:
    assert search_with_delays(line(size, kinds)).fault is None


@pytest.mark.usefixtures("two_rounds")
def test_late_signals_in_two_rounds() -> None:
    assert search_with_delays(line(4, ("all", "all"))).fault is None


@pytest.mark.parametrize(
    ("mesh", "axes"),
    [
        ({"x": 2, "y": 2}, ("y",)),
        ({"x": 2, "y": 2}, ("x", "y")),
        ({"x": 1, "y": 3}, ("x", "y")),
        ({"x": 2, "y": 3}, ("x", "y")),  # a ring of six
        ({"z": 2, "x": 2, "y": 1}, ("x",)),
        ({"x": 2, "z": 1, "y": 2}, ("y", "x")),
    ],
    ids=str,
)
def test_part_of_a_mesh(mesh: Mesh, axes: tuple[str, ...]) -> None:
    one = use("all", mesh, *axes)
    assert search([one, one], eager=True).fault is None


def test_neighbors_on_one_axis_of_two() -> None:
    mesh = {"x": 2, "y": 3}
    for axis in mesh:
        one, other = use("neighbors", mesh, axis), use("all", mesh, axis)
        assert search([one, other, one], eager=True).fault is None


def test_the_order_of_the_axes_does_not_matter() -> None:
    """Nor do axes of size one: else one ring would be two to who mixes them."""
    mesh = {"x": 2, "z": 1, "y": 3}
    wanted = programs_of(lambda: sp.barrier_all(("x", "y")), mesh)
    for axes in (("y", "x"), ["y", "z", "x"], ("z", "x", "y")):
        assert programs_of(lambda axes=axes: sp.barrier_all(axes), mesh) == wanted


# How many signals each device sends, by the docstrings.
def cost(kind: str, size: int) -> int:
    if size == 1:
        return 1  # to itself, and not over the wire
    if size <= 5:
        return size - 1
    return 4 if kind == "neighbors" else 2 * (math.ceil(math.log2(size // 2)) + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_cost(kind: str) -> None:
    for size in (*range(1, 19), 33, 34, 64):
        for program in use(kind, {"x": size}, "x").programs:
            assert sum(isinstance(step, Signal) for step in program) == cost(kind, size)


@pytest.mark.parametrize("size", [*range(6, 20), 33, 34])
def test_what_devices_know_on_large_rings(size: int) -> None:
    """In step: every device sends, then every device waits. Who is known to have entered?

    The proof of the docstring, on the programs: nobody is signalled on a scoped semaphore who is
    not known to be in the scope, each round has a semaphore of its own, and in the end all are
    known.
    """
    programs = use("all", {"x": size}, "x").programs
    known = [{device} for device in range(size)]
    first: list[list[int]] = []
    rounds: list[list[tuple[Program, Wait]]] = []
    for program in programs:
        assert isinstance(program[0], Enter)  # before any signal
        signalled: Program = []
        mine = []
        for step in program[1:-1]:
            if isinstance(step, Wait):
                mine.append((signalled, step))
                signalled = []
            else:
                signalled.append(step)
        rounds.append(mine)
    assert [len({wait.sem for _, wait in mine}) for mine in rounds] == [len(rounds[0])] * size
    for number in range(len(rounds[0])):
        heard: list[list[int]] = [[] for _ in range(size)]
        for device, mine in enumerate(rounds):
            signalled, wait = mine[number]
            for step in signalled:
                assert isinstance(step, Signal)
                assert step.sem == wait.sem
                assert step.sem == BARRIER or step.device in known[device]
                heard[step.device].append(device)
        for senders, mine in zip(heard, rounds, strict=True):
            assert len(set(senders)) == len(senders) == mine[number][1].amount
        known = [
            known[device].union(*(known[sender] for sender in senders))
            for device, senders in enumerate(heard)
        ]
        if number == 0:
            first = heard
        elif number == 1:  # those who signal on the barrier semaphore wait until we are past it
            assert heard == first
    assert known == [set(range(size))] * size


# What must be found: else the searches above prove nothing.


def ring(steps: Sequence[int], size: int, axis: str = "x") -> list[dict[str, jax.Array]]:
    here = jax.lax.axis_index(axis)
    return [{axis: jax.lax.rem(here + np.int32(step), np.int32(size))} for step in steps]


def exchange(sem: Any, size: int, steps: Sequence[int], amount: int, axis: str = "x") -> None:
    for device in ring(steps, size, axis):
        sp.signal(sem, device_id=device)
    sp.wait(sem, amount)


def one_round(size: int, axis: str = "x") -> None:
    """The barrier between neighbours that stands in many kernels."""
    exchange(sp.get_barrier_semaphore(), size, (1, size - 1), 2, axis)


def all_to_all(size: int, axis: str = "x") -> None:
    exchange(sp.get_barrier_semaphore(), size, range(1, size), size - 1, axis)


def allocated_late(size: int) -> None:
    one_round(size)
    sp.run_scoped(lambda sem: exchange(sem, size, (1, size - 1), 2), sp.semaphore())


def only_to_the_right(size: int) -> None:
    def inside(sem: sp.Semaphore) -> None:
        one_round(size)
        exchange(sem, size, (1,), 1)

    sp.run_scoped(inside, sp.semaphore())


def waits_for_too_many(size: int) -> None:
    exchange(sp.get_barrier_semaphore(), size, (1, size - 1), 3)


def waits_for_too_few(size: int) -> None:
    exchange(sp.get_barrier_semaphore(), size, (1, size - 1), 1)


def leaves_a_count(size: int) -> None:
    def inside(sem: sp.Semaphore) -> None:
        one_round(size)
        exchange(sem, size, (1, size - 1), 2)
        sp.signal(sem)

    sp.run_scoped(inside, sp.semaphore())


NAIVE: dict[str, tuple[Callable[[int], None], int, str]] = {
    "one round": (one_round, 4, "before"),
    "allocated late": (allocated_late, 4, "has no"),
    "second round to one side": (only_to_the_right, 5, "has no"),
    "waits for too many": (waits_for_too_many, 4, "deadlock"),
    "waits for too few": (waits_for_too_few, 4, "before"),
    "leaves a count": (leaves_a_count, 4, "leaves a count"),
}


@pytest.mark.parametrize("name", NAIVE)
def test_fault_is_found(name: str) -> None:
    body, size, what = NAIVE[name]
    one = Use(programs_of(lambda: body(size), {"x": size}), neighbors({"x": size}, "x"))
    for eager in (False, True):
        fault = search([one, one], eager=eager).fault
        assert fault is not None
    assert what in str(search([one, one]).fault)
    assert search_with_delays([one, one]).fault is not None


def test_count_left_on_the_barrier_semaphore_is_found() -> None:
    def body() -> None:
        barrier = sp.get_barrier_semaphore()
        sp.signal(barrier, 2, device_id={"x": 1 - jax.lax.axis_index("x")})
        sp.wait(barrier)

    one = Use(programs_of(body, {"x": 2}), along({"x": 2}, ("x",)))
    for result in (search([one]), search([one], eager=True), search_with_delays([one])):
        assert result.fault == "a count is left on the barrier semaphore"


def test_one_round_is_safe_once() -> None:
    """Which is why nobody notices."""
    one = Use(programs_of(lambda: one_round(4), {"x": 4}), neighbors({"x": 4}, "x"))
    assert search([one]).fault is None
    assert search_with_delays([one]).fault is None


def test_too_few_rounds_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(barriers, "_steps", lambda size: [1])
    assert "before" in str(search(line(6, ["all"]), eager=True).fault)


def test_neighbors_mixed_with_all_to_all_is_found() -> None:
    """Each safe by itself. Six devices are all that it takes, hence the rounds of `barrier_all`."""
    mesh = {"x": 6}
    everyone = Use(programs_of(lambda: all_to_all(6), mesh), along(mesh, ("x",)))
    assert search([everyone], eager=True).fault is None
    uses = [use("neighbors", mesh, "x"), everyone]
    assert search(uses, eager=True).fault is not None


def test_two_axes_on_one_semaphore_is_found() -> None:
    """What `MixedBarriersError` refuses. Kernels that share an id can still do it."""
    mesh = {"x": 2, "y": 2}
    uses = [use("all", mesh, "x"), use("all", mesh, "y")]
    assert search(uses).fault is not None
    assert search_with_delays(uses).fault is not None


def test_by_hand_on_the_same_semaphore_is_found() -> None:
    mesh = {"x": 6}
    by_hand = Use(programs_of(lambda: all_to_all(6), mesh), along(mesh, ("x",)))
    assert search([use("all", mesh, "x"), by_hand], eager=True).fault is None  # as luck has it
    assert search([use("neighbors", mesh, "x"), by_hand], eager=True).fault is not None
