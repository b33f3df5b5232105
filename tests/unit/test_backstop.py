"""The backstop as a whole: how much the tables hold, and that a refusal reaches the caller.

The tables: every operation against every wrong semaphore (kinds), index, amount (values), device
id, copy, scope, use as a value, request; whole kernels; annotations (test_boundary). A helper
traces each case by itself.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

from . import (
    test_backstop_copies,
    test_backstop_devices,
    test_backstop_indices,
    test_backstop_kinds,
    test_backstop_requests,
    test_backstop_scopes,
    test_backstop_uses,
    test_backstop_values,
    test_barriers,
    test_messages,
)
from .helpers import FLOATS, KINDS, MESHES, Case, trace_call

TABLES: dict[str, tuple[list[Case], int]] = {
    "barriers": (test_barriers.CASES, 45),
    "kinds": (test_backstop_kinds.CASES, 1400),
    "indices": (test_backstop_indices.CASES, 700),
    "values": (test_backstop_values.CASES, 250),
    "devices": (test_backstop_devices.CASES, 900),
    "copies": (test_backstop_copies.CASES, 400),
    "scopes": (test_backstop_scopes.CASES, 90),
    "uses": (test_backstop_uses.CASES, 300),
    "requests": (test_backstop_requests.CASES, 450),
}


def test_number_of_cases(capsys: pytest.CaptureFixture[str]) -> None:
    """A table that has lost its rows passes as well: here it does not."""
    for name, (cases, least) in TABLES.items():
        refused = sum(case.error is not None for case in cases)
        with capsys.disabled():
            print(f"\n  {name}: {refused} refused, {len(cases) - refused} allowed", end="")
        assert refused >= least, name


def test_every_error_of_an_operation_stands_in_a_table() -> None:
    of_kernels = {
        sp.errors.CountedCopyError,
        sp.errors.ForeignSemaphoreError,
        sp.errors.InFlightError,
        sp.errors.InterpretedCopyError,
        sp.errors.InterpretedOutputError,
        sp.errors.MissingCollectiveIdError,
        sp.errors.MissingSideEffectsError,
        sp.errors.PictureError,
        sp.errors.UnsafeProtocolError,
        sp.errors.WaitOptionError,
        sp.errors.MixedBarriersError,
        sp.errors.NotInKernelError,
        sp.errors.UnusedCollectiveIdError,
        sp.errors.InterpretedReadError,
        sp.errors.AnnotationError,
    }
    expected = {case.error for cases, _ in TABLES.values() for case in cases}
    assert {cls for cls, _ in test_messages.CODES.values()} - of_kernels <= expected


def wrong(x: Any, o: Any, sem: Any) -> None:
    sp.signal(sem)


Around = Callable[[Callable[..., Any]], Callable[..., Any]]
AROUND: dict[str, Around] = {
    "nothing": lambda call: call,
    "jit": jax.jit,
    "make_jaxpr": jax.make_jaxpr,
    "eval_shape": lambda call: lambda x: jax.eval_shape(call, x),
    "vmap": lambda call: lambda x: jax.vmap(call)(x[None]),
    "checkpoint": jax.checkpoint,
    "scan": lambda call: lambda x: jax.lax.scan(lambda c, _: (call(c), None), x, length=2),
    "cond": lambda call: lambda x: jax.lax.cond(x[0, 0] > 0, call, call, x),
    "jit of jit": lambda call: jax.jit(jax.jit(call)),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "no options": {},
    "interpret": {"interpret": True},
    "InterpretParams": {"interpret": pltpu.InterpretParams()},
    "grid": {"grid": (2,)},
    "grid_spec": {
        "grid_spec": pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=0, grid=(2,)),
    },
    "specs": {
        "in_specs": [pl.BlockSpec(memory_space=pltpu.VMEM)],
        "out_specs": pl.BlockSpec(memory_space=pltpu.VMEM),
    },
    "params": {"compiler_params": pltpu.CompilerParams(has_side_effects=True)},
    "name": {"name": "named"},
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("options", OPTIONS)
def test_refusal_reaches_the_caller(options: str, around: str) -> None:
    call = sp.pallas_call(wrong, FLOATS, scratch_shapes=(sp.dma_semaphore(),), **OPTIONS[options])
    function = AROUND[around](call)
    for _ in range(2):  # a refusal is not kept from the second caller
        with pytest.raises(sp.errors.WrongKindError, match="'sem'"):
            function(jnp.zeros(FLOATS.shape))


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("kind", KINDS)
def test_refusal_of_every_way_in(kind: str, mesh: str) -> None:
    """Scratch by position, by keyword, in containers, in a Scratch, from a scope, adopted, raw."""
    request = {
        "regular": sp.semaphore,
        "barrier": sp.barrier_semaphore,
        "dma": sp.dma_semaphore,
    }[kind]
    raw = {
        "regular": pltpu.SemaphoreType.REGULAR,
        "barrier": pltpu.SemaphoreType.BARRIER,
        "dma": pltpu.SemaphoreType.DMA,
    }[kind]
    group = type("Group", (sp.Scratch,), {"sem": request()})

    def use(x: Any, o: Any, sem: Any) -> None:
        if kind == "dma":
            sp.signal(sem)
        else:
            sp.async_copy(x, o, sem)

    def adopting(x: Any, o: Any) -> None:
        pl.run_scoped(lambda ref: use(x, o, sp.adopt(ref, request())), raw)

    ways: dict[str, tuple[Callable[..., None], Any]] = {
        "position": (use, (request(),)),
        "keyword": (lambda x, o, *, sem: use(x, o, sem), {"sem": request()}),
        "tuple": (lambda x, o, pair: use(x, o, pair[1]), ((1, request())[1:] * 2,)),
        "dict": (lambda x, o, sems: use(x, o, sems["a"]), ({"a": request()},)),
        "element": (lambda x, o, sems: use(x, o, sems[1]), (request(2),)),
        "Scratch": (lambda x, o, s: use(x, o, s.sem), group),
        "run_scoped": (lambda x, o: sp.run_scoped(lambda s: use(x, o, s), request()), ()),
        "with_scoped": (lambda x, o: sp.with_scoped(request())(use)(x, o), ()),
        "adopted": (adopting, ()),
        "raw request": (use, (raw,)),
        "raw array": (lambda x, o, sems: use(x, o, sems[1]), (raw((2,)),)),
        "raw in run_scoped": (lambda x, o: sp.run_scoped(lambda s: use(x, o, s), raw), ()),
    }
    refused = set()
    for name, (kernel, scratch) in ways.items():
        try:
            trace_call(sp.pallas_call(kernel, FLOATS, scratch_shapes=scratch), mesh)
        except sp.errors.WrongKindError:
            refused.add(name)
    assert refused == set(ways)
