"""The library's barriers, proved with the verifier: nothing is copied before who gets it is ready.

`tests/protocols` proves the signals of the barriers alone, over every interleaving. Here each
barrier stands in a kernel that copies to other devices, which is what a barrier is for. It must
order three things: a copy after the other device's entry into the kernel, a copy after the other
device has read what the copy before it brought, and all of that in the next call too.

Most kernels have a single sender. Where all send, who waits for what comes in has half a barrier
in that alone: on 4 devices it hides the fault of the barrier of one round.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import safepallas as sp
from safepallas import verify
from safepallas._operations import barriers as device_barriers
from safepallas.verification import Report

ROWS, COLS = 8, 128
BLOCK = jax.ShapeDtypeStruct((ROWS, COLS), jnp.float32)

Mesh = dict[str, int]
Barrier = Callable[[], None]


class Kernel(NamedTuple):
    """After each barrier, copy to the devices so many steps away along the axes; they read it.

    The copy after the next barrier overwrites that, so that barrier must wait until it was read.
    """

    barriers: Sequence[Barrier]
    axes: tuple[str, ...]
    steps: Sequence[int]
    all_send: bool = False  # or only the first device along the axes
    collective_id: int = 0


def call_of(kernel: Kernel, mesh: Mesh) -> Callable[..., Any]:
    axes, steps = kernel.axes, kernel.steps
    size = math.prod(mesh[axis] for axis in axes)
    key: Any = axes[0] if len(axes) == 1 else axes

    def body(x: sp.Ref, o: sp.Ref, seen: sp.Ref, send_sem: sp.DmaSemaphore, recv_sems: Any) -> None:
        here = jax.lax.axis_index(key)

        def send(slot: int, step: int) -> None:
            there = {key: jax.lax.rem(here + np.int32(step), np.int32(size))}
            sp.async_remote_copy(x, o.at[slot], send_sem, recv_sems.at[slot], there)

        def receive(slot: int) -> None:
            sp.wait_bytes(recv_sems.at[slot], o.at[slot])
            seen[...] = o[slot]

        for barrier in kernel.barriers:
            barrier()
            for slot, step in enumerate(steps):
                pl.when(kernel.all_send or here == 0)(functools.partial(send, slot, step))
            for slot, step in enumerate(steps):
                pl.when(kernel.all_send or here == step)(functools.partial(receive, slot))
                pl.when(kernel.all_send or here == 0)(lambda: sp.wait_bytes(send_sem, x))

    vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
    return sp.pallas_call(
        body,
        (jax.ShapeDtypeStruct((len(steps), ROWS, COLS), jnp.float32), BLOCK),
        in_specs=[vmem],
        out_specs=(vmem, vmem),
        scratch_shapes=(sp.dma_semaphore(), sp.dma_semaphore(len(steps))),
        compiler_params=pltpu.CompilerParams(collective_id=kernel.collective_id),
    )


def judge(mesh: Mesh, *kernels: Kernel, calls: int = 2) -> Report:
    """The verdict on these kernels one after the other, all of it `calls` times."""
    made = [call_of(kernel, mesh) for kernel in kernels]

    def all_calls(x: jax.Array) -> jax.Array:
        for call in made:
            _, x = call(x)
        return x

    kinds = (AxisType.Auto,) * len(mesh)
    devices = AbstractMesh(tuple(mesh.values()), tuple(mesh), axis_types=kinds)
    fn = jax.shard_map(all_calls, mesh=devices, in_specs=P(), out_specs=P(), check_vma=False)
    return verify(fn, BLOCK, calls=calls)


def is_safe(mesh: Mesh, *kernels: Kernel, calls: int = 2) -> None:
    """Safe, and there was something to prove."""
    report = judge(mesh, *kernels, calls=calls)
    assert report.verdict == "safe", str(report)
    assert report.program is not None
    assert len(report.program.calls) == calls * len(kernels)
    assert report.analysis is not None
    copies = sum(len(k.barriers) * len(k.steps) * senders(k, mesh) for k in kernels)
    assert report.analysis.counts["copies"] == calls * copies


def senders(kernel: Kernel, mesh: Mesh) -> int:
    """One for each part of the mesh, or all."""
    along = math.prod(mesh[axis] for axis in kernel.axes)
    return math.prod(mesh.values()) // (1 if kernel.all_send else along)


def finds_race(mesh: Mesh, *kernels: Kernel, calls: int = 2) -> None:
    """A race, and the report points at the copy."""
    report = judge(mesh, *kernels, calls=calls)
    assert report.verdict == "unsafe", str(report)
    assert "race" in {finding.kind.value for finding in report.findings}
    lines = [line for finding in report.findings for line in finding.lines if line.number]
    assert {Path(line.file).name for line in lines} == {Path(__file__).name}
    assert any("async_remote_copy" in source(line.number) for line in lines), str(report)


def source(number: int) -> str:
    return Path(__file__).read_text(encoding="utf-8").splitlines()[number - 1]


def neighbors() -> None:
    sp.barrier_neighbors("x")


def everyone() -> None:
    sp.barrier_all("x")


KINDS = {"neighbors": neighbors, "all": everyone}


def reached(kind: str, size: int) -> list[int]:
    """How far a copy may go after a barrier of that kind: to these devices, and to oneself."""
    if size == 1:
        return [0]
    if kind == "neighbors":
        return sorted({1, size - 1})
    return list(range(1, size))


def ids(names: Sequence[str]) -> str:
    return "-then-".join(names)


SIZES = range(1, 10)
# Alone, and then each before each: after a barrier comes the next one of the kernel, or the first
# one of the next call.
TWO = list(itertools.product(KINDS, repeat=2))
ORDERS = [("neighbors",), ("all",), *TWO]


@pytest.fixture
def two_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rings of 4 and 5 take the protocol of larger ones."""
    monkeypatch.setattr(device_barriers, "ALL_TO_ALL", 3)


