"""The examples in both of JAX's interpreters: right numbers, no race, nothing left on a semaphore.

The TPU interpreter hangs on a deadlock and only prints what it finds, so every run is a process
of its own with a time limit, and all that it printed is read.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import safepallas

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
SECONDS = 120

RESULTS = {
    "collective_matmul": "collective matmul on 4 simulated devices: ok\n",
    "double_buffer": "maximum over 6 double-buffered chunks: ok\n",
    "moe_all_to_all": "all-to-all of tokens on 4 simulated devices: ok\n",
    "paged_attention": "paged attention over [300, 1, 0, 100, 128] tokens, prefetched: ok\n",
    "paged_copy": "page copies of [0, 3, 7] pages, waited for in bulk: ok\n",
    "ring_all_gather": "ring all-gather on 4 simulated devices: ok\n",
    "ring_all_reduce": "ring all-reduce on 4 simulated devices: ok\n",
    "start_done": "products around a ring of 4 simulated devices: ok\n",
    "sparse_core_gather": "2048 rows gathered through a vector subcore: ok\n",
}

# Run with the directory of the examples as sys.argv[1].
BEGIN = """
import os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=5"
sys.path.insert(0, sys.argv[1])
import jax, jax.numpy as jnp, numpy as np
from jax.experimental.pallas import tpu as pltpu
races = pltpu.InterpretParams(detect_races=True)
lazy = pltpu.InterpretParams(detect_races=True, dma_execution_mode="on_wait")
def mesh(n):
    return jax.sharding.Mesh(np.array(jax.devices()[:n]), ("x",))
def same(got, wanted):
    np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))
"""
PLAIN = """
import double_buffer, paged_copy
for example in double_buffer, paged_copy:
    fn, args = example.build(interpret=True)
    same(jax.jit(fn)(*args), example.expected(*args))
"""
TWICE = """
import ring_all_reduce as example
for n in 2, 4:
    fn, (x,) = example.build(mesh(n), interpret=races)
    def twice(x):
        return fn(fn(x))
    same(jax.jit(twice)(x), example.expected(example.expected(x)))
    once = jax.jit(fn)
    same(once(once(x)), example.expected(example.expected(x)))
"""
SIZES = """
import ring_all_gather, ring_all_reduce, start_done
for example in ring_all_gather, ring_all_reduce, start_done:
    for n in 2, 3:
        fn, args = example.build(mesh(n), interpret=races)
        same(jax.jit(fn)(*args), example.expected(*args))
"""
COUNTS = """
import paged_copy as example
fn, (table, _, pages) = example.build(interpret=races)
fn = jax.jit(fn)
for counts in [0, 1, 2], [3, 4, 5], [6, 7, 0]:
    args = table, jnp.array(counts, jnp.int32), pages
    same(fn(*args), example.expected(*args))
"""
LAZY = """
import double_buffer, paged_copy, ring_all_gather, ring_all_reduce, start_done
for example in double_buffer, paged_copy, ring_all_gather, ring_all_reduce, start_done:
    fn, args = example.build(mesh(3), interpret=lazy)
    same(jax.jit(fn)(*args), example.expected(*args))
"""


def run(*command: str) -> str:
    """Standard output of a Python process, which must end well, in time, and without a finding."""
    environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    environment["PYTHONPATH"] = str(Path(safepallas.__file__).resolve().parents[1])
    environment["JAX_PLATFORMS"] = "cpu"
    try:
        done = subprocess.run(
            [sys.executable, "-W", "error", *command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        pytest.fail(f"no end after {SECONDS} s: a deadlock? Printed until then: {late.stdout!r}")
    everything = done.stdout + done.stderr
    assert done.returncode == 0, everything
    for finding in ("race detected", "non-zero count", "nonzero"):
        assert finding not in everything.lower(), everything
    return done.stdout


def test_every_example_is_here() -> None:
    assert sorted(RESULTS) == sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_script_runs_as_it_stands(name: str) -> None:
    assert run(str(EXAMPLES / f"{name}.py")) == RESULTS[name]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(PLAIN, id="single-device-interpret-true"),
        pytest.param(TWICE, id="all-reduce-twice-back-to-back"),
        pytest.param(SIZES, id="rings-of-other-sizes"),
        pytest.param(COUNTS, id="every-number-of-pages"),
        pytest.param(LAZY, id="copies-made-only-when-waited-for"),
    ],
)
def test_variation(code: str) -> None:
    assert run("-c", BEGIN + code, str(EXAMPLES)) == ""
