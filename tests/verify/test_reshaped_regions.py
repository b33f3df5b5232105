"""What a view in another shape covers of its buffer: exactly, where that is a box."""

import math
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas._jax.views import Index, Reshape, Span
from safepallas._verify.extract.boxes import Box, resolve

from .judging import ANY, DMA, F32, has, is_safe

SHAPES = [
    ((32, 256), (4, 8, 256)),
    ((4, 8, 256), (32, 256)),
    ((4, 8, 6), (8, 4, 6)),
    ((12,), (3, 1, 4)),
    ((3, 4), (1, 12, 1)),
    ((2, 6, 5), (4, 3, 5, 1)),
]


def box_of(old: tuple[int, ...], new: tuple[int, ...], parts: list[tuple[int, int]]) -> Box:
    spans = tuple(Span(low, high - low, 1) for low, high in parts)
    steps = [Reshape(new), Index(spans, new, ())]
    return resolve(old, np.dtype(np.int8), steps, lambda part: part)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(("old", "new"), SHAPES, ids=str)
@pytest.mark.parametrize("seed", range(20))
def test_the_box_holds_what_numpy_says(
    old: tuple[int, ...], new: tuple[int, ...], seed: int
) -> None:
    """All of it; and nothing else, where the box is said to be exact."""
    random = np.random.default_rng(seed)
    ends = [sorted(random.choice(n + 1, 2, replace=False)) for n in new]
    parts = [(int(low), int(high)) for low, high in ends]
    box = box_of(old, new, parts)
    numbers = np.arange(math.prod(old)).reshape(new)
    covered = {*numbers[tuple(slice(*part) for part in parts)].ravel().tolist()}
    boxed = numbers.reshape(old)[tuple(map(slice, box.low, box.high))].ravel().tolist()
    assert covered <= {*boxed}
    if box.is_exact:
        assert covered == {*boxed}


def test_what_is_a_box_is_exact() -> None:
    box = box_of((32, 256), (4, 8, 256), [(1, 3), (0, 8), (128, 256)])
    assert (box.low, box.high, box.is_exact) == ((8, 128), (24, 256), True)
    box = box_of((4, 8, 256), (32, 256), [(8, 16), (0, 128)])
    assert (box.low, box.high, box.is_exact) == ((1, 0, 0), (2, 8, 128), True)
    assert not box_of((4, 8, 256), (32, 256), [(4, 12), (0, 128)]).is_exact


@pytest.mark.parametrize(("column", "is_right"), [(128, True), (64, False)])
def test_columns_of_a_view(column: int, is_right: bool) -> None:
    """Two copies to the same rows, of other columns, and one wait for both."""

    def kernel(x: Any, o: Any, sem: Any) -> None:
        source, target = x.reshape(4, 8, 256), o.reshape(4, 8, 256)
        for first in (0, column):
            at = pl.ds(first, 128)
            pltpu.make_async_copy(
                source.at[pl.ds(0, 2), :, at], target.at[pl.ds(1, 2), :, at], sem
            ).start()
        pltpu.make_async_copy(target.at[pl.ds(0, 2)], target.at[pl.ds(0, 2)], sem).wait()

    like = jax.ShapeDtypeStruct((32, 256), F32)
    call = pl.pallas_call(kernel, like, in_specs=[ANY], out_specs=ANY, scratch_shapes=[DMA])
    if is_right:
        is_safe(call, like)
    else:
        has("race", call, like)
