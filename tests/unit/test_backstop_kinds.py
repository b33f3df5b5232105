"""Every operation against everything that is not the semaphore it takes, types defeated."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp
from safepallas._semaphores import kinds as _kinds

from .helpers import (
    CLASSES,
    KINDS,
    RANKS,
    Act,
    Case,
    Kernel,
    equations,
    judge,
    judge_under_x64,
    table,
    trace,
)

# What may be done with what. Written down again here: a slip in the library's own table must not
# change what the tests demand.
ALLOWED: dict[tuple[str, str], tuple[str, ...]] = {
    ("signal", "sem"): ("regular", "barrier"),
    ("wait", "sem"): ("regular", "barrier"),
    ("read", "sem"): ("regular", "barrier", "dma"),
    ("make_async_copy", "sem"): ("dma",),
    ("async_copy", "sem"): ("dma",),
    ("make_async_remote_copy", "send_sem"): ("dma",),
    ("make_async_remote_copy", "recv_sem"): ("dma",),
    ("async_remote_copy", "send_sem"): ("dma",),
    ("async_remote_copy", "recv_sem"): ("dma",),
    ("wait_bytes", "sem"): ("dma",),
    ("core_barrier", "sem"): ("regular",),
    ("async_copy_counted", "sem"): ("regular",),
    ("async_remote_copy_counted", "send_sem"): ("regular",),
    ("async_remote_copy_counted", "recv_sem"): ("regular",),
}

Call = Callable[[Kernel, Any], Any]
HERE = {"x": 1}
CALLS: dict[tuple[str, str], Call] = {
    ("signal", "sem"): lambda k, sem: sp.signal(sem),
    ("wait", "sem"): lambda k, sem: sp.wait(sem),
    ("read", "sem"): lambda k, sem: k.store(sp.read(sem)),
    ("make_async_copy", "sem"): lambda k, sem: sp.make_async_copy(k.x, k.o, sem).start(),
    ("async_copy", "sem"): lambda k, sem: sp.async_copy(k.x, k.o, sem),
    ("make_async_remote_copy", "send_sem"): lambda k, sem: sp.make_async_remote_copy(
        k.x, k.o, sem, k.dma0, HERE
    ).start(),
    ("make_async_remote_copy", "recv_sem"): lambda k, sem: sp.make_async_remote_copy(
        k.x, k.o, k.dma0, sem, HERE
    ).start(),
    ("async_remote_copy", "send_sem"): lambda k, sem: sp.async_remote_copy(
        k.x, k.o, sem, k.dma0, HERE
    ),
    ("async_remote_copy", "recv_sem"): lambda k, sem: sp.async_remote_copy(
        k.x, k.o, k.dma0, sem, HERE
    ),
    ("wait_bytes", "sem"): lambda k, sem: sp.wait_bytes(sem, k.x),
    # One core, by any axis that has none of the mesh's names: there is no mesh of cores here.
    ("core_barrier", "sem"): lambda k, sem: jax.vmap(
        lambda: sp.core_barrier(sem, core_axis_name="core"), axis_name="core", axis_size=1
    )(),
    ("async_copy_counted", "sem"): lambda k, sem: sp.async_copy_counted(k.x, k.o, sem),
    ("async_remote_copy_counted", "send_sem"): lambda k, sem: sp.async_remote_copy_counted(
        k.x, k.o, sem, k.regular0, HERE
    ),
    ("async_remote_copy_counted", "recv_sem"): lambda k, sem: sp.async_remote_copy_counted(
        k.x, k.o, k.regular0, sem, HERE
    ),
}
PRIMITIVE = {
    "signal": "semaphore_signal",
    "wait": "semaphore_wait",
    "read": "semaphore_read",
    "wait_bytes": "dma_wait",
    "core_barrier": "semaphore_signal",  # none where there is one core
}

NO_HANDLES: dict[str, Act] = {
    "str": lambda k: "banana",
    "int": lambda k: 0,
    "bool": lambda k: True,
    "float": lambda k: 1.0,
    "None": lambda k: None,
    "ellipsis": lambda k: ...,
    "object": lambda k: object(),
    "numpy array": lambda k: np.zeros((), np.int16),
    "float array": lambda k: k.x[...],
    "int32 array": lambda k: k.data.int32[...],
    "traced int32": lambda k: k.traced(jnp.int32),
    "raw int16 ref": lambda k: k.data.int16,
    "raw int16 element": lambda k: k.data.int16.at[0, 0],
    "raw float ref": lambda k: k.x,
    "raw float element": lambda k: k.x.at[0, 0],
    "raw int32 ref": lambda k: k.data.int32,
    "raw int32 element": lambda k: k.data.int32.at[0, 0],
    "spec": lambda k: sp.dma_semaphore(),
    "spec of an array": lambda k: sp.semaphore(2),
    "raw request": lambda k: pltpu.SemaphoreType.DMA,
    "handle class": lambda k: sp.DmaSemaphore,
    "scratch": lambda k: k.data,
    "copy": lambda k: sp.async_copy(k.x, k.o, k.dma0),
    **{f"raw {kind} ref": lambda k, kind=kind: k.sem(kind).ref for kind in KINDS},
    **{f"raw {kind} array ref": lambda k, kind=kind: k.sem(kind, 1).ref for kind in KINDS},
    **{f"{kind} in a tuple": lambda k, kind=kind: (k.sem(kind),) for kind in KINDS},
    **{f"{kind} in a list": lambda k, kind=kind: [k.sem(kind)] for kind in KINDS},
    **{f"{kind} in a dict": lambda k, kind=kind: {"sem": k.sem(kind)} for kind in KINDS},
}

# What a handle of a kind may be made to hold by way of the pytree: (kind or None, rank, ref).
LEAVES: dict[str, tuple[str | None, int, Act]] = {
    **{f"{kind} ref": (kind, 0, lambda k, kind=kind: k.sem(kind).ref) for kind in KINDS},
    **{f"{kind} array": (kind, 1, lambda k, kind=kind: k.sem(kind, 1).ref) for kind in KINDS},
    "int16 element": (None, 0, lambda k: k.data.int16.at[0, 0]),
    "float ref": (None, 0, lambda k: k.x),
    "int32 element": (None, 0, lambda k: k.data.int32.at[0, 0]),
    "loaded array": (None, 0, lambda k: k.x[...]),
    "int": (None, 0, lambda k: 0),
    "None": (None, 0, lambda k: None),
    "handle": (None, 0, lambda k: k.dma0),
    "tuple": (None, 0, lambda k: (k.dma0.ref,)),
}


def unflattened(handle: Any, leaf: Any) -> Any:
    return jax.tree.unflatten(jax.tree.structure(handle), [leaf])


def mapped(handle: Any, leaf: Any) -> Any:
    return jax.tree.map(lambda _: leaf, handle)


FORGERIES = (("handle", 0, unflattened), ("array", 1, mapped))


def intruders(allowed: tuple[str, ...]) -> list[Case]:
    """Everything that may stand in a semaphore's place, and the error it deserves there."""
    cases = [Case(name, sp.errors.NotASemaphoreError, make) for name, make in NO_HANDLES.items()]
    for kind in KINDS:
        wrong = None if kind in allowed else sp.errors.WrongKindError
        for rank in RANKS:
            error = wrong or (sp.errors.NotScalarError if rank else None)
            cases.append(Case(f"{kind} of rank {rank}", error, lambda k, w=(kind, rank): k.sem(*w)))
            cases.append(
                Case(
                    f"dead {kind} of rank {rank}",
                    sp.errors.ScopeEndedError,
                    lambda k, w=(kind, rank): k.dead(*w),
                )
            )
        for leaf, (held, rank, make) in LEAVES.items():
            for of, own_rank, forge in FORGERIES:
                # An array that holds one semaphore of its kind is what `jax.vmap` makes of it.
                error = wrong or (sp.errors.NotScalarError if rank else None)
                if held != kind:
                    error = sp.errors.WrongKindError if held else sp.errors.NotASemaphoreError
                cases.append(
                    Case(
                        f"{kind} {of} made to hold {leaf}",
                        error,
                        lambda k, w=(kind, own_rank), forge=forge, make=make: forge(
                            k.sem(*w), make(k)
                        ),
                    )
                )
    return cases


