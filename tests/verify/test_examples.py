"""Every example of docs/examples is safe, and a small mistake in it is found.

Each example is verified on 2, 4 and 8 devices, or once where it runs on one. The mistakes show
that the verdict is more than a habit: a line changed, and the report names that protocol's fault.
"""

import linecache
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import jax
import pytest
from jax.sharding import AbstractDevice, AbstractMesh, AxisType

from safepallas import verify
from safepallas._verify.program import Line
from safepallas.verification import Report

from ..loading import load

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))

# `build()` of these makes a kernel for one device, whatever the mesh.
ON_ONE_DEVICE = {"double_buffer", "paged_attention", "paged_copy", "sparse_core_gather"}
SIZES = [2, 4, 8]

# Their protocol depends on values: lengths, counts, tables. Of all others a shape will do.
BY_VALUE = {"moe_all_to_all", "paged_attention", "paged_copy", "sparse_core_gather"}

# Cores of each device, where it is more than one: the vector subcores of a TPU v6 lite.
CORES = {"sparse_core_gather": 32}

RUNS = [
    pytest.param(name, size, id=name if size is None else f"{name}-{size}")
    for name in NAMES
    for size in ([None] if name in ON_ONE_DEVICE else SIZES)
]


def on_chip(name: str) -> AbstractContextManager[Any]:
    """Let JAX believe in a chip that has SparseCores, for an example that asks for them."""
    if not name.startswith("sparse_core_"):
        return nullcontext()
    chip = AbstractDevice("TPU v6 lite", 1, "tpu")
    context: Any = jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=chip))
    return context  # type: ignore[no-any-return]


def judge(path: Path, size: int | None) -> Report:
    module = load(path)
    made: list[Any] = []

    def build() -> Any:
        mesh = size and AbstractMesh((size,), ("x",), axis_types=(AxisType.Auto,))
        fn, args = module.build(mesh or None)
        made.append(fn)
        return args

    # Shapes are quicker: nothing is compiled to make the values.
    args = build() if path.stem in BY_VALUE else jax.eval_shape(build)
    with on_chip(path.stem):
        return verify(made[0], *args)


def source(line: Line) -> str:
    return linecache.getline(line.file, line.number)


@pytest.mark.parametrize(("name", "size"), RUNS)
def test_verdict(name: str, size: int | None) -> None:
    report = judge(EXAMPLES / f"{name}.py", size)
    assert report.verdict == "safe", str(report)
    report.raise_if_unsafe()
    assert report.program is not None
    assert len(report.program.cores) == (size or 1) * CORES.get(name, 1)
    assert report.analysis is not None
    assert report.analysis.counts["copies"] > 0


def test_a_kernel_with_a_barrier_is_called_twice() -> None:
    """Else a signal that is left over from the first call would go unnoticed."""
    report = judge(EXAMPLES / "ring_all_reduce.py", 4)
    assert report.program is not None
    assert len(report.program.calls) == 2


class Mistake(NamedTuple):
    """A change of one place in an example, and what must come of it."""

    example: str
    what: str
    old: str
    new: str
    size: int | None  # of the mesh
    kinds: set[str]  # of what is found, all of it
    line: str  # stands in a line that a finding names
    safe_on: tuple[int, ...] = ()  # so few devices that the mistake does no harm


# Nothing but what the compiler wants to see where a kernel has a `collective_id`.
NO_BARRIER = "[sp.signal(sp.get_barrier_semaphore()), sp.wait(sp.get_barrier_semaphore())]"

