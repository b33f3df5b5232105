"""Runs programs at one stage, in a process of its own; no part of the tests itself.

What runs is forked off once more, before JAX starts its threads: an error inside the TPU
interpreter leaves that unfit for the next program, and a deadlock never ends.

In: one JSON list of jobs ``[key, path, stage, axes, copies]`` on standard input. Out: one line
of JSON for each, in the file named by the first argument, written when it is done. The second
argument is the number of seconds after which a program that runs is said to hang.
"""

import importlib.util
import json
import os
import signal
import sys
import time
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType, Mesh
from jax.sharding import PartitionSpec as P

from safepallas import testing
from safepallas.errors import SemaphoreLimitWarning


def mesh_of(axes: str, stage: str) -> Any:
    sizes, names = (2,) * len(axes), tuple(axes)
    if stage in ("interpret", "InterpretParams"):
        devices = np.array(jax.devices()[: 2 ** len(axes)]).reshape(sizes)
        return Mesh(devices, names, axis_types=(AxisType.Auto,) * len(axes))
    return AbstractMesh(sizes, names, axis_types=(AxisType.Auto,) * len(axes))


def program(path: str, stage: str, axes: str) -> Any:
    spec = importlib.util.spec_from_file_location("misuse", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    interpret = {"interpret": True, "InterpretParams": pltpu.InterpretParams()}.get(stage, False)
    call = module.call(interpret)
    if axes:
        mesh = mesh_of(axes, stage)
        call = jax.shard_map(call, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    return call


def run(path: str, stage: str, axes: str, copies: bool) -> str:
    call = program(path, stage, axes)
    x = jnp.arange(8 * 128, dtype=jnp.float32).reshape(8, 128) + 1.0
    if stage == "trace":
        jax.make_jaxpr(call)(x)
        return "accepted"
    if stage in ("v5e", "v6e"):
        testing.compile_for_tpu(call, x, topology=f"{stage}:2x2")
        return "accepted"
    out = jax.jit(call)(x)
    jax.block_until_ready(out)
    jax.effects_barrier()
    return "wrong result" if copies and not np.array_equal(out, x) else "silent"


def cell(error: Exception) -> str:
    """What went wrong, without what differs from run to run."""
    if "file a bug" in str(error):
        return "bug report"
    return type(error).__name__


def judge(path: str, stage: str, axes: str, copies: bool) -> str:
    try:
        return run(path, stage, axes, copies)
    except Exception as error:
        print(f"{path}, {stage}: {error}", file=sys.stderr)
        return cell(error)


def judge_apart(seconds: float, *job: Any) -> str:
    """The same, in a process forked off."""
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(send, judge(*job).encode())
        finally:
            os._exit(0)
    os.close(send)
    end = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(receive)
            return "hangs"
        time.sleep(0.02)
    with os.fdopen(receive) as stream:
        return stream.read() or "crashes"


def main() -> None:
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", SemaphoreLimitWarning)
    with open(sys.argv[1], "a") as out:
        for key, *job in json.load(sys.stdin):
            apart = job[1] in ("interpret", "InterpretParams")
            result = judge_apart(float(sys.argv[2]), *job) if apart else judge(*job)
            print(json.dumps([key, result]), file=out, flush=True)


if __name__ == "__main__":
    main()
