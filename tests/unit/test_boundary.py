"""What a kernel, or the body of a scope, receives against what its own annotations promise."""

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, Protocol, TypeVar, Union

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.pallas import tpu as pltpu

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
LENIENT: dict[str, Any] = {
    "jax.Array": jax.Array,
    "int": int,
    "str": str,
    "tuple": tuple,
    "list of int": list[int],
    "type": type[sp.DmaSemaphore],
    "Callable": Callable[..., Any],
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
PLAIN = [*SEMAPHORES, *SCRATCHES]
ITEMS: dict[str, list[str]] = {
    "Pair": [*PLAIN, "turned pair", "turned named pair", "three"],
    "tuple of two": [*PLAIN, "turned pair", "turned named pair", "three"],
    "tuple of many": [*PLAIN, "pair", "named pair"],
    "dict": [*PLAIN, "mixed dict"],
    "Mapping": [*PLAIN, "mixed dict"],
    "list": [*PLAIN, "mixed list"],
    "Sequence": [*PLAIN, "mixed list", "pair"],
    "Ref": PLAIN,
    "optional Ref": PLAIN,
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
    (call if agrees else refused)(annotated(annotation), ARRIVALS[arrival]())


@pytest.mark.parametrize("rank", RANKS[1:])
def test_annotation_of_every_rank(rank: int) -> None:
    kernel = annotated(sp.SemaphoreArray[sp.DmaSemaphore, tuple[(int,) * rank]])
    call(kernel, (request("dma", rank),))
    for other in RANKS:
        if other != rank:
            refused(kernel, (request("dma", other),))


@pytest.mark.parametrize("arrival", [*SEMAPHORES, *SCRATCHES, "data"])
@pytest.mark.parametrize("annotation", LENIENT.values(), ids=LENIENT)
def test_annotation_of_something_else(annotation: Any, arrival: str) -> None:
    (call if arrival == "data" else refused)(annotated(annotation), ARRIVALS[arrival]())


@pytest.mark.parametrize("annotation", UNCHECKED.values(), ids=UNCHECKED)
def test_annotation_that_is_not_checked(annotation: Any) -> None:
    for arrival in ARRIVALS.values():
        call(annotated(annotation), arrival())


@pytest.mark.parametrize("kind", KINDS)
def test_semaphore_for_data(kind: str) -> None:
    def kernel(x: sp.Semaphore | sp.DmaSemaphore | sp.BarrierSemaphore, o: Any, s: Any) -> None: ...

    refused(kernel, (request(kind, 0),), parameter="x")


def test_no_annotation() -> None:
    call(lambda x, o, s: None, (sp.semaphore(),))
    call(lambda *refs: None, (sp.semaphore(),))


def test_a_tuple_of_another_length() -> None:
    dma, regular = sp.dma_semaphore(), sp.semaphore()
    refused(annotated(tuple[sp.DmaSemaphore, sp.Semaphore]), ((dma, regular, dma),))


def test_first_parameter_that_disagrees_is_named() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, a: sp.Semaphore, b: sp.Semaphore) -> None: ...

    refused(kernel, (sp.semaphore(), sp.dma_semaphore()), parameter="b")
    refused(kernel, (sp.dma_semaphore(), sp.dma_semaphore()), parameter="a")


# Every form that a kernel may have.


def plain(x: sp.Ref, o: sp.Ref, s: sp.DmaSemaphore) -> None: ...


def as_strings(x: "sp.Ref", o: "sp.Ref", s: "sp.DmaSemaphore") -> None: ...


def with_size(
    size: int, x: sp.Ref, o: sp.Ref, s: sp.DmaSemaphore, *, flag: bool = True
) -> None: ...


def many(*refs: sp.Ref | sp.DmaSemaphore) -> None: ...


def defaulted(x: sp.Ref, o: sp.Ref, s: sp.DmaSemaphore, more: int = 1) -> None: ...


@functools.wraps(plain)
def wrapped(*args: Any, **kwargs: Any) -> None:
    plain(*args, **kwargs)


class Kernels:
    def method(self, x: sp.Ref, o: sp.Ref, s: sp.DmaSemaphore) -> None: ...

    @classmethod
    def of_class(cls, x: sp.Ref, o: sp.Ref, s: sp.DmaSemaphore) -> None: ...

    @staticmethod
    def static(x: sp.Ref, o: sp.Ref, s: sp.DmaSemaphore) -> None: ...

    def __call__(self, x: sp.Ref, o: sp.Ref, s: sp.DmaSemaphore) -> None: ...


def closure() -> Callable[..., None]:
    local = sp.DmaSemaphore

    def kernel(x: sp.Ref, o: sp.Ref, s: "local") -> None:
        assert local

    return kernel


def from_future() -> Callable[..., None]:
    source = """
from __future__ import annotations
import safepallas as sp
def kernel(x: sp.Ref, o: sp.Ref, s: sp.DmaSemaphore | None) -> None: ...
"""
    module = types.ModuleType("from_future")
    exec(source, module.__dict__)
    kernel: Callable[..., None] = module.kernel
    return kernel


FORMS: dict[str, tuple[Callable[..., None], str]] = {
    "function": (plain, "s"),
    "strings": (as_strings, "s"),
    "from __future__": (from_future(), "s"),
    "closure": (closure(), "s"),
    "partial": (functools.partial(with_size, 4), "s"),
    "partial by keyword": (functools.partial(with_size, 4, flag=False), "s"),
    "partial of a partial": (functools.partial(functools.partial(with_size), 4), "s"),
    "partial of strings": (functools.partial(as_strings), "s"),
    "*refs": (many, "refs[2]"),
    "partial of *refs": (functools.partial(many), "refs[2]"),
    "default after": (defaulted, "s"),
    "functools.wraps": (wrapped, "s"),
    "method": (Kernels().method, "s"),
    "class method": (Kernels.of_class, "s"),
    "static method": (Kernels.static, "s"),
    "callable object": (Kernels(), "s"),
    "partial of a method": (functools.partial(Kernels().method), "s"),
}


@pytest.mark.parametrize(("kernel", "parameter"), FORMS.values(), ids=FORMS)
def test_form_of_a_kernel(kernel: Callable[..., None], parameter: str) -> None:
    """Twice, as JAX keeps the trace of a kernel: what it receives is checked again."""
    for _ in range(2):
        call(kernel, (sp.dma_semaphore(),))
        refused(kernel, (sp.semaphore(),), parameter)
        refused(kernel, (sp.dma_semaphore(2),), parameter)


def test_keywords() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, *, a: sp.DmaSemaphore, b: sp.Semaphore) -> None: ...

    def gathering(x: sp.Ref, o: sp.Ref, **sems: sp.DmaSemaphore) -> None: ...

    call(kernel, {"a": sp.dma_semaphore(), "b": sp.semaphore()})
    refused(kernel, {"a": sp.dma_semaphore(), "b": sp.dma_semaphore()}, "b")
    call(gathering, {"a": sp.dma_semaphore(), "b": sp.dma_semaphore()})
    refused(gathering, {"a": sp.dma_semaphore(), "b": sp.semaphore()}, "b")


