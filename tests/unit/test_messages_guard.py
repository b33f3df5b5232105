"""What the guard says, word for word, where safepallas has no such misuse."""

import warnings
from typing import Any

import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp
from safepallas import testing

from .helpers import FLOATS, Message, assert_says, trace_call


def row(error: type[Exception], act: Any, text: str) -> Message:
    def kernel(x: Any, o: Any, ready: Any, sems: Any, none: Any) -> None:
        act(ready, sems, none)

    def misuse() -> None:
        regular = pltpu.SemaphoreType.REGULAR
        with testing.guard_raw_pallas(), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of DeviceIdType, JAX 0.12
            scratch = [regular, regular((2, 3)), regular((0,))]
            trace_call(pl.pallas_call(kernel, FLOATS, scratch_shapes=scratch))

    return Message(error, misuse, text)


def logical_coordinates(ready: Any, sems: Any, none: Any) -> None:
    pl.semaphore_signal(ready, device_id=(1,), device_id_type=pl.DeviceIdType.LOGICAL)


PLACE = "(a parameter of kernel <<def kernel>>)"

MESSAGES: dict[str, Message] = {
    "raw_index_range": row(
        sp.errors.IndexRangeError,
        lambda ready, sems, none: pl.semaphore_signal(sems.at[1, -1]),
        f"SemaphoreArray[Semaphore] of shape (2, 3) 'sems' {PLACE}: index -1 is out of bounds for "
        "dimension 1 of size 3. Raw Pallas checks no index of a semaphore, and a TPU counts none "
        "from the end: use 0 to 2. [index-range]",
    ),
    "raw_index_range, none": row(
        sp.errors.IndexRangeError,
        lambda ready, sems, none: pl.semaphore_signal(none.at[0]),
        f"SemaphoreArray[Semaphore] of shape (0,) 'none' {PLACE}: index 0 is out of bounds for "
        "dimension 0 of size 0. Raw Pallas checks no index of a semaphore, and a TPU counts none "
        "from the end: it holds no semaphore. [index-range]",
    ),
    "wait_option": row(
        sp.errors.WaitOptionError,
        lambda ready, sems, none: pl.semaphore_wait(sems.at[0, 2], decrement=False),
        f"wait: decrement must be True, got bool False, with Semaphore 'sems[0, 2]' {PLACE}. The "
        "TPU lowering drops the flag and takes all the same: wait as usual, and signal what must "
        "stay. [wait-option]",
    ),
    "device_id_logical": row(
        sp.errors.DeviceIdTypeError,
        logical_coordinates,
        "signal: device_id must be one int or traced integer scalar with DeviceIdType.LOGICAL, "
        f"got tuple (1,), for Semaphore 'ready' {PLACE}. For mesh coordinates leave "
        "device_id_type out. [device-id-type]",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_says(name: str) -> None:
    assert_says(MESSAGES[name], __file__)
