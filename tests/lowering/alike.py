"""One kernel for safepallas and for raw Pallas."""

from collections.abc import Callable
from typing import Any

import safepallas as sp
from safepallas.testing import assert_lowers_like

from . import raw


def assert_same(build: Callable[[Any], Any], *args: Any) -> None:
    """What `build` makes of safepallas lowers like what it makes of raw Pallas."""
    assert_lowers_like(build(sp), build(raw), *args)
