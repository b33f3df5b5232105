"""The page, from the results."""

import re

from .misuses import CORRECT, MISUSES, Misuse

VERSIONS = ("0.10", "0.12")
Results = dict[str, dict[str, dict[str, str]]]  # by misuse, side and stage
CHECKERS = ("mypy", "pyright", "pyrefly", "ty")

HEAD = """\
# What becomes of a misuse

<!-- Written by `python -m tests.matrix.generate`; do not edit. -->

Each row is one class of misuse: a small kernel that holds it and is right otherwise, once in raw
Pallas and once in safepallas. Both were given to four type checkers, then traced, then run by the
two interpreters and compiled by the TPU compiler for v5e and v6e; without a TPU. The line shown is
the safepallas one; the raw one is the same with the names of Pallas.

There are {count} classes. In raw Pallas {traced} of them get through the four checkers and tracing
without a word, and {survive} of those through the TPU compiler too (jax {latest}). In safepallas
all four checkers refuse {refused}, and tracing refuses every one, whether a checker was asked or
not; of too many semaphores it warns.

{legend}
To write this page again, in the root of the repository, once under each version of JAX, with the
four checkers and libtpu installed:

```
python -m tests.matrix.generate
```
"""

LEGEND = {
    "accepted": "no error: the checkers are content, the trace or the compilation succeeds",
    "all refuse": "the checkers report an error at the misuse",
    "TypeError": "it is refused with an error of this class",
    "bug report": "the error asks to file a bug against JAX or its compiler",
    "silent": "it runs to its end",
    "wrong result": "the same, and what it was to copy is not what arrives",
    "hangs": "it does not end",
    "crashes": "it ends the Python process",
    "-": "not reached: tracing has refused it",
    "n/a": "this stage cannot run the correct program either: see the first table",
}

TABLE = """
## {group}

| program | raw: checkers | trace | `interpret=True` | `InterpretParams` | TPU compiler \
| safepallas: checkers | trace |
|---|---|---|---|---|---|---|---|
"""


def verdict(row: dict[str, str]) -> str:
    """What the four checkers say, in a cell."""
    refuse = [name for name in CHECKERS if row[name] == "refused"]
    if len(refuse) == len(CHECKERS):
        return "all refuse"
    return (
        ", ".join(refuse) + (" refuses" if len(refuse) == 1 else " refuse")
        if refuse
        else ("accepted")
    )


def compiler(row: dict[str, str]) -> str:
    """What the TPU compiler says, in a cell."""
    if row["v5e"] == row["v6e"]:
        return row["v5e"]
    return f"v5e {row['v5e']}, v6e {row['v6e']}"


def judged(misuse: Misuse, results: Results) -> dict[str, dict[str, str]]:
    """The cells of a misuse by side, those apart where a stage cannot run what is correct."""
    judged = {side: dict(cells) for side, cells in results[misuse.name].items()}
    if misuse not in CORRECT:
        for stage in ("interpret", "InterpretParams"):
            correct = results[misuse.like()]["raw"][stage]
            if correct != "silent" and judged["raw"][stage] == correct:
                judged["raw"][stage] = "n/a"
    return judged


def columns(sides: dict[str, dict[str, str]]) -> list[str]:
    raw, ours = sides["raw"], sides["safepallas"]
    return [
        verdict(raw),
        raw["trace"],
        raw["interpret"],
        raw["InterpretParams"],
        compiler(raw),
        verdict(ours),
        ours["trace"],
    ]


def cells_of(misuse: Misuse, results: dict[str, Results]) -> list[str]:
    versions = (columns(judged(misuse, results[of])) for of in VERSIONS)
    return ["; ".join(dict.fromkeys(both)) for both in zip(*versions, strict=True)]


def table(group: str, programs: list[Misuse], results: dict[str, Results]) -> str:
    rows = [
        " | ".join([f"{m.title}: `{m.line()}`", *cells_of(m, results)])
        for m in programs
        if m.group == group
    ]
    return TABLE.format(group=group) + "".join(f"| {row} |\n" for row in rows)


def passes(row: dict[str, str], *stages: str) -> bool:
    """Whether all checkers and these stages accept it."""
    return all(row[stage] == "accepted" for stage in (*CHECKERS, *stages))


def entries(cell: str) -> set[str]:
    """What stands in a cell, by the entries of the legend."""
    found = set()
    for part in re.split("; |, v6e |v5e ", cell):
        word = "TypeError" if part.endswith(("Error", "Warning")) else part
        found.add("all refuse" if part.endswith((" refuse", " refuses")) else word)
    return found - {""}


def legend(cells: set[str]) -> str:
    """The entries that occur, and what they mean."""
    used: set[str] = set().union(*map(entries, cells))
    assert used <= LEGEND.keys(), used - LEGEND.keys()
    lines = ["What a cell says:", "", "| cell | meaning |", "|---|---|"]
    lines += [f"| `{word}` | {meaning} |" for word, meaning in LEGEND.items() if word in used]
    first, second = VERSIONS
    differ = f"| A; B | A with jax {first}, B with jax {second}, where the two differ |"
    return "\n".join([*lines, differ, ""])


def render(results: dict[str, Results]) -> str:
    latest = results[VERSIONS[-1]]
    rows = [latest[misuse.name] for misuse in MISUSES]
    page = HEAD.format(
        legend=legend({cell for m in [*CORRECT, *MISUSES] for cell in cells_of(m, results)}),
        count=len(MISUSES),
        latest=VERSIONS[-1],
        traced=sum(passes(row["raw"], "trace") for row in rows),
        survive=sum(passes(row["raw"], "trace", "v5e", "v6e") for row in rows),
        refused=sum(verdict(row["safepallas"]) == "all refuse" for row in rows),
    )
    for group in dict.fromkeys(misuse.group for misuse in [*CORRECT, *MISUSES]):
        page += table(group, [*CORRECT, *MISUSES], results)
    page += "\n## Remarks\n\n"
    page += "".join(f"- {m.title}: {m.note}\n" for m in MISUSES if m.note)
    page += "\n## What types cannot express\n\n"
    page += "Not all four checkers can see these; tracing refuses them.\n\n"
    page += "".join(f"- {m.title}: {m.limit}\n" for m in MISUSES if m.limit)
    return page
