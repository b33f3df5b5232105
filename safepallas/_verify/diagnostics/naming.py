"""What cores, calls, semaphores, regions and events are called, in texts, pictures and traces.

A buffer as a whole is named without an index; of a part only those dimensions count that are not
whole. A core is named by its device, and that by the axes of the mesh.
"""

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


class Names:
    """The names of what is in one program."""

    def __init__(self, program: Program) -> None:
        self._program = program

    # The program as a whole.

    def mesh(self) -> str:
        """``4 devices (x=4)``, or ``one device with 32 cores``."""
        program = self._program
        each = len(program.parts)
        if not program.mesh:
            return "one device" + (f" with {count(each, 'core')}" if each else "")
        sizes = ", ".join(f"{name}={size}" for name, size in program.mesh)
        devices = f"{count(len(program.cores) // (each or 1), 'device')} ({sizes})"
        return devices + (f" with {count(each, 'core')} each" if each else "")

    def calls(self) -> str:
        """All kernels, each once, in the order of their first calls."""
        return ", ".join(dict.fromkeys(self._program.calls)) or "no kernel"

    # What is in it.

    def core(self, core: int) -> str:
        """``device x=2``, ``TensorCore core=1 of device x=2``."""
        return self._program.place(core).removeprefix("the ")

    def call(self, call: int) -> str:
        calls = self._program.calls
        return calls[call] if 0 <= call < len(calls) else f"call {call}"

    def allocation(self, allocation: int) -> str:
        known = self._program.allocations.get(allocation)
        return known.name if known else f"allocation {allocation}"

    def semaphore(self, semaphore: Semaphore) -> str:
        """``recv_sems[1]``, without the core that owns it."""
        if semaphore.is_global:
            return "barrier semaphore"
        allocation, indices = semaphore.named
        index = f"[{', '.join(map(str, indices))}]" if indices else ""
        return self.allocation(allocation) + index

    def region(self, region: Region) -> str:
        """``o_ref[8:16]``, without the core that owns it and without what is whole."""
        known = self._program.allocations.get(region.allocation)
        # A box of another rank is that of a view: nothing is known to be whole.
        sizes = known.shape if known and len(known.shape) == len(region.low) else None
        steps = region.step or (1,) * len(region.low)
        index = []
        for i, (low, high, step) in enumerate(zip(region.low, region.high, steps, strict=True)):
            if sizes is not None and (low, high, step) == (0, sizes[i], 1):
                index.append(":")
            elif high == low + 1:
                index.append(str(low))
            else:
                index.append(f"{low}:{high}" + (f":{step}" if step > 1 else ""))
        while index and index[-1] == ":":
            index.pop()
        name = self.allocation(region.allocation)
        return f"{name}[{', '.join(index)}]" if index else name

    def memory(self, region: Region) -> str:
        """Whose memory a region is in: a core's, or that of cores which share it."""
        return self._program.owner(region.core, region.allocation)

    def event(self, core: int, event: Event) -> str:
        """What an event of `core` does, without its line: ``wait recv_sems[1] for 4,096``."""
        match event:
            case Enter():
                return f"enter {self.call(event.call)}"
            case Barrier():
                return f"barrier with {count(len(event.among) - 1, 'other core')}"
            case Leave():
                return f"leave {self.call(event.call)}"
            case Allocate():
                return "scope of " + ", ".join(map(self.allocation, event.allocations))
            case Release():
                return "end of scope"
            case Signal(semaphore, amount):
                owner = "" if semaphore.core == core else f" of {self.core(semaphore.core)}"
                return f"signal {self.semaphore(semaphore)}{owner} +{amount:,}"
            case Wait():
                return f"wait {self.semaphore(event.semaphore)} for {event.amount:,}"
            case Start():
                source, target = (
                    self.region(region) + self._of_other_memory(core, region)
                    for region in (event.source, event.target)
                )
                return f"copy {source} to {target}"
            case Access():
                verb = "write" if event.is_write else "read"
                return f"{verb} {self.region(event.region)}"

    def _of_other_memory(self, core: int, region: Region) -> str:
        if core in self._program.sharers(region.core, region.allocation):
            return ""
        return f" of {self.memory(region)}"
