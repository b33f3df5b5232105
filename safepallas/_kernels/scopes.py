"""The scopes: every one hands out handles. Their typed forms stand in `_signatures.py`."""

import copy
import functools
import types
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import jax
from jax.experimental import pallas as pl

from safepallas._errors import kernel_errors, semaphore_errors
from safepallas._jax import compat
from safepallas._kernels import annotations
from safepallas._kernels.audit import Terms, audit, terms_of
from safepallas._kernels.boundary import Layout, as_handle, raw_request
from safepallas._semaphores.arrays import SemaphoreArray
from safepallas._semaphores.handles import Handle
from safepallas._semaphores.kinds import kind_of
from safepallas._semaphores.lifetime import Named, Scope, enter_kernel, kernel_scope
from safepallas._semaphores.meshes import mesh_of
from safepallas._semaphores.names import describe, short_type
from safepallas._semaphores.specs import Spec

T = TypeVar("T")


def _scoped(fn: Callable[..., Any], layout: Layout, terms: Terms | None) -> Callable[..., Any]:
    """What Pallas traces in place of `fn`: it hands out handles, checks, and ends the scope.

    `terms` are those of a kernel; a body of `run_scoped` has none.
    """
    own = annotations.signature_of(fn)

    def label() -> str:
        return f"{'run_scoped' if terms is None else 'kernel'} {annotations.name_of(fn)}"

    def body(*args: Any, **kwargs: Any) -> Any:
        scope = Scope(label, terms.grid_axes if terms is not None else ())
        outer = enter_kernel(scope if terms is not None else kernel_scope())
        try:
            parameters = annotations.parameters_of(own, layout.positional(len(args)))
            handles, keywords = layout.hand_out(parameters, args, kwargs, scope)
            annotations.check(scope, fn, own, parameters, handles, keywords)
            if terms is not None and not terms.side_effects:
                _refuse_unkept(scope, parameters, handles[: len(args) - len(layout.last)])
            result = fn(*handles, **keywords)
            if terms is not None:
                body.uses_barrier |= audit(scope, layout.count(terms.core), terms)  # type: ignore[attr-defined]
            return result
        finally:
            scope.alive = False
            enter_kernel(outer)

    # JAX reads a function's name and line through __wrapped__ (0.10.2 does not look through a
    # partial there), its parameters off __signature__.
    body.__wrapped__ = annotations.below_partials(fn)  # type: ignore[attr-defined]
    body.uses_barrier = False  # type: ignore[attr-defined]
    if own is not None:
        body.__signature__ = layout.signature(own)  # type: ignore[attr-defined]
    return body


def _refuse_unkept(scope: Scope, parameters: list[annotations.Parameter], refs: list[Any]) -> None:
    """Refuse a semaphore among the inputs and outputs of a kernel that XLA may drop."""
    for parameter, ref in zip(parameters, refs, strict=False):
        if isinstance(ref, Named):
            raise kernel_errors.missing_side_effects(scope.label, parameter.name, str(ref))


class _Bodies:
    """The bodies made for one kernel, kept on it, so that they go when it goes."""

    __slots__ = ("by_terms", "kernel")

    LIMIT = 64  # for a kernel called with ever new requests; JAX keeps a trace by each body

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.by_terms: dict[Hashable, Callable[..., Any]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Bodies, (None,))  # a copy of the kernel begins without


def kernel_body(fn: Callable[..., Any], layout: Layout, terms: Terms) -> Callable[..., Any]:
    """`_scoped` for a kernel: the same function again for the same kernel on the same terms.

    JAX 0.12 keeps the trace of a kernel by the function that it was given, and would trace a new
    one anew for each call.
    """
    attributes = getattr(fn, "__dict__", None)
    # A bound method is new to JAX each time as well, and its attributes are the function's.
    if isinstance(fn, types.MethodType) or not isinstance(attributes, dict):
        return _scoped(fn, layout, terms)
    bodies = attributes.get("__safepallas__")
    if bodies is None or bodies.kernel is not fn:  # functools.wraps copies attributes
        bodies = attributes["__safepallas__"] = _Bodies(fn)
    key = (layout.key(), terms)
    body: Callable[..., Any] | None = bodies.by_terms.get(key)
    if body is None:
        if len(bodies.by_terms) == _Bodies.LIMIT:
            bodies.by_terms.clear()
        body = bodies.by_terms[key] = _scoped(fn, layout, terms)
    return body


def _with_scratch(grid_spec: Any, scratch: Any) -> Any:
    """The grid_spec with our scratch in it, which stands beside it in safepallas."""
    inside = jax.tree_util.tree_leaves(grid_spec.scratch_shapes)
    if inside and (scratch or any(isinstance(leaf, Spec) for leaf in inside)):
        what = "with a grid_spec, scratch stands in scratch_shapes= of pallas_call"
        got = "some in the grid_spec"
        raise semaphore_errors.spec(what, got, "Move all of it to scratch_shapes=.")
    if scratch:
        grid_spec = copy.copy(grid_spec)
        grid_spec.scratch_shapes = scratch
    return grid_spec


