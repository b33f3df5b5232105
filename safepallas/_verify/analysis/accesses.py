"""Who accesses which memory, cores by themselves and by copies, and which accesses overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from safepallas._verify.analysis.semaphore_machine import Run
from safepallas._verify.diagnostics.details import MemoryAccess
from safepallas._verify.program import Access, Program, Region, Start, Step, Where


def memory_accesses(program: Program, run: Run) -> list[MemoryAccess]:
    """All accesses that happen, in the order of the run, a copy at its start.

    What has no elements is no access (rule 1).
    """
    found: list[MemoryAccess] = []
    cores = program.cores
    for step in run.order:
        core, at, part = step
        if part:
            continue
        event = cores[core][at]
        if isinstance(event, Access):
            where = Where(core, at)
            found.append(MemoryAccess(event.region, event.is_write, where, step, event.line))
        elif isinstance(event, Start) and event.amount:
            where = Where(core, at)
            read, write = Step(core, at, "read"), Step(core, at, "write")
            found.append(MemoryAccess(event.source, False, where, read, event.line))
            found.append(MemoryAccess(event.target, True, where, write, event.line))
            for indices in event.indices:
                found.append(MemoryAccess(indices, False, where, read, event.line))
    return [access for access in found if not access.region.is_empty]


def by_buffer(found: list[MemoryAccess]) -> Iterator[list[MemoryAccess]]:
    """The accesses to each buffer of each core, leaving out buffers that cannot race."""
    buffers: dict[tuple[int, int], list[MemoryAccess]] = defaultdict(list)
    for access in found:
        buffers[access.region.core, access.region.allocation].append(access)
    for key in sorted(buffers):
        group = buffers[key]
        writes = any(access.is_write for access in group)
        # What one core does by itself is in order.
        alone = all(not access.is_copy and access.begin.core == key[0] for access in group)
        if writes and not alone:
            yield group


def overlaps(regions: list[Region]) -> dict[Region, list[Region]]:
    """For each of some regions of one buffer, those that it overlaps, itself among them.

    Sorted along the dimension that tells most of them apart, so that the usual case, many blocks
    side by side, costs little more than the sorting.
    """
    distinct = sorted(set(regions))
    overlapping: dict[Region, list[Region]] = {region: [] for region in distinct}
    ranks: dict[int, list[Region]] = defaultdict(list)
    for region in distinct:
        if not region.is_empty:
            ranks[len(region.low)].append(region)
    for rank, group in ranks.items():
        for other, members in ranks.items():
            if other != rank:  # boxes of another rank are not understood: all of the buffer
                for region in group:
                    overlapping[region].extend(members)
        if rank == 0:
            for region in group:
                overlapping[region].extend(group)
            continue
        axis = max(range(rank), key=lambda d: len({region.low[d] for region in group}))
        ordered = sorted(group, key=lambda region: region.low[axis])
        for i, region in enumerate(ordered):
            overlapping[region].append(region)
            for j in range(i + 1, len(ordered)):
                if ordered[j].low[axis] >= region.high[axis]:
                    break
                if region.overlaps(ordered[j]):
                    overlapping[region].append(ordered[j])
                    overlapping[ordered[j]].append(region)
    return overlapping


def covers(outer: Region, inner: Region) -> bool:
    """Whether the first box of a buffer holds all of the second."""
    if outer.low == inner.low and outer.high == inner.high and outer.step == inner.step:
        return True
    if not outer.low:
        return True
    if len(outer.low) != len(inner.low):
        return False
    pairs = zip(outer.low, inner.low, outer.high, inner.high, strict=True)
    return all(a <= b and c >= d for a, b, c, d in pairs) and (
        not outer.step or _steps_cover(outer, inner)
    )


def _steps_cover(outer: Region, inner: Region) -> bool:
    """Whether the numbers that one box steps on, by dimension, hold those of one inside it."""
    steps = inner.step or (1,) * len(inner.low)
    ends = zip(inner.low, inner.high, outer.low, outer.step, steps, strict=True)
    return all(
        (low - first) % every == 0 and (step % every == 0 or high == low + 1)
        for low, high, first, every, step in ends
    )
