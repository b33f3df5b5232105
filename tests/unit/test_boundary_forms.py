"""The boundary check through every form that a kernel, or the body of a scope, may have."""

import functools
import types
from collections.abc import Callable
from typing import Any

import pytest
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

from .helpers import FLOATS, KINDS, RANKS, assert_ours, request, trace_call


class Group(sp.Scratch):
    one = sp.dma_semaphore()


class Wider(Group):
    two = sp.semaphore()


class Other(sp.Scratch):
    one = sp.dma_semaphore()


def call(kernel: Callable[..., None], scratch: Any = (), **options: Any) -> Any:
    return trace_call(sp.pallas_call(kernel, FLOATS, scratch_shapes=scratch, **options))


def refused(kernel: Callable[..., None], scratch: Any = (), parameter: str = "s") -> None:
    with pytest.raises(sp.errors.AnnotationError) as info:
        call(kernel, scratch)
    assert_ours(info.value, sp.errors.AnnotationError)
    assert f"parameter {parameter!r} is annotated" in str(info.value)


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


@pytest.mark.parametrize("name", FORMS)
def test_form_of_a_kernel(name: str) -> None:
    kernel, parameter = FORMS[name]
    call(kernel, (sp.dma_semaphore(),))
    refused(kernel, (sp.semaphore(),), parameter)
    refused(kernel, (sp.dma_semaphore(2),), parameter)


@pytest.mark.parametrize("name", FORMS)
def test_form_of_a_kernel_called_again(name: str) -> None:
    """A kernel that JAX has traced once is checked again when it receives something else."""
    kernel, parameter = FORMS[name]
    for _ in range(2):
        call(kernel, (sp.dma_semaphore(),))
        refused(kernel, (sp.semaphore(),), parameter)


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


# --- bodies of scopes ----------------------------------------------------------------------------

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
