"""The kernels that JAX ships pass the guard: no finding, the same jaxpr, the same numbers."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest
from jax.sharding import AbstractMesh, AxisType

from safepallas import testing

from ..loading import load

HERE = Path(__file__).resolve().parent
SECONDS = 600  # until a run that hangs is given up


shipped = load(HERE / "kernels.py")

# What the guard checks in each, beside its calls of pallas_call: makes of copies, starts, waits.
# Most use no semaphore of their own: the pipeline that feeds them is JAX's.
COPIES: dict[str, tuple[int, int, int]] = {
    "paged_attention": (12, 8, 4),
    "paged_attention_grid": (12, 8, 4),
    "paged_attention_quantized": (24, 16, 8),
    "ragged_paged_attention": (6, 4, 2),
}
if shipped.FUSED_WAITS:
    COPIES |= {name: (10, 8, 2) for name in COPIES if name.startswith("paged")}
    COPIES["paged_attention_quantized"] = (20, 16, 4)
ALL_GATHER = {
    "async_copy": 1,
    "wait": 7,
    "get_barrier_semaphore": 1,
    "semaphore_signal": 2,
    "semaphore_wait": 1,
    "async_remote_copy": 6,
}


def traced(name: str) -> str:
    mesh = AbstractMesh((shipped.DEVICES,), ("x",), axis_types=(AxisType.Auto,))
    fn, args = shipped.KERNELS[name](mesh) if name == "all_gather" else shipped.KERNELS[name]()
    return str(jax.make_jaxpr(fn)(*args))


@pytest.mark.parametrize("name", shipped.KERNELS)
def test_no_finding_and_the_same_jaxpr(name: str) -> None:
    raw = traced(name)
    assert raw.count("pallas_call[") >= 1
    with testing.guard_raw_pallas() as guard:
        assert traced(name) == raw
    checked = dict(guard.checked)
    assert checked.pop("pallas_call") >= raw.count("pallas_call[")
    made, started, waited = COPIES.get(name, (0, 0, 0))
    copies = {"make_async_copy": made, "start": started, "wait": waited} if made else {}
    assert checked == (ALL_GATHER if name == "all_gather" else copies)


def test_every_shipped_module_is_here() -> None:
    """A module that a new JAX adds wants a look."""
    folder = Path(str(importlib.util.find_spec(shipped.OPS).origin)).parent
    names = {path.stem for path in folder.iterdir() if path.stem[0] != "_"}
    known = {"all_gather", "example_kernel", "flash_attention", "matmul", "megablox"}
    known |= {"paged_attention", "ragged_paged_attention", "random", "splash_attention"}
    assert names == known


@pytest.fixture(scope="module")
def runs() -> dict[str, tuple[bool, dict[str, int]]]:
    """What is interpreted, half of it in each of two processes."""
    names = list(shipped.INTERPRETED)
    environment: dict[str, Any] = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]),
        "JAX_PLATFORMS": "cpu",
    }
    children = [
        subprocess.Popen(
            [sys.executable, str(HERE / "run.py"), *names[part::2]],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for part in (0, 1)
    ]
    found: dict[str, tuple[bool, dict[str, int]]] = {}
    for child in children:
        try:
            out, said = child.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            out, said = child.communicate()
        assert child.returncode == 0, said[-2000:]
        for line in out.splitlines():
            name, same, checked = json.loads(line)
            found[name] = (same, checked)
    return found


@pytest.mark.parametrize("name", shipped.INTERPRETED)
def test_the_same_numbers(name: str, runs: dict[str, tuple[bool, dict[str, int]]]) -> None:
    same, checked = runs[name]
    assert same
    assert checked["pallas_call"] >= 1
