"""Every wrong request to the allocator, every wrong adoption."""

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
    CLASSES,
    FLOATS,
    KINDS,
    RANKS,
    REQUESTS,
    SIZES,
    Act,
    Case,
    assert_ours,
    judge,
    judge_under_x64,
    request,
    table,
    trace,
    trace_call,
)


class Group(sp.Scratch):
    one = sp.dma_semaphore()


# --- specs ---------------------------------------------------------------------------------------

BAD_SIZES: dict[str, Any] = {
    "True": True,
    "float": 2.0,
    "numpy float": np.float32(2),
    "str": "2",
    "None": None,
    "tuple": (2,),
    "list": [2],
    "vector": np.array([2, 3]),
    "negative": -1,
    "numpy negative": np.int8(-1),
}
BUFFERS = {"vmem": sp.vmem, "smem": sp.smem}


def refused(make: Callable[[], Any]) -> None:
    with pytest.raises(sp.errors.SpecError) as info:
        make()
    assert_ours(info.value, sp.errors.SpecError)


@pytest.mark.parametrize("size", BAD_SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_size_of_an_array(kind: str, size: str) -> None:
    for rank in RANKS[1:]:
        for axis in range(rank):
            sizes: list[Any] = [2] * rank
            sizes[axis] = BAD_SIZES[size]
            refused(lambda sizes=sizes: REQUESTS[kind](*sizes))


@pytest.mark.parametrize("size", BAD_SIZES)
@pytest.mark.parametrize("space", BUFFERS)
def test_bad_size_of_a_buffer(space: str, size: str) -> None:
    refused(lambda: BUFFERS[space]((BAD_SIZES[size],), jnp.float32))
    refused(lambda: BUFFERS[space]((8, BAD_SIZES[size]), jnp.float32))


@pytest.mark.parametrize("space", BUFFERS)
def test_shape_of_a_buffer_is_a_sequence(space: str) -> None:
    refused(lambda: BUFFERS[space](8, jnp.float32))
    refused(lambda: BUFFERS[space](None, jnp.float32))


@pytest.mark.parametrize("kind", KINDS)
def test_rank_five(kind: str) -> None:
    refused(lambda: REQUESTS[kind](1, 1, 1, 1, 1))


@pytest.mark.parametrize("space", BUFFERS)
@pytest.mark.parametrize("kind", [pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR])
def test_buffer_of_semaphores(space: str, kind: Any) -> None:
    """No semaphore by way of a dtype: it would be a handle of no known kind."""
    with pytest.raises(TypeError):
        BUFFERS[space]((2,), kind.dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_valid_sizes(kind: str) -> None:
    assert request(kind, 0).shape == ()
    for rank in RANKS[1:]:
        assert request(kind, rank).shape == SIZES[:rank]
    assert REQUESTS[kind](np.int64(2), 0).shape == (2, 0)


# --- scratch -------------------------------------------------------------------------------------

NO_REQUESTS: dict[str, Callable[[], Any]] = {
    "int": lambda: 2,
    "str": lambda: "dma",
    "handle class": lambda: sp.DmaSemaphore,
    "request function": lambda: sp.dma_semaphore,
    "spec class": lambda: sp.Spec,
    "dtype": lambda: jnp.float32,
    "shape": lambda: FLOATS,
    "array": lambda: np.zeros(2),
    "scratch among others": lambda: Group,
    "semaphore dtype": lambda: pltpu.SemaphoreType.DMA.dtype,
}
NO_CONTAINERS: dict[str, Callable[[], Any]] = {
    "spec": sp.dma_semaphore,
    "spec of a buffer": lambda: sp.vmem((8, 128), jnp.float32),
    "raw request": lambda: pltpu.SemaphoreType.DMA,
    "raw buffer": lambda: pltpu.VMEM((8, 128), jnp.float32),
    "None": lambda: None,
    "generator": lambda: (sp.dma_semaphore() for _ in range(2)),
    "set": lambda: {sp.dma_semaphore()},
    **{name: make for name, make in NO_REQUESTS.items() if name != "scratch among others"},
}


def call_with(scratch: Any) -> Any:
    return trace_call(sp.pallas_call(lambda *_: None, FLOATS, scratch_shapes=scratch))


@pytest.mark.parametrize("name", NO_CONTAINERS)
def test_scratch_that_is_no_container(name: str) -> None:
    refused(lambda: call_with(NO_CONTAINERS[name]()))


@pytest.mark.parametrize("name", NO_REQUESTS)
def test_scratch_that_holds_no_request(name: str) -> None:
    bad = NO_REQUESTS[name]
    refused(lambda: call_with((bad(),)))
    refused(lambda: call_with((sp.dma_semaphore(), bad())))
    refused(lambda: call_with([bad()]))
    refused(lambda: call_with({"a": bad()}))
    refused(lambda: call_with(((sp.dma_semaphore(), bad()),)))
    refused(lambda: call_with(({"a": bad()},)))


@pytest.mark.parametrize("name", NO_REQUESTS)
def test_scope_of_no_request(name: str) -> None:
    bad = NO_REQUESTS[name]
    if name != "scratch among others":
        refused(lambda: trace(lambda k: sp.run_scoped(lambda *_: None, bad())))
        refused(lambda: trace(lambda k: sp.with_scoped(bad())(lambda *_: None)()))
    refused(lambda: trace(lambda k: sp.run_scoped(lambda *_: None, sp.semaphore(), bad())))


def test_scratch_instance_is_no_scratch() -> None:
    instances: list[Any] = []
    trace_call(
        sp.pallas_call(lambda x, o, group: instances.append(group), FLOATS, scratch_shapes=Group)
    )
    refused(lambda: call_with(instances[0]))


FIELDS: dict[str, Callable[[], Any]] = {
    "list": lambda: [sp.dma_semaphore()],
    "tuple": lambda: (sp.dma_semaphore(), sp.semaphore()),
    "dict": lambda: {"a": sp.dma_semaphore()},
    "nested list": lambda: [[sp.dma_semaphore()]],
    "raw buffer": lambda: pltpu.VMEM((8, 128), jnp.float32),
    "raw semaphore": lambda: pltpu.SemaphoreType.DMA,
    "raw array": lambda: pltpu.SemaphoreType.DMA((2,)),
    "list of raw": lambda: [pltpu.SemaphoreType.DMA],
    "request function": lambda: sp.dma_semaphore,
    "handle class": lambda: sp.DmaSemaphore,
    "array class": lambda: sp.SemaphoreArray,
    "scratch": lambda: Group,
}


@pytest.mark.parametrize("name", FIELDS)
def test_field_that_would_be_none(name: str) -> None:
    refused(lambda: type("Bad", (sp.Scratch,), {"field": FIELDS[name]()}))
    refused(lambda: type("Bad", (Group,), {"field": FIELDS[name]()}))


def test_fields_beside_which_all_is_well() -> None:
    class Fine(Group):
        """A constant, a helper and a property stay what they are."""

        SIZE = 2
        names = ("a", "b")
        many = sp.semaphore(SIZE)

        def both(self) -> tuple[Any, Any]:
            return self.one, self.many

        @property
        def first(self) -> Any:
            return self.many[0]

    def kernel(x: Any, o: Any, s: Fine) -> None:
        assert s.both() == (s.one, s.many)
        sp.signal(s.first)

    trace_call(sp.pallas_call(kernel, FLOATS, scratch_shapes=Fine))


def test_field_cannot_be_set() -> None:
    def kernel(x: Any, o: Any, s: Any) -> None:
        s.one = None

    with pytest.raises(AttributeError, match="'one' of a Scratch cannot be set"):
        trace_call(sp.pallas_call(kernel, FLOATS, scratch_shapes=Group))


def test_scratch_in_two_places() -> None:
    for scratch in ((sp.dma_semaphore(),), Group, {"a": sp.dma_semaphore()}):
        grid_spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=0, grid=(1,), scratch_shapes=[pltpu.SemaphoreType.DMA]
        )
        refused(
            lambda g=grid_spec, s=scratch: trace_call(
                sp.pallas_call(lambda *_, **__: None, FLOATS, grid_spec=g, scratch_shapes=s)
            )
        )


def test_spec_in_a_grid_spec() -> None:
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=0, grid=(1,), scratch_shapes=[sp.dma_semaphore()]
    )
    refused(lambda: trace_call(sp.pallas_call(lambda *_: None, FLOATS, grid_spec=grid_spec)))


