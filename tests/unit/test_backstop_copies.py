"""Every wrong end of a copy, in every place, for every function that copies."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

from .helpers import KINDS, Act, Case, Kernel, equations, judge, judge_under_x64, table, trace

THERE = {"x": 1}
Copy = Callable[[Kernel, Any, Any], Any]
COPIES: dict[str, Copy] = {
    "make_async_copy": lambda k, a, b: sp.make_async_copy(a, b, k.dma0).start(),
    "async_copy": lambda k, a, b: sp.async_copy(a, b, k.dma0),
    "make_async_remote_copy": lambda k, a, b: sp.make_async_remote_copy(
        a, b, k.dma0, k.dma1[0], THERE
    ).start(),
    "async_remote_copy": lambda k, a, b: sp.async_remote_copy(a, b, k.dma0, k.dma1[0], THERE),
    "sync_copy": lambda k, a, b: sp.sync_copy(a, b),
    "async_copy_counted": lambda k, a, b: sp.async_copy_counted(a, b, k.regular0),
    "async_remote_copy_counted": lambda k, a, b: sp.async_remote_copy_counted(
        a, b, k.regular0, k.regular1[0], THERE
    ),
}
ENDS: dict[str, Callable[[Kernel, Any], Any]] = {
    **{f"{op} from": lambda k, end, copy=copy: copy(k, end, k.o) for op, copy in COPIES.items()},
    **{f"{op} to": lambda k, end, copy=copy: copy(k, k.x, end) for op, copy in COPIES.items()},
    "wait_bytes like": lambda k, end: sp.wait_bytes(k.dma0, end),
}

NO_REFS: dict[str, Act] = {
    "loaded array": lambda k: k.x[...],
    "loaded part": lambda k: k.x[0],
    "numpy array": lambda k: np.zeros((8, 128), np.float32),
    "traced scalar": lambda k: k.traced(jnp.float32),
    "None": lambda k: None,
    "int": lambda k: 0,
    "str": lambda k: "x",
    "tuple": lambda k: (k.x, k.o),
    "tuple of one": lambda k: (k.x,),
    "list": lambda k: [k.x],
    "dict": lambda k: {"x": k.x},
    "ref.at": lambda k: k.x.at,
    "array.at": lambda k: k.x[...].at[0],
    "scratch": lambda k: k.data,
    "spec": lambda k: sp.vmem((8, 128), jnp.float32),
    "shape": lambda k: jax.ShapeDtypeStruct((8, 128), jnp.float32),
    "raw request": lambda k: pltpu.VMEM((8, 128), jnp.float32),
    "copy": lambda k: sp.async_copy(k.x, k.o, k.dma0),
    **{f"{kind} semaphore": lambda k, kind=kind: k.sem(kind) for kind in KINDS},
    **{f"{kind} array": lambda k, kind=kind: k.sem(kind, 1) for kind in KINDS},
    **{f"raw {kind} semaphore": lambda k, kind=kind: k.sem(kind).ref for kind in KINDS},
    **{f"raw {kind} array": lambda k, kind=kind: k.sem(kind, 2).ref for kind in KINDS},
}
PAIRS: dict[str, Callable[[Kernel], tuple[Any, Any]]] = {
    "other shape": lambda k: (k.x, k.data.narrow),
    "other rank": lambda k: (k.x, k.data.flat),
    "row of a ref": lambda k: (k.x.at[0], k.o),
    "row as a matrix": lambda k: (k.x.at[0], k.o.at[pl.ds(0, 1)]),
    "other size of a part": lambda k: (k.x.at[pl.ds(0, 4)], k.o.at[pl.ds(0, 2)]),
    "other size from a traced start": lambda k: (
        k.x.at[pl.ds(k.traced(int), 4)],
        k.o.at[pl.ds(k.traced(int), 2)],
    ),
    "traced size, other columns": lambda k: (
        k.x.at[pl.ds(0, k.traced(jnp.int32))],
        k.data.narrow.at[pl.ds(0, k.traced(jnp.int32))],
    ),
    "int32": lambda k: (k.x, k.data.int32),
    "int16": lambda k: (k.data.int16, k.o),
    "bfloat16": lambda k: (k.data.bfloat16, k.o),
    "bfloat16 and int16": lambda k: (k.data.bfloat16, k.data.int16),
    "row of int32": lambda k: (k.x.at[0], k.data.int32.at[0]),
    "other shape and dtype": lambda k: (k.x.at[0], k.data.int32),
}
GOOD: dict[str, Callable[[Kernel], tuple[Any, Any]]] = {
    "whole": lambda k: (k.x, k.o),
    "itself": lambda k: (k.x, k.x),
    "int16": lambda k: (k.data.int16, k.data.int16),
    "rows": lambda k: (k.x.at[0], k.o.at[1]),
    "parts": lambda k: (k.x.at[pl.ds(0, 4)], k.o.at[pl.ds(4, 4)]),
    "traced row": lambda k: (k.x.at[k.traced(jnp.int32)], k.o.at[0]),
    "traced start": lambda k: (k.x.at[pl.ds(k.traced(jnp.int32), 4)], k.o.at[pl.ds(0, 4)]),
    "part of the same shape": lambda k: (k.x.at[:, : 128 // 2], k.data.narrow),
}
STARTS: dict[str, Callable[[Kernel, dict[str, Any]], Any]] = {
    "start": lambda k, o: sp.make_async_copy(k.x, k.o, k.dma0).start(**o),
    "async_copy": lambda k, o: sp.async_copy(k.x, k.o, k.dma0, **o),
    "sync_copy": lambda k, o: sp.sync_copy(k.x, k.o, **o),
    "remote start": lambda k, o: sp.make_async_remote_copy(k.x, k.o, k.dma0, k.dma0, THERE).start(
        **o
    ),
}
BAD_OPTIONS: dict[str, tuple[str, Act]] = {
    **{
        f"priority {value!r}": ("priority", lambda k, value=value: value)
        for value in (True, False, 1.0, np.float32(1), "0", None, -1, (0,), 1j)
    },
    "priority traced": ("priority", lambda k: k.traced(jnp.int32)),
    "priority semaphore": ("priority", lambda k: k.dma0),
    **{
        f"add {value!r}": ("add", lambda k, value=value: value)
        for value in (0, 1, 1.0, None, "True", [True])
    },
    "add traced": ("add", lambda k: k.traced(jnp.bool_)),
    "add array": ("add", lambda k: np.ones(2, np.bool_)),
}

CASES = [
    *(
        Case(f"{op} {name}", sp.errors.NotARefError, lambda k, use=use, make=make: use(k, make(k)))
        for op, use in ENDS.items()
        for name, make in NO_REFS.items()
    ),
    *(
        Case(
            f"{op} {name}{', turned' if turned else ''}",
            sp.errors.CopyMismatchError,
            lambda k, copy=copy, make=make, step=-1 if turned else 1: copy(k, *make(k)[::step]),
        )
        for op, copy in COPIES.items()
        for name, make in PAIRS.items()
        for turned in (False, True)
    ),
    *(
        Case(
            f"{op} {name}",
            sp.errors.CopyOptionError,
            lambda k, start=start, option=option, make=make: start(k, {option: make(k)}),
        )
        for op, start in STARTS.items()
        for name, (option, make) in BAD_OPTIONS.items()
        if op != "sync_copy" or option == "add"
    ),
    # Of two faults the first: the semaphore, source, destination, shape, dtype, option.
    Case(
        "semaphore, then ends", sp.errors.WrongKindError, lambda k: sp.async_copy(1, 2, k.regular0)
    ),
    Case("array, then ends", sp.errors.NotScalarError, lambda k: sp.async_copy(1, 2, k.dma1)),
    Case(
        "dead, then ends", sp.errors.ScopeEndedError, lambda k: sp.async_copy(1, 2, k.dead("dma"))
    ),
    Case(
        "semaphore, then like", sp.errors.NotASemaphoreError, lambda k: sp.wait_bytes(k.dma0.ref, 2)
    ),
    Case(
        "sending, then receiving",
        sp.errors.WrongKindError,
        lambda k: sp.async_remote_copy(k.x, k.o, k.regular0, k.dma1, THERE),
    ),
    Case("end, then shape", sp.errors.NotARefError, lambda k: sp.async_copy(k.x, k.x[0], k.dma0)),
    Case(
        "ends, then option",
        sp.errors.NotARefError,
        lambda k: sp.async_copy(k.x, k.x[...], k.dma0, priority=-1),
    ),
    Case(
        "dead, then option",
        sp.errors.ScopeEndedError,
        lambda k: sp.async_copy(k.x, k.o, k.dead("dma"), priority=-1),
    ),
]


@table(CASES)
def test_misuse(case: Case) -> None:
    judge(case)


def test_misuse_under_x64() -> None:
    judge_under_x64(CASES)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("op", COPIES)
def test_valid_ends(op: str, name: str) -> None:
    jaxpr = trace(lambda k: COPIES[op](k, *GOOD[name](k)))
    assert len(list(equations(jaxpr, "dma_start"))) == 1


def test_valid_ends_of_wait_bytes() -> None:
    jaxpr = trace(lambda k: [sp.wait_bytes(k.dma0, end(k)[0]) for end in GOOD.values()])
    assert len(list(equations(jaxpr, "dma_wait"))) == len(GOOD)


@pytest.mark.parametrize("op", STARTS)
def test_valid_options(op: str) -> None:
    for add in (False, True):
        jaxpr = trace(lambda k, options={"add": add}: STARTS[op](k, options))
        (eqn,) = equations(jaxpr, "dma_start")
        assert eqn.params["add"] == add
    for priority in {"remote start": (0,), "sync_copy": ()}.get(op, (0, 1)):
        jaxpr = trace(lambda k, options={"priority": priority}: STARTS[op](k, options))
        (eqn,) = equations(jaxpr, "dma_start")
        assert eqn.params["priority"] == priority


def test_traced_size_agrees_with_any() -> None:
    trace(
        lambda k: sp.async_copy(
            k.x.at[pl.ds(0, k.traced(jnp.int32))],
            k.o.at[pl.ds(0, k.traced(jnp.int32))],
            k.dma0,
        )
    )


@pytest.mark.parametrize("method", ["wait_send", "wait_recv"])
def test_local_copy_has_no_remote_wait(method: str) -> None:
    with pytest.raises(AttributeError, match=f"'LocalCopy' object has no attribute '{method}'"):
        trace(lambda k: getattr(sp.async_copy(k.x, k.o, k.dma0), method)())


@pytest.mark.parametrize("method", ["wait", "wait_send", "wait_recv"])
def test_remote_copy_has_every_wait(method: str) -> None:
    jaxpr = trace(
        lambda k: getattr(sp.async_remote_copy(k.x, k.o, k.dma0, k.dma0, THERE), method)()
    )
    assert len(list(equations(jaxpr, "dma_wait"))) == (2 if method == "wait" else 1)
