"""Writes docs/misuse-matrix.md: what becomes of each misuse, in raw Pallas and in safepallas.

``python -m tests.matrix.generate`` in the root of the repository runs every misuse under the JAX
that is installed, keeps the results in ``results-<version>.json`` beside this file, and renders
the page from the results of all versions.
"""

import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import jax

from ..typing.checkers import CHECKERS, PYRIGHT, Errors, Files, Line, library_parent
from .misuses import CORRECT, MISUSE, MISUSES, Misuse
from .render import VERSIONS, Results, render

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "misuse-matrix.md"
STAGES = ("v5e", "v6e", "InterpretParams", "interpret")  # of those who pass tracing
PROCESSES = max(3, os.cpu_count() or 1)  # at a time: checkers are not alone
SECONDS = 30.0  # after which a program hangs; those that end take less than three
# The same for a child as a whole; at first it imports JAX and sets up the compiler.
CHILD_SECONDS, FIRST_SECONDS = 2 * SECONDS, 4 * SECONDS
SIDES = ("raw", "safepallas")
Job = tuple[str, str, str, str, bool]  # key, path, stage, axes, copies


def version() -> str:
    """The JAX that is installed, as its results are named: 0.10, 0.12."""
    return ".".join(jax.__version__.split(".")[:2])


def results_file(of: str) -> Path:
    return HERE / f"results-{of}.json"


def programs() -> list[Misuse]:
    return [*CORRECT, *MISUSES]


def write_programs(work: Path) -> None:
    for side in SIDES:
        (work / _folder(side)).mkdir()
        for misuse in programs():
            _path(work, side, misuse).write_text(misuse.text(raw=side == "raw"))


def _folder(side: str) -> str:
    return "raw" if side == "raw" else "ours"  # not a second package of the name


def _path(work: Path, side: str, misuse: Misuse) -> Path:
    return work / _folder(side) / f"{misuse.name}.py"


def errors_of(name: str, work: Path) -> Errors:
    """What a checker says, line by line. Every program imports the same."""
    own = work / name
    own.mkdir()
    pyright = {**PYRIGHT, "reportUnusedImport": False}
    files = Files(work, [*map(_folder, SIDES)], own, own, pyright=pyright, pyrefly=None)
    return CHECKERS[name](files._replace(warnings=name == "pyright"))


def check(name: str, work: Path) -> dict[str, str]:
    """What a checker says of every program."""
    errors = errors_of(name, work)
    cells = {}
    for side in SIDES:
        for misuse in programs():
            path = _path(work, side, misuse)
            lines = path.read_text().splitlines()
            may = {n for n, line in enumerate(lines, 1) if line.endswith(MISUSE)}
            if "mistaken" in misuse.body:  # the call as a whole is wrong
                may |= set(range(lines.index("def call(interpret: Any) -> Any:"), len(lines) + 1))
            file = path.relative_to(work).as_posix()
            said = {n for n in range(1, len(lines) + 1) if Line(file, n) in errors}
            if said - may:
                places = ", ".join(f"{path.name}:{n} {lines[n - 1]!r}" for n in sorted(said - may))
                raise AssertionError(f"{name} refuses what is no misuse: {side}: {places}")
            cells[f"{side} {misuse.name}"] = "refused" if said else "accepted"
    return cells


def _start(jobs: list[Job], out: Path, log: Path, seconds: float) -> subprocess.Popen[str]:
    environment = {
        "JAX_PLATFORMS": "cpu",
        # Four for the kernels; with none idle the simulator of jax 0.10 can hang.
        "XLA_FLAGS": "--xla_force_host_platform_device_count=5",
        "PYTHONPATH": os.pathsep.join([str(library_parent()), os.environ.get("PYTHONPATH", "")]),
        "TPU_SKIP_MDS_QUERY": "1",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    }
    with log.open("w") as stream:
        child = subprocess.Popen(
            [sys.executable, str(HERE / "child.py"), str(out), str(seconds)],
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=stream,
            stderr=stream,
            text=True,
        )
    assert child.stdin is not None
    child.stdin.write(json.dumps(jobs))
    child.stdin.close()
    return child


def run(jobs: list[Job], work: Path, label: str, seconds: float = SECONDS) -> dict[str, str]:
    """What comes of each job, all in one process as long as none hangs or ends it."""
    cells: dict[str, str] = {}
    while todo := [job for job in jobs if job[0] not in cells]:
        out, log = work / f"{label}-{len(cells)}.json", work / f"{label}-{len(cells)}.log"
        out.touch()
        child = _start(todo, out, log, seconds)
        done, stuck = _watch(child, out, len(todo))
        cells |= done
        if stuck:
            # The first of all is a correct program: what stops it is no misuse.
            assert cells, log.read_text()[-4000:]
            cells[todo[len(done)][0]] = stuck
    return cells


def _watch(child: subprocess.Popen[str], out: Path, count: int) -> tuple[dict[str, str], str]:
    """What a child has done, and how it failed to do the next."""
    done: dict[str, str] = {}
    since, limit = time.monotonic(), FIRST_SECONDS
    try:
        while len(done) < count:
            ended = child.poll() is not None
            complete = out.read_text().rpartition("\n")[0]
            found = dict(json.loads(line) for line in complete.splitlines())
            if len(found) > len(done):
                done, since, limit = found, time.monotonic(), CHILD_SECONDS
            elif ended:
                return done, "crashes"
            elif time.monotonic() - since > limit:
                return done, "hangs"
            else:
                time.sleep(0.1)
        return done, ""
    finally:
        child.kill()  # those that are through need not take their threads down
        child.wait()


def _jobs(work: Path, stage: str, which: Iterable[tuple[str, Misuse]]) -> list[Job]:
    return [
        (f"{side} {m.name}", str(_path(work, side, m)), stage, m.axes, m.copies)
        for side, m in which
    ]


def fresh() -> Results:
    """The results of the JAX that is installed."""
    every = [(side, m) for side in SIDES for m in programs()]
    results: Results = {m.name: {side: {} for side in SIDES} for m in programs()}
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        write_programs(work)
        with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
            checked = {name: pool.submit(check, name, work) for name in CHECKERS}
            traced = run(_jobs(work, "trace", every), work, "trace")
            alive = [(side, m) for side, m in every if traced[f"{side} {m.name}"] == "accepted"]
            ran = {
                stage: pool.submit(run, _jobs(work, stage, alive), work, stage) for stage in STAGES
            }
            for name, future in checked.items():
                cells = future.result()
                for side, m in every:
                    results[m.name][side][name] = cells[f"{side} {m.name}"]
            for stage, cells in {
                "trace": traced,
                **{s: f.result() for s, f in ran.items()},
            }.items():
                for side, m in every:
                    results[m.name][side][stage] = cells.get(f"{side} {m.name}", "-")
    return results


def load() -> dict[str, Results]:
    return {of: json.loads(results_file(of).read_text()) for of in VERSIONS}


def dump(results: Results) -> str:
    """One misuse to a line for each side."""
    lines = []
    for name, sides in results.items():
        rows = ",\n".join(f"  {json.dumps(side)}: {json.dumps(row)}" for side, row in sides.items())
        lines.append(f"{json.dumps(name)}: {{\n{rows}\n}}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    if version() not in VERSIONS:
        sys.exit(f"the page is about jax {' and '.join(VERSIONS)}, not {jax.__version__}")
    results_file(version()).write_text(dump(fresh()))
    if all(results_file(of).exists() for of in VERSIONS):
        PAGE.write_text(render(load()))


if __name__ == "__main__":
    main()
