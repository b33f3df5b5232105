"""What the verifier's model takes from the TPU compiler: small kernels, and what it makes of them.

A libtpu that does otherwise turns one of these red: then the rule of the model that rests on it
has to be read again. The semaphores are "sync flags" there: ``vsyncadd F,n`` adds, ``vwait.ge
F,n`` blocks until F is at least n, ``dma.done F,n`` blocks and takes n, in granules of 32 bytes.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

WITH_ADDRESSES = "post-bundle-packing-post-ra"  # the stage that has them, and checks of bounds
PROGRAM = Path(__file__).with_name("compiled_facts.py")
Code = Callable[..., str]


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Code:
    """The low-level code of a kernel, by its name. All are compiled in one process."""
    pytest.importorskip("libtpu", reason="the TPU compiler is not installed")
    dumps = tmp_path_factory.mktemp("dumps")
    subprocess.run([sys.executable, str(PROGRAM), str(dumps)], check=True, timeout=300)

    def read(kernel: str, stage: str = "original") -> str:
        (path,) = dumps.glob(f"*-{kernel}.1-*-{stage}.txt")
        return path.read_text()

    return read


def place_of(code: str, amount: int) -> int:
    """The address, in the memory of semaphores, of the one to which that much is added."""
    flags = set(re.findall(rf"vsyncadd \[#allocation(\d+)\], {amount}\b", code))
    (flag,) = flags
    found = re.search(rf"#allocation{flag} .*space=sflag.*offset = (0x[0-9a-f]+|0),", code)
    assert found is not None
    return int(found[1], 0)


def granules_waited_for(code: str) -> list[str]:
    """What each wait for a copy takes, without those of Pallas's own pipeline."""
    lines = [line for line in code.splitlines() if "pipeline-emitter" not in line]
    return re.findall(r"dma\.done \S+, (\w+|%\w+)", "\n".join(lines))


# The barrier between devices at the entry of a kernel


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("entry_remote_copy", True),
        ("entry_remote_signal", True),
        ("entry_barrier_scratch", True),
        ("entry_skipped", False),
        ("entry_local_only", False),
        ("entry_own_barrier", False),
        ("entry_barrier_in_untaken_branch", False),
        ("entry_id_without_barrier", False),
    ],
)
def test_the_barrier_at_the_entry(code: Code, kernel: str, expected: bool) -> None:
    """It is there if the kernel has a device_id, and neither a barrier nor an id of its own."""
    assert ("global-barrier-wait" in code(kernel)) == expected


def test_the_barrier_at_the_entry_has_two_phases(code: Code) -> None:
    """All tell the first device, which waits for the three others and then tells all."""
    waits = re.findall(
        r"vwait\.ge\.trace \S+, (\d+) /\* global-barrier-wait", code("entry_remote_copy")
    )
    assert waits == ["3", "1"]


def test_the_barrier_semaphore_has_a_place_of_its_own_and_is_not_checked(code: Code) -> None:
    text = code("entry_own_barrier")
    assert "barrier sync flag number" in text
    assert text.count("has a nonzero value upon exit") == 2  # the two of the scratch


# Semaphores of scopes


@pytest.mark.parametrize("kernel", ["scopes_one_after_the_other", "scopes_in_branches"])
def test_scopes_that_do_not_nest_use_the_same_place(code: Code, kernel: str) -> None:
    text = code(kernel, WITH_ADDRESSES)
    assert place_of(text, 111) == place_of(text, 112)


def test_nested_scopes_lie_on_top_of_each_other(code: Code) -> None:
    text = code("scopes_nested", WITH_ADDRESSES)
    assert place_of(text, 112) == place_of(text, 111) + 4
    first = code("scopes_one_after_the_other", WITH_ADDRESSES)
    assert place_of(text, 111) == place_of(first, 111)


