"""What is allocated inside a kernel is not there before: messages say which line allocates it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from safepallas import verify
from safepallas._verify.diagnostics.finding import Finding
from safepallas.verification import Report

ANY = pl.BlockSpec(memory_space=pl.ANY)
X = jax.ShapeDtypeStruct((8, 128), jnp.float32)
DMA, REGULAR = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
HERE = Path(__file__).name


def other() -> dict[str, Any]:
    return {"x": 1 - lax.axis_index("x")}


def barrier() -> None:
    barrier: Any = pltpu.get_barrier_semaphore()  # type: ignore[no-untyped-call, unused-ignore]
    pl.semaphore_signal(barrier, 1, device_id=other())
    pl.semaphore_wait(barrier, 1)


def judge(kernel: Callable[..., None]) -> Report:
    fn = pl.pallas_call(
        kernel,
        X,
        in_specs=[ANY],
        out_specs=ANY,
        compiler_params=pltpu.CompilerParams(collective_id=0),
    )
    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    return verify(jax.shard_map(fn, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False), X)


def signals(before: Callable[[], None], inside: Callable[[], None]) -> Callable[..., None]:
    def kernel(x: Any, o: Any) -> None:
        before()

        def scope(inner: Any) -> None:
            inside()
            pl.semaphore_signal(inner, 1, device_id=other())
            pl.semaphore_wait(inner, 1)
            barrier()  # nobody leaves the scope while the other may still signal

        pl.run_scoped(scope, REGULAR)

    return kernel


def copies(before: Callable[[], None], inside: Callable[[], None]) -> Callable[..., None]:
    def kernel(x: Any, o: Any) -> None:
        before()

        def scope(buffer: Any, send: Any, recv: Any) -> None:
            inside()
            copy = pltpu.make_async_remote_copy(x, buffer, send, recv, device_id=other())
            copy.start()
            copy.wait()
            pltpu.sync_copy(buffer, o)  # JAX 0.12 leaves out a scope of which nothing comes

        pl.run_scoped(scope, pltpu.VMEM((8, 128), jnp.float32), DMA, DMA)

    return kernel


def nothing() -> None:
    pass


def line_with(text: str, after: str) -> int:
    """The first line with a text, from the line with another one on."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(after))
    return next(i for i, line in enumerate(lines[first:], first + 1) if text in line)


def says(finding: Finding, kind: str, text: str, lines: list[int]) -> None:
    assert finding.kind.value == kind
    assert finding.text.replace(__file__, HERE) == text
    assert [line.number for line in finding.lines] == lines


def test_a_signal_before_the_other_is_in_the_scope_counts() -> None:
    """Its semaphore is a place that is there as long as the kernel is (rule 5)."""
    assert judge(signals(barrier, nothing)).verdict == "safe"
    (finding,) = judge(signals(nothing, nothing)).findings
    signal, entry = (
        line_with("semaphore_signal(inner", "def signals"),
        line_with("def kernel", "def signals"),
    )
    says(
        finding,
        "remote-before-entry",
        f"Device x=0 may signal `inner` of device x=1 at {HERE}:{signal} before device x=1 has "
        "entered the kernel. Signal it after a barrier that waits for that device.",
        [signal, entry],
    )


def test_a_copy_before_the_other_has_allocated() -> None:
    (finding,) = judge(copies(barrier, nothing)).findings
    start, scope = line_with("copy.start()", "def copies"), line_with("run_scoped", "def copies")
    says(
        finding,
        "race",
        f"The copy that device x=0 starts at {HERE}:{start} may write `buffer` of "
        f"device x=1 before device x=1 has allocated it, in the `run_scoped` at {HERE}:{scope}. "
        "Allocate it in the scratch of the kernel, or wait first for a signal that device x=1 "
        "gives inside that scope.",
        [start, scope],
    )


def test_safe_with_a_barrier_inside_the_scope() -> None:
    assert judge(signals(nothing, barrier)).verdict == "safe"
    assert judge(copies(nothing, barrier)).verdict == "safe"


def test_the_entry_into_the_kernel_is_told_as_before() -> None:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        pl.semaphore_signal(sem, 1, device_id=other())
        pl.semaphore_wait(sem, 1)

    fn = pl.pallas_call(
        kernel,
        X,
        in_specs=[ANY],
        out_specs=ANY,
        scratch_shapes=[REGULAR],
        compiler_params=pltpu.CompilerParams(collective_id=0),
    )
    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    whole = jax.shard_map(fn, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    (finding,) = verify(whole, X).findings
    signal = line_with("semaphore_signal(sem", "def test_the_entry")
    assert finding.text.replace(__file__, HERE) == (
        f"Device x=0 may signal `sem` of device x=1 at {HERE}:{signal} before device x=1 has "
        "entered the kernel. Signal it after a barrier that waits for that device."
    )
