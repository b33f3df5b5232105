"""A verdict on every TPU kernel that JAX ships; docs/verified-kernels.md explains each.

The verdicts were checked by hand against the source of the kernels. A new JAX that changes one of
them turns a test red: then the page wants a look, too.
"""

import importlib
import importlib.util
import linecache
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType

from safepallas import verify
from safepallas._verify.diagnostics.finding import Finding
from safepallas.verification import Report

from ..loading import load

KERNELS = Path(__file__).resolve().parents[1] / "shipped" / "kernels.py"


shipped = load(KERNELS)

# Copies that a kernel starts itself, and its waits. Of the others Pallas moves all the blocks.
COPIES = {
    "paged_attention": (12, 6 if shipped.FUSED_WAITS else 12),
    "paged_attention_grid": (12, 6 if shipped.FUSED_WAITS else 12),
    "paged_attention_quantized": (24, 12 if shipped.FUSED_WAITS else 24),
    "ragged_paged_attention": (10, 10),
}
ONE_DEVICE = [name for name in shipped.KERNELS if name != "all_gather"]


def gather(devices: int, calls: int | None = None) -> Report:
    mesh = AbstractMesh((devices,), ("x",), axis_types=(AxisType.Auto,))
    fn, _ = shipped.all_gather(mesh)
    return verify(fn, jax.ShapeDtypeStruct((devices * 16, 128), jnp.float32), calls=calls)


def pointed(finding: Finding) -> list[tuple[str, str]]:
    """The lines of a finding: the file, and the text of the line."""
    return [
        (Path(line.file).name, linecache.getline(line.file, line.number)) for line in finding.lines
    ]


def counts(report: Report) -> Any:
    assert report.analysis is not None
    return report.analysis.counts


