"""Counting copies: where they cannot, and what they are traced to where they can."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

from .helpers import (
    FLOATS,
    Act,
    Case,
    Kernel,
    assert_ours,
    equations,
    judge,
    table,
    trace,
    trace_call,
)
from .test_backstop_kernels import PLACES

THERE = {"x": 1}
Copy = Callable[[Any, Any, Any], Any]
COPIES: dict[str, Copy] = {
    "local": sp.async_copy_counted,
    "remote": lambda a, b, sem: sp.async_remote_copy_counted(a, b, sem, sem, THERE),
}
SMEM = pl.BlockSpec(memory_space=pltpu.SMEM)
VMEM = pl.BlockSpec(memory_space=pltpu.VMEM)
HBM = pl.BlockSpec(memory_space=pl.ANY)
PARTS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda ref: ref,
    "part": lambda ref: ref.at[pl.ds(0, 4)],
    "part of a part": lambda ref: ref.at[pl.ds(0, 4)].at[pl.ds(1, 2)],
}


def call_with(body: Callable[[Any, Any, Any], Any], a: Any, b: Any) -> Any:
    """The jaxpr of a kernel whose input and output lie in those memories."""

    def kernel(x: Any, o: Any, sem: sp.Semaphore) -> None:
        body(x, o, sem)

    options: Any = {"in_specs": [a], "out_specs": b}
    return trace_call(sp.pallas_call(kernel, FLOATS, scratch_shapes=(sp.semaphore(),), **options))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("op", COPIES)
def test_ends_in_scalar_memory(op: str, part: str) -> None:
    def body(x: Any, o: Any, sem: Any) -> None:
        COPIES[op](PARTS[part](x), PARTS[part](o), sem)

    for a, b, arg in ((SMEM, HBM, "src"), (VMEM, SMEM, "dst"), (SMEM, SMEM, "src")):
        with pytest.raises(
            sp.errors.CountedCopyError, match=f": {arg} must not be in SMEM"
        ) as info:
            call_with(body, a, b)
        assert_ours(info.value, sp.errors.CountedCopyError)
    for a in (VMEM, HBM):
        for b in (VMEM, HBM):
            assert len(list(equations(call_with(body, a, b), "dma_start"))) == 1


@pytest.mark.parametrize("op", COPIES)
def test_scratch_in_scalar_memory(op: str) -> None:
    def body(x: Any, o: Any, sem: Any) -> None:
        def scoped(row: Any, page: Any) -> None:
            COPIES[op](x, page, sem)
            with pytest.raises(sp.errors.CountedCopyError):
                COPIES[op](x, row, sem)
            with pytest.raises(sp.errors.CountedCopyError):
                COPIES[op](row.at[0], x.at[0], sem)

        sp.run_scoped(scoped, sp.smem((8, 128), jnp.float32), sp.vmem((8, 128), jnp.float32))

    call_with(body, HBM, HBM)


def test_prefetched_scalars_lie_there_too() -> None:
    def kernel(n: Any, x: Any, o: Any, sem: Any) -> None:
        sp.async_copy_counted(n, o, sem)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[HBM], out_specs=HBM
    )
    out = jax.ShapeDtypeStruct((4,), jnp.int32)
    call = sp.pallas_call(kernel, out, grid_spec=spec, scratch_shapes=(sp.semaphore(),))
    with pytest.raises(sp.errors.CountedCopyError, match=": src must not be in SMEM"):
        jax.make_jaxpr(call)(np.zeros(4, np.int32), np.zeros(4, np.int32))


# Of two faults the first: the semaphores, the ends, where they lie, the device.
ORDER = [
    Case(
        "kind, then ends", sp.errors.WrongKindError, lambda k: sp.async_copy_counted(1, 2, k.dma0)
    ),
    Case(
        "barrier", sp.errors.WrongKindError, lambda k: sp.async_copy_counted(k.x, k.o, k.barrier0)
    ),
    Case("array", sp.errors.NotScalarError, lambda k: sp.async_copy_counted(1, 2, k.regular1)),
    Case(
        "sending, then receiving",
        sp.errors.NotScalarError,
        lambda k: sp.async_remote_copy_counted(k.x, k.o, k.regular1, k.dma0, THERE),
    ),
    Case(
        "ends, then device",
        sp.errors.CopyMismatchError,
        lambda k: sp.async_remote_copy_counted(k.x, k.data.flat, k.regular0, k.regular0, "x"),
    ),
]


@table(ORDER)
def test_order_of_faults(case: Case) -> None:
    judge(case)


def test_smem_before_the_device() -> None:
    def body(x: Any, o: Any, sem: Any) -> None:
        sp.async_remote_copy_counted(x, o, sem, sem, 99)

    with pytest.raises(sp.errors.CountedCopyError):
        call_with(body, SMEM, HBM)


# Under an interpreter.


def counting(k: Kernel, op: str) -> None:
    COPIES[op](k.x, k.o, k.regular0)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("op", COPIES)
def test_refused_under_interpret_params(op: str, place: str) -> None:
    def act(k: Kernel) -> None:
        PLACES[place](lambda: counting(k, op))(k)

    with pytest.raises(sp.errors.InterpretedCopyError) as info:
        trace(act, interpret=pltpu.InterpretParams())
    assert_ours(info.value, sp.errors.InterpretedCopyError)
    with pltpu.force_tpu_interpret_mode(), pytest.raises(sp.errors.InterpretedCopyError):
        trace(act)
    trace(act, interpret=True)
    trace(act)


UNCOUNTED: dict[str, Act] = {
    "copy": lambda k: sp.async_copy(k.x, k.o, k.dma0).wait(),
    "remote copy": lambda k: sp.async_remote_copy(k.x, k.o, k.dma0, k.dma1[0], THERE).wait(),
    "sync_copy": lambda k: sp.sync_copy(k.x, k.o),
    "signal": lambda k: sp.signal(k.regular0),
}


@pytest.mark.parametrize("name", UNCOUNTED)
def test_other_copies_may_be_interpreted(name: str) -> None:
    trace(UNCOUNTED[name], interpret=pltpu.InterpretParams())


def gather(k: Kernel, indices: Any) -> None:
    """128 rows into a buffer of as many."""

    def scoped(rows: Any) -> None:
        sp.async_copy(k.x.at[indices], rows, k.dma0)

    sp.run_scoped(scoped, sp.vmem((128, 128), jnp.float32))


INDIRECT: dict[str, Act] = {
    "gather by a ref": lambda k: gather(k, k.data.int32.at[0]),
    "gather by an array": lambda k: gather(k, k.data.int32[0]),
    "add": lambda k: sp.async_copy(k.x, k.o, k.dma0, add=True),
    "add of a sync_copy": lambda k: sp.sync_copy(k.x, k.o, add=True),
}


@pytest.mark.parametrize("name", INDIRECT)
def test_what_the_interpreter_does_otherwise(name: str) -> None:
    with pytest.raises(sp.errors.InterpretedCopyError):
        trace(INDIRECT[name], interpret=pltpu.InterpretParams())
    trace(INDIRECT[name])


def test_raw_counting_copies_are_refused_too() -> None:
    def act(k: Kernel) -> None:
        pltpu.make_async_copy(k.x, k.o, k.regular0.ref).start()

    with pytest.raises(sp.errors.InterpretedCopyError):
        trace(act, interpret=pltpu.InterpretParams())
    trace(act)


def test_the_same_kernel_interpreted_and_not() -> None:
    """What JAX has traced for a TPU is judged anew for the interpreter."""

    def kernel(x: Any, o: Any, sem: sp.Semaphore) -> None:
        sp.async_copy_counted(x, o, sem)

    def call(**options: Any) -> None:
        trace_call(sp.pallas_call(kernel, FLOATS, scratch_shapes=(sp.semaphore(),), **options))

    for _ in range(2):
        call()
        with pytest.raises(sp.errors.InterpretedCopyError):
            call(interpret=pltpu.InterpretParams())


def test_numbers_under_the_plain_interpreter() -> None:
    def kernel(x: Any, o: Any, sem: sp.Semaphore) -> None:
        for i in range(8):
            sp.async_copy_counted(x.at[i], o.at[7 - i], sem)
        sp.wait(sem, 8)

    options: Any = {"scratch_shapes": (sp.semaphore(),), "interpret": True}
    x = np.arange(8 * 128, dtype=np.float32).reshape(8, 128)
    np.testing.assert_array_equal(sp.pallas_call(kernel, FLOATS, **options)(x), x[::-1])
