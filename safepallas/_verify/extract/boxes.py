"""The boxes that views of refs cover."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from safepallas._jax.views import (
    Bitcast,
    Index,
    Number,
    Reshape,
    Span,
    Transpose,
    View,
    ViewStep,
    bits_of,
)
from safepallas._semaphores.kinds import kind_of
from safepallas._verify.extract.memory import NumpyIndex, Ref, Value
from safepallas._verify.extract.values import UNKNOWN, Unknown

# What is known of a part of an index.
ValueOf: TypeAlias = Callable[[Number], Value]
# A dimension of a view: that of the ref (or -1: of no single one), and the stride in it.
_Dim: TypeAlias = tuple[int, int]


class Outside(NamedTuple):
    """A box that leaves what it is in: a ref, or a view of one in another shape."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    shape: tuple[int, ...]


class Box(NamedTuple):
    """What a view covers, with its indices evaluated. The same for all refs of one shape."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    shape: tuple[int, ...]
    amount: int  # in bytes
    at: NumpyIndex
    is_exact: bool  # each dimension is indexed by known numbers only
    step: tuple[int, ...] = ()  # the strides in the ref, where there are any
    outside: Outside | None = None  # where it is known to leave the ref
    is_bounded: bool = True  # all its indices are known: it is inside, or `outside`


class UnknownIndexError(Exception):
    """A size is not known, on which an amount depends."""


def resolve(shape: Sequence[int], dtype: object, steps: Sequence[ViewStep], value: ValueOf) -> Box:
    """The box that a view covers: as small as is known, and no smaller.

    Args:
        shape: that of the ref.
        dtype: that of the ref.
        value: gives what is known of a number.

    Raises:
        UnknownIndexError: the view's size is not known.
    """
    walk = _Walk(shape, dtype, value)
    for turn, step in enumerate(steps):
        rest = steps[turn + 1 :]
        if isinstance(step, Index):
            if step.gathered:
                walk.gather(step)
            else:
                walk.index(step)
        elif isinstance(step, Transpose):
            walk.transpose(step)
        elif isinstance(step, Reshape):
            if not walk.reshape(step):
                return walk.through_reshape(step, rest)
        elif isinstance(step, Bitcast):
            if not walk.bitcast(step):
                return walk.through_bitcast(step, rest)
        else:
            walk.lose_track()
            walk.is_bounded = False
    return walk.box(walk.shape, amount_of(walk.shape, walk.dtype), walk.at)


class _Walk:
    """A view, step by step, and the box of the ref that it covers."""

    def __init__(self, shape: Sequence[int], dtype: object, value: ValueOf) -> None:
        self._ref_shape, self._ref_dtype, self._value = shape, dtype, value
        self.low, self.high, self.strides = [0] * len(shape), [*shape], [1] * len(shape)
        self.dims: list[_Dim] = [(i, 1) for i in range(len(shape))]
        self.shape, self.dtype = [*shape], dtype
        self.at: list[int | slice] | None = [slice(0, n) for n in shape]
        self.is_exact = self.is_bounded = True

    def index(self, step: Index) -> None:
        if len(self.shape) != len(step.parts):
            self.shape = [*step.shape]
        dims, sizes = [], []
        for part, (dim, stride), length in zip(step.parts, self.dims, self.shape, strict=True):
            start, size, jump = self._part(part)
            if start is None or (dim < 0 and (start or length > 1)):
                self.is_bounded = False
            if start is not None and dim >= 0:
                self._cut(dim, start, size, stride, jump)
            elif length > 1:
                self.at = None
                self.is_exact = self.is_exact and start is not None
            if size is not None:
                # From an unknown start on, the view may be anywhere in what it was cut from.
                dims.append((dim if start is not None else -1, stride * jump))
                sizes.append(size)
        self.dims, self.shape = dims, sizes

    def _part(self, part: Number | Span | View) -> tuple[int | None, int | None, int]:
        """Start, size and stride. No start is an unknown one; no size: the dimension goes."""
        if isinstance(part, Span):
            size = self._value(part.size)
            if not isinstance(size, int):
                raise UnknownIndexError
            start, stride = self._value(part.start), part.stride
            return (start if isinstance(start, int) else None), size, stride
        start = UNKNOWN if isinstance(part, View) else self._value(part)
        return (start if isinstance(start, int) else None), None, 1

    def _cut(self, dim: int, start: int, size: int | None, stride: int, jump: int) -> None:
        first = self.low[dim] + start * stride
        last = first + ((size or 1) - 1) * jump * stride
        self.low[dim], self.high[dim] = first, first if size == 0 else last + 1
        self.strides[dim] = stride * jump if last > first else 1
        if self.at is not None:
            self.at[dim] = first if size is None else slice(first, last + 1, stride * jump)

    def gather(self, step: Index) -> None:
        """By arrays of indices; the box shrinks to what they are known to hold."""
        shape = [self._value(n) for n in step.gathered]
        for i, part in enumerate(step.parts):
            if isinstance(part, Span):
                shape.append(self._value(part.size))
                whole = (self._value(part.start), shape[-1]) == (0, self.shape[i])
                self.is_bounded = self.is_bounded and whole
                continue
            if isinstance(part, View):
                self.is_bounded = False
                continue  # of a ref: its numbers may be others by the time they are read
            numbers = self._value(part)
            dim, stride = self.dims[i] if len(self.dims) == len(step.parts) else (-1, 1)
            if isinstance(numbers, (Unknown, Ref)) or dim < 0 or stride != 1:
                self.is_bounded = False
                continue
            if np.size(numbers):
                first = self.low[dim]
                self.low[dim] = first + int(np.min(numbers))
                self.high[dim] = first + int(np.max(numbers)) + 1
        sizes = [n for n in shape if isinstance(n, int)]
        if len(sizes) < len(shape):
            raise UnknownIndexError
        self.shape = sizes
        self.lose_track()

    def transpose(self, step: Transpose) -> None:
        self.dims, self.at = [self.dims[i] for i in step.order], None
        self.shape = [self.shape[i] for i in step.order]

    def reshape(self, step: Reshape) -> bool:
        """Whether each dimension is still one of the ref's, or one of size 1."""
        kept = _reshaped(self.dims, self.shape, step.shape)
        if not all(dim >= 0 or n == 1 for (dim, _), n in zip(kept, step.shape, strict=True)):
            return False
        self.dims, self.at, self.shape = kept, None, [*step.shape]
        return True

    def through_reshape(self, step: Reshape, rest: Sequence[ViewStep]) -> Box:
        """The box in the ref of what the rest of the view covers after a reshape."""
        box = resolve(step.shape, self.dtype, rest, self._value)
        self._narrow(_unflatten(box, step.shape, self.shape))
        return self._through(box)

    def bitcast(self, step: Bitcast) -> bool:
        """Whether the elements stay as they are."""
        if bits_of(step.dtype) != bits_of(self.dtype) and self.shape:
            return False
        self.dtype = step.dtype
        return True

    def through_bitcast(self, step: Bitcast, rest: Sequence[ViewStep]) -> Box:
        """The box in the ref of what the rest of the view covers among elements of other bits."""
        old, new = bits_of(self.dtype), bits_of(step.dtype)
        packed = max(len(self.shape) - 2, 0)  # the last dimension but one (measured)
        cast = [n if i != packed else n * old // new for i, n in enumerate(self.shape)]
        box = resolve(cast, step.dtype, rest, self._value)
        inside = [*zip(box.low, box.high, strict=True)]
        low, high = inside[packed]
        inside[packed] = (low * new // old, -(-high * new // old))
        self._narrow(inside)
        return self._through(box)

    def _through(self, box: Box) -> Box:
        """The box in the ref, where `box` is that in a view of another shape."""
        found = self.box(box.shape, box.amount, None)
        return found._replace(
            outside=found.outside or box.outside, is_bounded=found.is_bounded and box.is_bounded
        )

    def lose_track(self) -> None:
        """The dimensions are none of the ref's any more."""
        self.dims, self.at, self.is_exact = [(-1, 1)] * len(self.shape), None, False

    def _narrow(self, inside: Sequence[tuple[int, int]]) -> None:
        """Shrink the box to what is covered inside the view so far."""
        for (dim, stride), (low, high) in zip(self.dims, inside, strict=True):
            if dim >= 0:
                first = self.low[dim] + low * stride
                self.low[dim] = first
                self.high[dim] = first + max((high - low - 1) * stride + 1, 0)

    def box(self, shape: Sequence[int], amount: int, at: Sequence[int | slice] | None) -> Box:
        is_exact = self.is_exact
        if _has_bits(self._ref_dtype):  # what is gathered has gaps, and what is reshaped
            ends = zip(self.low, self.high, self.strides, strict=True)
            volume = math.prod([-(-(high - low) // n) for low, high, n in ends])
            is_exact = is_exact and -(-volume * bits_of(self._ref_dtype) // 8) == amount
        outside = leaves(self.low, self.high, self._ref_shape) if all(shape) else None
        if outside is not None:
            at = None
        numpy_at = None if at is None else tuple(at)
        step = () if all(n == 1 for n in self.strides) else tuple(self.strides)
        return Box(
            tuple(self.low),
            tuple(self.high),
            tuple(shape),
            amount,
            numpy_at,
            is_exact,
            step,
            outside,
            self.is_bounded,
        )


def amount_of(shape: Sequence[int], dtype: object) -> int:
    """How many bytes; none for semaphores."""
    return -(-bits_of(dtype) * math.prod(shape) // 8) if _has_bits(dtype) else 0


@functools.cache
def _has_bits(dtype: object) -> bool:
    return hasattr(dtype, "itemsize") and kind_of(dtype) is None


def leaves(low: Sequence[int], high: Sequence[int], shape: Sequence[int]) -> Outside | None:
    """The box with what it leaves; None where it is inside."""
    if all(a >= 0 and b <= n for a, b, n in zip(low, high, shape, strict=True)):
        return None
    return Outside(tuple(low), tuple(high), tuple(shape))


def _unflatten(box: Box, new: Sequence[int], old: Sequence[int]) -> list[tuple[int, int]]:
    """The box, in the shape before a reshape, of what a box in the new shape covers.

    Dimensions that are split or merged are taken by themselves, and of each such group the
    elements from the first to the last.
    """
    found: list[tuple[int, int]] = []
    for into, of in _groups(new, old):
        first = last = 0
        for i in into:
            a, b, n = box.low[i], box.high[i], new[i]
            first, last = first * n + a, last * n + max(b - 1, a)
        inside: list[tuple[int, int]] = []
        for i in reversed(of):
            n = old[i]
            (first, a), (last, b) = divmod(first, n), divmod(last, n)
            # What stands before differs: all of this dimension may be covered.
            inside.append((a, b + 1) if first == last else (0, n))
        found += inside[::-1]
    return found


def _groups(new: Sequence[int], old: Sequence[int]) -> list[tuple[range, range]]:
    """Which dimensions of two shapes hold the same elements: as few at a time as can be."""
    if not all(new) or not all(old):
        return [(range(len(new)), range(len(old)))]
    groups: list[tuple[range, range]] = []
    i = j = 0
    while i < len(new) or j < len(old):
        begin, left, right = (i, j), 1, 1
        while left != right or (i, j) == begin:
            if j == len(old) or (i < len(new) and left <= right):
                left, i = left * new[i], i + 1
            else:
                right, j = right * old[j], j + 1
        groups.append((range(begin[0], i), range(begin[1], j)))
    return groups


def _reshaped(dims: list[_Dim], shape: Sequence[int], new: Sequence[int]) -> list[_Dim]:
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
