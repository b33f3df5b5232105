"""What is said, word for word, to who takes a semaphore for a value or a class to call."""

import copy
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

from .helpers import FLOATS, Message, assert_says, trace_call


class Group(sp.Scratch):
    done = sp.semaphore()
    send = sp.dma_semaphore()
    slots = sp.dma_semaphore(2)


def call(kernel: Any, scratch: Any = (), **options: Any) -> Any:
    return trace_call(sp.pallas_call(kernel, FLOATS, scratch_shapes=scratch, **options))


def row(error: type[Exception], body: Callable[[Any, Any, Any], Any], text: str) -> Message:
    """What a kernel with that body is answered."""

    def kernel(x: Any, o: Any, s: Group) -> None:
        body(x, o, s)

    return Message(error, lambda: call(kernel, Group), text)


def set_field(x: Any, o: Any, s: Any) -> None:
    s.done = None


def subclass(cls: Any) -> Any:
    return type("Own", (cls,), {})


NO_VALUE = (
    "a semaphore is not a value. Read its count with sp.read(sem), or wait for it with "
    "sp.wait(sem, n)."
)

MESSAGES: dict[str, Message] = {
    "handle constructed": row(
        TypeError,
        lambda x, o, s: sp.DmaSemaphore(s.send.ref),
        "DmaSemaphore cannot be constructed: probably you called DmaSemaphore(...), instead you "
        "want sp.dma_semaphore() in scratch_shapes= or sp.run_scoped, or sp.adopt(ref, "
        "sp.dma_semaphore()).",
    ),
    "array constructed": Message(
        TypeError,
        lambda: sp.SemaphoreArray(None),
        "SemaphoreArray cannot be constructed: probably you called SemaphoreArray(...), instead "
        "you want sp.dma_semaphore(n) in scratch_shapes= or sp.run_scoped, or sp.adopt(ref, "
        "sp.dma_semaphore(n)).",
    ),
    "spec constructed": Message(
        TypeError,
        lambda: sp.Spec(None),
        "Spec cannot be constructed: probably you called Spec(...), instead you want "
        "sp.dma_semaphore().",
    ),
    "scratch constructed": Message(
        TypeError,
        lambda: Group(),
        "Group cannot be constructed: probably you called Group(...), instead you want "
        "scratch_shapes=Group.",
    ),
    "copy constructed": Message(
        TypeError,
        lambda: sp.LocalCopy(None),
        "LocalCopy cannot be constructed: probably you called LocalCopy(...), instead you want "
        "sp.make_async_copy(...).",
    ),
    "remote copy constructed": Message(
        TypeError,
        lambda: sp.RemoteCopy(None),
        "RemoteCopy cannot be constructed: probably you called RemoteCopy(...), instead you want "
        "sp.make_async_remote_copy(...).",
    ),
    "handle copied": row(
        TypeError,
        lambda x, o, s: copy.copy(s.done),
        "Semaphore cannot be constructed: probably you called Semaphore(...), instead you want "
        "sp.semaphore() in scratch_shapes= or sp.run_scoped, or sp.adopt(ref, sp.semaphore()).",
    ),
    **{
        f"{cls.__name__} subclassed": Message(
            TypeError,
            lambda cls=cls: subclass(cls),
            f"{cls.__name__} is final: it cannot be subclassed.",
        )
        for cls in (sp.Semaphore, sp.SemaphoreArray, sp.Spec, sp.LocalCopy)
    },
    "truth": row(
        TypeError,
        lambda x, o, s: bool(s.done),
        f"Semaphore <<done>> has no truth value: {NO_VALUE}",
    ),
    "truth of an array": row(
        TypeError,
        lambda x, o, s: not s.slots,
        f"SemaphoreArray[DmaSemaphore] of shape (2,) <<slots>> has no truth value: {NO_VALUE}",
    ),
    "loading": row(
        TypeError,
        lambda x, o, s: jnp.asarray(s.send),
        f"DmaSemaphore <<send>> cannot be loaded: {NO_VALUE}",
    ),
    "comparing": row(
        TypeError,
        lambda x, o, s: s.slots[0] == 0,
        f"DmaSemaphore <<slots[0]>> cannot be compared with a number: {NO_VALUE}",
    ),
    "searching": row(
        TypeError,
        lambda x, o, s: 0 in s.slots,
        f"SemaphoreArray[DmaSemaphore] of shape (2,) <<slots>> cannot be searched: {NO_VALUE}",
    ),
    "field set": row(
        AttributeError,
        set_field,
        "'done' of a Scratch cannot be set: the allocator fills it.",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str) -> None:
    assert_says(MESSAGES[name], __file__)


def test_names_of_what_kernels_receive() -> None:
    """Parameters, elements of containers, keywords, fields, what was adopted, the barrier."""
    seen: list[str] = []

    def kernel(x: Any, o: Any, pair: Any, *rest: Any) -> None:
        received = jax.tree.leaves((pair, rest), is_leaf=is_handle)
        seen.extend(str(handle).split(" (allocated")[0] for handle in received)
        seen.append(str(sp.adopt(rest[0].ref, sp.semaphore())))
        seen.append(str(sp.get_barrier_semaphore()))
        sp.run_scoped(lambda inner: seen.append(str(inner).split(" (allocated")[0]), sp.semaphore())
        pl.run_scoped(
            lambda raw: seen.append(str(sp.adopt(raw, sp.dma_semaphore()))),
            pltpu.SemaphoreType.DMA,
        )

    def is_handle(x: Any) -> bool:
        return isinstance(x, (sp.Semaphore, sp.DmaSemaphore, sp.SemaphoreArray))

    call(
        kernel,
        ({"a": sp.dma_semaphore(), "b": (sp.semaphore(2),)}, sp.semaphore(), sp.dma_semaphore()),
        compiler_params=pltpu.CompilerParams(collective_id=0),
    )
    assert seen == [
        "DmaSemaphore \"pair['a']\"",
        "SemaphoreArray[Semaphore] of shape (2,) \"pair['b'][0]\"",
        "Semaphore 'rest[0]'",
        "DmaSemaphore 'rest[1]'",
        "Semaphore 'adopted' (adopted as semaphore())",
        "BarrierSemaphore 'barrier' (sp.get_barrier_semaphore())",
        "Semaphore 'inner'",
        "DmaSemaphore 'adopted' (adopted as dma_semaphore())",
    ]
