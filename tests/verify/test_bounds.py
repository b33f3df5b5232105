"""Memory has bounds: accesses and blocks that leave their buffer, and those that just do not."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .judging import (
    ANY,
    DMA,
    F32,
    VMEM,
    X,
    call_of,
    has,
    is_safe,
    judge,
    me,
    over,
    prefetching,
    start_remote,
)

HERE = Path(__file__)


def line_of(text: str) -> int:
    lines = HERE.read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line and "line_of" not in line)


def number(*values: int) -> Any:
    return np.array(values, np.int32)


def copies_to(n: Any, x: Any, o: Any, v: Any, s: Any) -> None:
    pltpu.async_copy(x.at[pl.ds(0, 8)], v.at[pl.ds(n[0], 8)], s).wait()  # copies to


def copies_from(n: Any, x: Any, o: Any, v: Any, s: Any) -> None:
    pltpu.async_copy(x.at[pl.ds(n[0], 8)], v.at[pl.ds(0, 8)], s).wait()  # copies from


def stores(n: Any, x: Any, o: Any, v: Any, s: Any) -> None:
    v[pl.ds(n[0], 8)] = jnp.zeros((8, 128))  # stores to


def loads(n: Any, x: Any, o: Any, v: Any, s: Any) -> None:
    v[pl.ds(0, 8)] = v[pl.ds(n[0], 8)] * 2  # loads


def reshaped(n: Any, x: Any, o: Any, v: Any, s: Any) -> None:
    rows = v.reshape(2, 8, 128)
    pltpu.async_copy(x.at[pl.ds(0, 8)], rows.at[n[0] // 8], s).wait()  # reshaped


ACCESSES = [copies_to, copies_from, stores, loads]


@pytest.mark.parametrize("kernel", ACCESSES, ids=lambda kernel: kernel.__name__)
def test_an_access_that_leaves_its_buffer(kernel: Any) -> None:
    call = prefetching(kernel, scratch_shapes=[VMEM, DMA])
    for start in (0, 3, 8):
        is_safe(call, number(start), X)
    for start in (9, 16, 1000, -1, -8):
        report = has("out-of-bounds", call, number(start), X)
        (finding,) = report.findings
        verb = kernel.__name__.replace("_", " ").replace("stores", "stores to")
        assert finding.lines[0].number == line_of(f"# {verb}")
        name = "x" if kernel is copies_from else "v"
        assert f"{verb} `{name}[{start}:{start + 8}, 0:128]`" in finding.text
        assert "has the shape (16, 128)" in finding.text


def test_a_view_of_another_shape_has_bounds_too() -> None:
    call = prefetching(reshaped, scratch_shapes=[VMEM, DMA])
    is_safe(call, number(8), X)
    (finding,) = has("out-of-bounds", call, number(16), X).findings
    assert "in a view of shape (2, 8, 128)" in finding.text


def test_nothing_is_accessed_past_the_end_by_a_slice_of_no_rows() -> None:
    def kernel(n: Any, x: Any, o: Any, v: Any, s: Any) -> None:
        rows = pl.ds(n[1], n[0])
        pltpu.async_copy(x.at[rows], v.at[rows], s).wait()

    call = prefetching(kernel, scratch_shapes=[VMEM, DMA])
    assert "out-of-bounds" not in judge(call, number(0, 16), X)[1]
    has("out-of-bounds", call, number(1, 16), X)


def test_a_remote_copy_names_both_devices_sides() -> None:
    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        rows = pl.ds(8 * me(), 8)
        start_remote(x.at[pl.ds(0, 8)], o.at[rows], send, recv, lax.rem(me() + 1, 3)).wait()

    call = call_of(kernel, scratch_shapes=[DMA, DMA])
    (finding,) = has("out-of-bounds", over(call, 3), X).findings
    assert finding.text.startswith("Device x=2 copies to `o[16:24, 0:128]`")


def test_other_findings_are_told_besides() -> None:
    def kernel(n: Any, x: Any, o: Any, v: Any, s: Any) -> None:
        pltpu.make_async_copy(x, v.at[pl.ds(n[0], 16)], s).start()

    call = prefetching(kernel, scratch_shapes=[VMEM, DMA])
    kinds = judge(call, number(8), X)[1]
    assert kinds[0] == "out-of-bounds"
    assert "leak" in kinds


def test_it_stands_where_something_later_is_not_known() -> None:
    def kernel(n: Any, x: Any, o: Any, v: Any, s: Any) -> None:
        rows = pl.ds(pl.program_id(0) + 12, 8)
        v[rows] = jnp.zeros((8, 128))

        @pl.when(n[0] > 0)
        def _() -> None:
            pltpu.async_copy(x, v, s).wait()

    call = prefetching(kernel, scratch_shapes=[VMEM, DMA])
    report = has("out-of-bounds", call, jax.ShapeDtypeStruct((1,), jnp.int32), X)
    assert report.undecided is not None
    assert "There may be more than was found." in str(report)


def test_what_is_not_known_is_listed_and_the_verdict_stands() -> None:
    call = prefetching(loads, scratch_shapes=[VMEM, DMA])
    verdict, _, report = judge(call, jax.ShapeDtypeStruct((1,), jnp.int32), X)
    assert verdict == "safe"
    text = " ".join(str(report).split())
    expected = f"Not checked: - whether the access to `v` at {HERE}:{line_of('# loads')} is in"
    assert f"{expected} bounds: its index is not known" in text
    assert text.count("whether the access") == 1
    assert "Not checked" not in str(judge(call, number(0), X)[2])


# Blocks


def blocked(index: Any, *, grid: int, rows: int = 32, is_output: bool = False) -> Any:
    here, plain = pl.BlockSpec((8, 128), index), pl.BlockSpec((8, 128), lambda i: (0, 0))
    like = jax.ShapeDtypeStruct((rows, 128), F32)

    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

    specs = {"in_specs": [plain if is_output else here], "out_specs": here if is_output else plain}
    return pl.pallas_call(kernel, like, grid=(grid,), **specs), like


@pytest.mark.parametrize("is_output", [False, True])
def test_a_block_starts_inside_the_array(is_output: bool) -> None:
    for index, grid, rows, is_right in [
        (lambda i: (i, 0), 4, 32, True),
        (lambda i: (i, 0), 4, 25, True),  # the last block is cut off: Pallas pads it
        (lambda i: (i, 0), 5, 32, False),
        (lambda i: (i, 0), 4, 24, False),
        (lambda i: (i - 1, 0), 4, 32, False),
        (lambda i: (lax.max(i - 1, 0), 0), 4, 32, True),
        (lambda i: (0, i), 2, 32, False),
    ]:
        call, like = blocked(index, grid=grid, rows=rows, is_output=is_output)
        if is_right:
            is_safe(call, like)
        else:
            has("out-of-bounds", call, like)


def test_the_block_is_told_by_its_step() -> None:
    call, like = blocked(lambda i: (i - 1, 0), grid=3)
    (finding,) = has("out-of-bounds", call, like).findings
    assert "in grid step (0), the index map of `x` gives (-1, 0)" in finding.text
    assert "that block starts at -8" in finding.text


def test_a_squeezed_dimension_counts_elements() -> None:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

    like = jax.ShapeDtypeStruct((4, 8, 128), F32)
    out = jax.ShapeDtypeStruct((8, 128), F32)
    for grid, check in ((4, is_safe), (5, lambda *args: has("out-of-bounds", *args))):
        spec = pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0))
        call = pl.pallas_call(
            kernel, out, grid=(grid,), in_specs=[spec], out_specs=pl.BlockSpec((8, 128), _first)
        )
        check(call, like)


def _first(i: Any) -> tuple[int, int]:
    return 0, 0


def test_a_block_by_a_table_is_checked_where_the_table_is_given() -> None:
    def kernel(table: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    parts = {
        "in_specs": [pl.BlockSpec((8, 128), lambda i, table: (table[i], 0))],
        "out_specs": pl.BlockSpec((8, 128), lambda i, table: (0, 0)),
    }
    call = prefetching(kernel, grid=(2,), **parts)
    is_safe(call, number(1, 0), X)
    has("out-of-bounds", call, number(1, 2), X)
    verdict, _, report = judge(call, jax.ShapeDtypeStruct((2,), jnp.int32), X)
    assert verdict == "safe"
    assert "Not checked:" in str(report)
    # And the table itself ends.
    has("out-of-bounds", prefetching(kernel, grid=(3,), **parts), number(1, 0), X)


def test_whole_operands_are_never_out_of_bounds() -> None:
    def kernel(x: Any, o: Any, s: Any) -> None:
        pltpu.async_copy(x.at[pl.ds(0, 16), pl.ds(0, 128)], o, s).wait()

    is_safe(call_of(kernel, in_specs=[ANY], scratch_shapes=[DMA]), X)
