"""Verdicts on small raw kernels, for the tests of what the model says a kernel means."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from safepallas import verify
from safepallas.verification import Report

ANY = pl.BlockSpec(memory_space=pl.ANY)
F32 = jnp.float32
DMA, REGULAR = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
BARRIER = pltpu.SemaphoreType.BARRIER
X = jax.ShapeDtypeStruct((16, 128), F32)
VMEM = pltpu.VMEM((16, 128), F32)


def call_of(kernel: Callable[..., None], *, out: Any = X, count: int = 1, **options: Any) -> Any:
    """A call of a kernel whose operands, `count` inputs and an output, stay in HBM."""
    specs = {"in_specs": [ANY] * count, "out_specs": ANY}
    if "grid_spec" not in options:
        options = {**specs, **options}
    return pl.pallas_call(kernel, out, **options)


def prefetching(
    kernel: Callable[..., None], *, count: int = 1, grid: tuple[int, ...] = (1,), **parts: Any
) -> Any:
    """The same with one prefetched array in front."""
    specs = {"in_specs": [ANY] * count, "out_specs": ANY, **parts}
    grid_spec: Any = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=grid, **specs)
    return pl.pallas_call(kernel, X, grid_spec=grid_spec)


def over(fn: Callable[..., Any], devices: int, count: int = 1) -> Any:
    """A function on each of some devices, which all get the whole operands."""
    mesh = AbstractMesh((devices,), ("x",), axis_types=(AxisType.Auto,))
    return jax.shard_map(fn, mesh=mesh, in_specs=(P(),) * count, out_specs=P(), check_vma=False)


def me() -> Any:
    return lax.axis_index("x")


def start_remote(source: Any, target: Any, send: Any, recv: Any, device: Any) -> Any:
    copy = pltpu.make_async_remote_copy(source, target, send, recv, device_id=(device,))
    copy.start()
    return copy


def barrier(devices: int) -> None:
    """All devices wait for each other at the barrier semaphore of the ``collective_id``."""
    semaphore: Any = pltpu.get_barrier_semaphore()  # type: ignore[no-untyped-call, unused-ignore]
    for device in range(devices):
        pl.semaphore_signal(semaphore, 1, device_id=(device,))
    pl.semaphore_wait(semaphore, devices)


def judge(fn: Any, *args: Any, **options: Any) -> tuple[str, list[str], Report]:
    """The verdict, the kinds of the findings, and the report itself."""
    report = verify(fn, *args, **options)
    return report.verdict, [finding.kind.value for finding in report.findings], report


def is_safe(fn: Any, *args: Any) -> None:
    verdict, kinds, report = judge(fn, *args)
    assert (verdict, kinds) == ("safe", []), str(report)


def has(kind: str, fn: Any, *args: Any) -> Report:
    """Unsafe, with a finding of that kind."""
    verdict, kinds, report = judge(fn, *args)
    assert verdict == "unsafe", str(report)
    assert kind in kinds, str(report)
    return report