@pytest.mark.parametrize(
    "scratch",
    [
        (),
        [],
        {},
        (sp.dma_semaphore(),),
        [sp.semaphore(), sp.vmem((8, 128), jnp.float32)],
        {"a": sp.dma_semaphore(2)},
        ((sp.dma_semaphore(), sp.semaphore()), {"b": sp.semaphore()}),
        (pltpu.SemaphoreType.DMA, pltpu.VMEM((8, 128), jnp.float32)),
        Group,
    ],
    ids=str,
)
def test_valid_scratch(scratch: Any) -> None:
    trace_call(sp.pallas_call(lambda *_, **__: None, FLOATS, scratch_shapes=scratch))
    for grid_spec in (
        pl.GridSpec(grid=(1,)),
        pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=0, grid=(1,)),
    ):
        trace_call(
            sp.pallas_call(
                lambda *_, **__: None, FLOATS, grid_spec=grid_spec, scratch_shapes=scratch
            )
        )


# --- adopt ---------------------------------------------------------------------------------------

ADOPTABLE: dict[str, tuple[Act, Callable[[], Any]]] = {
    **{
        f"{kind}{rank}": (
            lambda k, w=(kind, rank): k.sem(*w).ref,
            lambda w=(kind, rank): request(*w),
        )
        for kind in KINDS
        for rank in RANKS
    },
    "float32": (lambda k: k.data.float32, lambda: sp.vmem((8, 128), jnp.float32)),
    "narrow": (lambda k: k.data.narrow, lambda: sp.vmem((8, 64), jnp.float32)),
    "int32": (lambda k: k.data.int32, lambda: sp.vmem((8, 128), jnp.int32)),
    "int16": (lambda k: k.data.int16, lambda: sp.vmem((8, 128), jnp.int16)),
    "int16 element": (lambda k: k.data.int16.at[0, 0], lambda: sp.vmem((), jnp.int16)),
    "int32 vector": (lambda k: k.data.int32.at[0], lambda: sp.vmem((128,), jnp.int32)),
}
NEVER_ADOPTED: dict[str, Act] = {
    "None": lambda k: None,
    "int": lambda k: 0,
    "array": lambda k: k.x[...],
    "numpy int16": lambda k: np.zeros((), np.int16),
    "tuple": lambda k: (k.dma0.ref,),
    "spec": lambda k: sp.dma_semaphore(),
    "copy": lambda k: sp.async_copy(k.x, k.o, k.dma0),
    "handle made to hold int16": lambda k: jax.tree.map(
        lambda _: k.data.int16.at[0, 0], k.regular0
    ),
}
NO_SPECS: dict[str, Act] = {
    "None": lambda k: None,
    "handle class": lambda k: sp.DmaSemaphore,
    "request function": lambda k: sp.dma_semaphore,
    "raw request": lambda k: pltpu.SemaphoreType.DMA,
    "raw array": lambda k: pltpu.SemaphoreType.DMA(()),
    "tuple": lambda k: (sp.dma_semaphore(),),
    "scratch": lambda k: Group,
    "handle": lambda k: k.dma0,
    "str": lambda k: "dma",
}
CASES = [
    *(
        Case(
            f"adopt {name} as {other}",
            None if name == other else sp.errors.AdoptError,
            lambda k, make=make, spec=spec: sp.adopt(make(k), spec()),
        )
        for name, (make, _) in ADOPTABLE.items()
        for other, (_, spec) in ADOPTABLE.items()
    ),
    *(
        Case(
            f"adopt {name} as {kind}{rank}",
            sp.errors.AdoptError,
            lambda k, make=make, w=(kind, rank): sp.adopt(make(k), request(*w)),
        )
        for name, make in NEVER_ADOPTED.items()
        for kind in KINDS
        for rank in (0, 1)
    ),
    *(
        Case(
            f"adopt as {name}",
            sp.errors.SpecError,
            lambda k, spec=spec: sp.adopt(k.dma0.ref, spec(k)),
        )
        for name, spec in NO_SPECS.items()
    ),
    *(
        Case(
            f"adopt a {kind} handle as {other}",
            None if kind == other else sp.errors.AdoptError,
            lambda k, kind=kind, other=other: sp.adopt(k.sem(kind), request(other, 0)),
        )
        for kind in KINDS
        for other in KINDS
    ),
    Case(
        "adopt another size",
        sp.errors.AdoptError,
        lambda k: sp.adopt(k.dma1.ref, sp.dma_semaphore(3)),
    ),
    Case(
        "adopt another space of sizes",
        sp.errors.AdoptError,
        lambda k: sp.adopt(k.dma2.ref, sp.dma_semaphore(3, 2)),
    ),
    Case("no spec, then no ref", sp.errors.SpecError, lambda k: sp.adopt(None, None)),
]


@table(CASES)
def test_adopt(case: Case) -> None:
    judge(case)


def test_adopt_under_x64() -> None:
    judge_under_x64(CASES)


@pytest.mark.parametrize("kind", KINDS)
def test_adopted_is_what_it_is(kind: str) -> None:
    def act(k: Any) -> None:
        assert type(sp.adopt(k.sem(kind).ref, request(kind, 0))) is CLASSES[kind]
        assert type(sp.adopt(k.sem(kind, 2)[0, 1].ref, request(kind, 0))) is CLASSES[kind]
        array = sp.adopt(k.sem(kind, 3).ref, request(kind, 3))
        assert array.shape == SIZES[:3]
        assert type(array[0, 0, 0]) is CLASSES[kind]

    trace(act)


def test_adopted_data_is_the_ref_itself() -> None:
    def act(k: Any) -> None:
        assert sp.adopt(k.data.float32, sp.vmem((8, 128), jnp.float32)) is k.data.float32

    trace(act)