CASES = [
    Case(
        f"{op}-{arg}-{intruder.name}",
        intruder.error,
        lambda k, call=CALLS[op, arg], make=intruder.act: call(k, make(k)),
    )
    for (op, arg), allowed in ALLOWED.items()
    for intruder in intruders(allowed)
]


@table(CASES)
def test_intruder(case: Case) -> None:
    op, arg, _ = case.name.split("-", 2)
    error = judge(case)
    if isinstance(error, sp.errors.ScopeEndedError):
        assert str(error).startswith(f"{op}: ")
    elif error is not None:
        assert str(error).startswith(f"{op}: {arg} must be ")


def test_intruders_under_x64() -> None:
    judge_under_x64(CASES)


def test_table_is_the_librarys() -> None:
    library = {key: tuple(kind.name for kind in kinds) for key, kinds in _kinds.OPERATIONS.items()}
    assert library == ALLOWED
    assert CALLS.keys() == ALLOWED.keys()
    assert {kind.name: kind.handle for kind in _kinds.KINDS} == {
        kind: cls.__name__ for kind, cls in CLASSES.items()
    }


@pytest.mark.parametrize("key", ALLOWED, ids="-".join)
def test_valid_use_is_traced(key: tuple[str, str]) -> None:
    for kind in ALLOWED[key]:
        jaxpr = trace(lambda k, kind=kind: CALLS[key](k, k.sem(kind)))
        wanted = 0 if key[0] == "core_barrier" else 1
        assert len(list(equations(jaxpr, PRIMITIVE.get(key[0], "dma_start")))) == wanted


def test_element_of_every_rank_is_a_semaphore() -> None:
    for (op, arg), allowed in ALLOWED.items():
        for kind in allowed:
            for rank in RANKS[1:]:
                trace(
                    lambda k, w=(kind, rank), call=CALLS[op, arg]: call(
                        k, k.sem(*w)[(0,) * len(k.sem(*w).shape)]
                    )
                )
