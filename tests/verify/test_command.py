"""``python -m safepallas verify``: what it prints, writes and returns."""

from __future__ import annotations

import importlib
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas._verify import command_line
from safepallas._verify.command_line import SAFE, UNDECIDED, UNSAFE, USAGE, main
from safepallas._verify.program import UndecidedError
from safepallas._verify.report.report import Report

from . import drawn

ROOT = Path(__file__).resolve().parents[2]


def undecided() -> Report:
    return Report("undecided", [], undecided=UndecidedError("n is not known", drawn.at(3)))


REPORTS: dict[str, Callable[[], Report]] = {
    "safe": lambda: drawn.safe_ring(2),
    "wide": lambda: drawn.safe_ring(9),
    "unsafe": lambda: drawn.blocked_ring(2),
    "undecided": undecided,
}

FACTORIES = """
REPORTS = {"safe": "safe", "unsafe": "unsafe", "undecided": "undecided"}

def fn(*args):
    pass

def make(n):
    return fn, (n,)

class Nested:
    make = staticmethod(make)

def raises(n):
    raise KeyError(f"no mesh of {n}")

def no_pair(n):
    return fn

def no_function(n):
    return 3, ()

def no_arguments(n):
    return fn, 3

def exits(n):
    raise SystemExit(0)

number = 3
"""


asked: list[int | None] = []  # what `verify` was given for calls
accepted: list[list[str]] = []


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module with factories, and a `verify` that looks at no function.

    The size decides the verdict: 2 is safe, 3 unsafe, 4 undecided, 9 safe and wide; 5 raises.
    """
    (tmp_path / "factories.py").write_text(FACTORIES)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "exiting.py").write_text("import sys; sys.exit(0)\n")
    (tmp_path / "missing.py").write_text("import not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XLA_FLAGS", os.environ.get("XLA_FLAGS", ""))  # put back afterwards

    asked.clear()
    accepted.clear()

    def verify(
        fn: Any, size: int, *, calls: int | None = None, accept: Sequence[str], progress: Any
    ) -> Report:
        accepted.append(list(accept))
        if size == 5:
            raise TypeError("it does not trace")
        asked.append(calls)
        return REPORTS[{2: "safe", 3: "unsafe", 4: "undecided", 9: "wide"}[size]]()

    monkeypatch.setattr(command_line, "verify", verify)
    yield "factories"
    for name in ("factories", "broken", "exiting", "missing"):
        sys.modules.pop(name, None)


Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("sizes", "code"),
    [
        ("2", SAFE),
        ("3", UNSAFE),
        ("4", UNDECIDED),
        ("2 2", SAFE),
        ("2 4 2", UNDECIDED),
        ("4 3 2", UNSAFE),
        ("3 4", UNSAFE),
    ],
)
def test_the_exit_code_says_the_worst(sizes: str, code: int, module: str, capsys: Capture) -> None:
    assert main(["verify", f"{module}:make", "--devices", *sizes.split()]) == code
    out, err = capsys.readouterr()
    for size in sizes.split():
        assert f"{module}:make({size})\n" in out
    assert err == ""


def test_reports_are_printed_whole(module: str, capsys: Capture) -> None:
    main(["verify", f"{module}:make", "--devices", "3"])
    assert capsys.readouterr().out == f"factories:make(3)\n{drawn.blocked_ring(2)}\n\n"


def test_calls_are_asked_for_only_where_they_are_given(module: str) -> None:
    main(["verify", f"{module}:make", "--devices", "2"])
    main(["verify", f"{module}:make", "--devices", "2", "2", "--calls", "3"])
    assert asked == [None, 3, 3]


def test_kinds_to_accept(module: str, capsys: Capture) -> None:
    command = ["verify", f"{module}:make", "--devices", "2"]
    main(command)
    main([*command, "--accept", "race", "remote-before-entry"])
    assert accepted == [[], ["race", "remote-before-entry"]]
    with pytest.raises(SystemExit) as caught:
        main([*command, "--accept", "hope"])
    assert caught.value.code == USAGE
    assert "deadlock" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["factories.py:make", "factories:Nested.make"])
def test_other_names_of_a_factory(name: str, module: str) -> None:
    assert main(["verify", name, "--devices", "2"]) == SAFE


USAGES = {
    "no colon": ("factories", "'factories' is not module:factory. Write it as in my_kernels:ring."),
    "no factory": ("factories:", "'factories:' is not module:factory."),
    "no module": ("nowhere:make", "there is no module 'nowhere' (looked for from "),
    "no file": ("nowhere.py:make", "there is no file nowhere.py."),
    "no attribute": ("factories:nothing", "factories has no 'nothing'."),
    "no callable": ("factories:number", "factories:number cannot be called: it is int 3."),
    "module that raises": ("broken:make", "importing broken raised ZeroDivisionError: division by"),
    "line of that": ("broken:make", "broken.py:1)."),
    "module that imports": ("missing:make", "importing missing raised ModuleNotFoundError: No mod"),
    "factory that raises": ("factories:raises", "factories:raises(2) raised KeyError: 'no mesh of"),
    "line of the factory": ("factories:raises", "factories.py:14)."),
    "factory that exits": ("factories:exits", "factories:exits(2) raised SystemExit: 0 ("),
    "module that exits": ("exiting:make", "importing exiting raised SystemExit: 0 ("),
    "no pair": (
        "factories:no_pair",
        "factories:no_pair(2) must return (fn, args), and returned fu",
    ),
    "no function": ("factories:no_function", "a function and a tuple, and returned (int 3, tuple "),
    "no arguments": ("factories:no_arguments", ">, int 3)."),
}


@pytest.mark.parametrize("what", USAGES)
def test_wrong_usage_is_explained(what: str, module: str, capsys: Capture) -> None:
    name, text = USAGES[what]
    assert main(["verify", name, "--devices", "2"]) == USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("safepallas verify: error: ")
    assert text in err
    assert err.count("\n") == 1


def test_what_does_not_trace_is_wrong_usage(module: str, capsys: Capture) -> None:
    assert main(["verify", f"{module}:make", "--devices", "5"]) == USAGE
    assert "factories:make(5) cannot be verified: TypeError: it does not trace" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "check a:b",
        "verify",
        "verify a:b",
        "verify a:b --devices",
        "verify a:b --devices 0",
        "verify a:b --devices two",
        "verify a:b --devices 2 --calls 0",
        "verify a:b --devices 2 --depth 3",
    ],
)
def test_arguments_that_cannot_be_understood(arguments: str, capsys: Capture) -> None:
    """3, not argparse's own 2, which means undecided."""
    with pytest.raises(SystemExit) as exit_:
        main(arguments.split())
    assert exit_.value.code == USAGE
    assert "usage: python -m safepallas" in capsys.readouterr().err


