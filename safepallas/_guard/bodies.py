"""What stands in the place of Pallas's scopes and entry points under the guard.

The bodies receive what Pallas passes; on the way the names of semaphores are taken down, and at the
end of a kernel its equations are judged, as `_scopes.py` does for kernels of safepallas.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from safepallas._errors import kernel_errors
from safepallas._guard.hooks import Hooks
from safepallas._guard.names import kind_of_ref
from safepallas._jax import compat
from safepallas._kernels import annotations
from safepallas._kernels.audit import Terms, among, audit, count_semaphores, terms_of
from safepallas._kernels.scopes import raw_outputs
from safepallas._semaphores.lifetime import Scope
from safepallas._semaphores.meshes import core_of, is_core_mesh, mesh_of


def run_scoped(hooks: Hooks, original: Any) -> Any:
    @functools.wraps(original)
    def guarded(body: Any, *args: Any, **kwargs: Any) -> Any:
        if hooks.apply():
            body = _body(hooks, body, original.__name__)
        return original(body, *args, **kwargs)

    return guarded


def with_scoped(hooks: Hooks, original: Any) -> Any:
    """It allocates by JAX's own `run_scoped`."""

    @functools.wraps(original)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        decorator = original(*args, **kwargs)
        if not hooks.apply():
            return decorator

        def named(fn: Any) -> Any:
            return decorator(_body(hooks, fn, original.__name__))

        return named

    return guarded


def entry(hooks: Hooks, original: Any) -> Any:
    """`pallas_call`, `kernel`, `core_map`, called or as decorators."""
    name = original.__name__
    first = next(iter(inspect.signature(original).parameters))  # the body; a mesh for core_map

    @functools.wraps(original)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if not hooks.apply():
            return original(*args, **kwargs)
        _refuse_outputs(name, args, kwargs)
        if first == "mesh" or not (args or first in kwargs):
            mesh = args[0] if args else kwargs.get("mesh")
            decorator = original(*args, **kwargs)

            def audited(fn: Any) -> Any:
                return decorator(_bodies(hooks, name, [fn], [mesh], kwargs)[0])

            return audited
        body, mesh = args[0] if args else kwargs.pop(first), kwargs.get("mesh")
        if isinstance(body, Sequence) and isinstance(mesh, Sequence):
            body = _bodies(hooks, name, body, mesh, kwargs)
        else:
            (body,) = _bodies(hooks, name, [body], [mesh], kwargs)
        if args:
            return original(body, *args[1:], **kwargs)
        return original(**{first: body}, **kwargs)

    return guarded


def _refuse_outputs(name: str, args: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Refuse semaphores as outputs of a kernel that an interpreter is to run."""
    out = args[1:2] or [options.get(key) for key in ("out_shape", "out_type")]
    raw_outputs(out, options.get("interpret", False), name)


def _bodies(
    hooks: Hooks, name: str, fns: Sequence[Any], meshes: Sequence[Any], options: Mapping[str, Any]
) -> list[Any]:
    """What Pallas traces for each body, in order: the last answers for all."""
    bodies: list[Any] = []
    for fn, mesh in zip(fns, meshes, strict=False):
        terms = terms_of(options.get("compiler_params"), options.get("interpret", False))
        if is_core_mesh(mesh):
            terms = terms._replace(core=core_of(mesh))
        terms = among(terms, bodies, len(fns))
        bodies.append(_body(hooks, fn, name, terms, _scratch_of(options)))
    return [*bodies, *fns[len(bodies) :]]  # JAX refuses another number of meshes


def _scratch_of(options: Mapping[str, Any]) -> Any:
    """The scratch that a call asks for."""
    held = options.get("scratch_shapes") or options.get("scratch_types")
    return held or getattr(options.get("grid_spec"), "scratch_shapes", ()) or ()


def _count(scratch: Any, core: str) -> int:
    """How many semaphores of that type of cores it holds."""
    held: list[tuple[tuple[int, ...], Any]] = []
    for request in jax.tree_util.tree_leaves(scratch):
        mesh = mesh_of(request)
        if hasattr(request, "get_ref_aval") and (mesh is None or core_of(mesh) == core):
            ref = compat.base_of(request.get_ref_aval())
            held.append((ref.shape, ref.dtype))
    return count_semaphores(held)


def _body(hooks: Hooks, fn: Any, what: str, terms: Terms | None = None, scratch: Any = ()) -> Any:
    """What Pallas traces in place of `fn`, a kernel or (no terms) the body of a scope."""
    if not callable(fn):
        return fn  # for JAX to refuse
    own = annotations.signature_of(fn)

    def label() -> str:
        return f"{'run_scoped' if terms is None else 'kernel'} {annotations.name_of(fn)}"

    def source() -> str:
        return f"a parameter of {label()}"

    def traced(scope: Scope, args: Any, kwargs: Any) -> Any:
        parameters = annotations.parameters_of(own, len(args))
        named = [(p.name, arg) for p, arg in zip(parameters, args, strict=True)]
        for name, arg in [*named, *kwargs.items()]:
            hooks.names.learn(arg, name, source, scope)
        if terms is not None and not terms.side_effects:
            held = 0 if isinstance(scratch, Mapping) else len(scratch)
            _refuse_unkept(hooks, scope, named[: len(named) - held])
        result = fn(*args, **kwargs)
        if terms is not None:
            run.uses_barrier |= audit(scope, _count(scratch, terms.core), terms)  # type: ignore[attr-defined]
        return result

    def run(*args: Any, **kwargs: Any) -> Any:
        if not hooks.guards:
            return fn(*args, **kwargs)
        hooks.count(what)
        scope = Scope(label)
        try:
            if terms is None:
                return traced(scope, args, kwargs)
            with hooks.names.kernel():
                return traced(scope, args, kwargs)
        finally:
            scope.alive = False

    return _named_as(run, fn, own)


def _refuse_unkept(hooks: Hooks, scope: Scope, named: list[tuple[str, Any]]) -> None:
    """Refuse a semaphore among the inputs and outputs of a kernel that XLA may drop."""
    for name, arg in named:
        for leaf in jax.tree_util.tree_leaves(arg):
            if kind_of_ref(leaf) is not None:
                sem = hooks.names.handle(leaf, "read", "sem")
                raise kernel_errors.missing_side_effects(scope.label, name, str(sem))


def _named_as(run: Any, fn: Any, own: inspect.Signature | None) -> Callable[..., Any]:
    """`run` with the name, the line and the parameters of `fn`, for JAX. See `_scopes.py`."""
    functools.update_wrapper(run, fn)
    inner = annotations.below_partials(fn)
    run.__wrapped__ = inner
    run.__name__ = getattr(inner, "__name__", run.__name__)
    run.uses_barrier = False
    if own is not None:
        run.__signature__ = own
    named: Callable[..., Any] = run
    return named
