"""Views of refs while a program is followed: which ref, and what box of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from safepallas._jax.views import Index, Number, Slot, Span, View, ViewStep, slots_in
from safepallas._verify.extract import boxes
from safepallas._verify.extract.boxes import Box, ValueOf
from safepallas._verify.extract.interpreter import Env, Equation, places_of
from safepallas._verify.extract.memory import Ref, Value
from safepallas._verify.program import UndecidedError


def value_of(equation: Equation, env: Env) -> ValueOf:
    """What is known of a part of an operation: of a slot, or a number as it is."""
    inputs = equation.inputs

    def value(part: Number) -> Value:
        return env[inputs[part.at]] if isinstance(part, Slot) else part

    return value


class ViewReader:
    """A view of an equation: called with an environment, it gives the ref and the box.

    The same indices give the same box, so each is worked out once.
    """

    __slots__ = (
        "_boxes",
        "_choices",
        "_equation",
        "_fixed",
        "_places",
        "_plan",
        "_ref_at",
        "_shape",
        "_steps",
        "_which",
    )

    def __init__(self, equation: Equation, view: View) -> None:
        self._equation = equation
        self._choices = [ViewReader(equation, one) for one in view.choices]
        self._which = view.which
        self._ref_at = equation.inputs[view.ref.at]
        self._steps = view.steps
        self._places = places_of(equation, slots_in(view))
        self._boxes: dict[Hashable, Box] = {}
        self._shape: tuple[int, ...] | None = None
        self._plan: Plan | None = None
        self._fixed: Box | None = None

    def __call__(self, env: Env) -> tuple[Ref, Box]:
        if self._choices:
            return self._chosen(env)
        ref = env[self._ref_at]
        if not isinstance(ref, Ref) or ref.shape != self._shape:
            ref = self._prepare(ref)
        if self._fixed is not None:
            return ref, self._fixed
        if self._plan is not None:
            box = self._plan.box(env)
            if box is not None:
                return ref, box
        return ref, self._resolved(ref, env)

    def _chosen(self, env: Env) -> tuple[Ref, Box]:
        which = value_of(self._equation, env)(self._which)
        if not isinstance(which, int) or not 0 <= which < len(self._choices):
            text = "Which ref `select_ref` selects is not known before it runs."
            if isinstance(which, int):
                text = f"`select_ref` gets the number {which} of {len(self._choices)} refs."
            raise UndecidedError(text, self._equation.line)
        return self._choices[which](env)

    def _resolved(self, ref: Ref, env: Env) -> Box:
        key: Hashable = (ref.shape, *[env[i] for i in self._places])
        try:
            found = self._boxes.get(key)
        except TypeError:  # by arrays of indices
            found, key = None, None
        if found is None:
            value = value_of(self._equation, env)
            try:
                found = boxes.resolve(ref.shape, ref.dtype, self._steps, value)
            except boxes.UnknownIndexError:
                raise UndecidedError(
                    "The size of a slice depends on data that is not known before it runs.",
                    self._equation.line,
                ) from None
            if key is not None:
                self._boxes[key] = found
        return found

    def _prepare(self, ref: Value) -> Ref:
        if not isinstance(ref, Ref):
            text = "A ref comes from outside the kernel; that is not followed."
            raise UndecidedError(text, self._equation.line)
        self._shape = ref.shape
        self._plan = plan(ref, self._steps, self._equation)
        self._fixed = None if self._plan is None else self._plan.fixed
        return ref


class Plan:
    """A view of known sizes without strides: its boxes differ only in where they begin."""

    __slots__ = (
        "_amount",
        "_boxes",
        "_indexed",
        "_moves",
        "_ref_shape",
        "_shape",
        "_sizes",
        "_start",
        "fixed",
    )

    def __init__(
        self,
        ref: Ref,
        start: Sequence[int],
        moves: Sequence[tuple[int, int]],
        sizes: Sequence[int],
        left: Sequence[int],
        equation: Equation,
    ) -> None:
        self._start = start
        self._moves = moves  # dimension of the ref, place of the number that is added there
        self._sizes = sizes
        self._ref_shape = ref.shape
        self._shape = tuple(sizes[dim] for dim in left)
        self._indexed = set(range(len(sizes))) - {*left}  # dimensions that are indexed away
        # Many equations have views that are alike: they share the boxes.
        dims = tuple(dim for dim, _ in moves)
        alike = (ref.shape, ref.dtype, tuple(start), dims, tuple(sizes), tuple(left))
        self._boxes = equation.answers.boxes.setdefault(alike, {})
        self._amount = boxes.amount_of(self._shape, ref.dtype)
        self.fixed = None if moves else self._box(())

    def box(self, env: Env) -> Box | None:
        """The box; None where an index is not known, or is no number."""
        added = []
        for _, place in self._moves:
            number = env[place]
            if type(number) is not int:
                return None
            added.append(number)
        numbers = tuple(added)
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
        outside = boxes.leaves(low, high, self._ref_shape)
        if outside is None:
            indexed = self._indexed
            at = tuple([a if i in indexed else slice(a, high[i]) for i, a in enumerate(low)])
        found = Box(tuple(low), tuple(high), self._shape, self._amount, at, True)
        return found._replace(outside=outside)


def plan(ref: Ref, steps: Sequence[ViewStep], equation: Equation) -> Plan | None:
    """The plan of a view, if there is one."""
    left = [*range(len(ref.shape))]
    start, sizes = [0] * len(left), [*ref.shape]
    moves: list[tuple[int, int]] = []
    for step in steps:
        if not isinstance(step, Index) or step.gathered or len(step.parts) != len(left):
            return None
        kept = []
        for part, dim in zip(step.parts, left, strict=True):
            if isinstance(part, View):
                return None
            if isinstance(part, Span):
                first, size = part.start, part.size
                kept.append(dim)
                if part.stride != 1 or not isinstance(size, int) or size < 1:
                    return None
                sizes[dim] = size
            else:
                first, sizes[dim] = part, 1
            number = equation.literal(first)
            if type(number) is int:
                start[dim] += number
            elif number is None and isinstance(first, Slot):
                moves.append((dim, equation.inputs[first.at]))
            else:
                return None
        left = kept
    return Plan(ref, start, moves, sizes, left, equation)
