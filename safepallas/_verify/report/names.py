"""What events, semaphores and buffers are called in the headings and pictures of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath

from safepallas._verify.program import (
    Access,
    Allocate,
    Barrier,
    Enter,
    Event,
    Leave,
    Line,
    Program,
    Region,
    Release,
    Semaphore,
    Signal,
    Start,
    Wait,
)


def is_known(line: Line) -> bool:
    """Whether it is a line of a file, and not a stand-in for one that JAX does not know."""
    return line.number > 0 and not line.file.startswith("<")


def short_paths(text: str, lines: Iterable[Line]) -> str:
    """The text with the files of `lines` by their names alone, where no two have the same."""
    files = {line.file for line in lines if is_known(line)}
    names = Counter(PurePath(file).name for file in files)
    for file in sorted(files, key=len, reverse=True):
        name = PurePath(file).name
        if names[name] == 1:
            text = text.replace(file, name)
    return text


def count(number: int, noun: str) -> str:
    """``1 copy``, ``2 copies``."""
    if number != 1:
        noun = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun}"


def short_place(program: Program, core: int) -> str:
    """A core in few letters: ``x=2``."""
    return program.place(core).removeprefix("device ").removeprefix("the ")


def mesh_words(program: Program) -> str:
    """``4 devices (x=4)``, or ``one device with 32 cores``."""
    each = len(program.parts)
    if not program.mesh:
        return "one device" + (f" with {count(each, 'core')}" if each else "")
    sizes = ", ".join(f"{name}={size}" for name, size in program.mesh)
    devices = f"{count(len(program.cores) // (each or 1), 'device')} ({sizes})"
    return devices + (f" with {count(each, 'core')} each" if each else "")


def call_names(program: Program) -> str:
    """All kernels, each once, in the order of their first calls."""
    return ", ".join(dict.fromkeys(program.calls)) or "no kernel"


def call_name(program: Program, call: int) -> str:
    if 0 <= call < len(program.calls):
        return program.calls[call]
    return f"call {call}"


def allocation_name(program: Program, allocation: int) -> str:
    known = program.allocations.get(allocation)
    return known.name if known else f"allocation {allocation}"


def semaphore_name(program: Program, semaphore: Semaphore) -> str:
    """``recv_sems[1]``, without the core that owns it."""
    if semaphore.is_global:
        return "barrier"
    index = f"[{', '.join(map(str, semaphore.indices))}]" if semaphore.indices else ""
    return allocation_name(program, semaphore.allocation) + index


def region_name(program: Program, region: Region) -> str:
    """``o_ref[8:16]``, without the core that owns it and without what is whole."""
    name = allocation_name(program, region.allocation)
    known = program.allocations.get(region.allocation)
    # A box of another rank is that of a view: nothing is known to be whole.
    sizes = known.shape if known and len(known.shape) == len(region.low) else None
    parts = box_words(region)
    for i, (low, high) in enumerate(zip(region.low, region.high, strict=True)):
        if sizes is not None and (low, high) == (0, sizes[i]) and parts[i].count(":") < 2:
            parts[i] = ":"
    while parts and parts[-1] == ":":
        parts.pop()
    return f"{name}[{', '.join(parts)}]" if parts else name


def box_words(region: Region) -> list[str]:
    """The box of a region, by dimension: ``3``, ``8:16``, and with a stride ``1:8:2``."""
    steps = region.step or (1,) * len(region.low)
    return [
        str(low) if high == low + 1 else f"{low}:{high}" + (f":{step}" if step > 1 else "")
        for low, high, step in zip(region.low, region.high, steps, strict=True)
    ]


def event_words(program: Program, core: int, event: Event) -> str:
    """What an event of `core` does, without its line: ``wait recv_sems[1] for 4,096``."""
    match event:
        case Enter():
            return f"enter {call_name(program, event.call)}"
        case Barrier():
            return f"meet {count(len(event.among) - 1, 'other core')}"
        case Leave():
            return f"leave {call_name(program, event.call)}"
        case Allocate():
            return "scope of " + ", ".join(allocation_name(program, a) for a in event.allocations)
        case Release():
            return "end of scope"
        case Signal():
            other = _of_other(program, core, event.semaphore.core)
            return f"signal {semaphore_name(program, event.semaphore)}{other} +{event.amount:,}"
        case Wait():
            return f"wait {semaphore_name(program, event.semaphore)} for {event.amount:,}"
        case Start():
            source, target = (
                region_name(program, region) + _of_other_memory(program, core, region)
                for region in (event.source, event.target)
            )
            return f"copy {source} to {target}"
        case Access():
            verb = "write" if event.is_write else "read"
            return f"{verb} {region_name(program, event.region)}"


def _of_other_memory(program: Program, core: int, region: Region) -> str:
    sharers = program.sharers(region.core, region.allocation)
    if core in sharers:
        return ""
    return f" of {program.owner(region.core, region.allocation).removeprefix('device ')}"


def _of_other(program: Program, core: int, other: int) -> str:
    return "" if other == core else f" of {short_place(program, other)}"