def unknown(array: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


@pytest.mark.parametrize("name", ONE_DEVICE)
def test_on_one_device_nothing_is_found(name: str) -> None:
    fn, args = shipped.KERNELS[name]()
    report = verify(fn, *args)
    assert report.verdict == "safe", str(report)
    found = counts(report).get("copies", 0), counts(report).get("waits", 0)
    assert found == COPIES.get(name, (0, 0))


def test_all_gather_is_safe_on_two_devices() -> None:
    report = gather(2)
    assert report.verdict == "safe", str(report)
    assert counts(report)["copies"] == 2 * 2 * 3  # calls, devices, copies of each


@pytest.mark.parametrize("devices", [3, 4, 8])
def test_the_steps_of_all_gather_share_a_receive_semaphore(devices: int) -> None:
    """From three devices on there are two steps, and a wait may end with the bytes of the later."""
    for calls in (1, None):
        report = gather(devices, calls)
        assert [finding.kind.value for finding in report.findings] == ["race", "race"]
        for finding, direction in zip(report.findings, ("right_dma", "left_dma"), strict=True):
            assert finding.schedule
            assert "`o_ref[" in finding.text
            assert finding.lines
            for file, text in pointed(finding):
                assert file == "all_gather.py"
                assert f"{direction} = pltpu.async_remote_copy(" in text


def test_all_gather_of_one_device_has_no_kernel() -> None:
    report = gather(1)
    assert report.verdict == "undecided"
    assert "calls no Pallas kernel" in " ".join(str(report).split())


def paged(lengths: Sequence[int], kv_heads: int = 1, **options: Any) -> Report:
    """A new trace each time: the function is not the one that JAX has in its cache."""
    attend = shipped._module("paged_attention").paged_attention.__wrapped__
    q = shipped._normal(0, len(lengths), 8 * kv_heads, 128)
    k, v = (shipped._normal(i, kv_heads, 4 * len(lengths), 16, 128) for i in (1, 2))
    table = np.arange(4 * len(lengths), dtype=np.int32).reshape(-1, 4)
    return verify(
        lambda *args: attend(*args, pages_per_compute_block=2, **options),
        *(q, k, v, np.array(lengths, np.int32), table),
    )


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("lengths", [[0, 17], [50, 0], [0, 0], [5, 0, 0, 20], [64, 64]])
def test_paged_attention_skips_empty_sequences(lengths: list[int], inline: bool) -> None:
    report = paged(lengths, inline_seq_dim=inline)
    assert report.verdict == "safe", str(report)


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("mode", ["batch", "kv_head"])
def test_paged_attention_for_two_cores_hangs_on_one(mode: str, inline: bool) -> None:
    """Its docstring says so: "set this only if megacore is enabled"."""
    report = paged([50, 17], 2, megacore_mode=mode, inline_seq_dim=inline)
    assert [finding.kind.value for finding in report.findings] == ["deadlock"]
    assert {file for file, _ in pointed(report.findings[0])} == {"paged_attention_kernel.py"}


def test_paged_attention_without_its_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """That the verdict can turn."""
    kernel = importlib.import_module(f"{shipped.OPS}.paged_attention.paged_attention_kernel")

    def read_at_once(self: Any) -> jax.Array:
        buffer = self._vmem_buffer
        return buffer[...].reshape(-1, buffer.shape[-1])

    assert paged([50, 17]).verdict == "safe"
    monkeypatch.setattr(kernel.MultiPageAsyncCopyDescriptor, "wait_and_get_loaded", read_at_once)
    kinds = {finding.kind.value for finding in paged([50, 17]).findings}
    assert kinds == {"leak", "race"}


def ragged(queries: Sequence[int], lengths: Sequence[int], sequences: int | None = None) -> Report:
    """Inputs that the check which JAX ships for them lets pass."""
    package = shipped._module("ragged_paged_attention.kernel")
    q = shipped._normal(0, 16, 4, 128)
    pages = shipped._normal(1, 4 * len(lengths), 16, 4, 128)
    table = jnp.arange(4 * len(lengths), dtype=jnp.int32).reshape(-1, 4)
    starts = jnp.array(np.cumsum([0, *queries]), jnp.int32)
    count = jnp.array([len(lengths) if sequences is None else sequences], jnp.int32)
    args = q, pages, jnp.array(lengths, jnp.int32), table, starts, count
    package.dynamic_validate_inputs(*args)

    def attend(*args: Any) -> Any:
        return package.ragged_paged_attention(
            *args, num_kv_pages_per_block=2, num_queries_per_block=8
        )

    return verify(attend, *args)


def test_ragged_paged_attention_leaks_where_the_last_sequence_has_no_query() -> None:
    """Its pages are fetched ahead. The steps end with the last query, and nobody waits for them.

    Where the query before it does not fill its block, that block goes on to the last sequence.
    """
    found = ragged([8, 0], [40, 16])
    assert [finding.kind.value for finding in found.findings] == ["leak"]
    assert ("kernel.py", "      async_copy.start()\n") in pointed(found.findings[0])
    assert "`sems[0]` is left at 65536 bytes" in found.findings[0].text
    for queries in ([10, 0], [8, 8], [0, 8]):
        report = ragged(queries, [40, 16])
        assert report.verdict == "safe", str(report)


def test_ragged_paged_attention_leaks_where_there_is_nothing_to_do() -> None:
    """No sequence; no query; no key in the last one."""
    for found in (
        ragged([8, 8], [40, 16], sequences=0),
        ragged([0, 0], [1, 1]),
        ragged([10, 0], [40, 0]),
    ):
        assert [finding.kind.value for finding in found.findings] == ["leak"]


# Which argument it takes to be known: (kernel, number of the argument, its name).
NEEDED = [
    ("paged_attention", 3, "lengths"),
    ("ragged_paged_attention", 2, "kv_lens"),
    ("ragged_paged_attention", 4, "cu_q_lens"),
    ("ragged_paged_attention", 5, "num_seqs"),
    ("megablox_gmm", 2, "group_sizes"),
    ("megablox_tgmm", 2, "group_sizes"),
]


@pytest.mark.parametrize(("name", "number", "argument"), NEEDED)
def test_undecided_where_control_is_not_known(name: str, number: int, argument: str) -> None:
    fn, args = shipped.KERNELS[name]()
    report = verify(fn, *(unknown(x) if i in (0, 1, number) else x for i, x in enumerate(args)))
    assert report.verdict == "undecided", argument
    assert report.undecided is not None
    assert "not known before it runs" in report.undecided.text
    assert report.undecided.line is not None
    assert "/pallas/ops/tpu/" in report.undecided.line.file.replace("\\", "/")


@pytest.mark.parametrize(
    ("name", "number"), [("paged_attention", 4), ("ragged_paged_attention", 3)]
)
def test_the_table_of_pages_need_not_be_known(name: str, number: int) -> None:
    """Pages are only read, whichever they are."""
    fn, args = shipped.KERNELS[name]()
    report = verify(fn, *(unknown(x) if i in (0, 1, number) else x for i, x in enumerate(args)))
    assert report.verdict == "safe", str(report)
