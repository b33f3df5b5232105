"""Where a semaphore is allocated, how long it lives, and what messages call it and other values."""

import threading
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from safepallas._errors import semaphore_errors
from safepallas._errors.no_public_constructor import NoPublicConstructor
from safepallas._jax import compat
from safepallas._semaphores.kinds import kind_of


class Scope:
    """The part of a trace in which an allocation lives. One object for each time it is traced."""

    __slots__ = ("_describe", "alive", "grid_axes")

    def __init__(self, describe: Callable[[], str], grid_axes: tuple[object, ...] = ()) -> None:
        self.alive = True
        self.grid_axes = grid_axes  # bound like axes of a mesh, but no device is along them
        self._describe = describe

    @property
    def label(self) -> str:
        """What messages call it; made only when asked."""
        return self._describe()


# For a raw ref adopted outside any scope of ours: only JAX knows when it ends.
UNSCOPED = Scope(lambda: "an unknown scope")


class _Current(threading.local):
    """The scope of the kernel whose body this thread is tracing."""

    kernel: Scope = UNSCOPED


_current = _Current()


def kernel_scope() -> Scope:
    """Where adopted refs and the barrier semaphore live: the kernel being traced.

    `UNSCOPED` in a kernel of raw Pallas.
    """
    return _current.kernel


def enter_kernel(scope: Scope) -> Scope:
    """Make `scope` that of the kernel being traced; the one before is returned, to go back to."""
    before, _current.kernel = _current.kernel, scope
    return before


class Origin:
    """The name of a semaphore and where it is from. Made only when asked."""

    __slots__ = ("_source", "name")

    def __init__(self, name: str, source: Any) -> None:
        self.name = name
        self._source = source  # the Spec that allocated it; else the text itself

    @property
    def where(self) -> str:
        source = self._source
        return source if isinstance(source, str) else f"allocated at {source._where}"

    def __str__(self) -> str:
        return f"{self.name!r} ({self.where})"


class Part:
    """The origin of what was indexed out of an array."""

    __slots__ = ("index", "whole")

    def __init__(self, whole: "Origin | Part", index: tuple[Any, ...]) -> None:
        self.whole = whole
        self.index = index

    @property
    def name(self) -> str:
        shown = ", ".join("?" if isinstance(i, jax.Array) else str(i) for i in self.index)
        return f"{self.whole.name}[{shown}]"

    @property
    def where(self) -> str:
        return self.whole.where

    def __str__(self) -> str:
        return f"{self.name!r} ({self.where})"


def allocated(request: str) -> str:
    """What to write instead of calling the class of what `request` allocates."""
    return f"{request} in scratch_shapes= or sp.run_scoped, or sp.adopt(ref, {request})"


class Named(NoPublicConstructor):
    """What has a name and a scope: the base of the handles and of the array."""

    __slots__ = ()

    _ref: Any
    _origin: Origin | Part
    _scope: Scope
    _vetted: bool  # the ref is known to be what the class says

    def _is_alive(self) -> bool:
        """Whether the scope lasts. Where it does not, a handle out of a pytree gets a second look.

        JAX keeps the trace of a loop's body or of a jitted function, and with it the scope of the
        kernel that was traced then; what comes out of it for another kernel has only its ref to
        say where it belongs.
        """
        if self._scope.alive:
            return True
        if self._vetted or not compat.is_live(self._ref):
            return False
        held: Any = self  # the slots are those of its class
        held._scope = kernel_scope()
        held._origin = Origin("semaphore", "out of a function that JAX had traced before")
        return True

    def _live_ref(self) -> Any:
        """The raw Pallas ref; refused where the scope has ended."""
        if not self._is_alive():
            raise semaphore_errors.scope_ended(".ref", str(self), self._scope.label)
        return self._ref


class Aux:
    """What a handle keeps beside its ref while JAX holds it flattened.

    All compare equal. JAX compares them to find a cached trace, and raw refs have neither name
    nor scope: the class of the node and the aval of its leaf say all that must agree.
    """

    __slots__ = ("origin", "scope")

    def __init__(self, origin: Origin | Part, scope: Scope) -> None:
        self.origin = origin
        self.scope = scope

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aux)

    def __hash__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return "*"


def short_type(x: Any) -> str:
    """Dtype and shape as JAX prints them: ``float32[8,128]``."""
    return f"{x.dtype}[{','.join(map(str, x.shape))}]"


def describe(x: Any) -> str:
    """What `x` is: a semaphore by its name, a ref or an array by its type, the rest by its repr."""
    if isinstance(x, Named):
        return str(x)
    ref = compat.ref_type(x)
    if ref is not None:
        kind = kind_of(ref.dtype)
        if kind is not None:
            return f"a raw Pallas ref to a {kind.name} semaphore ({short_type(ref)})"
        return f"a raw Pallas ref ({short_type(ref)})"
    if isinstance(x, (jax.Array, np.ndarray)):
        return f"an array {short_type(x)}"
    if type(x).__module__.startswith("safepallas."):
        return repr(x)  # ends with the line it was made on
    text = repr(x)
    return f"{type(x).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
