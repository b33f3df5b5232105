"""Views with strides: which of them overlap, number by number, and in kernels."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="random boxes need hypothesis: pip install hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas import verify
from safepallas._verify.analysis.accesses import covers, overlaps
from safepallas._verify.extract.source import Source, trace
from safepallas._verify.program import Access, Region, Start
from safepallas.verification import Report

ANY = pl.BlockSpec(memory_space=pl.ANY)
X = jax.ShapeDtypeStruct((8, 128), jnp.float32)
DMA = pltpu.SemaphoreType.DMA


def row(low: int, high: int, step: int) -> Region:
    return Region(0, 0, (low,), (high,), (step,) if step > 1 else ())


def numbers(region: Region) -> set[tuple[int, ...]]:
    steps = region.step or (1,) * len(region.low)
    ends = zip(region.low, region.high, steps, strict=True)
    return set(itertools.product(*(range(*end) for end in ends)))


def test_rows_overlap_where_they_have_a_number_in_common() -> None:
    for a, b, s in itertools.product(range(6), range(8), (1, 2, 3, 4)):
        for c, d, t in itertools.product(range(6), range(8), (1, 2, 3, 6)):
            one, other = row(a, b, s), row(c, d, t)
            if numbers(one) and numbers(other):
                assert one.overlaps(other) == bool(numbers(one) & numbers(other)), (one, other)


# As views have them: up to the last number.
SPANS = st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(1, 6)).map(
    lambda t: (t[0], t[0] + t[1] * t[2] + 1, t[2] if t[1] else 1)
)
BOXES = st.lists(SPANS, min_size=2, max_size=2).map(
    lambda spans: Region(0, 0, *(tuple(part) for part in zip(*spans, strict=True)))
)


@settings(max_examples=500, deadline=None)
@given(BOXES, BOXES)
def test_boxes(one: Region, other: Region) -> None:
    assert one.overlaps(other) == bool(numbers(one) & numbers(other))
    assert covers(one, other) == (numbers(one) >= numbers(other))
    overlapping = overlaps([one, other])
    assert (other in overlapping[one]) == one.overlaps(other)
    assert (one in overlapping[other]) == one.overlaps(other)


def judge(kernel: Callable[..., None], *scratch: Any) -> Report:
    return verify(
        pl.pallas_call(kernel, X, in_specs=[ANY], out_specs=ANY, scratch_shapes=scratch), X
    )


EVEN, ODD = pl.ds(0, 4, 2), pl.ds(1, 4, 2)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (EVEN, ODD, "safe"),
        (ODD, EVEN, "safe"),
        (EVEN, EVEN, "unsafe"),
        (EVEN, slice(2, 6), "unsafe"),
        (pl.ds(0, 2, 4), pl.ds(2, 2, 4), "safe"),
    ],
)
def test_copies_of_interleaved_rows(first: Any, second: Any, verdict: str) -> None:
    def kernel(x: Any, o: Any, sems: Any) -> None:
        copies = []
        for i, rows in enumerate((first, second)):
            size = rows.size if isinstance(rows, pl.Slice) else rows.stop - rows.start
            copies.append(pltpu.make_async_copy(x.at[i : i + size], o.at[rows], sems.at[i]))
        for copy in copies:
            copy.start()
        for copy in copies:
            copy.wait()

    report = judge(kernel, DMA((2,)))
    assert report.verdict == verdict, str(report)
    if verdict == "unsafe":
        (finding,) = report.findings
        assert finding.kind.value == "race"
        assert "`o[0:7:2]`" in finding.text
        assert {Path(line.file).name for line in finding.lines} == {Path(__file__).name}


def test_a_strided_view_of_a_strided_view() -> None:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        pltpu.make_async_copy(x.at[0:2], o.at[ODD].at[pl.ds(1, 2, 2)], sem).start()

    fn = pl.pallas_call(kernel, X, in_specs=[ANY], out_specs=ANY, scratch_shapes=[DMA])
    (start,) = [
        e for e in Source(trace(fn, (X,)), (X,)).extract(1, 100).cores[0] if type(e) is Start
    ]
    assert numbers(start.target) == set(itertools.product((3, 7), range(128)))


@pytest.mark.parametrize(("rows", "races"), [(EVEN, 0), (ODD, 1)])
def test_loads_with_a_stride_beside_a_copy(rows: Any, races: int) -> None:
    """A copy fills the odd rows of a buffer meanwhile."""

    def kernel(x: Any, o: Any, buffer: Any, sem: Any) -> None:
        copy = pltpu.make_async_copy(x.at[0:4], buffer.at[ODD], sem)
        copy.start()
        buffer[rows] = buffer[rows] + 1.0
        copy.wait()

    report = judge(kernel, pltpu.VMEM((8, 128), jnp.float32), DMA)
    assert [finding.kind.value for finding in report.findings] == ["race"] * races
    assert report.program is not None
    assert sum(type(event) is Access for event in report.program.cores[0]) == 2


def test_where_a_stride_begins_may_be_unknown() -> None:
    """Then it may overlap, and no race is claimed."""

    def kernel(n: Any, x: Any, o: Any, sems: Any) -> None:
        first = pltpu.make_async_copy(x.at[0:4], o.at[EVEN], sems.at[0])
        other = pltpu.make_async_copy(x.at[4:8], o.at[pl.ds(n[0], 4, 2)], sems.at[1])
        first.start()
        other.start()
        first.wait()
        other.wait()

    def fn(n: Any) -> Report:
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(1,),
            in_specs=[ANY],
            out_specs=ANY,
            scratch_shapes=[DMA((2,))],
        )
        return verify(pl.pallas_call(kernel, X, grid_spec=spec), n, X)

    assert fn(np.array([1], np.int32)).verdict == "safe"
    assert fn(np.array([0], np.int32)).verdict == "unsafe"
    report = fn(jax.ShapeDtypeStruct((1,), jnp.int32))
    assert report.verdict == "undecided"
    assert "may overlap" in " ".join(str(report).split())
