"""Amounts that a semaphore cannot be trusted with (rule 3): negative ones, and sums above int32.

All proofs need that others only add. Where an amount is negative nothing else can be said, so the
search for these comes first, on a program in which each core stops before its first one: all
schedules of that reach the same events.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict

from safepallas._verify.analysis.happens_before import Budget
from safepallas._verify.analysis.semaphore_machine import (
    SIGNAL,
    START,
    WAIT,
    NumberedProgram,
    Run,
    schedule,
)
from safepallas._verify.diagnostics.details import NegativeAmount, Overflow
from safepallas._verify.diagnostics.finding import Finding, FindingKind
from safepallas._verify.program import Line, Program, Semaphore, Step, Where

# Semaphores are of 32 bits with a sign; those of copies count granules of 32 bytes.
MOST = 2**31 - 1
GRANULE = 32


def negative_amounts(numbered: NumberedProgram, budget: Budget) -> list[Finding]:
    """The first negative amount of each core, if it is reached: one finding for each line."""
    first = [
        next((at for at in range(len(ops)) if _amount(numbered, core, at) < 0), len(ops))
        for core, ops in enumerate(numbered.ops)
    ]
    if all(at == len(ops) for at, ops in zip(first, numbered.ops, strict=True)):
        return []
    budget.spend(numbered.events)
    before = [ops[:at] for at, ops in zip(first, numbered.ops, strict=True)]
    run = schedule(dataclasses.replace(numbered, ops=before))
    found: dict[Line, Finding] = {}
    for core, at in enumerate(first):
        if at == len(numbered.ops[core]) or run.done[core] < at:
            continue  # there is none, or a deadlock comes before it
        event = numbered.program.cores[core][at]
        if event.line not in found:
            where = Where(core, at)
            found[event.line] = Finding(
                FindingKind.AMOUNT,
                (event.line,),
                NegativeAmount(where, _amount(numbered, core, at)),
                (where,),
                [*run.order, Step(core, at)],
                program=numbered.program,
            )
    return list(found.values())


def _amount(numbered: NumberedProgram, core: int, at: int) -> int:
    code, x, amount = numbered.ops[core][at]
    if code == START:
        return numbered.copies[x].amount
    return amount if code in (SIGNAL, WAIT) else 0


def overflows(numbered: NumberedProgram, run: Run, budget: Budget) -> list[Finding]:
    """Semaphores that may come to more than they can hold: one finding for each allocation.

    A semaphore is highest where its owner is held back before one of its waits, or at the end: a
    run for each of these, of those semaphores only to which more is added in all than they hold.
    """
    found: dict[int, Finding] = {}
    for semaphore in _suspects(numbered, run):
        if semaphore.allocation in found:
            continue
        finding = _overflow(numbered, semaphore, budget)
        if finding is not None:
            found[semaphore.allocation] = finding
    return list(found.values())


def _suspects(numbered: NumberedProgram, run: Run) -> list[Semaphore]:
    added: dict[int, int] = defaultdict(int)
    for core, ops in enumerate(numbered.ops):
        for code, x, amount in ops[: run.done[core]]:
            if code == SIGNAL:
                added[x] += amount
            elif code == START:
                copy = numbered.copies[x]
                added[copy.send] += copy.amount
                added[copy.recv] += copy.amount
    return [
        semaphore
        for number, semaphore in enumerate(numbered.semaphores)
        if added[number] > most_of(numbered.program, semaphore)
    ]


def _overflow(numbered: NumberedProgram, semaphore: Semaphore, budget: Budget) -> Finding | None:
    number, core = numbered.number[semaphore], semaphore.core
    most = most_of(numbered.program, semaphore)
    waits = [
        Step(core, at)
        for at, (code, x, _) in enumerate(numbered.ops[core])
        if code == WAIT and x == number
    ]
    for held in [*waits, None]:
        budget.run(numbered.events)
        run = schedule(numbered, held)
        if run.value[number] > most:
            last = _last_to_add(numbered, run, number)
            line = numbered.program.cores[last.core][last.at].line
            return Finding(
                FindingKind.AMOUNT,
                (line,),
                Overflow(semaphore, run.value[number], most, last),
                (last,),
                run.order,
                program=numbered.program,
            )
    return None


def _last_to_add(numbered: NumberedProgram, run: Run, number: int) -> Where:
    adding = [
        Where(core, at)
        for core, at, part in run.order
        if not part
        and (
            numbered.ops[core][at][:2] == (SIGNAL, number)
            or (
                numbered.ops[core][at][0] == START
                and number in numbered.copies[numbered.ops[core][at][1]][2:4]
            )
        )
    ]
    return adding[-1]


def most_of(program: Program, semaphore: Semaphore) -> int:
    """What a semaphore can hold, in the units of its amounts."""
    allocated = program.allocations.get(semaphore.allocation)
    counts_bytes = allocated is not None and allocated.what.lower().startswith("dma")
    return MOST * GRANULE if counts_bytes else MOST
