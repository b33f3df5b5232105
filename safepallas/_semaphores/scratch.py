"""Scratch: a class that names a group of requests to the allocator."""

import copy
from typing import Any, ClassVar

import jax

from safepallas._errors import semaphore_errors
from safepallas._semaphores.lifetime import Named, describe
from safepallas._semaphores.specs import (
    Filled,
    Spec,
    barrier_semaphore,
    dma_semaphore,
    semaphore,
    smem,
    vmem,
)


class Scratch(Filled):
    """Named allocations. Subclass it, with a request for each field.

    The class goes to ``scratch_shapes=`` (or to `run_scoped`), and the kernel receives an instance
    as its last parameter. A field is the request on the class and what it yields on an instance:
    nothing is declared twice, and no annotation is needed. A subclass adds fields after those of
    its base. Only the allocator makes instances: calling the class raises `TypeError`.

    JAX keeps a class that it knows as a tree for ever: where sizes are known at run time only,
    define it once for each size, not once for each call.

    Raises:
        SpecError: where a field is a raw Pallas request or a container of requests.

    Example::

        class Buffers(sp.Scratch):
            done = sp.dma_semaphore(2)
            acc = sp.vmem((8, 128), jnp.float32)

        def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
            sp.async_copy(x, s.acc, s.done.at[0]).wait()
            sp.async_copy(s.acc, o, s.done.at[1]).wait()

        sp.pallas_call(kernel, like, scratch_shapes=Buffers)(x)
    """

    __slots__ = ()

    _instead = "scratch_shapes={name}"
    _fields: ClassVar[dict[str, Spec[object]]] = {}

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("_fields", "_values"):
            if name in vars(cls):
                raise semaphore_errors.spec(
                    f"{cls.__name__}.{name}: the name is taken", name, "Rename it."
                )
        fields = dict(cls._fields)  # of the base
        for name, value in list(vars(cls).items()):
            fields.pop(name, None)
            if isinstance(value, Spec):
                fields[name] = field = _named(value, name)
                type.__setattr__(cls, name, field)
            else:
                _refuse_hidden_request(cls.__name__, name, value)
        cls._fields = fields
        jax.tree_util.register_pytree_with_keys(
            cls,
            _flatten_with_keys,
            lambda names, values: fill(cls, dict(zip(names, values, strict=True))),
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(self._values)}>"


def _named(spec: Spec[object], name: str) -> Spec[object]:
    named = copy.copy(spec)
    named._name = name
    return named


def _refuse_hidden_request(cls: str, name: str, value: object) -> None:
    """A request that is not a Spec would be no field, and go unnoticed."""
    leaves = jax.tree_util.tree_leaves(value) if isinstance(value, (tuple, list, dict)) else [value]
    requests = (semaphore, barrier_semaphore, dma_semaphore, vmem, smem)
    for leaf in leaves:
        uncalled = any(leaf is request for request in requests)
        is_class = isinstance(leaf, type) and issubclass(leaf, (Named, Scratch))
        if uncalled or is_class or isinstance(leaf, Spec) or hasattr(leaf, "get_ref_aval"):
            raise semaphore_errors.spec(
                f"{cls}.{name}: a field of a Scratch must be one request of safepallas",
                describe(value),
                "Write sp.vmem, sp.smem or sp.dma_semaphore(...), and a field for each.",
            )


def _flatten_with_keys(scratch: Scratch) -> tuple[list[tuple[object, object]], tuple[str, ...]]:
    values = scratch._values
    return [(jax.tree_util.GetAttrKey(k), v) for k, v in values.items()], tuple(values)


def fill(cls: type[Scratch], values: dict[str, object]) -> Any:
    """The instance that a kernel receives."""
    scratch = object.__new__(cls)
    scratch._values = values
    return scratch
