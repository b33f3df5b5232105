"""Refs as the interpreter holds them, and the boxes that views of them cover."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from safepallas._jax import jaxprs
from safepallas._verify.extract import values
from safepallas._verify.extract.values import UNKNOWN

# Integer buffers up to this size keep their numbers: tables, counts, lists of pages.
MOST_KEPT = 1 << 16


class Contents:
    """The numbers in a buffer of one core, as far as they are known."""

    __slots__ = ("is_known", "numbers")

    def __init__(self, shape: Sequence[int], dtype: Any, numbers: Any = UNKNOWN) -> None:
        if numbers is UNKNOWN:
            self.numbers = np.zeros(shape, dtype)
            self.is_known = np.zeros(shape, bool)
        else:
            self.numbers = np.array(numbers, dtype).reshape(shape)
            self.is_known = np.ones(shape, bool)

    def load(self, at: Any) -> Any:
        if at is None or not np.all(self.is_known[at]):
            return UNKNOWN
        return values.known(np.array(self.numbers[at]))

    def store(self, at: Any, value: Any, adds: bool = False) -> None:
        """Nothing is known any more of what is written to an unknown place."""
        if at is None:
            self.is_known[...] = False
        elif value is UNKNOWN:
            self.is_known[at] = False
        elif adds:
            self.numbers[at] += value
        else:
            self.numbers[at] = value
            self.is_known[at] = True


def may_be_kept(shape: Sequence[Any], dtype: Any) -> bool:
    if not values.is_whole(dtype) or not all(isinstance(n, int) for n in shape):
        return False
    return bool(math.prod(shape) <= MOST_KEPT)


@dataclasses.dataclass(slots=True, eq=False)
class Ref:
    """A ref of one core: its allocation and, of small integers, what it holds."""

    allocation: int
    shape: tuple[int, ...]
    dtype: Any
    is_global: bool = False
    contents: Contents | None = None
    kind: str = ""  # the name of the dtype: that of a semaphore tells what it is for
    # By core, those who have it together, the owner first; None where each has its own.
    shared_by: Mapping[int, tuple[int, ...]] | None = None
    lives_on: str = ""  # the kind of cores, where it is another
    is_quiet: bool = False  # one core's own, and no copy touches it: its accesses cannot race

    def owner(self, core: int) -> int:
        """Whose memory a core reaches with it."""
        return core if self.shared_by is None else self.shared_by[core][0]

    def __post_init__(self) -> None:
        self.kind = str(self.dtype)


class Box(NamedTuple):
    """What a view covers, with its indices evaluated. The same for all refs of one shape."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    shape: tuple[int, ...]
    amount: int  # in bytes
    at: Any  # what NumPy takes; None where it is not known
    is_exact: bool  # each dimension is indexed by known numbers only
    step: tuple[int, ...] = ()  # the strides in the ref, where there are any


class UnknownIndexError(Exception):
    """A size is not known, on which an amount depends."""


