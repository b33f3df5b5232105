"""What stands in the place of Pallas's scopes and entry points under the guard.

Bodies are traced as those of safepallas are, with another boundary: they receive what Pallas
passes, and on the way the names of semaphores are taken down.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import jax

from safepallas._guard.hooks import Hooks
from safepallas._guard.names import kind_of_ref
from safepallas._jax import compat
from safepallas._jax.core_types import CoreType
from safepallas._jax.kernel_equations import count_semaphores
from safepallas._kernels import annotations
from safepallas._kernels.audit import BarrierUse, Terms, among, terms_of
from safepallas._kernels.bodies import Body, Received
from safepallas._kernels.scopes import raw_outputs
from safepallas._semaphores.lifetime import Scope
from safepallas._semaphores.meshes import core_of, is_core_mesh, mesh_of


def run_scoped(hooks: Hooks, original: Any) -> Any:
    @functools.wraps(original)
    def guarded(body: object, *args: object, **kwargs: object) -> Any:
        if hooks.apply():
            body = _body(hooks, body, original.__name__)
        return original(body, *args, **kwargs)

    return guarded


def with_scoped(hooks: Hooks, original: Any) -> Any:
    """It allocates by JAX's own `run_scoped`."""

    @functools.wraps(original)
    def guarded(*args: object, **kwargs: object) -> Any:
        decorator = original(*args, **kwargs)
        if not hooks.apply():
            return decorator

        def named(fn: object) -> Any:
            return decorator(_body(hooks, fn, original.__name__))

        return named

    return guarded


def entry(hooks: Hooks, original: Any) -> Any:
    """`pallas_call`, `kernel`, `core_map`, called or as decorators."""
    name = original.__name__
    first = next(iter(inspect.signature(original).parameters))  # the body; a mesh for core_map

    @functools.wraps(original)
    def guarded(*args: object, **kwargs: object) -> Any:
        if not hooks.apply():
            return original(*args, **kwargs)
        _refuse_outputs(name, args, kwargs)
        if first == "mesh" or not (args or first in kwargs):
            mesh = args[0] if args else kwargs.get("mesh")
            decorator = original(*args, **kwargs)

            def audited(fn: object) -> Any:
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


def _refuse_outputs(name: str, args: Sequence[object], options: Mapping[str, object]) -> None:
    """Refuse semaphores as outputs of a kernel that an interpreter is to run."""
    out = args[1:2] or [options.get(key) for key in ("out_shape", "out_type")]
    raw_outputs(out, options.get("interpret", False), name)


def _bodies(
    hooks: Hooks, name: str, fns: Sequence[Any], meshes: Sequence[Any], options: Mapping[str, Any]
) -> list[object]:
    """What Pallas traces for each body, in order: the last answers for all."""
    guarded: list[object] = []
    uses: list[BarrierUse] = []
    scratch = options.get("scratch_shapes") or options.get("scratch_types")
    scratch = scratch or getattr(options.get("grid_spec"), "scratch_shapes", ()) or ()
    for fn, mesh in zip(fns, meshes, strict=False):
        terms = terms_of(options.get("compiler_params"), options.get("interpret", False))
        if is_core_mesh(mesh):
            terms = terms._replace(core=core_of(mesh))
        uses.append(BarrierUse())
        terms = among(terms, uses[:-1], len(fns))
        guarded.append(_body(hooks, fn, name, terms, scratch, uses[-1]))
    return [*guarded, *fns[len(guarded) :]]  # JAX refuses another number of meshes


class _RawRefs(NamedTuple):
    """The boundary of raw Pallas: refs arrive as they are, and the names are taken down."""

    hooks: Hooks
    source: Callable[[], str]
    scratch: Any

    def receive(
        self, scope: Scope, own: inspect.Signature | None, args: tuple[Any, ...], kwargs: Any
    ) -> Received:
        parameters = annotations.parameters_of(own, len(args))
        named = [(p.name, arg) for p, arg in zip(parameters, args, strict=True)]
        for name, arg in [*named, *kwargs.items()]:
            self.hooks.names.learn(arg, name, self.source, scope)
        held = 0 if isinstance(self.scratch, Mapping) else len(self.scratch)
        return Received(list(args), kwargs, named[: len(named) - held])

    def semaphores(self, value: Any) -> list[str]:
        leaves = [leaf for leaf in jax.tree_util.tree_leaves(value) if kind_of_ref(leaf)]
        return [str(self.hooks.names.handle(leaf, "read", "sem")) for leaf in leaves]

    def count(self, core: CoreType) -> int:
        held: list[tuple[tuple[int, ...], Any]] = []
        for request in jax.tree_util.tree_leaves(self.scratch):
            mesh = mesh_of(request)
            if hasattr(request, "get_ref_aval") and (mesh is None or core_of(mesh) == core):
                ref = compat.base_of(request.get_ref_aval())
                held.append((ref.shape, ref.dtype))
        return count_semaphores(held)


def _body(
    hooks: Hooks,
    fn: Any,
    what: str,
    terms: Terms | None = None,
    scratch: object = (),
    barrier: BarrierUse | None = None,
) -> Any:
    """What Pallas traces in place of `fn`, a kernel or (no terms) the body of a scope."""
    if not callable(fn):
        return fn  # for JAX to refuse
    kind = "run_scoped" if terms is None else "kernel"

    def source() -> str:
        return f"a parameter of {kind} {annotations.name_of(fn)}"

    boundary = _RawRefs(hooks, source, scratch)
    own = annotations.signature_of(fn)
    body = Body(lambda: fn, boundary, terms, own, barrier=barrier, enters=False)

    def run(*args: object, **kwargs: object) -> Any:
        if not hooks.guards:
            return fn(*args, **kwargs)
        hooks.count(what)
        with hooks.names.kernel() if terms is not None else nullcontext():
            return body(*args, **kwargs)

    # With the name, the line and the parameters of `fn`, for JAX: see `Body`.
    functools.update_wrapper(run, fn)
    inner = annotations.below_partials(fn)
    run.__wrapped__ = inner  # type: ignore[attr-defined]
    run.__name__ = getattr(inner, "__name__", run.__name__)
    if own is not None:
        run.__signature__ = own  # type: ignore[attr-defined]
    return run
