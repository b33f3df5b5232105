"""Two writes of the same bytes to the same place, in either order, harm nobody (rule 11).

Programs do it on purpose: each of two cores sends what both of them have. It is told, and no
finding.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from safepallas._verify.diagnostics.details import MemoryAccess
from safepallas._verify.program import Access, Program, Region, Start


class SameBytes:
    """Whether two accesses write the same: copies of what nobody writes, or equal constants."""

    def __init__(self, program: Program) -> None:
        self._cores = program.cores
        self._written: dict[tuple[int, int], set[Region]] | None = None
        self._constant: dict[Region, bool] = {}
        self._repeated: set[tuple[Region, Region]] | None = None

    def __call__(self, first: MemoryAccess, then: MemoryAccess) -> bool:
        if first.region != then.region or first.begin == then.begin:
            return False
        if not (first.is_write and then.is_write and first.region.exact):
            return False
        one = self._cores[first.begin.core][first.begin.at]
        other = self._cores[then.begin.core][then.begin.at]
        if isinstance(one, Start) and isinstance(other, Start):
            return (
                one.source == other.source
                and one.source.exact
                and not (one.indices or other.indices)
                and self._is_constant(one.source)
            )
        if isinstance(one, Access) and isinstance(other, Access):
            return one.value is not None and one.value == other.value
        return False

    def may_repeat(self, access: MemoryAccess) -> bool:
        """Whether there may be another write of the same bytes to the same region."""
        if not access.is_write:
            return False
        event = self._cores[access.begin.core][access.begin.at]
        if not isinstance(event, Start):
            return isinstance(event, Access) and event.value is not None
        if self._repeated is None:
            copies = [event for events in self._cores for event in events if type(event) is Start]
            often = Counter((copy.source, copy.target) for copy in copies)
            self._repeated = {pair for pair, times in often.items() if times > 1}
        return (event.source, event.target) in self._repeated and self._is_constant(event.source)

    def _is_constant(self, source: Region) -> bool:
        """Whether nothing in the program, reached or not, writes there."""
        if source not in self._constant:
            written = self._writes().get(source[:2], ())
            self._constant[source] = not any(source.overlaps(region) for region in written)
        return self._constant[source]

    def _writes(self) -> dict[tuple[int, int], set[Region]]:
        if self._written is None:
            self._written = defaultdict(set)
            for events in self._cores:
                for event in events:
                    if isinstance(event, Start) and event.amount:
                        self._written[event.target[:2]].add(event.target)
                    elif isinstance(event, Access) and event.is_write:
                        self._written[event.region[:2]].add(event.region)
        return self._written
