"""``pl.select_ref``: one of several refs, by a number."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .judging import DMA, VMEM, X, has, is_safe, judge, prefetching


def kernel(n: Any, x: Any, o: Any, v: Any, w: Any, sem: Any) -> None:
    rows = pl.ds(8, 8)
    copy = pltpu.make_async_copy(x.at[rows], pl.select_ref(n[0], v.at[rows], w.at[rows]), sem)
    copy.start()
    w[0:9] = jnp.zeros((9, 128))
    copy.wait()


CALL = prefetching(kernel, scratch_shapes=[VMEM, VMEM, DMA])


def test_the_one_that_is_selected_is_accessed() -> None:
    is_safe(CALL, np.array([0], np.int32), X)
    has("race", CALL, np.array([1], np.int32), X)


def test_what_is_not_known_is_told_as_that() -> None:
    report = judge(CALL, jax.ShapeDtypeStruct((1,), jnp.int32), X)[2]
    assert report.verdict == "undecided"
    assert "Which ref `select_ref` selects is not known" in " ".join(str(report).split())
    report = judge(CALL, np.array([2], np.int32), X)[2]
    assert report.verdict == "undecided"
    assert "`select_ref` gets the number 2 of 2 refs" in " ".join(str(report).split())
