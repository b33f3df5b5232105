"""Blocks that Pallas' own pipeline moves: a window in fast memory for each blocked operand.

The pipeline writes an input's window before a step that wants another block, and reads an output's
after the last step of a block. A copy of the kernel's own that is then still in flight on that
window races with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from safepallas._jax.kernel_calls import BlockOperand
from safepallas._verify.diagnostics.finding import FindingKind
from safepallas._verify.extract.interpreter import Code, run_alone
from safepallas._verify.extract.memory import Ref, Value
from safepallas._verify.extract.values import UNKNOWN
from safepallas._verify.program import Access, Line

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core


class Window:
    """The window of one operand on one core, during one call."""

    def __init__(
        self,
        operand: BlockOperand,
        ref: Ref,
        index_map: Code,
        numbers: Value,
        is_output: bool,
        line: Line,
    ) -> None:
        self._operand = operand
        self._ref = ref
        self._map = index_map
        self._numbers = numbers
        self._is_output = is_output
        self._line = line
        self._block: list[Value] | None = None
        self._is_fixed = not index_map.steps and not set(index_map.results) & set(
            index_map.arguments
        )

    def blocks(
        self, core: Core, steps: Sequence[Sequence[int]], prefetched: Sequence[Ref]
    ) -> list[list[Value]]:
        """Those of all grid steps."""
        core.is_muted = True
        found = [run_alone(self._map, core, [*step, *prefetched]) for step in steps]
        core.is_muted = False
        return found

    def begin(self, core: Core, step: Sequence[int], prefetched: Sequence[Ref]) -> None:
        """Before a grid step."""
        if self._is_fixed and self._block is not None:
            return
        core.is_muted = True
        block = run_alone(self._map, core, [*step, *prefetched])
        core.is_muted = False
        # A block that is not known may be another one each time, or the same.
        before = block if self._block is None else self._block
        is_known = all(isinstance(number, int) for number in (*block, *before))
        if block == self._block and is_known:
            return
        is_sure = self._block is None or is_known or _differ(block, before)
        self._check_bounds(core, block)
        if self._is_output and self._block is not None:
            self._move(core, is_sure)
        self._block = block
        if not self._is_output:
            self._move(core, is_sure)
            self._fill(block)
        elif self._ref.contents is not None:
            self._ref.contents.store(None, UNKNOWN)

    def end(self, core: Core) -> None:
        """After the last grid step."""
        if self._is_output and self._block is not None:
            self._move(core)

    def _check_bounds(self, core: Core, block: Sequence[Value]) -> None:
        """A block must start inside the array; Pallas pads the last one where it is cut off."""
        operand = self._operand
        if operand.is_padded or len(block) != len(operand.block):
            return
        allocated = core.shared.program.allocations[self._ref.allocation]
        ends = operand.ends(block)
        for dim, (end, length) in enumerate(zip(ends, operand.array_shape, strict=True)):
            if end is None:
                core.shared.not_bounded(allocated.name, self._line)
            elif not 0 <= end[0] < max(length, 1):
                blocks = ", ".join(map(str, block))
                text = (
                    f"{core.place_and_step} the index map of `{allocated.name}` gives "
                    f"({blocks}), but the shape of the array is {operand.array_shape}: in "
                    f"dimension {dim} that block starts at {end[0]}, and the elements are 0 to "
                    f"{length - 1}. Bound what the index map returns, or make the grid smaller."
                )
                core.shared.add(FindingKind.OUT_OF_BOUNDS, allocated.name, text, self._line)
                return

    def _move(self, core: Core, is_sure: bool = True) -> None:
        """The pipeline's own access, which is not made where the block stays."""
        if not self._ref.is_private:
            region = core.whole_region(self._ref)._replace(exact=is_sure)
            core.emit(Access(region, not self._is_output, self._line))

    def _fill(self, block: Sequence[Value]) -> None:
        """The numbers of the new block, where the operand's are known."""
        contents, operand = self._ref.contents, self._operand
        if contents is None:
            return
        if not operand.array_shape and isinstance(self._numbers, int):
            contents.store(..., self._numbers)
            return
        if not isinstance(self._numbers, np.ndarray):
            contents.store(None, UNKNOWN)
            return
        index: list[int | slice] = []
        for number, size, length in zip(block, operand.block, operand.array_shape, strict=True):
            if not isinstance(number, int):
                contents.store(None, UNKNOWN)
                return
            if size is None:
                index.append(number)
                continue
            start = number * size if operand.is_blocked else number
            if start + size > length:  # the rest of the block is not known
                contents.store(None, UNKNOWN)
                return
            index.append(slice(start, start + size))
        contents.store(..., self._numbers[tuple(index)])


def _differ(one: Sequence[Value], other: Sequence[Value]) -> bool:
    """Whether two blocks differ in what is known of them."""
    pairs = zip(one, other, strict=True)
    return any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)