def resolve(ref: Ref, steps: Sequence[Any], value: Callable[[Any], Any]) -> Box:
    """The box that a view covers: as small as is known, and no smaller.

    Args:
        value: gives what is known of a slot.

    Raises:
        UnknownIndexError: the view's size is not known.
    """
    low, high, every = [0] * len(ref.shape), list(ref.shape), [1] * len(ref.shape)
    # The dimensions of the view: of the ref (or -1: of no single one), and the stride in it.
    dims: list[tuple[int, int]] = [(i, 1) for i in range(len(ref.shape))]
    shape: list[int] = list(ref.shape)
    dtype = ref.dtype
    at: list[Any] | None = [slice(0, n) for n in ref.shape]
    is_exact = True
    for turn, step in enumerate(steps):
        if isinstance(step, jaxprs.Index):
            if step.gathered:
                shape = _gathered(step, value, dims, (low, high))
                dims, is_exact, at = [(-1, 1)] * len(shape), False, None
                continue
            if len(shape) != len(step.parts):
                shape = list(step.shape)
            left, sizes = [], []
            for part, (dim, stride), length in zip(step.parts, dims, shape, strict=True):
                start, size, jump = _start_and_size(part, value)
                if size is UNKNOWN:
                    raise UnknownIndexError
                if dim >= 0 and start is not UNKNOWN:
                    first = low[dim] + start * stride
                    last = first + ((size or 1) - 1) * jump * stride
                    low[dim], high[dim] = first, last + 1
                    every[dim] = stride * jump if last > first else 1
                    if size == 0:
                        high[dim] = first
                    if at is not None:
                        at[dim] = first if size is None else slice(first, last + 1, stride * jump)
                elif start is UNKNOWN and length > 1:
                    is_exact, at = False, None
                elif length > 1:
                    at = None
                if size is not None:
                    # From an unknown start on, the view may be anywhere in what it was cut from.
                    left.append((dim if start is not UNKNOWN else -1, stride * jump))
                    sizes.append(size)
            dims, shape = left, sizes
        elif isinstance(step, jaxprs.Transpose):
            dims, at = [dims[i] for i in step.order], None
            shape = [shape[i] for i in step.order]
        elif isinstance(step, jaxprs.Reshape):
            kept = _reshaped(dims, shape, step.shape)
            if all(dim >= 0 or n == 1 for (dim, _), n in zip(kept, step.shape, strict=True)):
                dims, at, shape = kept, None, list(step.shape)
                continue
            rest = resolve(Ref(-1, step.shape, dtype), steps[turn + 1 :], value)
            _narrow(low, high, dims, _unflatten(rest, step.shape, shape))
            return _box(ref, (low, high, every), rest.shape, rest.amount, None, is_exact)
        elif isinstance(step, jaxprs.Bitcast):
            old, dtype = jaxprs.bits_of(dtype), step.dtype
            new = jaxprs.bits_of(dtype)
            if new == old or not shape:
                continue
            packed = max(len(shape) - 2, 0)  # the last dimension but one (measured)
            cast = [n if i != packed else n * old // new for i, n in enumerate(shape)]
            rest = resolve(Ref(-1, tuple(cast), dtype), steps[turn + 1 :], value)
            inside = [*zip(rest.low, rest.high, strict=True)]
            a, b = inside[packed]
            inside[packed] = (a * new // old, -(-b * new // old))
            _narrow(low, high, dims, inside)
            return _box(ref, (low, high, every), rest.shape, rest.amount, None, is_exact)
        else:
            dims, at, is_exact = [(-1, 1)] * len(dims), None, False
    return _box(ref, (low, high, every), shape, amount_of(shape, dtype), at, is_exact)


def amount_of(shape: Sequence[int], dtype: Any) -> int:
    """How many bytes; none for semaphores."""
    bits = jaxprs.bits_of(dtype) if _values_have_bits(dtype) else 0
    return -(-bits * math.prod(shape) // 8)


def _box(
    ref: Ref,
    ends: tuple[Sequence[int], Sequence[int], Sequence[int]],
    shape: Sequence[int],
    amount: int,
    at: Sequence[Any] | None,
    is_exact: bool,
) -> Box:
    low, high, every = ends
    if _values_have_bits(ref.dtype):  # what is gathered has gaps, and what is reshaped
        volume = math.prod([-(-(b - a) // n) for a, b, n in zip(*ends, strict=True)])
        is_exact = is_exact and -(-volume * jaxprs.bits_of(ref.dtype) // 8) == amount
    if at is not None and not is_within(low, high, ref.shape):
        at = None
    numpy_at = None if at is None else tuple(at)
    step = () if all(n == 1 for n in every) else tuple(every)
    return Box(tuple(low), tuple(high), tuple(shape), amount, numpy_at, is_exact, step)


def _narrow(low: list[int], high: list[int], dims: Sequence[tuple[int, int]], inside: Any) -> None:
    """Shrink a box to what is covered inside the view that it is of."""
    for (dim, stride), (a, b) in zip(dims, inside, strict=True):
        if dim >= 0:
            first = low[dim] + a * stride
            low[dim], high[dim] = first, first + max((b - a - 1) * stride + 1, 0)


def _unflatten(rest: Box, new: Sequence[int], old: Sequence[int]) -> list[tuple[int, int]]:
    """The box, in the shape before a reshape, of the elements from its first to its last."""
    first = last = 0
    for a, b, n in zip(rest.low, rest.high, new, strict=True):
        first, last = first * n + a, last * n + max(b - 1, a)
    box: list[tuple[int, int]] = []
    for n in reversed(old):
        (first, a), (last, b) = divmod(first, n), divmod(last, n)
        # What stands before differs: all of this dimension may be covered.
        box.append((a, b + 1) if first == last else (0, n))
    return box[::-1]


@functools.cache
def _values_have_bits(dtype: Any) -> bool:
    return hasattr(dtype, "itemsize") and not str(dtype).endswith(("sem", "semaphore"))


def is_within(low: Sequence[int], high: Sequence[int], shape: Sequence[int]) -> bool:
    return all(a >= 0 and b <= n for a, b, n in zip(low, high, shape, strict=True))


def _start_and_size(part: Any, value: Callable[[Any], Any]) -> tuple[Any, Any, int]:
    """Start, size and stride. The size is None where the dimension goes, UNKNOWN if it is that."""
    if isinstance(part, jaxprs.Span):
        return value(part.start), value(part.size), part.stride
    return value(part), None, 1


def _gathered(step: Any, value: Callable[[Any], Any], dims: Any, box: Any) -> list[int]:
    """The shape of a view by arrays of indices; the box shrinks to what they are known to hold."""
    shape: list[Any] = [value(n) for n in step.gathered]
    low, high = box
    for i, part in enumerate(step.parts):
        if isinstance(part, jaxprs.Span):
            shape.append(value(part.size))
            continue
        numbers: Any = value(part)
        if isinstance(numbers, (Ref, jaxprs.View)):
            continue  # they may be others by the time they are read
        dim, stride = dims[i] if len(dims) == len(step.parts) else (-1, 1)
        if dim >= 0 and stride == 1 and numbers is not UNKNOWN and np.size(numbers):
            first = low[dim]
            low[dim] = first + int(np.min(numbers))
            high[dim] = first + int(np.max(numbers)) + 1
    if any(n is UNKNOWN for n in shape):
        raise UnknownIndexError
    return shape


def _reshaped(
    dims: list[tuple[int, int]], shape: Sequence[int], new: Sequence[int]
) -> list[tuple[int, int]]:
    """Which dimensions a reshape leaves as they are: those at both ends, and ones of size 1."""
    front = 0
    while front < min(len(shape), len(new)) and shape[front] == new[front]:
        front += 1
    back = 0
    while back < min(len(shape), len(new)) - front and shape[-1 - back] == new[-1 - back]:
        back += 1
    middle = [(-1, 1)] * (len(new) - front - back)
    # One dimension among ones: it is that dimension still.
    old = [d for d, n in zip(dims, shape, strict=True) if n != 1][: len(dims)]
    kept = [n for n in new if n != 1]
    if kept == [n for n in shape if n != 1]:
        rest = iter(old)
        return [next(rest) if n != 1 else (-1, 1) for n in new]
    return [*dims[:front], *middle, *(dims[len(dims) - back :] if back else [])]
