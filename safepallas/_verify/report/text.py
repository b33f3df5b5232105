"""What findings say: who, on which semaphore, how much is there, and what to change."""

from __future__ import annotations

from typing import NamedTuple

from safepallas._verify.analysis.accesses import Touch
from safepallas._verify.analysis.semaphore_machine import START, WAIT, Net, Run
from safepallas._verify.program import Allocate, Event, Line, Program, Region, Semaphore, Where
from safepallas._verify.report.names import box_words


class Blocked(NamedTuple):
    """A core that cannot go on."""

    core: int
    at: int
    line: Line
    semaphore: Semaphore | None  # None at the barrier that starts a call
    asked: int  # how much; at a barrier, how many cores
    there: int
    rest: int  # what is still to come from cores that are blocked themselves
    waits_for: int | None  # a core that could help; itself; None if nobody can
    who: tuple[int, ...]  # the cores that could, or that have not come to the call
    call: int
    gave: tuple[tuple[int, int], ...]  # who has added to the semaphore so far, and how much


class Words:
    """The sentences of the findings of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def place(self, core: int) -> str:
        return self._program.place(core)

    def allocation(self, of: Semaphore | Region) -> str:
        if isinstance(of, Semaphore) and of.is_global:
            return "the barrier semaphore"
        allocated = self._program.allocations.get(of.allocation)
        return f"allocation {of.allocation}" if allocated is None else f"`{allocated.name}`"

    def semaphore(self, semaphore: Semaphore) -> str:
        name = self.allocation(semaphore)
        if semaphore.indices and not semaphore.is_global:
            name = f"{name[:-1]}[{', '.join(map(str, semaphore.indices))}]`"
        return name

    def region(self, region: Region) -> str:
        name = self.allocation(region)
        if region.low and name.endswith("`"):
            name = f"{name[:-1]}[{', '.join(box_words(region))}]`"
        if self._program.is_alone:
            return name
        return f"{name} of {self._program.owner(region.core, region.allocation)}"

    def call(self, call: int) -> str:
        calls = self._program.calls
        return f"`{calls[call]}`" if 0 <= call < len(calls) else f"call {call}"

    def _of(self, core: int) -> str:
        return "" if self._program.is_alone else f" of {self.place(core)}"

    def _amount(self, semaphore: Semaphore, amount: int) -> str:
        allocated = self._program.allocations.get(semaphore.allocation)
        if allocated is None or not allocated.what.lower().startswith("dma"):
            return str(amount)
        return f"{amount} byte" if amount == 1 else f"{amount} bytes"

    def leak(
        self,
        net: Net,
        run: Run,
        semaphore: Semaphore,
        value: int,
        last: Where,
        end: Where | None,
        likewise: int,
    ) -> str:
        number = net.number[semaphore]
        taken, waits = 0, 0
        for code, x, amount in net.ops[semaphore.core][: run.done[semaphore.core]]:
            if code == WAIT and x == number:
                taken, waits = taken + amount, waits + 1
        code, x, amount = net.ops[last.core][last.at]
        is_copy = code == START
        amount = net.copies[x].amount if is_copy else amount
        when = "after the last call" if end is None else f"when {self._ending(end)} ends"
        line = self._program.cores[last.core][last.at].line
        by = f"{self.place(last.core)} at {line}"
        much = self._amount(semaphore, amount)
        last_one = f"a copy of {much} by {by}" if is_copy else f"a signal of {much} by {by}"
        took = f"{_times(waits, 'wait')} {'takes' if waits == 1 else 'take'}"
        advice = (
            "Wait for each copy that is started, for as much as it copies."
            if is_copy
            else "Wait for as much as is signalled."
        )
        more = _likewise(likewise, "semaphore")
        return (
            f"{_first(self.semaphore(semaphore))}{self._of(semaphore.core)} is left at "
            f"{self._amount(semaphore, value)} {when}: it gets "
            f"{self._amount(semaphore, value + taken)} in all, the last by {last_one}, and "
            + (f"{took} {self._amount(semaphore, taken)}" if waits else "nothing waits for it")
            + f".{more} {advice}"
        )

    def _ending(self, end: Where) -> str:
        event = self._program.cores[end.core][end.at]
        call = getattr(event, "call", None)
        return "its scope" if call is None else self.call(call)

    def deadlock(self, cause: list[Blocked], likewise: int, behind: int) -> str:
        said = " ".join(self._stuck(blocked) for blocked in cause)
        if len(cause) > 1:
            said += " So they wait for each other in a circle, for ever."
        said += _likewise(likewise, "device" if len(cause) == 1 else "such circle")
        if behind:
            wait = "waits" if behind == 1 else "wait"
            said += f" Behind that {_times(behind, 'more device')} {wait}."
        if cause[0].semaphore is None and len(cause) == 1:
            if cause[0].call < 0:
                return f"{said} All of them must come to it, equally often."
            return f"{said} All devices must make the same calls in the same order."
        if cause[0].waits_for is None:
            return f"{said} Add what is missing, or wait for less."
        return f"{said} Signal, or start the copy, before the wait."

    def _stuck(self, blocked: Blocked) -> str:
        who, at = _first(self.place(blocked.core)), blocked.line
        names = self._places(blocked.who)
        if blocked.semaphore is None:
            told = "never comes" if blocked.waits_for is None else "has not come"
            if len(blocked.who) > 1:
                told = "never come" if blocked.waits_for is None else "have not come"
            return f"{who} waits at {at} until all {self._met(blocked)}, and {names} {told} there."
        semaphore = blocked.semaphore
        gave = [f"{self.place(core)} has added {amount}" for core, amount in blocked.gave[:3]]
        if len(blocked.gave) > 3:
            gave.append(f"{len(blocked.gave) - 3} more have added the rest")
        start = (
            f"{who} waits at {at} for {self._amount(semaphore, blocked.asked)} on "
            f"{self.semaphore(semaphore)}, which holds {blocked.there}"
        )
        if gave:
            start += f" ({', '.join(gave)})"
        if blocked.waits_for == blocked.core:
            return f"{start}: only lines after that wait would add to it."
        if blocked.waits_for is not None:
            return f"{start}: only {names} could still add to it."
        if blocked.rest == 0:
            return f"{start}: nobody adds to it any more."
        return f"{start}: no more than {blocked.rest} could still come."

    def _met(self, blocked: Blocked) -> str:
        if blocked.call < 0:
            return f"{blocked.asked} cores have come to that barrier"
        cores = "cores" if self._program.parts else "devices"
        return f"{cores} have come to {self.call(blocked.call)}"

    def _places(self, cores: tuple[int, ...]) -> str:
        names = [self.place(core) for core in cores[:3]]
        if len(cores) > 3:
            names.append(f"{len(cores) - 3} more")
        return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), *names[-1:]])

    def race(self, first: Touch, then: Touch) -> str:
        what = "it" if first.region == then.region else self.region(first.region)
        if first.is_copy:
            verb = "written" if first.is_write else "read"
            before = self._copy(first)
            if then.is_copy and (first.begin.core, first.line) == (then.begin.core, then.line):
                before = "an earlier copy of the same line"
            before = f"{before} has {verb} {what}"
        else:
            verb = "has written" if first.is_write else "has read"
            before = f"{self.place(first.begin.core)} {verb} {what} at {first.line}"
        return (
            f"{_first(self._touch(then))} before {before}: nothing orders the two. "
            f"{self._advice(first, then)}"
        )

    def _touch(self, touch: Touch) -> str:
        verb = "may write" if touch.is_write else "may read"
        who = self.place(touch.begin.core)
        if touch.is_copy:
            return f"{self._copy(touch)} {verb} {self.region(touch.region)}"
        return f"{who} {verb} {self.region(touch.region)} at {touch.line}"

    def _advice(self, first: Touch, then: Touch) -> str:
        here = then.begin.core
        knows = here in (first.begin.core, first.region.core)
        if self._program.sharers(first.region.core, first.region.allocation)[1:]:
            knows = here == first.begin.core
        if first.is_copy and knows:
            return (
                "Wait for that copy before, on a semaphore that no other copy adds to in the "
                "meantime."
            )
        return (
            f"Let {self.place(here)} wait for a signal that {self.place(first.begin.core)} gives "
            "when it is done."
        )

    def before_entry_copy(self, touch: Touch, birth: Event) -> str:
        owner = self._program.owner(touch.region.core, touch.region.allocation)
        may = f"{_first(self._touch(touch))} before {owner} "
        if isinstance(birth, Allocate):
            return may + self._not_allocated(owner, birth)
        return (
            f"{may}has entered the kernel: the memory may still be in use for something else. "
            "Start the copy after a barrier that waits for that device."
        )

    def before_entry_signal(self, core: int, semaphore: Semaphore, line: Line, birth: Event) -> str:
        owner = self.place(semaphore.core)
        may = (
            f"{_first(self.place(core))} may signal {self.semaphore(semaphore)}"
            f"{self._of(semaphore.core)} at {line} before {owner} "
        )
        if isinstance(birth, Allocate):
            return may + self._not_allocated(owner, birth)
        return f"{may}has entered the kernel. Signal it after a barrier that waits for that device."

    def _not_allocated(self, owner: str, birth: Allocate) -> str:
        return (
            f"has allocated it, in the `run_scoped` at {birth.line}. Allocate it in the scratch of "
            f"the kernel, or wait first for a signal that {owner} gives inside that scope."
        )

    def after_exit(self, touch: Touch) -> str:
        owner = self._program.owner(touch.region.core, touch.region.allocation)
        return (
            f"{_first(self._touch(touch))} after {owner} has left the kernel. Let that device wait "
            "for the copy."
        )

    def unawaited(self, touch: Touch) -> str:
        return (
            f"{_first(self._copy(touch))} may still be under way when the kernel, or the scope of "
            "its memory, ends: no wait makes sure that it is over. Wait for it before."
        )

    def _copy(self, touch: Touch) -> str:
        if self._program.is_alone:
            return f"the copy started at {touch.line}"
        return f"the copy that {self.place(touch.begin.core)} starts at {touch.line}"


def _likewise(more: int, what: str) -> str:
    return f" {_times(more, 'more ' + what)} likewise." if more else ""


def _first(text: str) -> str:
    return text[0].upper() + text[1:]


def _times(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
