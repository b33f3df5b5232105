"""Deadlocks and leaks: what the one run that decides for all has left over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from safepallas._verify.analysis.semaphore_machine import ENTER, SIGNAL, START, WAIT, Net, Run
from safepallas._verify.program import Finding, FindingKind, Leave, Line, Release, Semaphore, Where
from safepallas._verify.report.text import Blocked, Words


def leaks(net: Net, run: Run, words: Words) -> tuple[list[Finding], set[Semaphore]]:
    """Semaphores above zero where they should be zero: one finding for each source line.

    A value at the end of a scope depends on the schedule, as late signals may come after it; what
    all signals and all waits add up to does not, and it is the sum that must be zero.
    """
    left = [(semaphore, value, end) for semaphore, value, end in _ended(net, run) if value]
    if not left:
        return [], set()
    givers = _last_givers(net, run)
    by_line: dict[tuple[Line, str], list[tuple[Semaphore, int, Where, Where | None]]] = {}
    for semaphore, value, end in left:
        last = givers[net.number[semaphore]]
        line = net.program.cores[last.core][last.at].line
        key = (line, words.allocation(semaphore))
        by_line.setdefault(key, []).append((semaphore, value, last, end))
    found = []
    for (line, _), group in by_line.items():
        group.sort()
        semaphore, value, last, end = group[0]
        lines = [line]
        if end is not None:
            lines.append(net.program.cores[end.core][end.at].line)
        text = words.leak(net, run, semaphore, value, last, end, len(group) - 1)
        events = (last,) if end is None else (last, end)
        found.append(Finding(FindingKind.LEAK, text, tuple(lines), events))
    return found, {entry[0] for group in by_line.values() for entry in group}


def _last_givers(net: Net, run: Run) -> dict[int, Where]:
    """By semaphore: the last event of a schedule that adds to it."""
    givers: dict[int, Where] = {}
    for core, at, part in run.order:
        code, x, _ = net.ops[core][at]
        if code == SIGNAL and not part:
            givers[x] = Where(core, at)
        elif code == START and not part:
            copy = net.copies[x]
            for number in (copy.send, copy.recv):
                givers[number] = Where(core, at)
    return givers


def _ended(net: Net, run: Run) -> Iterator[tuple[Semaphore, int, Where | None]]:
    """Each semaphore whose time is over, what is left on it, and the event that ended it."""
    mine: dict[tuple[int, int], list[Semaphore]] = defaultdict(list)
    for semaphore in sorted(net.semaphores):
        mine[semaphore.core, semaphore.allocation].append(semaphore)
    calls: dict[int, list[int]] = defaultdict(list)
    for number, allocated in net.program.allocations.items():
        calls[allocated.last_call].append(number)
    told: set[Semaphore] = set()
    for core, at, part in run.order:
        event = net.program.cores[core][at]
        if part or not (type(event) is Leave or type(event) is Release):
            continue
        ending = calls[event.call] if isinstance(event, Leave) else event.allocations
        for allocation in ending:
            for semaphore in mine.get((core, allocation), ()):
                if not semaphore.is_global and semaphore not in told:
                    told.add(semaphore)
                    yield semaphore, run.value[net.number[semaphore]], Where(core, at)
    for semaphore in sorted(net.semaphores):
        finished = run.done[semaphore.core] == len(net.ops[semaphore.core])
        if semaphore.is_global and finished:
            yield semaphore, run.value[net.number[semaphore]], None


def deadlocks(net: Net, run: Run, words: Words) -> list[Finding]:
    """Who waits for whom: one finding for each cause, a wait that cannot end or a cycle."""
    blocked = _blocked(net, run)
    causes: dict[tuple[Line, ...], set[tuple[int, ...]]] = defaultdict(set)
    behind: dict[tuple[Line, ...], list[int]] = defaultdict(list)
    for core in blocked:
        chain = [core]
        while (after := blocked[chain[-1]].waits_for) is not None and after not in chain:
            chain.append(after)
        # The end of the chain is the cause: a wait that nobody can help, or a circle.
        cause = chain[-1:] if after is None else chain[chain.index(after) :]
        start = cause.index(min(cause))
        cause = cause[start:] + cause[:start]
        key = tuple(blocked[member].line for member in cause)
        causes[key].add(tuple(cause))
        if core not in cause:
            behind[key].append(core)
    found = []
    for key in causes:
        first, *likewise = sorted(causes[key])
        waiting = behind[key]
        text = words.deadlock([blocked[core] for core in first], len(likewise), len(waiting))
        lines = tuple(dict.fromkeys([*key, *(blocked[core].line for core in waiting)]))
        events = tuple(Where(core, blocked[core].at) for core in first)
        found.append(Finding(FindingKind.DEADLOCK, text, lines, events, list(run.order)))
    return found


def _blocked(net: Net, run: Run) -> dict[int, Blocked]:
    """By core that cannot go on: what it waits for, and for whom."""
    program = net.program
    stuck = [core for core, done in enumerate(run.done) if done < len(net.ops[core])]
    if not stuck:
        return {}
    coming: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    arriving: dict[int, set[int]] = defaultdict(set)
    for core in stuck:
        for at in range(run.done[core], len(net.ops[core])):
            code, x, y = net.ops[core][at]
            if code == SIGNAL:
                coming[x][core] += y
            elif code == START:
                copy = net.copies[x]
                coming[copy.send][core] += copy.amount
                coming[copy.recv][core] += copy.amount
            elif code == ENTER and at > run.done[core]:
                arriving[x].add(core)

    given: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for core, at, part in run.order:
        code, x, y = net.ops[core][at]
        if code == SIGNAL and not part:
            given[x][core] += y
        elif code == START and not part:
            copy = net.copies[x]
            given[copy.send][core] += copy.amount
            given[copy.recv][core] += copy.amount
    found: dict[int, Blocked] = {}
    for core in stuck:
        at = run.done[core]
        code, x, y = net.ops[core][at]
        line = program.cores[core][at].line
        if code == ENTER:
            here = {c for c in stuck if net.ops[c][run.done[c]][:2] == (ENTER, x)}
            meeting = net.meetings[x]
            missing = sorted(set(meeting.among) - here)
            later = [other for other in missing if other in arriving[x]]
            never = [other for other in missing if other not in arriving[x]]
            after = None if never else later[0]
            found[core] = Blocked(
                core,
                at,
                line,
                None,
                len(meeting.among),
                0,
                0,
                after,
                tuple(never or later),
                meeting.call,
                (),
            )
            continue
        assert code == WAIT
        there, more = run.value[x], coming[x]
        who = tuple(sorted(other for other in more if other != core))
        theirs = sum(more[other] for other in who)
        if there + theirs >= y:
            after = who[0]
        else:
            # If all that is still to come would not do, nobody can help.
            after = core if there + theirs + more[core] >= y else None
        semaphore, rest = net.semaphores[x], theirs + more[core]
        gave = tuple(sorted(given[x].items()))
        found[core] = Blocked(core, at, line, semaphore, y, there, rest, after, who, -1, gave)
    return found


def place_in_order(net: Net, finding: Finding) -> tuple[int, int, int, int]:
    """Where a count goes wrong in the program: by call, then by event."""
    where = finding.events[-1] if finding.kind is FindingKind.LEAK else finding.events[0]
    events = net.program.cores[where.core]
    call = sum(isinstance(event, Leave) for event in events[: where.at])
    if finding.kind is FindingKind.LEAK and len(finding.events) == 1:
        call = len(net.program.calls)  # the barrier semaphore, after the last call
    return call, int(finding.kind is FindingKind.LEAK), where.at, where.core
