"""What the guard knows of raw refs: their names, and whether they may be used.

Kept for the kernels that a thread is tracing, and no longer: JAX caches traces.
"""

import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import pallas as pl

from safepallas._errors import semaphore_errors
from safepallas._jax import compat
from safepallas._kernels.boundary import as_handle
from safepallas._operations.checks import vet
from safepallas._semaphores.arrays import MAX_RANK
from safepallas._semaphores.handles import Handle
from safepallas._semaphores.kinds import OPERATIONS, Kind, kind_of
from safepallas._semaphores.lifetime import (
    UNSCOPED,
    Named,
    Origin,
    Part,
    Scope,
    describe,
    short_type,
)


class _Known(NamedTuple):
    ref: weakref.ref[object]  # an id may be used again, and JAX looks for what keeps its tracers
    origin: Origin
    scope: Scope


_UNKNOWN = Origin("semaphore", "a raw Pallas ref")


class Names(threading.local):
    """The names that kernels and scopes give to their semaphores, by the identity of the ref."""

    def __init__(self) -> None:
        self._kernels: list[dict[int, _Known]] = []  # being traced, the innermost last

    @contextmanager
    def kernel(self) -> Generator[None, None, None]:
        """The names of a kernel, and of the scopes in it, are forgotten with its trace."""
        self._kernels.append({})
        try:
            yield
        finally:
            self._kernels.pop()

    def learn(self, arg: object, name: str, source: Callable[[], str], scope: Scope) -> None:
        """Remember what `arg` is called: a ref, or a tree of them."""
        for path, leaf in jax.tree_util.tree_leaves_with_path(arg):
            ref_type = compat.ref_type(leaf)
            if ref_type is None or kind_of(ref_type.dtype) is None or not self._kernels:
                continue
            base = compat.base_of(leaf)
            if self._find(base) is None:
                origin = Origin(name + jax.tree_util.keystr(path), source())
                self._kernels[-1][id(base)] = _Known(weakref.ref(base), origin, scope)

    def _find(self, base: object) -> _Known | None:
        for names in reversed(self._kernels):
            known: _Known | None = names.get(id(base))
            if known is not None and known.ref() is base:
                return known
        return None

    def handle(self, ref: object, op: str, arg: str) -> Any:
        """A handle on a raw ref that is a semaphore, whatever its kind and shape, after checks.

        Raises:
            NotASemaphoreError, ScopeEndedError, IndexTypeError, IndexRangeError
        """
        if isinstance(ref, Named):  # JAX finds the ref in it, or says that it does not
            return ref
        ref_type = compat.ref_type(ref)
        kind = kind_of(ref_type.dtype) if ref_type is not None else None
        if ref_type is None or kind is None:
            expected = " or ".join(k.handle for k in OPERATIONS[op, arg])
            raise semaphore_errors.not_a_semaphore(op, arg, expected, describe(ref))
        base = compat.base_of(ref)
        _, origin, scope = self._find(base) or (None, _UNKNOWN, UNSCOPED)
        whole: Origin | Part = origin
        for shape, indices in compat.indexing_of(ref):
            array = f"{_class_name(kind.handle, shape)} {whole}"
            shown = [_checked(array, axis, i, shape[axis]) for axis, i in enumerate(indices)]
            whole = Part(whole, tuple(shown))
        if len(ref_type.shape) > MAX_RANK:
            raise semaphore_errors.not_scalar(op, arg, "semaphore", describe(ref), "ref.at[i, ...]")
        handle = as_handle(ref, ref_type, "", "", scope)
        handle._origin = whole
        self.check_alive(handle, op)
        return handle

    def check_alive(self, sem: Any, op: str) -> None:
        """Refuse a semaphore whose scope has ended, by the trace that its ref belongs to."""
        if compat.has_ended(compat.base_of(sem._ref)):
            raise semaphore_errors.scope_ended(op, str(sem), sem._scope.label)

    def vetted(self, ref: Any, op: str, arg: str) -> Any:
        """A handle on what `op` may take as its argument `arg`.

        Raises:
            NotASemaphoreError, ScopeEndedError, WrongKindError, NotScalarError, IndexTypeError,
            IndexRangeError
        """
        handle = self.handle(ref, op, arg)
        vet(handle, op, arg)
        return handle


def kind_in(handle: Any) -> Kind:
    """The kind of a handle or of an array of them."""
    cls: type[Handle] = type(handle) if isinstance(handle, Handle) else handle._cls
    return cls._kind


def kind_of_ref(ref: Any) -> Kind | None:
    """The kind of what raw Pallas was given for a semaphore; None where it is none."""
    if isinstance(ref, Named):
        return kind_in(ref)
    ref_type = compat.ref_type(ref)
    return None if ref_type is None else kind_of(ref_type.dtype)


def _class_name(handle: str, shape: tuple[Any, ...]) -> str:
    return f"SemaphoreArray[{handle}] of shape {shape}" if shape else handle


def _checked(array: str, axis: int, index: object, size: object) -> Any:
    """How messages show one index of a raw view, which JAX has not checked."""
    if isinstance(index, pl.Slice):
        stop = index.start + index.size if _are_ints(index.start, index.size) else "?"
        return f"{index.start if _are_ints(index.start) else '?'}:{stop}"
    dtype = np.dtype(getattr(index, "dtype", type(index)))
    if not np.issubdtype(dtype, np.integer):
        number = compat.static_value(index)
        got = f"an array {short_type(index)}" if number is None else f"{dtype} {number}"
        raise semaphore_errors.index_type(array, got)
    number = compat.static_value(index)
    if number is None or not isinstance(size, int):
        return "?"
    if not 0 <= number < size:
        raise semaphore_errors.raw_index_range(array, axis, int(number), size)
    return int(number)


def _are_ints(*numbers: object) -> bool:
    return all(isinstance(number, int) for number in numbers)
