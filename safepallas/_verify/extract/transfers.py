"""What Pallas' own pipeline copies between an array and the windows of a blocked operand.

It matters where something else reaches that array: ``input_output_aliases`` makes one array of an
input and an output. There are two buffers each, and in turn t of its loop the pipeline starts the
fetch of step t, waits for that of step t - 1, runs the body of step t - 1, starts its write-back,
and waits for the write-back of step t - 2 (libtpu 0.0.52; `tests/tpu/test_compiler_facts.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from safepallas._jax.kernel_calls import BlockOperand
from safepallas._verify.extract import boxes
from safepallas._verify.extract.lockstep import Pause
from safepallas._verify.extract.memory import Ref, Value
from safepallas._verify.program import Access, Allocation, Line, Region, Semaphore, Start, Wait

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core

_BUFFERS = 2


class Transfers:
    """The copies of one operand on one core, during one call."""

    def __init__(
        self,
        core: Core,
        operand: BlockOperand,
        array: Ref,
        blocks: Sequence[Sequence[Value]],
        is_output: bool,
        name: str,
        line: Line,
    ) -> None:
        """Of the operand called `name`, in `array`; `blocks` are those of all grid steps."""
        self._operand = operand
        self._array = array
        self._blocks = blocks
        self._is_output = is_output
        self._line = line
        self._moved = 0
        call = core.call
        self._windows = core.shared.number(
            (call, "windows", name, is_output),
            lambda: Allocation(f"the windows of {name}", "buffers", call, (_BUFFERS,), line),
        )
        self._semaphores = core.shared.number(
            (call, "pipeline", name, is_output),
            lambda: Allocation(
                f"the pipeline's semaphores of {name}", "DMA semaphores", call, (_BUFFERS,), line
            ),
        )
        # By step: which of the two semaphores tells of its copy; None where there is none.
        self._slots: dict[int, Semaphore] = {}

    def start(self, core: Core, step: int) -> None:
        """The fetch of a step, or its write-back: where the block is not that of its neighbour."""
        blocks = self._blocks
        if step >= len(blocks):
            return
        neighbour = step + 1 if self._is_output else step - 1
        if 0 <= neighbour < len(blocks) and _are_same(blocks[step], blocks[neighbour]):
            return
        region = self._region(core, blocks[step])
        if region is None:
            return  # out of bounds: that is told already
        slot = self._moved % _BUFFERS
        self._moved += 1
        window = Region(core.number, self._windows, (slot,), (slot + 1,))
        semaphore = Semaphore(core.number, self._semaphores, (slot,))
        source, target = (window, region) if self._is_output else (region, window)
        self._slots[step] = semaphore
        if self._is_output:  # what the body has left there
            core.emit(Access(window, True, self._line))
        core.emit(Start(source, target, None, semaphore, self._amount(), self._line))

    def wait(self, core: Core, step: int) -> Pause | None:
        """For the copy of a step, if there was one."""
        semaphore = self._slots.pop(step, None)
        if semaphore is None:
            return None
        return core.block(Wait(semaphore, self._amount(), self._line))

    def _amount(self) -> int:
        shape = [n or 1 for n in self._operand.block]
        return max(boxes.amount_of(shape, self._operand.memory.dtype), 1)

    def _region(self, core: Core, block: Sequence[Value]) -> Region | None:
        ends = self._operand.ends(block)
        low, high, is_exact = [], [], True
        for end, length in zip(ends, self._operand.array_shape, strict=True):
            is_exact = is_exact and end is not None
            first, last = (0, length) if end is None else end
            if not 0 <= first < length:
                return None
            low.append(first)
            high.append(min(last, length))
        owner = self._array.owner(core.number)
        return Region(owner, self._array.allocation, tuple(low), tuple(high), exact=is_exact)


def _are_same(one: Sequence[Value], other: Sequence[Value]) -> bool:
    return all(isinstance(n, int) for n in one) and [*one] == [*other]


def are_known(blocks: Sequence[Sequence[Value]]) -> bool:
    return all(isinstance(n, int) for block in blocks for n in block)


def is_usual(inner: BlockOperand, outer: BlockOperand, blocks: Sequence[Sequence[Value]]) -> bool:
    """Whether an input and an output in one array move the same blocks, and each only once.

    Then each block is fetched before it is written back, and no other one is in the way. Where the
    blocks are not known, but the same for both, that is taken for the case.
    """
    same = inner.block == outer.block and str(inner.index_map) == str(outer.index_map)
    if not same or not inner.is_blocked or math.prod(inner.array_shape) == 0:
        return False
    if not are_known(blocks):
        return True
    seen: set[tuple[Value, ...]] = set()
    before: tuple[Value, ...] = ()
    for block in blocks:
        now = tuple(block)
        if now != before and now in seen:
            return False
        seen.add(now)
        before = now
    return True
