"""Kernels over meshes of cores, for the tests: of chips that are not here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from safepallas import verify
from safepallas._verify.diagnostics.finding import FindingKind
from safepallas.verification import Report

from ..unit import core_meshes
from .search import search
from .test_cases_searched import scaled

NEW = core_meshes.RENAMED  # JAX 0.12
CHIP = core_meshes.CHIP
DMA, REGULAR = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
X = jax.ShapeDtypeStruct((8, 128), jnp.float32)


def tensor(cores: int = 2) -> Any:
    return core_meshes.tensor(cores)


def scalar(cores: int = 2) -> Any:
    return plsc.ScalarSubcoreMesh(axis_name="core", num_cores=cores)


def vector(cores: int = 2, subcores: int = 2) -> Any:
    return plsc.VectorSubcoreMesh(
        core_axis_name="core",
        subcore_axis_name="subcore",
        num_cores=cores,
        num_subcores=subcores,
    )


def judge(build: Callable[[], Any], *args: Any, devices: int = 0, **options: Any) -> Report:
    """The verdict on what `build` makes where JAX believes in a chip with SparseCores."""
    mesh: Any = AbstractMesh((), (), abstract_device=CHIP)
    context: Any = jax.sharding.use_abstract_mesh(mesh)
    with context:
        fn = build()
        if devices:
            ring = AbstractMesh(
                (devices,), ("x",), axis_types=(AxisType.Auto,), abstract_device=CHIP
            )
            fn = jax.shard_map(fn, mesh=ring, in_specs=P(), out_specs=P(), check_vma=False)
        return verify(fn, *(args or (X,)), **options)


def kinds(report: Report) -> list[str]:
    assert report.verdict != "undecided", str(report)
    return [finding.kind.value for finding in report.findings]


def agrees_with_the_search(report: Report) -> None:
    """What is found is what there is, in all interleavings."""
    assert report.program is not None
    truth = search(scaled(report.program), 60_000, prompt=True)
    found = {finding.kind for finding in report.findings}
    assert (report.verdict == "safe") == truth.is_safe
    assert (FindingKind.DEADLOCK in found) == truth.deadlock
    assert (FindingKind.LEAK in found) == bool(truth.leaks)
    told = found & {FindingKind.RACE, FindingKind.UNAWAITED_COPY, FindingKind.REMOTE_BEFORE_ENTRY}
    true = truth.races or truth.before_entry or truth.signals_before_entry
    assert bool(told) == bool(true) or (truth.after_exit and truth.leaks)


def finds(report: Report, expected: set[str], *, searched: bool = True) -> Report:
    """Just these kinds of findings, all of them at lines of the test's own."""
    assert {*kinds(report)} == expected, str(report)
    lines = [line for finding in report.findings for line in finding.lines if line.number]
    assert not expected or lines
    assert {Path(line.file).parent.name for line in lines} <= {"verify"}
    if searched:
        agrees_with_the_search(report)
    return report


def undecided(report: Report, text: str, file: str) -> None:
    assert report.verdict == "undecided", str(report)
    assert report.undecided is not None
    assert text in report.undecided.text
    assert report.undecided.line is not None
    assert Path(report.undecided.line.file).name == Path(file).name


def kernel_of(mesh: Any, *scratch: Any, out: Any = X) -> Callable[[Callable[..., None]], Any]:
    """``pl.kernel`` of a body on a mesh."""
    return lambda body: pl.kernel(body, out, mesh=mesh, scratch_types=scratch)
