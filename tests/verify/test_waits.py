"""What a wait takes, whatever its arguments say."""

from typing import Any

import pytest
from jax.experimental import pallas as pl

from .judging import REGULAR, X, call_of, has, is_safe


@pytest.mark.parametrize("decrement", [True, False])
def test_a_wait_always_takes(decrement: bool) -> None:
    """JAX's TPU compiler ignores ``decrement=False`` (`tests/tpu/test_compiler_facts.py`)."""

    def kernel(x: Any, o: Any, sem: Any) -> None:
        pl.semaphore_signal(sem, 3)
        pl.semaphore_wait(sem, 2, decrement=decrement)
        pl.semaphore_wait(sem, 1)

    call = call_of(kernel, scratch_shapes=[REGULAR])
    if decrement:
        is_safe(call, X)
    else:
        (finding,) = has("amount", call, X).findings
        assert "with decrement=False" in finding.text


def test_what_comes_of_it_is_told_too() -> None:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        pl.semaphore_signal(sem, 3)
        pl.semaphore_wait(sem, 2, decrement=False)
        pl.semaphore_wait(sem, 3)

    report = has("amount", call_of(kernel, scratch_shapes=[REGULAR]), X)
    assert [finding.kind.value for finding in report.findings] == ["amount", "deadlock"]