def test_help(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["verify", "--help"])
    assert exit_.value.code == 0
    out = capsys.readouterr().out
    for text in ("--devices", "--perfetto FILE", "--svg FILE", "--calls", "exit codes: 0 safe"):
        assert text in out


@pytest.mark.parametrize(
    ("sizes", "files"),
    [
        ("2", {"p.svg", "t.json"}),
        ("2 3", {"p.2.svg", "p.3.svg", "t.2.json", "t.3.json"}),
    ],
)
def test_files(sizes: str, files: set[str], module: str, capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    names = ["--svg", "out/p.svg", "--perfetto", "out/t.json"]
    main(["verify", f"{module}:make", "--devices", *sizes.split(), *names])
    assert {path.name for path in (tmp_path / "out").iterdir()} == files
    assert capsys.readouterr().err.count("wrote ") == len(files)


@pytest.mark.parametrize(("size", "code"), [("9", SAFE), ("4", UNDECIDED)])
def test_the_verdict_stands_where_nothing_can_be_drawn(
    size: str, code: int, module: str, capsys: Capture, tmp_path: Path
) -> None:
    given = ["verify", f"{module}:make", "--devices", size, "--svg", "p.svg"]
    assert main(given) == code
    assert "p.svg is not written: " in capsys.readouterr().err
    assert not (tmp_path / "p.svg").exists()


def test_a_file_that_cannot_be_written(module: str, capsys: Capture) -> None:
    given = ["verify", f"{module}:make", "--devices", "2", "--svg", "nowhere/p.svg"]
    assert main(given) == USAGE
    assert "cannot write nowhere/p.svg: No such file" in capsys.readouterr().err


def test_progress_is_told_once_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    now = 100.0
    monkeypatch.setattr(command_line.time, "monotonic", lambda: now)
    progress = command_line._Progress("a:b(2)")
    for now in (101.0, 102.5, 103.0, 105.0):
        progress(f"at {now:g}")
    assert capsys.readouterr().err == "a:b(2): at 102.5 (2 s)\na:b(2): at 105 (5 s)\n"


def test_progress_of_the_analysis_goes_to_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    clock = itertools.count(step=3)
    monkeypatch.setattr(command_line.time, "monotonic", lambda: next(clock))

    def kernel(x: Any, o: Any, sem: Any) -> None:
        pltpu.sync_copy(x, o)
        pltpu.async_copy(x, o, sem).wait()

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    x = jax.ShapeDtypeStruct((8, 128), "float32")
    options: Any = {"in_specs": [anywhere], "out_specs": anywhere}
    fn = pl.pallas_call(kernel, x, scratch_shapes=[pltpu.SemaphoreType.DMA], **options)
    assert command_line._verify("a:b(1)", fn, (x,), None, []).verdict == "safe"
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert "a:b(1): 8 events of 1 devices (3 s)" in lines
    assert "a:b(1): deadlocks and leaks, events: 8 (6 s)" in lines
    assert "a:b(1): orders, round 1, events: 8 (9 s)" in lines
    assert lines[-1].startswith("a:b(1): lifetimes of memory, accesses: 4 (")


def test_it_asks_for_as_many_cpus_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_a=1")
    command_line.use_cpu(16)
    assert os.environ["XLA_FLAGS"] == "--xla_a=1 --xla_force_host_platform_device_count=16"
    command_line.use_cpu(4)
    assert os.environ["XLA_FLAGS"] == "--xla_a=1 --xla_force_host_platform_device_count=16"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("JAX_PLATFORMS", "XLA_FLAGS")}
    environment["PYTHONPATH"] = str(ROOT)
    command = [sys.executable, "-W", "error", "-m", "safepallas", "verify", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120
    )


