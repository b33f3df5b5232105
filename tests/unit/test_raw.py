"""safepallas.raw: names for annotations of raw kernels, wrong in kernels of safepallas."""

import inspect
import typing
from collections.abc import Callable
from typing import Any

import pytest

import safepallas as sp
from safepallas import raw

from .helpers import FLOATS, trace_call

SEMAPHORES = (
    raw.SemaphoreRef,
    raw.BarrierSemaphoreRef,
    raw.DmaSemaphoreRef,
    raw.SemaphoreArrayRef,
)
Slots = raw.SemaphoreArrayRef[raw.DmaSemaphoreRef, tuple[int]]


@pytest.mark.parametrize("cls", SEMAPHORES, ids=lambda cls: cls.__name__)
def test_only_a_name(cls: Any) -> None:
    made = f"{cls.__name__} cannot be constructed: probably you called {cls.__name__}(...), "
    with pytest.raises(TypeError) as info:
        cls(None)
    assert str(info.value) == f"{made}instead you want the ref that raw Pallas hands to the kernel."
    with pytest.raises(TypeError) as info:
        type("Own", (cls,), {})
    assert str(info.value) == f"{cls.__name__} is final: it cannot be subclassed."


def test_the_generic_form_is_a_name_too() -> None:
    assert typing.get_origin(Slots) is raw.SemaphoreArrayRef
    assert typing.get_args(Slots) == (raw.DmaSemaphoreRef, tuple[int])
    with pytest.raises(TypeError, match="SemaphoreArrayRef cannot be constructed"):
        Slots(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", raw.__all__)
def test_every_name_is_documented(name: str) -> None:
    assert "::\n\n    " in (inspect.getdoc(getattr(raw, name)) or "")  # an example


def one(x: raw.Ref, o: raw.Ref, s: raw.DmaSemaphoreRef) -> None: ...


def row(x: raw.Ref, o: raw.Ref, s: Slots) -> None: ...


def bare(x: raw.Ref, o: raw.Ref, s: raw.SemaphoreArrayRef) -> None: ...  # type: ignore[type-arg]


def as_string(x: raw.Ref, o: raw.Ref, s: "raw.DmaSemaphoreRef | None") -> None: ...


def as_data(x: raw.Ref, o: raw.Ref, s: raw.Ref) -> None: ...


@pytest.mark.parametrize(
    ("kernel", "spec", "shown"),
    [
        (one, sp.dma_semaphore(), "raw.DmaSemaphoreRef"),
        (one, sp.semaphore(), "raw.DmaSemaphoreRef"),
        (one, (sp.dma_semaphore(), sp.dma_semaphore()), "raw.DmaSemaphoreRef"),
        (one, sp.vmem((8, 128), "float32"), "raw.DmaSemaphoreRef"),
        (row, sp.dma_semaphore(2), "raw.SemaphoreArrayRef[raw.DmaSemaphoreRef, tuple[int]]"),
        (bare, sp.dma_semaphore(2), "raw.SemaphoreArrayRef"),
        (as_string, sp.dma_semaphore(), "raw.DmaSemaphoreRef | None"),
        (as_data, sp.dma_semaphore(), "raw.Ref"),
        (as_data, sp.dma_semaphore(2), "raw.Ref"),
    ],
)
def test_refused_where_handles_arrive(kernel: Callable[..., None], spec: Any, shown: str) -> None:
    with pytest.raises(sp.errors.AnnotationError) as info:
        trace_call(sp.pallas_call(kernel, FLOATS, scratch_shapes=(spec,)))
    assert f"parameter 's' is annotated {shown}, but it receives " in str(info.value)


def test_data_is_as_annotated() -> None:
    trace_call(sp.pallas_call(as_data, FLOATS, scratch_shapes=(sp.vmem((8, 128), "float32"),)))
