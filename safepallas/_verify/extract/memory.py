"""Refs as the interpreter holds them, and what is known of the memory that they are of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import TypeAlias

import numpy as np

from safepallas._jax.arithmetic import is_integer
from safepallas._jax.core_types import CoreType
from safepallas._semaphores.kinds import Kind, kind_of
from safepallas._verify.extract.values import UNKNOWN, Known, Partial, Unknown, partly

# Integer buffers up to this size keep their numbers: tables, counts, lists of pages.
MOST_KEPT = 1 << 16

# A place in an array; None where it is not known.
NumpyIndex: TypeAlias = tuple[int | slice, ...] | EllipsisType | None

# By core, those who share some memory, the one under whose number it is kept first.
Sharers: TypeAlias = Mapping[int, tuple[int, ...]]


class Contents:
    """The numbers in a buffer of one core, as far as they are known."""

    __slots__ = ("is_known", "numbers")

    def __init__(self, shape: Sequence[int], dtype: np.dtype, numbers: Known = UNKNOWN) -> None:
        if isinstance(numbers, Unknown):
            self.numbers = np.zeros(shape, dtype)
            self.is_known = np.zeros(shape, bool)
        else:
            self.numbers = np.array(numbers, dtype).reshape(shape)
            self.is_known = np.ones(shape, bool)

    def load(self, at: NumpyIndex) -> Known:
        if at is None:
            return UNKNOWN
        return partly(self.numbers[at], self.is_known[at])

    def store(self, at: NumpyIndex, value: Known, adds: bool = False) -> None:
        """Nothing is known any more of what is written to an unknown place."""
        if at is None:
            self.is_known[...] = False
        elif isinstance(value, Partial) and not adds:
            self.numbers[at] = value.numbers
            self.is_known[at] = value.is_known
        elif isinstance(value, Unknown):
            self.is_known[at] = False
        elif adds:
            self.numbers[at] += value
        else:
            self.numbers[at] = value
            self.is_known[at] = True


def may_be_kept(shape: Sequence[int], dtype: object) -> bool:
    if not is_integer(dtype) or not all(type(n) is int for n in shape):  # or traced
        return False
    return math.prod(shape) <= MOST_KEPT


class Ref:
    """A ref of one core: its allocation and, of small integers, what it holds."""

    __slots__ = (
        "allocation",
        "contents",
        "dtype",
        "is_global",
        "is_of_jax",
        "is_private",
        "kind",
        "lives_on",
        "place",
        "shape",
        "shared_by",
        "stays",
    )

    def __init__(
        self,
        allocation: int,
        shape: tuple[int, ...],
        dtype: object,
        *,
        is_global: bool = False,
        contents: Contents | None = None,
        shared_by: Sharers | None = None,
        lives_on: CoreType | None = None,
    ) -> None:
        self.allocation = allocation
        self.shape = shape
        self.dtype = dtype
        self.kind: Kind | None = kind_of(dtype)  # None for a buffer
        self.is_global = is_global  # outlives the call
        self.contents = contents
        self.shared_by = shared_by  # None where each core has its own
        self.lives_on = lives_on  # the type of its cores, where it is another
        # Of semaphores of a scope: their stack, by its allocation, and the place of the first.
        self.place: tuple[int, int] | None = None
        self.is_of_jax = False  # made by `jax.new_ref`, and not by a kernel
        self.stays = False  # a buffer on a core, from one kernel to the next
        self.is_private = False  # one core's own, and no copy reaches it: accesses cannot race

    def owner(self, core: int) -> int:
        """The core under whose number the memory is kept that a core reaches with it."""
        return core if self.shared_by is None else self.shared_by[core][0]


# What an operand or a result is while a program is followed.
Value: TypeAlias = Known | Ref