KERNELS = '''
"""A ring of one copy each, with and without the wait for what comes; on a real mesh."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P


def kernel(x_ref, o_ref, send_sem, recv_sem, *, waits):
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    copy = pltpu.make_async_remote_copy(
        x_ref, o_ref, send_sem, recv_sem, device_id=(jax.lax.rem(me + 1, n),)
    )
    copy.start()
    copy.wait_send()
    if waits:
        copy.wait_recv()


def ring(n, waits=True):
    mesh = jax.make_mesh((n,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(
        functools.partial(kernel, waits=waits),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        in_specs=[hbm],
        out_specs=hbm,
        scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
    )
    fn = jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    return fn, (jax.ShapeDtypeStruct((8 * n, 128), jnp.float32),)


leaking_ring = functools.partial(ring, waits=False)
'''


def test_the_whole_of_it(tmp_path: Path) -> None:
    """In a process of its own, on kernels, with a mesh of devices that are not there."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    files = ["--svg", "ring.svg", "--perfetto", "ring.json"]
    safe = run("kernels:ring", "--devices", "2", "4", *files, cwd=tmp_path)
    assert safe.returncode == SAFE, safe.stderr
    assert "kernels:ring(4)\nsafe: kernel on 4 devices (x=4)." in safe.stdout
    names = {path.name for path in tmp_path.glob("ring.*")}
    assert names == {"ring.2.svg", "ring.4.svg", "ring.2.json", "ring.4.json"}
    leaking = run("kernels.py:leaking_ring", "--devices", "4", cwd=tmp_path)
    assert leaking.returncode == UNSAFE, leaking.stderr
    assert "1. leak at " in leaking.stdout
    assert f"kernels.py:{KERNELS[: KERNELS.index('copy.start')].count(chr(10)) + 1}" in (
        leaking.stdout
    )


def test_the_command_is_where_it_is_said_to_be() -> None:
    module = importlib.import_module("safepallas.__main__")
    assert module.main is main
