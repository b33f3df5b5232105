"""What `verify` costs: against JAX's interpreter with its race detector, and up to 256 devices.

    python tests/benchmarks/verifier.py [turns]

Every measurement is the first call of a process of its own, tracing included, imports and the
making of arguments left out. Verifier and interpreter take turns; medians and their ratio are
printed. The interpreter runs one schedule of one call, on real numbers; `verify` decides for all of
them, and by default for two calls in a row where a kernel uses the barrier semaphore, as the
all-reduce does. `verify once` is that with ``calls=1``.
The second table is the ring all-gather at sizes where a kernel makes up to 65,000 copies: seconds,
and the peak memory of the whole process, JAX included.
"""

import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = "ring_all_gather", "ring_all_reduce"
AGAINST = 8, 32
GROWTH = 16, 32, 64, 128, 256
# Until a child is given up: the interpreter can hang.
SECONDS = {"verify": 180, "verify once": 180, "interpret": 60}


def child(what: str, name: str, devices: int) -> None:
    """One measurement. Prints a line of JSON: seconds, peak bytes, and what was found."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    # One device to spare: with none idle the interpreter of JAX 0.10 can hang.
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices + 1}"
    import jax
    import numpy as np
    from jax.experimental.pallas import tpu as pltpu
    from jax.sharding import AbstractMesh, AxisType, Mesh

    from safepallas import verify

    path = ROOT / "docs" / "examples" / f"{name}.py"
    spec: Any = importlib.util.spec_from_file_location(name, path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    if what != "interpret":
        fn, args = example.build(AbstractMesh((devices,), ("x",), axis_types=(AxisType.Auto,)))
        start = time.perf_counter()
        report = verify(fn, *args, calls=1 if what == "verify once" else None)
        seconds = time.perf_counter() - start
        found = report.verdict
        if report.analysis is not None:
            found += f", {report.analysis.counts['copies']:,} copies"
    else:
        interpret = pltpu.InterpretParams(detect_races=True)
        mesh = Mesh(np.array(jax.devices()[:devices]), ("x",))
        fn, args = example.build(mesh, interpret=interpret)
        jax.block_until_ready(args)
        start = time.perf_counter()
        out = jax.block_until_ready(jax.jit(fn)(*args))
        seconds = time.perf_counter() - start
        np.testing.assert_array_equal(out, example.expected(*args))
        found = "right numbers"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([seconds, peak * 1024, found]))


def measure(what: str, name: str, devices: int) -> tuple[float, float, str] | str:
    run = [sys.executable, __file__, "child", what, name, str(devices)]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths}
    try:
        done = subprocess.run(
            run, env=environment, capture_output=True, text=True, timeout=SECONDS[what], check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {SECONDS[what]} s"
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1:]}"
    seconds, peak, found = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak, found


def against(name: str, devices: int, turns: int) -> None:
    taken: dict[str, list[float]] = {"verify": [], "verify once": [], "interpret": []}
    said: dict[str, str] = {}
    for turn in range(turns):
        for what in taken if turn % 2 else reversed(taken):
            if what in said and not taken[what]:
                continue  # it gave no answer the first time
            result = measure(what, name, devices)
            if isinstance(result, str):
                said[what] = result
            else:
                taken[what].append(result[0])
                said[what] = result[2]
    print(f"{name}, {devices} devices:")
    for what, seconds in taken.items():
        if not seconds:
            print(f"    {what:<12} {said[what]}", flush=True)
            continue
        text = f"    {what:<12} {statistics.median(seconds):7.3f} s, {said[what]}"
        if what != "interpret" and taken["interpret"]:
            ratio = statistics.median(taken["interpret"]) / statistics.median(seconds)
            text += f"; the interpreter takes {ratio:.1f} times as long"
        print(text, flush=True)


def growth(devices: int) -> None:
    result = measure("verify", "ring_all_gather", devices)
    if isinstance(result, str):
        print(f"{devices:>4} devices: {result}", flush=True)
        return
    seconds, peak, found = result
    print(f"{devices:>4} devices: {seconds:7.2f} s  {peak / 2**30:5.2f} GiB  {found}", flush=True)


def main() -> None:
    import jax

    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    print(f"jax {jax.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    print(f"load average at the start (1, 5, 15 minutes): {load}")
    for devices in AGAINST:
        for name in EXAMPLES:
            against(name, devices, turns)
    print("ring_all_gather, verified:")
    for devices in GROWTH:
        growth(devices)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
