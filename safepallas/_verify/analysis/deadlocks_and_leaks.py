"""Deadlocks and leaks: what the one run that decides for all has left over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

from safepallas._verify.analysis import scopes
from safepallas._verify.analysis.semaphore_machine import (
    ENTER,
    SIGNAL,
    START,
    WAIT,
    NumberedProgram,
    Run,
)
from safepallas._verify.diagnostics.details import (
    Blocked,
    BlockedBarrier,
    BlockedWait,
    Deadlock,
    Leak,
)
from safepallas._verify.diagnostics.finding import Finding, FindingKind
from safepallas._verify.program import Leave, Line, Release, Semaphore, Wait, Where

# By number of a semaphore: how much each core adds to it.
_Amounts: TypeAlias = dict[int, dict[int, int]]


def leaks(numbered: NumberedProgram, run: Run) -> tuple[list[Finding], set[Semaphore]]:
    """Semaphores above zero where they should be zero: one finding for each source line.

    A value at the end of a scope depends on the schedule, as late signals may come after it; what
    all signals and all waits add up to does not, and it is the sum that must be zero.
    """
    left = [(semaphore, value, end) for semaphore, value, end in _ended(numbered, run) if value]
    scoped = scopes.left_over(numbered, run)
    if not left and not scoped:
        return [], set()
    program = numbered.program
    # What only begins may still take what is left, or be handed on (rule 12).
    left = [entry for entry in left if entry[0].core not in program.open_cores]
    scoped = [entry for entry in scoped if entry[0].core not in program.open_cores]
    last_by = _last_to_add(numbered, run)
    entries = [(one, value, last_by[numbered.number[one]], end) for one, value, end in left]
    by_line: dict[tuple[Line, str], list[tuple[Semaphore, int, Where, Where | None]]] = {}
    for semaphore, value, last, end in [*entries, *scoped]:
        # By name: the same request of a later call is another allocation.
        allocated = program.allocations.get(semaphore.named[0])
        name = str(semaphore.named[0]) if allocated is None else allocated.name
        key = program.cores[last.core][last.at].line, "" if semaphore.is_global else name
        by_line.setdefault(key, []).append((semaphore, value, last, end))
    found = []
    for (line, _), group in by_line.items():
        group.sort()
        semaphore, value, last, end = group[0]
        lines = [line]
        if end is not None:
            lines.append(program.cores[end.core][end.at].line)
        detail = _leak(numbered, run, semaphore, value, last, end, [one[0] for one in group[1:]])
        events = (last,) if end is None else (last, end)
        found.append(Finding(FindingKind.LEAK, tuple(lines), detail, events, program=program))
    return found, {entry[0] for group in by_line.values() for entry in group}


def _leak(
    numbered: NumberedProgram,
    run: Run,
    semaphore: Semaphore,
    value: int,
    last: Where,
    end: Where | None,
    others: list[Semaphore],
) -> Leak:
    number = numbered.number[semaphore]
    mine, done = numbered.program.cores[semaphore.core], run.done[semaphore.core]
    taken = [
        amount
        for at, (code, x, amount) in enumerate(numbered.ops[semaphore.core][:done])
        if code == WAIT and x == number and scopes.has_name(mine[at], semaphore)
    ]
    code, x, amount = numbered.ops[last.core][last.at]
    if code == START:
        amount = numbered.copies[x].amount
    return Leak(
        semaphore,
        balance=value,
        taken=sum(taken),
        waits=len(taken),
        last=last,
        last_amount=amount,
        is_copy=code == START,
        end=end,
        others=tuple(others),
    )


def _last_to_add(numbered: NumberedProgram, run: Run) -> dict[int, Where]:
    """By semaphore: the last event of a schedule that adds to it."""
    last: dict[int, Where] = {}
    for core, at, part in run.order:
        code, x, amount = numbered.ops[core][at]
        if code == SIGNAL and not part and amount:
            last[x] = Where(core, at)
        elif code == START and not part and numbered.copies[x].amount:
            copy = numbered.copies[x]
            for number in (copy.send, copy.recv):
                last[number] = Where(core, at)
    return last


def _ended(numbered: NumberedProgram, run: Run) -> Iterator[tuple[Semaphore, int, Where | None]]:
    """Each semaphore whose time is over, what is left on it, and the event that ended it."""
    mine: dict[tuple[int, int], list[Semaphore]] = defaultdict(list)
    for semaphore in sorted(numbered.semaphores):
        mine[semaphore.core, semaphore.allocation].append(semaphore)
    calls: dict[int, list[int]] = defaultdict(list)
    for number, allocated in numbered.program.allocations.items():
        calls[allocated.last_call].append(number)
    told: set[Semaphore] = set()
    for core, at, part in run.order:
        event = numbered.program.cores[core][at]
        if part or not (type(event) is Leave or type(event) is Release):
            continue
        ending = calls[event.call] if isinstance(event, Leave) else event.allocations
        for allocation in ending:
            for semaphore in mine.get((core, allocation), ()):
                if not semaphore.is_global and semaphore.scope < 0 and semaphore not in told:
                    told.add(semaphore)
                    yield semaphore, run.value[numbered.number[semaphore]], Where(core, at)
    for semaphore in sorted(numbered.semaphores):
        finished = run.done[semaphore.core] == len(numbered.ops[semaphore.core])
        if semaphore.is_global and finished:
            yield semaphore, run.value[numbered.number[semaphore]], None


def deadlocks(numbered: NumberedProgram, run: Run) -> list[Finding]:
    """Who waits for whom: one finding for each cause, a wait that cannot end or a circular wait."""
    blocked = _blocked(numbered, run)
    causes: dict[tuple[Line, ...], set[tuple[int, ...]]] = defaultdict(set)
    behind: dict[tuple[Line, ...], list[int]] = defaultdict(list)
    for core in blocked:
        chain = [core]
        while (after := blocked[chain[-1]].waits_for) is not None and after not in chain:
            chain.append(after)
        # The end of the chain is the cause: a wait that nobody can help, or a cycle.
        cause = chain[-1:] if after is None else chain[chain.index(after) :]
        start = cause.index(min(cause))
        cause = cause[start:] + cause[:start]
        key = tuple(blocked[member].line for member in cause)
        causes[key].add(tuple(cause))
        if core not in cause:
            behind[key].append(core)
    found = []
    for key in causes:
        first, *others = sorted(causes[key])
        waiting = behind[key]
        lines = tuple(dict.fromkeys([*key, *(blocked[core].line for core in waiting)]))
        cause_of_all = tuple(blocked[core] for core in first)
        found.append(
            Finding(
                FindingKind.DEADLOCK,
                lines,
                Deadlock(cause_of_all, tuple(others), tuple(waiting)),
                tuple(Where(core, blocked[core].at) for core in first),
                list(run.order),
                program=numbered.program,
            )
        )
    return found


def _blocked(numbered: NumberedProgram, run: Run) -> dict[int, Blocked]:
    """By core that cannot go on: what it waits for, and for whom."""
    stuck = [core for core, done in enumerate(run.done) if done < len(numbered.ops[core])]
    if stuck and numbered.program.open_cores:
        stuck = _for_ever(numbered, run, stuck)
    if not stuck:
        return {}
    added = _added(numbered, run)
    pending, arriving = _pending(numbered, run, stuck)
    at_barrier: dict[int, set[int]] = defaultdict(set)
    for core in stuck:
        code, x, _ = numbered.ops[core][run.done[core]]
        if code == ENTER:
            at_barrier[x].add(core)
    found: dict[int, Blocked] = {}
    for core in stuck:
        code, x, _ = numbered.ops[core][run.done[core]]
        if code == ENTER:
            found[core] = _blocked_barrier(numbered, run, core, at_barrier[x], arriving[x])
        else:
            found[core] = _blocked_wait(numbered, run, core, pending[x], added[x])
    return found


def _for_ever(numbered: NumberedProgram, run: Run, stuck: list[int]) -> list[int]:
    """Those who are stuck whatever comes after the beginning that is known (rule 12).

    A core that has come to the end of its beginning may help anybody, and who is helped may go on
    and do what it would.
    """
    pending, _ = _pending(numbered, run, stuck)
    ended = {c for c in numbered.program.open_cores if run.done[c] == len(numbered.ops[c])}
    free, left = set(ended), set(stuck)
    while True:
        helped = set()
        for core in left:
            code, x, _ = numbered.ops[core][run.done[core]]
            if code == ENTER:
                may_help = free & set(numbered.barriers[x].among)
            else:
                may_help = free & (ended | pending[x].keys() | numbered.program.open_cores)
            if may_help:
                helped.add(core)
        if not helped:
            return sorted(left)
        free |= helped
        left -= helped


def _added(numbered: NumberedProgram, run: Run) -> _Amounts:
    """What has been added to each semaphore."""
    added: _Amounts = defaultdict(lambda: defaultdict(int))
    for core, at, part in run.order:
        if not part:
            _add(added, numbered, core, at)
    return added


def _pending(
    numbered: NumberedProgram, run: Run, stuck: list[int]
) -> tuple[_Amounts, dict[int, set[int]]]:
    """What those who are stuck would still add to each semaphore, and to which barriers they go."""
    pending: _Amounts = defaultdict(lambda: defaultdict(int))
    arriving: dict[int, set[int]] = defaultdict(set)
    for core in stuck:
        for at in range(run.done[core], len(numbered.ops[core])):
            _add(pending, numbered, core, at)
            code, x, _ = numbered.ops[core][at]
            if code == ENTER and at > run.done[core]:
                arriving[x].add(core)
    return pending, arriving


def _add(amounts: _Amounts, numbered: NumberedProgram, core: int, at: int) -> None:
    code, x, y = numbered.ops[core][at]
    if code == SIGNAL and y:
        amounts[x][core] += y
    elif code == START and numbered.copies[x].amount:
        copy = numbered.copies[x]
        amounts[copy.send][core] += copy.amount
        amounts[copy.recv][core] += copy.amount


def _blocked_barrier(
    numbered: NumberedProgram, run: Run, core: int, here: set[int], arriving: set[int]
) -> BlockedBarrier:
    at = run.done[core]
    group = numbered.barriers[numbered.ops[core][at][1]]
    missing = sorted(set(group.among) - here)
    later = [other for other in missing if other in arriving]
    never = [other for other in missing if other not in arriving]
    return BlockedBarrier(
        core,
        at,
        numbered.program.cores[core][at].line,
        size=len(group.among),
        call=group.call,
        missing=tuple(never or later),
        waits_for=None if never else later[0],
    )


def _blocked_wait(
    numbered: NumberedProgram,
    run: Run,
    core: int,
    pending: dict[int, int],
    added: dict[int, int],
) -> BlockedWait:
    at = run.done[core]
    _, x, amount = numbered.ops[core][at]
    event = numbered.program.cores[core][at]
    if not isinstance(event, Wait):
        raise TypeError(f"core {core} stops at event {at}, which never blocks")
    value = run.value[x]
    helpers = tuple(sorted(other for other in pending if other != core))
    from_others, own = sum(pending[other] for other in helpers), pending.get(core, 0)
    waits_for = None
    if value + from_others >= amount:
        waits_for = helpers[0]
    elif value + from_others + own >= amount:
        waits_for = core  # else all that is still to come would not do: nobody can help
    return BlockedWait(
        core,
        at,
        numbered.program.cores[core][at].line,
        event.semaphore,
        amount,
        value,
        pending=from_others + own,
        helpers=helpers,
        waits_for=waits_for,
        added=tuple(sorted(added.items())),
    )


def place_in_order(numbered: NumberedProgram, finding: Finding) -> tuple[int, int, int, int]:
    """Where a count goes wrong in the program: by call, then by event."""
    where = finding.events[-1] if finding.kind is FindingKind.LEAK else finding.events[0]
    events = numbered.program.cores[where.core]
    call = sum(isinstance(event, Leave) for event in events[: where.at])
    if finding.kind is FindingKind.LEAK and len(finding.events) == 1:
        call = len(numbered.program.calls)  # the barrier semaphore, after the last call
    return call, int(finding.kind is FindingKind.LEAK), where.at, where.core
