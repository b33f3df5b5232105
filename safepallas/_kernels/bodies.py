"""What Pallas traces in place of a kernel or of the body of a scope."""

import functools
import inspect
import weakref
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, Protocol

from safepallas._errors import kernel_errors
from safepallas._jax.core_types import CoreType
from safepallas._kernels import annotations
from safepallas._kernels.audit import BarrierUse, Terms, audit
from safepallas._kernels.boundary import Layout
from safepallas._semaphores.lifetime import Named, Scope, enter_kernel, kernel_scope


class Received(NamedTuple):
    """What a body is called with, and what of it are inputs and outputs of its kernel."""

    args: list[object]
    kwargs: dict[str, object]
    outer: list[tuple[str, object]]  # with the names of their parameters


class Boundary(Protocol):
    """How what Pallas passes becomes what a body receives: handles, or raw refs as they are."""

    def receive(
        self, scope: Scope, own: inspect.Signature | None, args: tuple[object, ...], kwargs: object
    ) -> Received:
        """Checked; `own` is the signature of the body."""
        ...

    def semaphores(self, value: object) -> list[str]:
        """What messages call the semaphores in an argument."""
        ...

    def count(self, core: CoreType) -> int:
        """How many semaphores the scratch holds on cores of that type."""
        ...


class _Handles(NamedTuple):
    """The boundary of safepallas: semaphores arrive as handles."""

    fn: Callable[[], Callable[..., object]]
    layout: Layout

    def receive(
        self, scope: Scope, own: inspect.Signature | None, args: tuple[Any, ...], kwargs: Any
    ) -> Received:
        layout = self.layout
        parameters = annotations.parameters_of(own, layout.positional(len(args)))
        handles, keywords = layout.hand_out(parameters, args, kwargs, scope)
        annotations.check(scope, self.fn(), own, parameters, handles, keywords)
        outer = handles[: len(args) - len(layout.last)]
        names = [parameter.name for parameter in parameters]
        return Received(handles, keywords, list(zip(names, outer, strict=False)))

    def semaphores(self, value: Any) -> list[str]:
        return [str(value)] if isinstance(value, Named) else []

    def count(self, core: CoreType) -> int:
        return self.layout.count(core)


class Body:
    """A function with its boundary: checks, the scope, and for a kernel the audit at the end.

    JAX reads a function's name and line through `__wrapped__` (0.10.2 does not look through a
    partial there), its parameters off `__signature__`.
    """

    __slots__ = (
        "__signature__",
        "__weakref__",
        "_boundary",
        "_enters",
        "_fn",
        "_own",
        "_terms",
        "barrier",
    )

    __name__ = "body"

    def __init__(
        self,
        fn: Callable[[], Callable[..., Any]],
        boundary: Boundary,
        terms: Terms | None,
        own: inspect.Signature | None,
        *,
        signature: inspect.Signature | None = None,
        barrier: BarrierUse | None = None,
        enters: bool = True,
    ) -> None:
        """See `body_of`.

        Args:
            fn: gives the function.
            boundary: how it receives what Pallas passes.
            terms: those of a kernel; the body of a scope has none.
            own: the signature of the function.
            signature: the one for JAX.
            barrier: where to note that it uses the barrier semaphore.
            enters: whether adopted refs live as long as this kernel.
        """
        self._fn = fn
        self._boundary = boundary
        self._terms = terms
        self._own = own
        self._enters = enters and terms is not None
        self.barrier = barrier or BarrierUse()
        if signature is not None:
            self.__signature__ = signature

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        wrapped: Callable[..., object] = annotations.below_partials(self._fn())
        return wrapped

    def __call__(self, *args: object, **kwargs: object) -> Any:
        fn, terms = self._fn(), self._terms
        what = "run_scoped" if terms is None else "kernel"
        scope = Scope(lambda: f"{what} {annotations.name_of(fn)}", terms.grid_axes if terms else ())
        outer = enter_kernel(scope if self._enters else kernel_scope())
        try:
            received = self._boundary.receive(scope, self._own, args, kwargs)
            if terms and not terms.side_effects:
                self._refuse_unkept(scope, received)
            result = fn(*received.args, **received.kwargs)
            if terms:
                self.barrier.seen |= audit(scope, self._boundary.count(terms.core), terms)
            return result
        finally:
            scope.alive = False
            enter_kernel(outer)

    def _refuse_unkept(self, scope: Scope, received: Received) -> None:
        """Refuse a semaphore among the inputs and outputs of a kernel that XLA may drop."""
        for name, value in received.outer:
            for sem in self._boundary.semaphores(value):
                raise kernel_errors.missing_side_effects(scope.label, name, sem)


def _body(
    fn: Callable[..., object],
    held: Callable[[], Callable[..., object]],
    layout: Layout,
    terms: Terms | None,
) -> Body:
    own = annotations.signature_of(fn)
    signature = None if own is None else layout.signature(own)
    return Body(held, _Handles(held, layout), terms, own, signature=signature)


def body_of(fn: Callable[..., object], layout: Layout, terms: Terms | None = None) -> Body:
    """What Pallas traces in place of `fn`, the body of a scope or (with terms) a kernel."""
    return _body(fn, lambda: fn, layout, terms)


_LIMIT = 64  # for a kernel called with ever new requests; JAX keeps a trace by each body

# The bodies made for a kernel, while it lives. They hold it weakly: else it would live for ever.
_bodies: weakref.WeakKeyDictionary[object, dict[Hashable, Body]] = weakref.WeakKeyDictionary()


def _has_bodies(fn: Callable[..., object]) -> bool:
    """Whether bodies are kept for `fn`: it can be held weakly, and is equal to itself alone."""
    cls: Any = type(fn)
    return cls.__eq__ is object.__eq__ and cls.__weakrefoffset__ != 0


def kernel_body(fn: Callable[..., Any], layout: Layout, terms: Terms) -> Body:
    """`body_of` for a kernel: the same again for the same kernel on the same terms.

    JAX 0.12 keeps the trace of a kernel by the function that it was given, and would trace a new
    one anew for each call. The body does not keep the kernel alive: see `holding`.
    """
    if not _has_bodies(fn):
        return body_of(fn, layout, terms)
    by_terms = _bodies.setdefault(fn, {})
    key = (layout.key(), terms)
    if key not in by_terms:
        if len(by_terms) == _LIMIT:
            by_terms.clear()
        kernel = weakref.ref(fn)

        def held() -> Callable[..., Any]:
            alive = kernel()
            if alive is None:
                raise ReferenceError("the kernel is gone: whoever calls its body must hold it")
            return alive

        by_terms[key] = _body(fn, held, layout, terms)
    return by_terms[key]


def holding(kernel: object, call: Callable[..., object]) -> Callable[..., object]:
    """A call of raw Pallas that keeps alive the kernel, or the kernels, of its `kernel_body`."""

    @functools.wraps(call)
    def held(*args: object, **kwargs: object) -> Any:
        _ = kernel  # what a function mentions it keeps alive
        return call(*args, **kwargs)

    return held
