"""What is known of the blocks that Pallas' pipeline moves, and of what is in them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .judging import ANY, DMA, F32, X, has, is_safe, judge

SMEM = pl.BlockSpec(memory_space=pltpu.SMEM)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_number_in_smem_is_known_whatever_its_rank(rank: int) -> None:
    def kernel(n: Any, x: Any, o: Any, sem: Any) -> None:
        rows = pl.ds(0, n[...] if rank == 0 else n[0])
        pltpu.async_copy(x.at[rows], o.at[rows], sem).wait()

    call = pl.pallas_call(kernel, X, in_specs=[SMEM, ANY], out_specs=ANY, scratch_shapes=[DMA])
    is_safe(call, np.full((1,) * rank, 3, np.int32), X)
    has("out-of-bounds", call, np.full((1,) * rank, 17, np.int32), X)
    assert judge(call, jax.ShapeDtypeStruct((1,) * rank, jnp.int32), X)[0] == "undecided"


def test_a_race_with_a_block_that_may_stay_is_not_claimed() -> None:
    """The copies from the window of x are waited for in the last step only."""
    like = jax.ShapeDtypeStruct((32, 128), F32)

    def kernel(table: Any, x: Any, o: Any, v: Any, sem: Any) -> None:
        pltpu.make_async_copy(x, v.at[pl.program_id(0)], sem).start()

        @pl.when(pl.program_id(0) == 3)
        def _() -> None:
            for _ in range(4):
                pltpu.make_async_copy(x, v.at[0], sem).wait()

    def call(*, by_column: bool = False) -> Any:
        def index(i: Any, table: Any) -> tuple[Any, ...]:
            return (table[i], 0) if not by_column else (table[i], i)

        grid_spec: Any = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 32 if by_column else 128), index)],
            out_specs=pl.BlockSpec((8, 128), lambda i, table: (i, 0)),
            scratch_shapes=[pltpu.VMEM((4, 8, 32 if by_column else 128), F32), DMA],
        )
        return pl.pallas_call(kernel, like, grid_spec=grid_spec)

    is_safe(call(), np.array([2, 2, 2, 2], np.int32), like)
    has("race", call(), np.array([2, 2, 1, 1], np.int32), like)
    unknown = jax.ShapeDtypeStruct((4,), jnp.int32)
    assert judge(call(), unknown, like)[0] == "undecided"
    has("race", call(by_column=True), unknown, like)  # another column each time, for sure


# Memory that is known in part: how kernels on SparseCores read a number


def reads_lane(lane: int, *, room: int = 8, through: bool = False) -> Any:
    """One number is copied into the first lane of a vector, or of two; then a lane is read."""

    def kernel(count: Any, x: Any, o: Any, lanes: Any, others: Any, sem: Any) -> None:
        pltpu.async_copy(count, lanes.at[pl.ds(0, 1)], sem).wait()
        source = lanes
        if through:
            pltpu.async_copy(lanes, others, sem).wait()
            source = others
        first = source[...].reshape(2, 8)[0:1][0]
        rows = pl.ds(first[lane], room)
        pltpu.async_copy(x.at[rows], o.at[rows], sem).wait()

    vector = pltpu.VMEM((16,), jnp.int32)
    return pl.pallas_call(
        kernel, X, in_specs=[ANY, ANY], out_specs=ANY, scratch_shapes=[vector, vector, DMA]
    )


@pytest.mark.parametrize("through", [False, True])
def test_the_lane_that_was_written_is_known(through: bool) -> None:
    count = np.array([8], np.int32)
    is_safe(reads_lane(0, through=through), count, X)
    has("out-of-bounds", reads_lane(0, room=9, through=through), count, X)


def test_a_lane_that_nobody_wrote_is_not() -> None:
    verdict, kinds, report = judge(reads_lane(1, room=9), np.array([8], np.int32), X)
    assert (verdict, kinds) == ("safe", [])
    assert "Not checked" in str(report)