def proves(
    mesh: Mesh, barriers: Sequence[Barrier], axes: tuple[str, ...], reach: list[int]
) -> None:
    """Safe for a copy to any one device within reach, and for all of them from all devices."""
    for step in reach:
        is_safe(mesh, Kernel(barriers, axes, [step]))
    is_safe(mesh, Kernel(barriers, axes, reach, all_send=True))


@pytest.mark.parametrize("order", ORDERS, ids=ids)
@pytest.mark.parametrize("size", SIZES)
def test_copies_to_neighbours(size: int, order: Sequence[str]) -> None:
    barriers = [KINDS[kind] for kind in order]
    proves({"x": size}, barriers, ("x",), reached("neighbors", size))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("size", SIZES)
def test_copies_to_any_device(size: int, count: int) -> None:
    proves({"x": size}, [everyone] * count, ("x",), reached("all", size))


@pytest.mark.parametrize("order", TWO, ids=ids)
@pytest.mark.parametrize("size", SIZES)
def test_two_kernels_that_share_an_id(size: int, order: Sequence[str]) -> None:
    farthest = {"neighbors": min(1, size - 1), "all": size // 2}
    first, second = (Kernel([KINDS[kind]], ("x",), [farthest[kind]]) for kind in order)
    is_safe({"x": size}, first, second)


@pytest.mark.usefixtures("two_rounds")
@pytest.mark.parametrize("order", ORDERS, ids=ids)
@pytest.mark.parametrize("size", [4, 5])
def test_two_rounds_on_few_devices(size: int, order: Sequence[str]) -> None:
    barriers = [KINDS[kind] for kind in order]
    proves({"x": size}, barriers, ("x",), reached("neighbors", size))


@pytest.mark.parametrize(
    "mesh",
    [{"x": 2, "y": 2}, {"x": 2, "y": 3}, {"x": 3, "y": 3}, {"x": 6, "y": 2}],
    ids=str,
)
def test_a_mesh_of_two_axes(mesh: Mesh) -> None:
    for axis, size in mesh.items():
        neighbors = functools.partial(sp.barrier_neighbors, axis)
        everyone = functools.partial(sp.barrier_all, axis)
        proves(mesh, [neighbors], (axis,), reached("neighbors", size))
        proves(mesh, [everyone, neighbors], (axis,), reached("neighbors", size))
        proves(mesh, [everyone], (axis,), reached("all", size))
    both = functools.partial(sp.barrier_all, ("y", "x"))
    proves(mesh, [both], ("x", "y"), reached("all", math.prod(mesh.values())))


def test_each_axis_with_an_id_of_its_own() -> None:
    """Barriers over different axes may follow each other where they count apart."""
    mesh = {"x": 2, "y": 2}
    over_x = Kernel([everyone], ("x",), [1], collective_id=0)
    over_y = Kernel([lambda: sp.barrier_all("y")], ("y",), [1], collective_id=1)
    is_safe(mesh, over_x, over_y)
    finds_race(mesh, over_x, over_y._replace(collective_id=0))


# What must be found: else the above proves nothing.


def exchange(sem: Any, size: int, steps: Sequence[int], amount: int) -> None:
    here = jax.lax.axis_index("x")
    for step in steps:
        sp.signal(sem, device_id={"x": jax.lax.rem(here + np.int32(step), np.int32(size))})
    sp.wait(sem, amount)


def by_hand(size: int) -> Barrier:
    """The barrier of one round between neighbours that stands in many kernels."""
    return lambda: exchange(sp.get_barrier_semaphore(), size, (1, size - 1), 2)


def all_to_all(size: int) -> Barrier:
    return lambda: exchange(sp.get_barrier_semaphore(), size, range(1, size), size - 1)


def no_barrier_at_all() -> None:
    barrier = sp.get_barrier_semaphore()
    sp.signal(barrier)
    sp.wait(barrier)


def waits_for_one(size: int) -> Barrier:
    return lambda: exchange(sp.get_barrier_semaphore(), size, (1, size - 1), 1)


@pytest.mark.parametrize("size", range(2, 10))
def test_one_round_by_hand(size: int) -> None:
    """Safe once, which is why nobody notices. On 2 and 3 devices the neighbours are all others."""
    kernel = Kernel([by_hand(size)], ("x",), [1])
    is_safe({"x": size}, kernel, calls=1)
    if size < 4:
        is_safe({"x": size}, kernel)
    else:
        finds_race({"x": size}, kernel)


def test_what_comes_in_may_hide_the_fault() -> None:
    """On a ring of 4 who is signalled twice by one neighbour has kept that neighbour waiting."""
    is_safe({"x": 4}, Kernel([by_hand(4)], ("x",), [1], all_send=True))
    finds_race({"x": 5}, Kernel([by_hand(5)], ("x",), [1], all_send=True))


@pytest.mark.parametrize("size", [4, 5, 9])
def test_one_round_by_hand_twice_in_a_kernel(size: int) -> None:
    finds_race({"x": size}, Kernel([by_hand(size)] * 2, ("x",), [1]), calls=1)


@pytest.mark.parametrize("size", range(2, 10))
def test_no_barrier(size: int) -> None:
    finds_race({"x": size}, Kernel([no_barrier_at_all], ("x",), [1]), calls=1)


@pytest.mark.parametrize("size", [3, 4, 9])
def test_a_wait_for_too_few(size: int) -> None:
    finds_race({"x": size}, Kernel([waits_for_one(size)], ("x",), [1]), calls=1)


@pytest.mark.parametrize("size", [6, 9])
def test_a_barrier_of_neighbours_is_none_of_all(size: int) -> None:
    """It holds a device until those two places away have entered, and not further."""
    is_safe({"x": size}, Kernel([neighbors], ("x",), [2]), calls=1)
    finds_race({"x": size}, Kernel([neighbors], ("x",), [3]), calls=1)


@pytest.mark.parametrize("size", [6, 7, 8, 9])
def test_without_the_second_round(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = device_barriers._exchange

    def only_the_first(sem: Any, ring: Any, steps: Sequence[int]) -> None:
        if isinstance(sem, sp.BarrierSemaphore):
            exchange(sem, ring, steps)

    monkeypatch.setattr(device_barriers, "_exchange", only_the_first)
    finds_race({"x": size}, Kernel([neighbors], ("x",), [1]))


@pytest.mark.parametrize("size", [6, 9])
def test_too_few_rounds(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_step(size: int) -> list[int]:
        return [1]

    monkeypatch.setattr(device_barriers, "_steps", one_step)
    finds_race({"x": size}, Kernel([everyone], ("x",), [size // 2]), calls=1)


def test_mixed_with_a_barrier_by_hand() -> None:
    """In one kernel `MixedBarriersError` refuses it; kernels that share an id can still do it."""
    one = Kernel([neighbors], ("x",), [1])
    other = Kernel([all_to_all(6)], ("x",), [1])
    is_safe({"x": 6}, one)
    is_safe({"x": 6}, other)
    report = judge({"x": 6}, one, other)
    # A neighbour is signalled that has not allocated the semaphore of the second round.
    assert {finding.kind.value for finding in report.findings} == {"remote-before-entry"}
    assert "sp.barrier_neighbors" in source(report.findings[0].lines[0].number)
