"""Every wrong amount of a signal and a wait, and every wrong core."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

import safepallas as sp

from .helpers import Act, Case, Kernel, judge, judge_under_x64, scalar_dtypes, table, trace

INT32_MAX = 2**31 - 1

Call = Callable[[Kernel, Any], Any]
CALLS: dict[str, Call] = {
    "signal": lambda k, value: sp.signal(k.regular0, value),
    "signal barrier": lambda k, value: sp.signal(k.barrier0, inc=value),
    "signal element": lambda k, value: sp.signal(k.regular1[1], value),
    "signal there": lambda k, value: sp.signal(k.regular0, value, device_id=1),
    "wait": lambda k, value: sp.wait(k.regular0, value),
    "wait barrier": lambda k, value: sp.wait(k.barrier0, value=value),
}
CORE: dict[str, Call] = {
    "core": lambda k, value: sp.signal(k.regular0, core_index=value),
    "core there": lambda k, value: sp.signal(k.barrier0, 2, device_id=1, core_index=value),
}

NO_INTEGERS: dict[str, Act] = {
    "True": lambda k: True,
    "False": lambda k: False,
    "numpy bool": lambda k: np.bool_(True),
    "float": lambda k: 1.0,
    "1.9": lambda k: 1.9,
    "nan": lambda k: float("nan"),
    "numpy float32": lambda k: np.float32(1),
    "complex": lambda k: 1j,
    "str": lambda k: "1",
    "bytes": lambda k: b"1",
    "ellipsis": lambda k: ...,
    "list": lambda k: [1],
    "tuple": lambda k: (1,),
    "slice": lambda k: pl.ds(0, 1),
    "numpy vector": lambda k: np.array([1]),
    "numpy float scalar": lambda k: np.array(1.0),
    "traced float": lambda k: k.traced(jnp.float32),
    "traced bfloat16": lambda k: k.traced(jnp.bfloat16),
    "traced bool": lambda k: k.traced(jnp.bool_),
    "traced vector": lambda k: k.traced(jnp.int32, (1,)),
    "traced matrix": lambda k: k.traced(jnp.int32, (8, 128)),
    "ref": lambda k: k.data.int32,
    "semaphore": lambda k: k.regular0,
    "dma semaphore": lambda k: k.dma0,
    "array": lambda k: k.regular1,
}
NEVER_IN_RANGE: dict[str, int] = {
    "-1": -1,
    "-2**31": -(2**31),
    "2**31": 2**31,
    "2**32": 2**32,
    "2**70": 2**70,
    "numpy -1": np.int8(-1),
    "numpy 2**31": np.uint32(2**31),
    "numpy 2**40": np.int64(2**40),
}
GOOD: dict[str, Act] = {
    "1": lambda k: 1,
    "int32 max": lambda k: INT32_MAX,
    "numpy int8": lambda k: np.int8(1),
    "numpy int64": lambda k: np.int64(1),
    "numpy uint32": lambda k: np.uint32(1),
    "traced int8": lambda k: k.traced(jnp.int8),
    "traced int16": lambda k: k.traced(jnp.int16),
    "traced int32": lambda k: k.traced(jnp.int32),
    "traced uint32": lambda k: k.traced(jnp.uint32),
    "traced int64": lambda k: k.traced(int),
}


def case(op: str, call: Call, name: str, error: type[Exception] | None, make: Act) -> Case:
    return Case(f"{op} {name}", error, lambda k: call(k, make(k)))


CASES = [
    *(
        case(op, call, name, sp.errors.AmountTypeError, make)
        for op, call in (CALLS | CORE).items()
        for name, make in NO_INTEGERS.items()
    ),
    *(
        case(op, call, "None", sp.errors.AmountTypeError, lambda k: None)
        for op, call in CALLS.items()
    ),
    *(
        case(op, call, name, sp.errors.AmountRangeError, lambda k, value=value: value)
        for op, call in CALLS.items()
        for name, value in NEVER_IN_RANGE.items()
    ),
    *(
        case(op, call, name, sp.errors.AmountTypeError, lambda k, value=value: value)
        for op, call in CORE.items()
        for name, value in NEVER_IN_RANGE.items()
    ),
    # Nothing to wait for; a signal of nothing is what `jnp.where(last, 0, 1)` gives.
    *(
        case(
            op,
            call,
            name,
            None if "signal" in op else sp.errors.AmountRangeError,
            lambda k, z=zero: z,
        )
        for op, call in CALLS.items()
        for name, zero in (("0", 0), ("numpy 0", np.int32(0)))
    ),
    # Of two faults the first: kind, shape, amount, device, core.
    Case("kind, then amount", sp.errors.WrongKindError, lambda k: sp.signal(k.dma0, 1.5)),
    Case("kind, then range", sp.errors.WrongKindError, lambda k: sp.wait(k.dma0, 0)),
    Case("array, then amount", sp.errors.NotScalarError, lambda k: sp.signal(k.regular1, True)),
    Case("kind, then array", sp.errors.WrongKindError, lambda k: sp.signal(k.dma1, True)),
    Case("dead, then kind", sp.errors.ScopeEndedError, lambda k: sp.signal(k.dead("dma"), True)),
    Case(
        "dead, then array", sp.errors.ScopeEndedError, lambda k: sp.wait(k.dead("regular", 1), -1)
    ),
    Case(
        "no handle, then amount",
        sp.errors.NotASemaphoreError,
        lambda k: sp.wait(k.regular0.ref, -1),
    ),
    Case(
        "amount, then device",
        sp.errors.AmountRangeError,
        lambda k: sp.signal(k.regular0, -1, device_id=9),
    ),
    Case(
        "amount, then core",
        sp.errors.AmountRangeError,
        lambda k: sp.signal(k.regular0, -1, core_index="0"),
    ),
    Case(
        "device, then core",
        sp.errors.DeviceIdError,
        lambda k: sp.signal(k.regular0, device_id=9, core_index="0"),
    ),
]


@table(CASES)
def test_misuse(case: Case) -> None:
    judge(case)


def test_misuse_under_x64() -> None:
    judge_under_x64(CASES)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("op", CALLS | CORE)
def test_valid_number_arrives_as_int32(op: str, name: str) -> None:
    call = (CALLS | CORE)[op]
    jaxpr = trace(lambda k: call(k, GOOD[name](k)))
    if "wait" in op:  # Pallas passes its `decrement` as a bool
        assert scalar_dtypes(jaxpr, "semaphore_wait") == {"int32", "bool"}
    else:
        assert scalar_dtypes(jaxpr, "semaphore_signal") == {"int32"}


def test_decrement_is_not_offered() -> None:
    wait: Any = sp.wait
    with pytest.raises(TypeError, match="decrement"):
        trace(lambda k: wait(k.regular0, 1, decrement=False))


def test_device_id_type_is_not_offered() -> None:
    signal: Any = sp.signal
    with pytest.raises(TypeError, match="device_id_type"):
        trace(lambda k: signal(k.regular0, device_id=1, device_id_type="mesh"))
