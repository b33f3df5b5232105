"""The boundary of a body: what Pallas allocates for it, and the handles that it receives."""

import inspect
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import jax

from safepallas._errors import semaphore_errors
from safepallas._jax import compat
from safepallas._jax.core_types import CoreType
from safepallas._jax.kernel_equations import count_semaphores
from safepallas._kernels import annotations
from safepallas._semaphores.arrays import MAX_RANK, make_array
from safepallas._semaphores.handles import CLASS_OF, make
from safepallas._semaphores.kinds import kind_of
from safepallas._semaphores.lifetime import Origin, Scope, describe
from safepallas._semaphores.meshes import core_of, mesh_of
from safepallas._semaphores.scratch import Scratch, fill
from safepallas._semaphores.specs import Spec


def as_handle(
    ref: object, ref_type: compat.RefType, name: str, source: object, scope: Scope
) -> Any:
    """The handle or array for a semaphore ref; every other ref as it is."""
    kind = kind_of(ref_type.dtype)
    if kind is None:
        return ref
    # A request of raw Pallas does not know its line; an input has none.
    origin = Origin(name, source if isinstance(source, (Spec, str)) else "from outside")
    cls = CLASS_OF[kind]
    if not ref_type.shape:
        return make(cls, ref, origin, scope)
    if len(ref_type.shape) > MAX_RANK:
        what = f"{name}: an array of semaphores has 1 to {MAX_RANK} dimensions"
        raise semaphore_errors.spec(what, describe(ref), "Fold some of them into one.")
    return make_array(cls, ref, ref_type.shape, origin, scope)


def _is_jax_s(arg: object) -> bool:
    """Whether `arg` belongs to `emit_pipeline`, which takes its own semaphores as raw refs."""
    return isinstance(arg, compat.BUFFERED_REF)


def _received(arg: object, name: str, request: object, scope: Scope) -> Any:
    """An argument with a handle for every semaphore in it. `request` is a tree of its shape."""
    ref_type = compat.ref_type(arg)
    if ref_type is not None:
        return as_handle(arg, ref_type, name, request, scope)
    leaves, treedef = jax.tree_util.tree_flatten_with_path(arg, is_leaf=_is_jax_s)
    requests = jax.tree_util.tree_leaves(request, is_leaf=_is_jax_s) or [None] * len(leaves)
    handles: list[object] = []
    for (path, leaf), part in zip(leaves, requests, strict=True):
        ref_type = compat.ref_type(leaf)
        if ref_type is not None:
            part_name = name + jax.tree_util.keystr(path)
            leaf = as_handle(leaf, ref_type, part_name, part, scope)
        handles.append(leaf)
    return jax.tree_util.tree_unflatten(treedef, handles)


def raw_request(leaf: object) -> Any:
    """What raw Pallas allocates for one request."""
    if isinstance(leaf, Spec):
        return leaf._raw
    if hasattr(leaf, "get_ref_aval"):  # a request of raw Pallas: allowed, and arrives as a handle
        return leaf
    fix = "Use sp.dma_semaphore(), sp.semaphore(), sp.vmem(...), or a Scratch class alone."
    raise semaphore_errors.spec("a request to the allocator must be a Spec", describe(leaf), fix)


class Layout:
    """The requests of one scope, and how their refs reach the body.

    Pallas passes them as the last positional arguments, or by keyword. The body may want them
    folded into one Scratch; or by keyword where Pallas, given a grid_spec, passes positions only.
    """

    __slots__ = ("by_keyword", "folded", "last", "plain", "raw", "scratch")

    def __init__(self, requests: object, *, positions_only: bool = False) -> None:
        self.scratch: type[Scratch] | None = None
        self.folded: tuple[str, ...] = ()  # names of what arrives in the last positions
        self.last: tuple[Any, ...] = ()  # requests for the last positions
        self.by_keyword: Mapping[str, Any] = {}
        if isinstance(requests, type) and issubclass(requests, Scratch):
            self.scratch = requests
            self.folded = tuple(requests._fields)
            self.last = tuple(requests._fields.values())
        elif isinstance(requests, Mapping):
            if positions_only:
                self.folded, self.last = tuple(requests), tuple(requests.values())
            else:
                self.by_keyword = dict(requests)
        elif isinstance(requests, (tuple, list)):
            self.last = tuple(requests)
        else:
            what = "the allocator takes a tuple of specs, a dict of specs, or a Scratch class"
            fix = "Write (spec,) for one; pass the Scratch class itself, not an instance."
            raise semaphore_errors.spec(what, describe(requests), fix)
        # A tuple of specs, as most are, needs none of JAX's slower tree functions.
        self.plain = not self.by_keyword and all(type(spec) is Spec for spec in self.last)
        self.raw: Any
        if self.plain:
            self.raw = tuple([spec._raw for spec in self.last])
        else:
            self.raw = jax.tree_util.tree_map(raw_request, self.by_keyword or self.last)

    def requests(self) -> Sequence[Any]:
        """The requests one by one."""
        if self.plain:
            return self.last
        return jax.tree_util.tree_leaves(self.by_keyword or self.last)

    def count(self, core: CoreType) -> int:
        """How many semaphores it allocates on cores of that type."""
        total = 0
        for request in self.requests():
            mesh = mesh_of(raw_request(request))
            if mesh is not None and core_of(mesh) != core:
                continue
            if not isinstance(request, Spec):
                ref = request.get_ref_aval()
                total += count_semaphores([(ref.shape, ref.dtype)])
            elif request._kind is not None:
                total += math.prod(request._shape)
        return total

    def key(self) -> Hashable:
        """Equal where a body would be traced the same."""
        if self.plain:
            return (self.scratch, self.folded, self.last)
        leaves, treedef = jax.tree_util.tree_flatten((self.last, dict(self.by_keyword)))
        return (self.scratch, self.folded, treedef, tuple(leaves))

    def signature(self, of_body: inspect.Signature) -> inspect.Signature:
        """What JAX is to take for the body's signature: from it come the parameters' names."""
        parameters = of_body.parameters.values()
        if not self.folded or any(p.kind is p.VAR_POSITIONAL for p in parameters):
            return of_body
        before = [
            p.name
            for p in parameters
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            and p.default is p.empty
            and p.name not in self.folded
        ]
        if self.scratch:
            before = before[:-1]
        names = dict.fromkeys((*before, *self.folded))
        return inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
        )

    def positional(self, count: int) -> int:
        """How many positional arguments the body takes where Pallas passes `count`."""
        if not self.folded and not self.scratch:
            return count
        return count - len(self.last) + (self.scratch is not None)

    def hand_out(
        self,
        parameters: list[annotations.Parameter],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        scope: Scope,
    ) -> tuple[list[object], dict[str, object]]:
        """What the body receives for what Pallas passed; its own `parameters` give the names."""
        first = len(args) - len(self.last)
        handles = [
            _received(arg, parameter.name, None, scope)
            for arg, parameter in zip(args[:first], parameters, strict=False)
        ]
        names = self.folded or [parameter.name for parameter in parameters[first:]]
        last = [
            _received(arg, name, request, scope)
            for arg, name, request in zip(args[first:], names, self.last, strict=True)
        ]
        keywords = {k: _received(v, k, self.by_keyword.get(k), scope) for k, v in kwargs.items()}
        if self.scratch:
            handles.append(fill(self.scratch, dict(zip(self.folded, last, strict=True))))
        elif self.folded:
            keywords.update(zip(self.folded, last, strict=True))
        else:
            handles += last
        return handles, keywords