def _raw_out(leaf: Any) -> Any:
    if not isinstance(leaf, Spec):
        return leaf
    return leaf._raw if leaf._kind is None else leaf._kind.raw(leaf._shape)


def raw_outputs(out: Any, interpret: Any, op: str) -> Any:
    """The outputs of a call as raw Pallas takes them."""
    raw = jax.tree_util.tree_map(_raw_out, out)
    if interpret or compat.interprets_as_tpu(interpret):
        for leaf in jax.tree_util.tree_leaves(raw):
            kind = kind_of(getattr(leaf, "dtype", None))
            if kind is not None:
                raise kernel_errors.interpreted_output(op, kind.request, jax.__version__)
    return raw


def _names_in(grid: Any) -> tuple[Any, ...]:
    """The names of the axes of a grid, ``((name, size), size, ...)``."""
    sizes = grid if isinstance(grid, (tuple, list)) else ()
    return tuple(size[0] for size in sizes if isinstance(size, tuple))


def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    scratch_shapes: Any,
    grid_spec: Any,
    compiler_params: Any,
    interpret: Any,
    **options: Any,
) -> Callable[..., Any]:
    """See `_signatures.pallas_call`."""
    layout = Layout(scratch_shapes, positions_only=grid_spec is not None)
    grid = grid_spec.grid if grid_spec is not None else options.get("grid", ())
    terms = terms_of(compiler_params, interpret)._replace(grid_axes=_names_in(grid))
    body = kernel_body(kernel, layout, terms)
    scratch = layout.raw
    if grid_spec is not None:
        grid_spec, scratch = _with_scratch(grid_spec, scratch), ()
    return pl.pallas_call(
        body,
        raw_outputs(out_shape, interpret, "pallas_call"),
        grid_spec=grid_spec,
        scratch_shapes=scratch,
        compiler_params=compiler_params,
        interpret=interpret,
        **options,
    )


def _refuse_cores(layout: Layout) -> None:
    """Refuse semaphores of named cores in a scope: no lowering of JAX allocates them there."""
    for request in layout.requests():
        raw = raw_request(request)
        if mesh_of(raw) is not None and kind_of(raw.dtype) is not None:
            what = "run_scoped: a semaphore @ mesh comes from scratch of a kernel alone"
            fix = f"Leave out the mesh: JAX {jax.__version__} has room here for this core only."
            raise semaphore_errors.spec(what, describe(request), fix)


def run_scoped(body: Callable[..., Any], *specs: Any, collective_axes: Any) -> Any:
    """See `_signatures.run_scoped`."""
    alone = len(specs) == 1 and isinstance(specs[0], type)
    layout = Layout(specs[0] if alone else specs)
    _refuse_cores(layout)
    return pl.run_scoped(_scoped(body, layout, None), *layout.raw, collective_axes=collective_axes)


def with_scoped(
    *specs: Any, collective_axes: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """See `_signatures.with_scoped`."""

    def decorator(fn: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*args: Any, **kwargs: Any) -> Any:
            body = functools.partial(fn, *args, **kwargs)
            return run_scoped(body, *specs, collective_axes=collective_axes)

        return inner

    return decorator


def adopt(ref: Any, spec: Spec[T]) -> T:
    """Turn a raw Pallas ref into what `spec` yields, after checking that it is that.

    The way in from raw Pallas: refs from ``pl.run_scoped``, from a class of JAX's that allocates
    its own semaphores, or from ``handle.ref``. The adopted handle lives as long as the kernel.

    Args:
        ref: a raw Pallas ref.
        spec: what it is: kind, rank and shape must be the spec's; for `vmem` and `smem`, shape
            and dtype.

    Returns:
        A handle, an array, or for data the ref itself.

    Raises:
        AdoptError: where the ref is something else; an int16 ref is never a semaphore.
        SpecError: where `spec` is no `Spec`.

    Example, in a kernel::

        def body(raw_sem: Any) -> None:
            adopted = sp.adopt(raw_sem, sp.dma_semaphore())
            sp.async_copy(x, o, adopted).wait()

        pl.run_scoped(body, pltpu.SemaphoreType.DMA)
    """
    request: Any = spec
    if not isinstance(request, Spec):
        fix = "Pass what the ref is, such as sp.dma_semaphore()."
        raise semaphore_errors.spec(
            "adopt: the second argument must be a Spec", describe(request), fix
        )
    if isinstance(ref, (Handle, SemaphoreArray)):
        ref = ref._live_ref()
    expected = spec._raw.get_ref_aval()
    actual = compat.ref_type(ref)
    if actual is None or actual.dtype != expected.dtype or actual.shape != expected.shape:
        raise semaphore_errors.adopt(f"{spec}: {short_type(expected)}", describe(ref))
    handle: T = as_handle(ref, actual, "adopted", f"adopted as {spec}", kernel_scope())
    return handle
