"""What Pallas' pipeline fetches and writes back, where an array is reached in two ways."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .judging import ANY, DMA, F32, has, is_safe, judge

BLOCK = (8, 128)
Index = Callable[[Any], tuple[Any, ...]]


def same(i: Any) -> tuple[Any, ...]:
    return i, 0


def in_one_array(
    read: Index, write: Index, *, steps: int = 5, rows: int = 8 * 16, aliased: bool = True
) -> tuple[Any, Any]:
    """A kernel that reads and writes blocks of one array."""

    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...] * 2

    like = jax.ShapeDtypeStruct((rows, 128), F32)
    call = pl.pallas_call(
        kernel,
        like,
        grid=(steps,),
        in_specs=[pl.BlockSpec(BLOCK, read)],
        out_specs=pl.BlockSpec(BLOCK, write),
        input_output_aliases={0: 0} if aliased else {},
    )
    return call, like


@pytest.mark.parametrize("distance", range(-3, 6))
def test_how_far_a_write_back_must_be_from_a_fetch(distance: int) -> None:
    """Step j fetches what step i writes back: a race if j is i + 1 or i + 2, else in order."""

    def ahead(i: Any) -> tuple[Any, ...]:
        return i + 5 + distance, 0

    call, like = in_one_array(lambda i: (i + 5, 0), ahead)
    if distance in (1, 2):
        has("race", call, like)
    else:
        is_safe(call, like)
    is_safe(*in_one_array(lambda i: (i + 5, 0), ahead, aliased=False))


def test_in_place() -> None:
    call, like = in_one_array(same, same)
    verdict, _, report = judge(call, like)
    assert verdict == "safe"
    assert report.program is not None
    assert sum(map(len, report.program.cores)) == 2  # nothing that could go wrong, nothing to say


def test_a_block_that_stays_is_neither_fetched_nor_written_back_in_between() -> None:
    call, like = in_one_array(lambda i: (i // 3, 0), lambda i: (i // 3, 0), steps=9)
    is_safe(call, like)
    # It comes again: two steps later it is on its way back, three steps later it is there.
    for turn, is_right in ((2, False), (3, True)):
        call, like = in_one_array(lambda i, n=turn: (i % n, 0), lambda i, n=turn: (i % n, 0))
        if is_right:
            is_safe(call, like)
        else:
            has("race", call, like)


def test_a_step_of_a_block_that_stays_counts_too() -> None:
    """Blocks of two steps each: the next block is fetched one step ahead all the same."""
    call, like = in_one_array(lambda i: (i // 2, 0), lambda i: (i // 2 + 1, 0), steps=8)
    has("race", call, like)


def writes_to_hbm(distance: int, *, reads: bool = False) -> tuple[Any, Any]:
    """The kernel itself copies block i + distance of the output, whose input is blocked."""

    def kernel(x: Any, o: Any, v: Any, sem: Any) -> None:
        at = pl.ds((pl.program_id(0) + 5 + distance) * 8, 8)
        pair = (o.at[at], v) if reads else (v, o.at[at])
        pltpu.async_copy(*pair, sem).wait()

    like = jax.ShapeDtypeStruct((8 * 16, 128), F32)
    call = pl.pallas_call(
        kernel,
        like,
        grid=(5,),
        in_specs=[pl.BlockSpec(BLOCK, lambda i: (i + 5, 0))],
        out_specs=ANY,
        scratch_shapes=[pltpu.VMEM(BLOCK, F32), DMA],
        input_output_aliases={0: 0},
    )
    return call, like


@pytest.mark.parametrize("distance", range(-2, 4))
def test_a_copy_of_the_kernel_into_an_array_that_is_fetched(distance: int) -> None:
    call, like = writes_to_hbm(distance)
    if distance == 1:  # the next block is being fetched
        has("race", call, like)
    else:
        is_safe(call, like)
    is_safe(*writes_to_hbm(distance, reads=True))


def test_a_copy_of_the_kernel_from_an_array_that_is_written_back() -> None:
    def build(distance: int) -> tuple[Any, Any]:
        def kernel(x: Any, o: Any, v: Any, sem: Any) -> None:
            at = pl.ds((pl.program_id(0) + 5 - distance) * 8, 8)
            pltpu.async_copy(x.at[at], v, sem).wait()
            o[...] = v[...]

        like = jax.ShapeDtypeStruct((8 * 16, 128), F32)
        call = pl.pallas_call(
            kernel,
            like,
            grid=(5,),
            in_specs=[ANY],
            out_specs=pl.BlockSpec(BLOCK, lambda i: (i + 5, 0)),
            scratch_shapes=[pltpu.VMEM(BLOCK, F32), DMA],
            input_output_aliases={0: 0},
        )
        return call, like

    is_safe(*build(0))
    has("race", *build(1))
    is_safe(*build(2))  # waited for at the end of the step before


def by_table(*, shifted: bool) -> Any:
    def kernel(table: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    def read(i: Any, table: Any) -> tuple[Any, ...]:
        return table[i], 0

    def write(i: Any, table: Any) -> tuple[Any, ...]:
        return table[i] + 1, 0

    grid_spec: Any = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec(BLOCK, read)],
        out_specs=pl.BlockSpec(BLOCK, write if shifted else read),
    )
    like = jax.ShapeDtypeStruct((8 * 16, 128), F32)
    return pl.pallas_call(kernel, like, grid_spec=grid_spec, input_output_aliases={1: 0}), like


def test_blocks_by_a_table() -> None:
    unknown = jax.ShapeDtypeStruct((4,), jnp.int32)
    call, like = by_table(shifted=False)
    is_safe(call, np.array([3, 1, 2, 0], np.int32), like)
    has("race", call, np.array([3, 1, 3, 0], np.int32), like)
    verdict, _, report = judge(call, unknown, like)
    assert verdict == "safe"
    assert "does not fetch again in one of the next two steps" in " ".join(str(report).split())
    call, like = by_table(shifted=True)
    is_safe(call, np.array([8, 6, 4, 2], np.int32), like)
    has("race", call, np.array([1, 2, 3, 4], np.int32), like)
    assert judge(call, unknown, like)[0] == "undecided"
