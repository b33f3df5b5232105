"""Views of refs while a program is followed: which ref, and what box of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from safepallas._jax import compat, jaxprs
from safepallas._verify.extract import memory, values
from safepallas._verify.extract.interpreter import Env, Equation
from safepallas._verify.extract.memory import Box, Ref
from safepallas._verify.program import UndecidedError


def value_of(equation: Equation, env: Env) -> Callable[[Any], Any]:
    """What is known of a part of an operation: of a slot, or a number as it is."""
    inputs = equation.inputs

    def value(part: Any) -> Any:
        return env[inputs[part.at]] if type(part) is jaxprs.Slot else part

    return value


class Look:
    """A view of an equation: called with an environment, it gives the ref and the box.

    The same indices give the same box, so each is worked out once.
    """

    __slots__ = ("_boxes", "_equation", "_fixed", "_plan", "_ref_at", "_shape", "_slots", "_steps")

    def __init__(self, equation: Equation, view: Any) -> None:
        self._equation = equation
        self._ref_at = equation.inputs[view.ref.at]
        self._steps = view.steps
        self._slots = [equation.inputs[i] for i in _slots_in(view)]
        self._boxes: dict[Any, Box] = {}
        self._shape: Any = None
        self._plan: Plan | None = None
        self._fixed: Box | None = None

    def __call__(self, env: Env) -> tuple[Ref, Box]:
        ref = env[self._ref_at]
        if type(ref) is not Ref or ref.shape != self._shape:
            self._prepare(ref)
        if self._fixed is not None:
            return ref, self._fixed
        if self._plan is not None:
            box = self._plan.box(env)
            if box is not None:
                return ref, box
        key: Any = (ref.shape, *[env[i] for i in self._slots])
        try:
            found = self._boxes.get(key)
        except TypeError:  # by arrays of indices
            found, key = None, None
        if found is None:
            try:
                found = memory.resolve(ref, self._steps, value_of(self._equation, env))
            except memory.UnknownIndexError:
                raise UndecidedError(
                    "The size of a slice depends on data that is not known before it runs.",
                    self._equation.line,
                ) from None
            if key is not None:
                self._boxes[key] = found
        return ref, found

    def _prepare(self, ref: Any) -> None:
        if type(ref) is not Ref:
            text = "A ref comes from outside the kernel; that is not followed."
            raise UndecidedError(text, self._equation.line)
        self._shape = ref.shape
        self._plan = plan(ref, self._steps, self._equation)
        self._fixed = None if self._plan is None else self._plan.fixed


def _slots_in(view: Any) -> list[int]:
    found = []
    for step in view.steps:
        if isinstance(step, jaxprs.Index):
            for part in (*step.parts, *step.gathered):
                ends = (part.start, part.size) if isinstance(part, jaxprs.Span) else (part,)
                found += [p.at for p in ends if type(p) is jaxprs.Slot]
    return found


class Plan:
    """A view of known sizes without strides: its boxes differ only in where they begin."""

    __slots__ = (
        "_amount",
        "_boxes",
        "_moves",
        "_numbers",
        "_shape",
        "_sizes",
        "_start",
        "_whole",
        "fixed",
    )

    def __init__(
        self,
        ref: Ref,
        start: Sequence[int],
        moves: Sequence[tuple[int, int]],
        sizes: Sequence[int],
        left: Sequence[int],
        shared: dict[Any, dict[Any, Any]],
    ) -> None:
        self._start = start
        self._moves = moves  # dimension of the ref, place of the number that is added there
        self._sizes = sizes
        self._whole = ref.shape
        self._shape = tuple(sizes[dim] for dim in left)
        self._numbers = set(range(len(sizes))) - {*left}  # dimensions that are indexed away
        # Many equations have views that are alike: they share the boxes.
        dims = tuple(dim for dim, _ in moves)
        alike = (ref.shape, ref.dtype, tuple(start), dims, tuple(sizes), tuple(left))
        self._boxes: dict[Any, Box] = shared.setdefault(alike, {})
        self._amount = memory.amount_of(self._shape, ref.dtype)
        self.fixed = None if moves else self._box(())

    def box(self, env: Env) -> Box | None:
        """The box; None where an index is not known, or is no number."""
        numbers = tuple([env[place] for _, place in self._moves])
        for number in numbers:
            if type(number) is not int:
                return None
        found = self._boxes.get(numbers)
        if found is None:
            found = self._boxes[numbers] = self._box(numbers)
        return found

    def _box(self, numbers: tuple[int, ...]) -> Box:
        low = [*self._start]
        for (dim, _), number in zip(self._moves, numbers, strict=True):
            low[dim] += number
        high = [a + n for a, n in zip(low, self._sizes, strict=True)]
        at = None
        if memory.is_within(low, high, self._whole):
            gone = self._numbers
            at = tuple([a if i in gone else slice(a, high[i]) for i, a in enumerate(low)])
        return Box(tuple(low), tuple(high), self._shape, self._amount, at, True)


def plan(ref: Ref, steps: Sequence[Any], equation: Equation) -> Plan | None:
    """The plan of a view, if there is one."""
    operands = equation.jax.invars
    left = [*range(len(ref.shape))]
    start, sizes = [0] * len(left), [*ref.shape]
    moves: list[tuple[int, int]] = []
    for step in steps:
        if not isinstance(step, jaxprs.Index) or step.gathered or len(step.parts) != len(left):
            return None
        kept = []
        for part, dim in zip(step.parts, left, strict=True):
            first, size = part, 1
            if isinstance(part, jaxprs.Span):
                first, size = part.start, part.size
                kept.append(dim)
                if part.stride != 1 or type(size) is not int or size < 1:
                    return None
            sizes[dim] = size
            if type(first) is jaxprs.Slot and compat.is_literal(operands[first.at]):
                first = values.known(operands[first.at].val)
            if type(first) is int:
                start[dim] += first
            elif type(first) is jaxprs.Slot:
                moves.append((dim, equation.inputs[first.at]))
            else:
                return None
        left = kept
    return Plan(ref, start, moves, sizes, left, equation.shared)
