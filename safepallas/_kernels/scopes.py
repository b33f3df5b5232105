"""The scopes: every one hands out handles. Their typed forms stand in `overloads.py`."""

import copy
import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax.experimental import pallas as pl

from safepallas._errors import kernel_errors, semaphore_errors
from safepallas._jax import compat
from safepallas._kernels.audit import terms_of
from safepallas._kernels.bodies import body_of, holding, kernel_body
from safepallas._kernels.boundary import Layout, as_handle, raw_request
from safepallas._semaphores.arrays import SemaphoreArray
from safepallas._semaphores.handles import Handle
from safepallas._semaphores.kinds import kind_of
from safepallas._semaphores.lifetime import (
    describe,
    kernel_scope,
    short_type,
)
from safepallas._semaphores.meshes import mesh_of
from safepallas._semaphores.specs import Spec

T = TypeVar("T")


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


def _raw_out(leaf: object) -> Any:
    if not isinstance(leaf, Spec):
        return leaf
    return leaf._raw if leaf._kind is None else leaf._kind.raw(leaf._shape)


def raw_outputs(out: object, interpret: object, op: str) -> Any:
    """The outputs of a call as raw Pallas takes them."""
    raw = jax.tree_util.tree_map(_raw_out, out)
    if interpret or compat.interprets_as_tpu(interpret):
        for leaf in jax.tree_util.tree_leaves(raw):
            kind = kind_of(getattr(leaf, "dtype", None))
            if kind is not None:
                raise kernel_errors.interpreted_output(op, kind.request, jax.__version__)
    return raw


def _names_in(grid: object) -> tuple[object, ...]:
    """The names of the axes of a grid, ``((name, size), size, ...)``."""
    sizes = grid if isinstance(grid, (tuple, list)) else ()
    return tuple(size[0] for size in sizes if isinstance(size, tuple))


def pallas_call(
    kernel: Callable[..., None],
    out_shape: object,
    *,
    scratch_shapes: object,
    grid_spec: Any,
    compiler_params: Any,
    interpret: Any,
    **options: Any,
) -> Callable[..., Any]:
    """See `overloads.pallas_call`."""
    layout = Layout(scratch_shapes, positions_only=grid_spec is not None)
    grid = grid_spec.grid if grid_spec is not None else options.get("grid", ())
    terms = terms_of(compiler_params, interpret)._replace(grid_axes=_names_in(grid))
    body = kernel_body(kernel, layout, terms)
    scratch = layout.raw
    if grid_spec is not None:
        grid_spec, scratch = _with_scratch(grid_spec, scratch), ()
    call = pl.pallas_call(
        body,
        raw_outputs(out_shape, interpret, "pallas_call"),
        grid_spec=grid_spec,
        scratch_shapes=scratch,
        compiler_params=compiler_params,
        interpret=interpret,
        **options,
    )
    return holding(kernel, call)


def _refuse_cores(layout: Layout) -> None:
    """Refuse semaphores of named cores in a scope: no lowering of JAX allocates them there."""
    for request in layout.requests():
        raw = raw_request(request)
        if mesh_of(raw) is not None and kind_of(raw.dtype) is not None:
            what = "run_scoped: a semaphore @ mesh comes from scratch of a kernel alone"
            fix = f"Leave out the mesh: JAX {jax.__version__} has room here for this core only."
            raise semaphore_errors.spec(what, describe(request), fix)


def run_scoped(body: Callable[..., object], *specs: object, collective_axes: object) -> Any:
    """See `overloads.run_scoped`."""
    alone = len(specs) == 1 and isinstance(specs[0], type)
    layout = Layout(specs[0] if alone else specs)
    _refuse_cores(layout)
    return pl.run_scoped(body_of(body, layout), *layout.raw, collective_axes=collective_axes)


def with_scoped(
    *specs: object, collective_axes: object
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """See `overloads.with_scoped`."""

    def decorator(fn: Callable[..., object]) -> Callable[..., object]:
        def inner(*args: object, **kwargs: object) -> Any:
            body = functools.partial(fn, *args, **kwargs)
            return run_scoped(body, *specs, collective_axes=collective_axes)

        return inner

    return decorator


def adopt(ref: object, spec: Spec[T]) -> T:
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