MISTAKES = [
    Mistake(
        "ring_all_gather",
        "one receive semaphore for all hops",
        "recv.at[hop]",
        "recv.at[0]",
        4,
        {"race"},
        "async_remote_copy",
        safe_on=(2,),
    ),
    Mistake(
        "ring_all_gather",
        "own block not waited for before it is passed on",
        "sp.async_copy(x, o.at[me], local).wait()",
        "own = sp.async_copy(x, o.at[me], local)",
        2,
        {"race", "leak"},
        "async_copy",
    ),
    Mistake(
        "ring_all_reduce",
        "credit not waited for",
        "            sp.wait(s.credit)",
        "            pass",
        4,
        {"race", "leak"},
        "async_remote_copy",
        safe_on=(2,),
    ),
    Mistake(
        "ring_all_reduce",
        "a credit too many",
        "if hop < size - 2:",
        "if hop < size - 1:",
        2,
        {"leak"},
        "sp.signal(s.credit",
    ),
    Mistake(
        "ring_all_reduce",
        "a credit to the wrong side",
        'sp.signal(s.credit, device_id={"x": left})',
        'sp.signal(s.credit, device_id={"x": right})',
        4,
        {"race"},
        "async_remote_copy",
        safe_on=(2,),
    ),
    Mistake(
        "ring_all_reduce",
        "no barrier",
        "    sp.wait(barrier, 2)",
        "    pass",
        2,
        {"race", "leak"},
        "barrier",
    ),
    Mistake(
        "collective_matmul",
        "credit granted before the half is passed on",
        "@pl.when((column == blocks - 1) & (step < size - 2))",
        "@pl.when((column == 0) & (step < size - 2))",
        4,
        {"race"},
        "s.slots",
    ),
    Mistake(
        "collective_matmul",
        "a credit too many",
        "@pl.when((column == blocks - 1) & (step < size - 2))",
        "@pl.when((column == blocks - 1) & (step < size - 1))",
        2,
        {"leak"},
        "sp.signal(s.credit",
    ),
    Mistake(
        "moe_all_to_all",
        "no barrier",
        'sp.barrier_all("x")',
        NO_BARRIER,
        2,
        {"race"},
        "async_remote_copy",
    ),
    Mistake(
        "moe_all_to_all",
        "one receive semaphore for all sources",
        "s.received.at[me]",
        "s.received.at[ZERO]",
        4,
        {"deadlock"},
        "sp.wait_bytes(s.received",
    ),
    Mistake(
        "start_done",
        "no barrier",
        'sp.barrier_neighbors("x")',
        NO_BARRIER,
        2,
        {"race"},
        "async_remote_copy",
    ),
    Mistake(
        "start_done",
        "the send is not waited for",
        "    sp.wait_bytes(flight.send, w)",
        "    pass",
        2,
        {"leak"},
        "async_remote_copy",
    ),
    Mistake(
        "double_buffer",
        "the next chunk comes into the half in use",
        "fetch(chunk + 1, 1 - slot).start()",
        "fetch(chunk + 1, slot).start()",
        None,
        {"deadlock", "race"},
        "fetch(chunk, slot).wait()",
    ),
    Mistake(
        "paged_copy",
        "one binary digit not waited for",
        "range(MOST.bit_length())",
        "range(MOST.bit_length() - 1)",
        None,
        {"leak", "race"},
        "make_async_copy",
    ),
    Mistake(
        "paged_attention",
        "the next block comes into the slot in use",
        "prefetch(block + 1, 1 - slot)",
        "prefetch(block + 1, slot)",
        None,
        {"deadlock", "race"},
        "sp.wait_bytes(arrived",
    ),
    Mistake(
        "sparse_core_gather",
        "two subcores store the same rows",
        'core * mesh.num_subcores + jax.lax.axis_index("subcore")',
        'core + jax.lax.axis_index("subcore")',
        None,
        {"race"},
        "store(chunk, slot).start()",
    ),
    Mistake(
        "sparse_core_gather",
        "gathered before the indices have come",
        "                fetch(chunk, slot).wait()\n                load(slot).start()",
        "                load(slot).start()\n                fetch(chunk, slot).wait()",
        None,
        {"race"},
        "load(slot).start()",
    ),
    Mistake(
        "sparse_core_gather",
        "gathered into rows that are still stored",
        "store(chunk - 2, slot).wait()",
        "pass",
        None,
        {"race", "leak"},
        "load(slot).start()",
    ),
    Mistake(
        "sparse_core_gather",
        "the last rows are not waited for",
        "        store(chunks - 1, SLOTS[1]).wait()",
        "        pass",
        None,
        {"leak"},
        "store(chunk, slot).start()",
    ),
]


def name_of(mistake: Mistake) -> str:
    return f"{mistake.example}-{mistake.what.replace(' ', '-')}"


def make(mistake: Mistake, folder: Path) -> Path:
    text = (EXAMPLES / f"{mistake.example}.py").read_text(encoding="utf-8")
    assert mistake.old in text
    path = folder / f"{mistake.example}.py"
    path.write_text(text.replace(mistake.old, mistake.new), encoding="utf-8")
    return path


@pytest.mark.parametrize("mistake", MISTAKES, ids=name_of)
def test_a_mistake_is_found(mistake: Mistake, tmp_path: Path) -> None:
    path = make(mistake, tmp_path)
    report = judge(path, mistake.size)
    assert report.verdict == "unsafe", str(report)
    assert {finding.kind.value for finding in report.findings} == mistake.kinds, str(report)
    lines = [line for finding in report.findings for line in finding.lines]
    assert any(mistake.line in source(line) for line in lines), str(report)
    assert {line.file for line in lines if line.number} <= {str(path)}
    for size in mistake.safe_on:
        assert judge(path, size).verdict == "safe"


def test_there_is_a_mistake_for_every_example() -> None:
    assert {mistake.example for mistake in MISTAKES} == set(NAMES)


def test_none_is_forgotten() -> None:
    assert NAMES
    assert set(NAMES) >= ON_ONE_DEVICE | BY_VALUE
    assert {name for name, _ in (run.values for run in RUNS)} == set(NAMES)
