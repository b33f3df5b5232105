"""Fixtures of the unit tests."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Run a test with 32 and with 64 bit types."""
    with jax.enable_x64(request.param):
        yield request.param
