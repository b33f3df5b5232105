"""What a kernel receives against what its own annotations promise."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, Protocol, TypeVar, Union

import jax
import jax.numpy as jnp
import pytest

import safepallas as sp

from .helpers import CLASSES, FLOATS, KINDS, RANKS, assert_ours, request, trace_call


class Group(sp.Scratch):
    one = sp.dma_semaphore()


class Wider(Group):
    two = sp.semaphore()


class Other(sp.Scratch):
    one = sp.dma_semaphore()


class Pair(NamedTuple):
    dma: sp.DmaSemaphore
    regular: sp.Semaphore


class HasRef(Protocol):
    @property
    def ref(self) -> Any: ...


Done = NewType("Done", sp.DmaSemaphore)
AnyDma = TypeVar("AnyDma", bound=sp.DmaSemaphore)
Counting = TypeVar("Counting", sp.Semaphore, sp.BarrierSemaphore)
Vector = sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]
Matrix = sp.SemaphoreArray[sp.DmaSemaphore, tuple[int, int]]


def annotated(annotation: Any) -> Callable[..., None]:
    """A kernel whose third parameter has that annotation."""

    def kernel(x: Any, o: Any, s: Any) -> None: ...

    kernel.__annotations__["s"] = annotation
    return kernel


def call(kernel: Callable[..., None], scratch: Any = (), **options: Any) -> Any:
    return trace_call(sp.pallas_call(kernel, FLOATS, scratch_shapes=scratch, **options))


def refused(kernel: Callable[..., None], scratch: Any = (), parameter: str = "s") -> None:
    with pytest.raises(sp.errors.AnnotationError) as info:
        call(kernel, scratch)
    assert_ours(info.value, sp.errors.AnnotationError)
    assert f"parameter {parameter!r} is annotated" in str(info.value)


ARRIVING = (0, 1, 2)  # dimensions

# What may arrive in `s`.
ARRIVALS: dict[str, Callable[[], Any]] = {
    **{
        f"{kind}{rank}": lambda w=(kind, rank): (request(*w),)
        for kind in KINDS
        for rank in ARRIVING
    },
    "data": lambda: (sp.vmem((8, 128), jnp.float32),),
    "pair": lambda: ((sp.dma_semaphore(), sp.semaphore()),),
    "turned pair": lambda: ((sp.semaphore(), sp.dma_semaphore()),),
    "three": lambda: ((sp.dma_semaphore(),) * 3,),
    "named pair": lambda: (Pair(sp.dma_semaphore(), sp.semaphore()),),
    "turned named pair": lambda: (Pair(sp.semaphore(), sp.dma_semaphore()),),
    "dict": lambda: ({"a": sp.dma_semaphore(), "b": sp.dma_semaphore()},),
    "mixed dict": lambda: ({"a": sp.dma_semaphore(), "b": sp.semaphore()},),
    "list": lambda: ([sp.dma_semaphore()],),
    "mixed list": lambda: ([sp.dma_semaphore(), sp.semaphore()],),
    "Group": lambda: Group,
    "Wider": lambda: Wider,
    "Other": lambda: Other,
}
SEMAPHORES = [f"{kind}{rank}" for kind in KINDS for rank in ARRIVING]
ARRAYS = [name for name in SEMAPHORES if not name.endswith("0")]
SCRATCHES = ["Group", "Wider", "Other"]

# The annotation and what it lets in. Each other arrival of the table must be refused.
ACCEPTED: dict[str, tuple[Any, list[str]]] = {
    **{f"{kind}": (CLASSES[kind], [f"{kind}0"]) for kind in KINDS},
    **{
        f"{kind} array of rank {rank}": (
            sp.SemaphoreArray[CLASSES[kind], tuple[(int,) * rank]],
            [f"{kind}{rank}"],
        )
        for kind in KINDS
        for rank in ARRIVING[1:]
    },
    "array of any rank": (
        sp.SemaphoreArray[sp.DmaSemaphore, tuple[int, ...]],
        [f"dma{rank}" for rank in ARRIVING[1:]],
    ),
    "array of any kind": (sp.SemaphoreArray[Any, tuple[int]], [f"{kind}1" for kind in KINDS]),
    "array of two kinds": (
        sp.SemaphoreArray[sp.Semaphore | sp.BarrierSemaphore, tuple[int]],
        ["regular1", "barrier1"],
    ),
    "bare array": (sp.SemaphoreArray, ARRAYS),
    "array of Any": (sp.SemaphoreArray[Any, Any], ARRAYS),
    "union": (sp.Semaphore | sp.BarrierSemaphore, ["regular0", "barrier0"]),
    "Union": (Union[sp.Semaphore, sp.DmaSemaphore], ["regular0", "dma0"]),  # noqa: UP007
    "Optional": (Optional[sp.DmaSemaphore], ["dma0"]),  # noqa: UP045
    "or None": (sp.DmaSemaphore | None, ["dma0"]),
    "scalar or array": (sp.DmaSemaphore | Vector, ["dma0", "dma1"]),
    "Annotated": (Annotated[sp.DmaSemaphore, "send"], ["dma0"]),
    "NewType": (Done, ["dma0"]),
    "bound TypeVar": (AnyDma, ["dma0"]),
    "constrained TypeVar": (Counting, ["regular0", "barrier0"]),
    "string": ("sp.DmaSemaphore", ["dma0"]),
    "string of an array": ("Vector", ["dma1"]),
    "string of a union": ("sp.DmaSemaphore | None", ["dma0"]),
    "Group": (Group, ["Group", "Wider"]),
    "Wider": (Wider, ["Wider"]),
    "Scratch": (sp.Scratch, SCRATCHES),
    "Pair": (Pair, ["named pair", "pair"]),
    "tuple of two": (tuple[sp.DmaSemaphore, sp.Semaphore], ["pair", "named pair"]),
    "tuple of many": (tuple[sp.DmaSemaphore, ...], ["three"]),
    "dict": (dict[str, sp.DmaSemaphore], ["dict"]),
    "Mapping": (Mapping[str, sp.DmaSemaphore], ["dict"]),
    "list": (list[sp.DmaSemaphore], ["list"]),
    "Sequence": (Sequence[sp.DmaSemaphore], ["list", "three"]),
    "Ref": (sp.Ref, ["data"]),
    "optional Ref": (sp.Ref | None, ["data"]),
}
# What is none of ours lets data in, and is not checked as a container.
LENIENT: dict[str, tuple[Any, list[str]]] = {
    "jax.Array": (jax.Array, ["data"]),
    "int": (int, ["data"]),
    "str": (str, ["data"]),
    "tuple": (tuple, ["data"]),
    "list of int": (list[int], ["data"]),
    "type": (type[sp.DmaSemaphore], ["data"]),
    "Callable": (Callable[..., Any], ["data"]),
}
# Not checked.
UNCHECKED: dict[str, Any] = {
    "Any": Any,
    "object": object,
    "string of Any": "Any",
    "unknown name": "OnlyForCheckers",
    "unknown attribute": "sp.NoSuchThing",
    "broken string": "1 /",
    "failing string": "1 / 0",
    "no type": 5,
    "unbound TypeVar": TypeVar("Free"),
    "Annotated Any": Annotated[Any, "whatever"],
    "NewType of Any": NewType("Whatever", Any),
    "Literal": Literal[1],
    "Protocol of the user": HasRef,
}
# Which container arrives is Python's business; which semaphores are in it is ours.
ITEMS: dict[str, list[str]] = {
    "Pair": [*SEMAPHORES, *SCRATCHES, "turned pair", "turned named pair", "three"],
    "tuple of two": [*SEMAPHORES, *SCRATCHES, "turned pair", "turned named pair", "three"],
    "tuple of many": [*SEMAPHORES, *SCRATCHES, "pair", "named pair"],
    "dict": [*SEMAPHORES, *SCRATCHES, "mixed dict"],
    "Mapping": [*SEMAPHORES, *SCRATCHES, "mixed dict"],
    "list": [*SEMAPHORES, *SCRATCHES, "mixed list"],
    "Sequence": [*SEMAPHORES, *SCRATCHES, "mixed list", "pair"],
    "Ref": [*SEMAPHORES, *SCRATCHES],
    "optional Ref": [*SEMAPHORES, *SCRATCHES],
}
MATCHES = [
    (name, annotation, arrival, arrival in accepted)
    for name, (annotation, accepted) in ACCEPTED.items()
    for arrival in ARRIVALS
    if arrival in accepted or arrival in ITEMS.get(name, ARRIVALS)
]


@pytest.mark.parametrize(
    ("annotation", "arrival", "agrees"),
    [pytest.param(a, b, ok, id=f"{name}-{b}") for name, a, b, ok in MATCHES],
)
def test_annotation(annotation: Any, arrival: str, agrees: bool) -> None:
    if agrees:
        call(annotated(annotation), ARRIVALS[arrival]())
    else:
        refused(annotated(annotation), ARRIVALS[arrival]())


@pytest.mark.parametrize("rank", RANKS[1:])
def test_annotation_of_every_rank(rank: int) -> None:
    kernel = annotated(sp.SemaphoreArray[sp.DmaSemaphore, tuple[(int,) * rank]])
    call(kernel, (request("dma", rank),))
    for other in RANKS:
        if other != rank:
            refused(kernel, (request("dma", other),))


@pytest.mark.parametrize("arrival", [*SEMAPHORES, *SCRATCHES, "data"])
@pytest.mark.parametrize("name", LENIENT)
def test_annotation_of_something_else(name: str, arrival: str) -> None:
    annotation, accepted = LENIENT[name]
    if arrival in accepted:
        call(annotated(annotation), ARRIVALS[arrival]())
    else:
        refused(annotated(annotation), ARRIVALS[arrival]())


@pytest.mark.parametrize("name", UNCHECKED)
def test_annotation_that_is_not_looked_at(name: str) -> None:
    for arrival in ARRIVALS.values():
        call(annotated(UNCHECKED[name]), arrival())


@pytest.mark.parametrize("kind", KINDS)
def test_semaphore_for_data(kind: str) -> None:
    def kernel(x: sp.Semaphore | sp.DmaSemaphore | sp.BarrierSemaphore, o: Any, s: Any) -> None: ...

    refused(kernel, (request(kind, 0),), parameter="x")


def test_no_annotation() -> None:
    call(lambda x, o, s: None, (sp.semaphore(),))
    call(lambda *refs: None, (sp.semaphore(),))
    call(annotated(Any), (sp.semaphore(),))


def test_first_parameter_that_disagrees_is_named() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, a: sp.Semaphore, b: sp.Semaphore) -> None: ...

    refused(kernel, (sp.semaphore(), sp.dma_semaphore()), parameter="b")
    refused(kernel, (sp.dma_semaphore(), sp.dma_semaphore()), parameter="a")
