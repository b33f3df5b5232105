"""The sentences of findings: who, on which semaphore, how much is there, and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from safepallas._verify.diagnostics.details import (
    AccessAfterExit,
    AccessBeforeEntry,
    Blocked,
    BlockedBarrier,
    BlockedWait,
    Deadlock,
    Detail,
    Leak,
    MemoryAccess,
    NegativeAmount,
    NeverAllocated,
    Overflow,
    Race,
    SameWrites,
    SignalBeforeEntry,
    Stated,
    UnawaitedCopy,
)
from safepallas._verify.diagnostics.naming import Names
from safepallas._verify.program import (
    Allocate,
    Event,
    Line,
    Program,
    Region,
    Release,
    Semaphore,
    Signal,
    Start,
    Where,
)


def explain(detail: Detail, program: Program | None) -> str:
    """What is wrong, as a paragraph.

    Raises:
        ValueError: `program` is None, and the detail counts by the numbers of a program.
    """
    if isinstance(detail, Stated):
        return detail.text
    if program is None:
        raise ValueError(f"a finding with a {type(detail).__name__} needs the program it is of")
    return _Messages(program).explain(detail)


class _Messages:
    """The sentences on one program. Names of the user's are in backticks."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = Names(program)

    def explain(self, detail: Detail) -> str:
        match detail:
            case Stated():
                return detail.text
            case Deadlock():
                return self.deadlock(detail)
            case Leak():
                return self.leak(detail)
            case Race():
                return self.race(detail.first, detail.second)
            case AccessBeforeEntry():
                return self.access_before_entry(detail.access, self._event(detail.allocation))
            case NeverAllocated():
                return self.never_allocated(detail.access)
            case SignalBeforeEntry():
                return self.signal_before_entry(detail)
            case AccessAfterExit():
                what = "the kernel"
                if isinstance(self._event(detail.release), Release):
                    what = f"the scope that ends at {self._event(detail.release).line}"
                return (
                    f"{_first(self._access(detail.access))} after "
                    f"{self._names.memory(detail.access.region)} has left {what}. Let that "
                    "device wait for the copy."
                )
            case UnawaitedCopy():
                return (
                    f"{_first(self._copy(detail.access))} may still be under way when the kernel, "
                    "or the scope of its memory, ends: no wait makes sure that it is over. Wait "
                    "for it before."
                )
            case SameWrites():
                return self.same_writes(detail.first, detail.second)
            case NegativeAmount():
                return self.negative_amount(detail)
            case Overflow():
                return self.overflow(detail)
        assert_never(detail)

    # Names in a sentence.

    def _event(self, where: Where) -> Event:
        return self._program.cores[where.core][where.at]

    def _core(self, core: int) -> str:
        """With its article, where it is the only one."""
        return f"the {self._names.core(core)}" if self._program.is_alone else self._names.core(core)

    def _quoted(self, allocation: int, name: str) -> str:
        return f"`{name}`" if allocation in self._program.allocations else name

    def _semaphore(self, semaphore: Semaphore) -> str:
        name = self._names.semaphore(semaphore)
        return f"the {name}" if semaphore.is_global else self._quoted(semaphore.named[0], name)

    def _region(self, region: Region) -> str:
        name = self._quoted(region.allocation, self._names.region(region))
        return name if self._program.is_alone else f"{name} of {self._names.memory(region)}"

    def _call(self, call: int) -> str:
        name = self._names.call(call)
        return f"`{name}`" if 0 <= call < len(self._program.calls) else name

    def _of(self, core: int) -> str:
        return "" if self._program.is_alone else f" of {self._core(core)}"

    def _amount(self, semaphore: Semaphore, amount: int) -> str:
        allocated = self._program.allocations.get(semaphore.named[0])
        if allocated is None or not allocated.what.lower().startswith("dma"):
            return str(amount)
        return f"{amount} byte" if amount == 1 else f"{amount} bytes"

    def _cores(self, cores: Sequence[int]) -> str:
        names = [self._core(core) for core in cores[:3]]
        if len(cores) > 3:
            names.append(f"{len(cores) - 3} more")
        return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), *names[-1:]])

    # Counts that do not come out.

    def leak(self, leak: Leak) -> str:
        semaphore = leak.semaphore
        when = "after the last call" if leak.end is None else f"when {self._ending(leak.end)} ends"
        what = "copy" if leak.is_copy else "signal"
        last = (
            f"a {what} of {self._amount(semaphore, leak.last_amount)} by "
            f"{self._core(leak.last.core)} at {self._event(leak.last).line}"
        )
        took = "nothing waits for it"
        if leak.waits:
            verb = "takes" if leak.waits == 1 else "take"
            took = f"{_times(leak.waits, 'wait')} {verb} {self._amount(semaphore, leak.taken)}"
        advice = (
            "Wait for each copy that is started, for as much as it copies."
            if leak.is_copy
            else "Wait for as much as is signalled."
        )
        return (
            f"{_first(self._semaphore(semaphore))}{self._of(semaphore.core)} is left at "
            f"{self._amount(semaphore, leak.balance)} {when}: it gets "
            f"{self._amount(semaphore, leak.added)} in all, the last by {last}, and {took}."
            f"{_likewise(len(leak.others), 'semaphore')} {advice}"
        )

    def negative_amount(self, negative: NegativeAmount) -> str:
        event = self._event(negative.event)
        what, fix = "waits for", "Wait for"
        if isinstance(event, Start):
            what, fix = "copies", "Copy"
        elif isinstance(event, Signal):
            what, fix = f"signals {self._semaphore(event.semaphore)} by", "Signal"
        return (
            f"{_first(self._core(negative.event.core))} {what} {negative.amount} at {event.line}: "
            "only the owner of a semaphore may take from it, with a wait, or a wait that could go "
            f"on may be held up again. {fix} 0 or more."
        )

    def overflow(self, overflow: Overflow) -> str:
        semaphore = overflow.semaphore
        return (
            f"{_first(self._semaphore(semaphore))}{self._of(semaphore.core)} may come to "
            f"{self._amount(semaphore, overflow.value)}, with what "
            f"{self._core(overflow.last.core)} adds at {self._event(overflow.last).line}: it can "
            f"hold no more than {overflow.most}. Signal less, or wait in between."
        )

    def _ending(self, end: Where) -> str:
        call = getattr(self._event(end), "call", None)
        return "its scope" if call is None else self._call(call)

    def deadlock(self, deadlock: Deadlock) -> str:
        cause, first = deadlock.cause, deadlock.cause[0]
        said = " ".join(map(self._blocked, cause))
        if len(cause) > 1:
            said += " This is a circular wait."
        said += _likewise(
            len(deadlock.others), "device" if len(cause) == 1 else "such circular wait"
        )
        if deadlock.behind:
            wait = "waits" if len(deadlock.behind) == 1 else "wait"
            said += f" Behind that {_times(len(deadlock.behind), 'more device')} {wait}."
        if isinstance(first, BlockedBarrier) and len(cause) == 1:
            if first.call < 0:
                return f"{said} All of them must come to it, equally often."
            return f"{said} All devices must make the same calls in the same order."
        if first.waits_for is None:
            return f"{said} Add what is missing, or wait for less."
        return f"{said} Signal, or start the copy, before the wait."

    def _blocked(self, blocked: Blocked) -> str:
        if isinstance(blocked, BlockedBarrier):
            return self._blocked_barrier(blocked)
        return self._blocked_wait(blocked)

    def _blocked_barrier(self, blocked: BlockedBarrier) -> str:
        come = "never comes" if blocked.waits_for is None else "has not come"
        if len(blocked.missing) > 1:
            come = "never come" if blocked.waits_for is None else "have not come"
        if blocked.call < 0:
            expected = f"{blocked.size} cores have come to that barrier"
        else:
            cores = "cores" if self._program.parts else "devices"
            expected = f"{cores} have come to {self._call(blocked.call)}"
        return (
            f"{_first(self._core(blocked.core))} waits at {blocked.line} until all "
            f"{expected}, and {self._cores(blocked.missing)} {come} there."
        )

    def _blocked_wait(self, blocked: BlockedWait) -> str:
        semaphore = blocked.semaphore
        added = [f"{self._core(core)} has added {amount}" for core, amount in blocked.added[:3]]
        if len(blocked.added) > 3:
            added.append(f"{len(blocked.added) - 3} more have added the rest")
        start = (
            f"{_first(self._core(blocked.core))} waits at {blocked.line} for "
            f"{self._amount(semaphore, blocked.amount)} on {self._semaphore(semaphore)}, which "
            f"holds {blocked.value}"
        )
        if added:
            start += f" ({', '.join(added)})"
        if blocked.waits_for == blocked.core:
            return f"{start}: only lines after that wait would add to it."
        if blocked.waits_for is not None:
            return f"{start}: only {self._cores(blocked.helpers)} could still add to it."
        if blocked.pending == 0:
            return f"{start}: nobody adds to it any more."
        return f"{start}: no more than {blocked.pending} could still come."

    # Accesses to memory.

    def race(self, first: MemoryAccess, second: MemoryAccess) -> str:
        if first.begin == second.begin:
            return (
                f"{_first(self._copy(first))} reads {self._region(first.region)} and writes "
                f"{self._region(second.region)}, which share elements: a copy moves its elements "
                "in any order, so it may write one before it has read it. Copy by way of another "
                "buffer."
            )
        what = "it" if first.region == second.region else self._region(first.region)
        if first.is_copy:
            verb = "written" if first.is_write else "read"
            before = self._copy(first)
            if second.is_copy and (first.begin.core, first.line) == (
                second.begin.core,
                second.line,
            ):
                before = "an earlier copy of the same line"
            before = f"{before} has {verb} {what}"
        else:
            verb = "has written" if first.is_write else "has read"
            before = f"{self._core(first.begin.core)} {verb} {what} at {first.line}"
        return (
            f"{_first(self._access(second))} before {before}: there is no happens-before order. "
            f"{self._advice(first, second)}"
        )

    def _access(self, access: MemoryAccess) -> str:
        verb = "may write" if access.is_write else "may read"
        if access.is_copy:
            return f"{self._copy(access)} {verb} {self._region(access.region)}"
        who = self._core(access.begin.core)
        return f"{who} {verb} {self._region(access.region)} at {access.line}"

    def _copy(self, access: MemoryAccess) -> str:
        if self._program.is_alone:
            return f"the copy started at {access.line}"
        return f"the copy that {self._core(access.begin.core)} starts at {access.line}"

    def _advice(self, first: MemoryAccess, second: MemoryAccess) -> str:
        here = second.begin.core
        knows = here in (first.begin.core, first.region.core)
        if self._program.sharers(first.region.core, first.region.allocation)[1:]:
            knows = here == first.begin.core
        if first.is_copy and knows:
            return (
                "Wait for that copy before, on a semaphore that no other copy adds to in the "
                "meantime."
            )
        return (
            f"Let {self._core(here)} wait for a signal that "
            f"{self._core(first.begin.core)} gives when it is done."
        )

    def same_writes(self, first: MemoryAccess, second: MemoryAccess) -> str:
        event = self._event(first.begin)
        why = "both store the same constant"
        if isinstance(event, Start):
            why = f"both copy {self._region(event.source)}, which nothing in the program writes"
        return (
            f"{_first(self._access(second))} before or after "
            f"{self._access(first).replace(' may write ', ' writes ')}: {why}, so the order makes "
            "no difference."
        )

    # Memory that is not there yet.

    def access_before_entry(self, access: MemoryAccess, allocation: Event) -> str:
        owner = self._names.memory(access.region)
        may = f"{_first(self._access(access))} before {owner} "
        if isinstance(allocation, Allocate):
            return may + _not_allocated(owner, allocation.line)
        return (
            f"{may}has entered the kernel: the memory may still be in use for something else. "
            "Start the copy after a barrier that waits for that device."
        )

    def never_allocated(self, access: MemoryAccess) -> str:
        owner = self._names.memory(access.region)
        return (
            f"{_first(self._access(access))}, but {owner} never opens that scope: the memory is "
            "not there, and whatever lies in its place is overwritten. Allocate it in the scratch "
            f"of the kernel, or let {owner} open the scope too, and signal inside it."
        )

    def signal_before_entry(self, detail: SignalBeforeEntry) -> str:
        owner = self._core(detail.semaphore.core)
        may = (
            f"{_first(self._core(detail.signal.core))} may signal "
            f"{self._semaphore(detail.semaphore)}{self._of(detail.semaphore.core)} at "
            f"{self._event(detail.signal).line} before {owner} "
        )
        allocation = self._event(detail.allocation)
        if isinstance(allocation, Allocate):
            return may + _not_allocated(owner, allocation.line)
        return f"{may}has entered the kernel. Signal it after a barrier that waits for that device."


def _not_allocated(owner: str, line: Line) -> str:
    return (
        f"has allocated it, in the `run_scoped` at {line}. Allocate it in the scratch of the "
        f"kernel, or wait first for a signal that {owner} gives inside that scope."
    )


def _likewise(more: int, what: str) -> str:
    return f" {_times(more, 'more ' + what)} likewise." if more else ""


def _first(text: str) -> str:
    return text[0].upper() + text[1:]


def _times(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
