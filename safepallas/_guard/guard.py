"""guard_raw_pallas: the checks of safepallas for kernels of raw Pallas, which nobody has moved yet.

The public functions of Pallas are replaced by ones that check and then call the original with the
arguments as given. Kernels get their raw refs as ever; only the names of their semaphores are
taken down on the way in.
"""

import sys
import threading
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas._guard import bodies
from safepallas._guard import checks as _guard_checks
from safepallas._guard import hooks as _guard_hooks
from safepallas._guard.hooks import Guard, Hooks

# What is replaced: the public names, in whichever of the two modules this version has them.
_OPERATIONS = {
    "core_barrier": _guard_checks.core_barrier,
    "semaphore_read": _guard_checks.read,
    "semaphore_signal": _guard_checks.signal,
    "semaphore_wait": _guard_checks.wait,
    "sync_copy": _guard_checks.sync_copy,
}
_COPIES = ("async_copy", "async_remote_copy", "make_async_copy", "make_async_remote_copy")
_ENTRIES = ("core_map", "kernel", "pallas_call")


_SCOPES = {
    "get_barrier_semaphore": _guard_hooks.barrier,
    "run_scoped": bodies.run_scoped,
    "with_scoped": bodies.with_scoped,
}
NAMES = (*_OPERATIONS, *_COPIES, *_ENTRIES, *_SCOPES)


def _hooked(hooks: Hooks, name: str, original: object) -> Any:
    if name in _OPERATIONS:
        return _guard_hooks.operation(hooks, original, _OPERATIONS[name])
    if name in _COPIES:
        return _guard_hooks.copy(hooks, original)
    if name in _ENTRIES:
        return bodies.entry(hooks, original)
    return _SCOPES[name](hooks, original)


class _Swap:
    """Functions to be replaced and what replaces them, by the identity of the first."""

    def __init__(self, pairs: list[tuple[object, object]]) -> None:
        self._by_id = {id(old): (old, new) for old, new in pairs}

    def everywhere(self) -> None:
        """Swap what modules hold of them: ``from jax.experimental.pallas import run_scoped``."""
        for name, module in list(sys.modules.items()):
            names = getattr(module, "__dict__", None)
            if isinstance(names, dict) and not _is_spared(name):
                for key, value in list(names.items()):
                    old, new = self._by_id.get(id(value), (None, None))
                    if old is not None and old is value:
                        names[key] = new


def _is_spared(module: str) -> bool:
    """JAX's own modules, but for the kernels that it ships, and ours."""
    top = module.partition(".")[0]
    shipped = module.startswith("jax.experimental.pallas.ops")
    return top in ("jax", "safepallas") and not shipped


class _Installed:
    """All that was replaced, and how to put it back."""

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks
        self._aliases: list[tuple[ModuleType, str]] = []  # names that modules make up when asked
        self._set: list[tuple[ModuleType, str, object]] = []
        pairs: dict[int, tuple[object, object]] = {}
        for module in (pl, pltpu):
            for name in NAMES:
                original = _lookup(module, name)
                if original is None:
                    continue
                if id(original) not in pairs:
                    pairs[id(original)] = (original, _hooked(hooks, name, original))
                if name not in vars(module):
                    self._aliases.append((module, name))
                self._set.append((module, name, original))
        self._pairs = list(pairs.values())
        replacements: Mapping[int, object] = {i: new for i, (_, new) in pairs.items()}
        for module, name, original in self._set:
            setattr(module, name, replacements[id(original)])
        _Swap(self._pairs).everywhere()

    def undo(self) -> None:
        for module, name, original in self._set:
            setattr(module, name, original)
        for module, name in self._aliases:
            delattr(module, name)
        # Also what was imported under the guard.
        _Swap([(new, old) for old, new in self._pairs]).everywhere()


def _lookup(module: ModuleType, name: str) -> Any:
    """A public function, under an old name of it as well; None where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns of old names
        return getattr(module, name, None)


_lock = threading.RLock()
_installed: _Installed | None = None


@contextmanager
def guard_raw_pallas() -> Generator[Guard, None, None]:
    """Check kernels of raw Pallas, as they are, while they are traced.

    Within the context, on every thread, the public functions of ``pl`` and ``pltpu`` that allocate,
    use or wait for semaphores (``semaphore_signal``, ``make_async_copy``, ``run_scoped``,
    ``pallas_call``, ...) make the checks of safepallas first, and then do what they always do. The
    kernels receive their raw refs; jaxpr and TPU module are those without the guard. A misuse
    raises the `SemaphoreError` that safepallas raises for it, from the line that does it, and names
    the semaphore as the kernel does.

    Also replaced is what modules have imported by name, and put back, whatever happens, at the end
    of the outermost guard. Not found are originals held elsewhere before the guard was entered: in
    closures, class attributes, default arguments, and decorators that have already run. So enter
    the guard before the calls are built, or import what builds them under it. JAX's own code
    (``pltpu.emit_pipeline``) stays as it is; the kernels in ``jax.experimental.pallas.ops`` are
    guarded.

    JAX does not trace again what it has traced: ``jax.clear_caches()`` is called on entering, so
    that nothing goes unchecked, and at the end, so that nothing under guard remains. What was
    compiled ahead of time (``jax.jit(f).lower(x).compile()``) is not checked.

    Raw Pallas allows more than safepallas offers, and what is right stays right: logical device
    ids, counted copies on regular semaphores (waited for with ``semaphore_wait``), trees of refs in
    ``sync_copy``, scratch by keyword. Refused although raw Pallas counts it as legal are
    ``decrement=False``, which the TPU lowering drops, and a wait for 0.

    Yields:
        A `Guard`, whose ``checked`` counts the operations that were checked.

    Raises:
        SemaphoreError: from the misuse, inside the context.

    Example::

        with testing.guard_raw_pallas() as guard:
            jax.eval_shape(raw_fn, x)
        assert guard.checked["async_copy"] == 1
    """
    global _installed
    guard = Guard()
    with _lock:
        if _installed is None:
            _installed = _Installed(Hooks())
        hooks = _installed.hooks
        hooks.guards.append(guard)
    try:
        jax.clear_caches()
        yield guard
    finally:
        with _lock:
            hooks.guards.remove(guard)
            if not hooks.guards:
                _installed.undo()
                _installed = None
                jax.clear_caches()
