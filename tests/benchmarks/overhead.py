"""What safepallas costs while tracing, and while importing: ratios to raw Pallas, of one run.

    python tests/benchmarks/overhead.py

Traces the same kernel written for both, in turns, and prints the median of the ratios of
neighbouring turns. Kernels with 10 and with 500 semaphore operations, and the examples of
production size beside their reference kernels.
"""

import gc
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType

import safepallas as sp

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = "collective_matmul", "moe_all_to_all", "paged_attention"

X = jax.ShapeDtypeStruct((8, 128), jnp.float32)
ANY = pl.BlockSpec(memory_space=pl.ANY)


class Pair(NamedTuple):
    """The same for both: each makes a function whose kernel JAX has not traced before."""

    ours: Callable[[], Callable[..., Any]]
    raw: Callable[[], Callable[..., Any]]
    args: tuple[Any, ...]


def example(name: str) -> Pair:
    """An example of docs/examples and its reference, on a mesh of four devices."""
    mesh = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))

    def build(path: Path) -> Any:
        spec: Any = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.build(mesh)

    ours = ROOT / "docs" / "examples" / f"{name}.py"
    raw = ROOT / "tests" / "lowering" / "reference" / f"raw_{name}.py"
    args = tuple(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in build(raw)[1])
    return Pair(lambda: build(ours)[0], lambda: build(raw)[0], args)


def signals(operations: int) -> Pair:
    """Half signals, half waits."""

    def ours(x: Any) -> Any:
        def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
            for _ in range(operations // 2):
                sp.signal(sem)
                sp.wait(sem)

        return sp.pallas_call(kernel, X, scratch_shapes=(sp.semaphore(),))(x)

    def raw(x: Any) -> Any:
        def kernel(x: Any, o: Any, sem: Any) -> None:
            for _ in range(operations // 2):
                pl.semaphore_signal(sem)
                pl.semaphore_wait(sem)

        return pl.pallas_call(kernel, X, scratch_shapes=(pltpu.SemaphoreType.REGULAR,))(x)

    return Pair(lambda: ours, lambda: raw, (X,))


def copies(operations: int) -> Pair:
    """Half starts, half waits, on semaphores of an array and on views of the data."""

    def ours(x: Any) -> Any:
        def kernel(
            x: sp.Ref, o: sp.Ref, sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]
        ) -> None:
            for i in range(operations // 2):
                sp.async_copy(x.at[0:4], o.at[0:4], sems.at[i % 2]).wait()

        return sp.pallas_call(
            kernel, X, scratch_shapes=(sp.dma_semaphore(2),), in_specs=[ANY], out_specs=ANY
        )(x)

    def raw(x: Any) -> Any:
        def kernel(x: Any, o: Any, sems: Any) -> None:
            for i in range(operations // 2):
                pltpu.async_copy(x.at[0:4], o.at[0:4], sems.at[i % 2]).wait()

        return pl.pallas_call(
            kernel,
            X,
            scratch_shapes=(pltpu.SemaphoreType.DMA((2,)),),
            in_specs=[ANY],
            out_specs=ANY,
        )(x)

    return Pair(lambda: ours, lambda: raw, (X,))


def seconds(make: Callable[[], Callable[..., Any]], args: tuple[Any, ...]) -> float:
    fn = make()
    # A new function each time: JAX keeps the trace of one that it knows. The collector waits, as
    # in timeit: which of the two it falls upon is chance. So is what else the machine does: the
    # time is that of this thread alone.
    fresh = jax.jit(lambda *args: fn(*args))
    gc.collect()
    gc.disable()
    start = time.thread_time()
    fresh.trace(*args)
    seconds = time.thread_time() - start
    gc.enable()
    return seconds


def tracing(name: str, pair: Pair, turns: int) -> None:
    ours, raw, args = pair
    for make in (ours, raw) * 3:
        seconds(make, args)
    ratios, times = [], []
    for turn in range(turns):
        order = (ours, raw) if turn % 2 else (raw, ours)
        measured = {make: seconds(make, args) for make in order}
        ratios.append(measured[ours] / measured[raw])
        times.append(measured[raw])
    print(
        f"tracing, {name:<22} ratio {statistics.median(ratios):.3f}  "
        f"(raw {statistics.median(times) * 1e3:.2f} ms)"
    )


def importing(turns: int) -> None:
    code = (
        "import gc, time; {}; a = time.process_time(); from jax.experimental.pallas import tpu; "
        "b = time.process_time(); import safepallas; c = time.process_time(); "
        "print((c - a) / (b - a))"
    )
    # A collection of all generations takes as long as the import, and is due at some moment: on
    # which of the two imports it falls is chance, but the same chance every time.
    # Both from bytecode, as an installed package has it, also where none may be written beside the
    # sources: compiling takes several times as long.
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for collector, before in (("waits", "gc.disable()"), ("runs", "pass")):
            run = [sys.executable, "-c", code.format(before)]
            ratios = [
                float(subprocess.check_output(run, text=True, env=environment))
                for _ in range(turns + 1)
            ][1:]
            print(
                "import, against jax.experimental.pallas.tpu alone: "
                f"ratio {statistics.median(ratios):.3f} (the garbage collector {collector})"
            )


def main() -> None:
    print(f"jax {jax.__version__}, Python {sys.version.split()[0]}")
    importing(15)
    for operations, turns in ((10, 100), (500, 40)):
        tracing(f"{operations} signals and waits", signals(operations), turns)
        tracing(f"{operations} starts and waits", copies(operations), turns)
    for name in EXAMPLES:
        tracing(name, example(name), 60)


if __name__ == "__main__":
    main()