def test_call_sites_of_a_jitted_helper_use_the_same_place(code: Code) -> None:
    text = code("scopes_of_a_jitted_helper", WITH_ADDRESSES)
    flags = set(re.findall(r"vsyncadd \[#allocation(\d+)\], 111\b", text))
    assert len(flags) == 2
    places = {
        re.search(rf"#allocation{flag} .*offset = (0x[0-9a-f]+)", text)[1]  # type: ignore[index]
        for flag in flags
    }
    assert len(places) == 1


def test_a_scope_neither_zeroes_nor_checks_its_semaphores(code: Code) -> None:
    text = code("scope_left_above_zero")
    assert "vsyncset" not in text
    assert text.count("has a nonzero value upon exit") == 1  # of the scratch


# Amounts


def test_negative_amounts_are_added_and_zero_too(code: Code) -> None:
    assert f", {2**32 - 2}" in code("amount_negative")
    assert re.search(r"vsyncadd \S+, 0$", code("amount_zero"), re.M)


def test_a_wait_takes_first_and_waits_then(code: Code) -> None:
    text = code("amount_negative", WITH_ADDRESSES)
    assert re.search(rf"vsyncadd (\S+), {2**32 - 1}\n.*vwait\.ge\.trace \1, 0", text)


def test_a_wait_takes_also_with_decrement_off(code: Code) -> None:
    text = code("wait_without_decrement", WITH_ADDRESSES)
    for amount in (111, 112):
        assert f", {2**32 - amount}" in text


# Bytes


@pytest.mark.parametrize(
    ("kernel", "granules"),
    [
        ("bytes_of_a_tile", ["128"]),  # 8 * 128 * 4 bytes
        ("bytes_of_a_row", ["16"]),
        ("bytes_of_one_integer", ["16", "16"]),  # 4 bytes count as a row of 128 integers
        ("bytes_of_200_integers", ["32", "32"]),  # 800 bytes as two rows
        ("bytes_of_nothing", ["0", "1024"]),
    ],
)
def test_copies_count_granules_of_32_bytes_of_whole_rows(
    code: Code, kernel: str, granules: list[str]
) -> None:
    assert granules_waited_for(code(kernel)) == granules


def test_a_copy_of_nothing_is_left_out(code: Code) -> None:
    assert code("bytes_of_nothing").count("dma.general") == 1
    assert re.search(r"dma\.general \(%p\w+\)", code("bytes_of_a_traced_size"))


# Bounds


@pytest.mark.parametrize(
    ("kernel", "checks"),
    [
        ("bounds_of_a_local_copy", 2),
        ("bounds_not_checked", 0),
        ("bounds_in_hbm", 0),
        ("bounds_of_loads", 0),
    ],
)
def test_only_local_copies_of_hbm_and_vmem_have_their_bounds_checked(
    code: Code, kernel: str, checks: int
) -> None:
    text = code(kernel, WITH_ADDRESSES)
    found = re.findall(r"BoundsCheck \d+ \[deref of opnd#\d\] for dma\.hbm_to_vmem", text)
    assert len(found) == checks


# Copies within VMEM, and the pipeline


def test_a_copy_within_vmem_is_made_of_loads_and_stores_in_order(code: Code) -> None:
    text = code("overlap_in_vmem")
    assert "dma.vmem_to_vmem" not in text
    assert "dma.general" not in text
    assert re.search(r"vsyncadd \S+, 256", text)  # and its wait is told as of a copy


def test_the_pipeline_fetches_waits_computes_writes_back_and_waits(code: Code) -> None:
    """Turn t starts fetch t, waits for t - 1, starts write-back t - 1, waits for t - 2."""
    text = code("pipeline")
    assert re.search(r"loop: start=0, step=1, limit=10\b", text)  # a grid of 8, and 2 more
    order = re.findall(r"= (dma\.hbm_to_vmem|dma\.vmem_to_hbm|dma\.done)", text)
    assert order == ["dma.hbm_to_vmem", "dma.done", "dma.vmem_to_hbm", "dma.done"]