def test_optional_semaphore_left_out() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, s: sp.DmaSemaphore | None = None) -> None:
        assert (s is None) == left_out

    for left_out in (True, False):
        call(kernel, () if left_out else (sp.dma_semaphore(),))


def test_semaphore_that_no_request_of_ours_made() -> None:
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=0, grid=(1,), scratch_shapes=[pltpu.SemaphoreType.REGULAR]
    )
    with pytest.raises(sp.errors.AnnotationError, match="'s' is annotated DmaSemaphore"):
        call(plain, grid_spec=grid_spec)
    refused(plain, (pltpu.SemaphoreType.REGULAR,))
    call(plain, (pltpu.SemaphoreType.DMA,))


# Bodies of scopes.

SCOPES: dict[str, Callable[[Callable[..., Any], Any], Any]] = {
    "run_scoped": sp.run_scoped,
    "with_scoped": lambda body, spec: sp.with_scoped(spec)(body)(),
}


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", RANKS)
def test_body_of_a_scope(scope: str, kind: str, rank: int) -> None:
    def body(s: sp.DmaSemaphore) -> None: ...

    def kernel(x: Any, o: Any) -> None:
        SCOPES[scope](body, request(kind, rank))

    if (kind, rank) == ("dma", 0):
        call(kernel)
    else:
        refused(kernel)


@pytest.mark.parametrize("scope", SCOPES)
def test_body_of_a_scope_with_a_group(scope: str) -> None:
    def body(s: Group) -> None: ...

    call(lambda x, o: SCOPES[scope](body, Group))
    call(lambda x, o: SCOPES[scope](body, Wider))
    refused(lambda x, o: SCOPES[scope](body, Other))


def test_arguments_before_the_scope() -> None:
    @sp.with_scoped(sp.semaphore())
    def body(x: sp.Ref, s: sp.Semaphore) -> None: ...

    @sp.with_scoped(sp.semaphore())
    def wrong(x: sp.Ref, s: sp.DmaSemaphore) -> None: ...

    call(lambda x, o: body(x))
    refused(lambda x, o: wrong(x))
