"""Every misuse of the matrix, as raw Pallas, is refused under the guard while it is traced."""

import json
import warnings
from pathlib import Path
from typing import Any

import jax
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import safepallas as sp
from safepallas import testing

from ..loading import load
from .helpers import FLOATS

MATRIX = Path(__file__).resolve().parents[1] / "matrix"

misuses = load(MATRIX / "misuses.py")
RESULTS = json.loads((MATRIX / "results-0.12.json").read_text())
MISUSES = {misuse.name: misuse for misuse in misuses.MISUSES}
CORRECT = {misuse.name: misuse for misuse in misuses.CORRECT}

# What raw Pallas says otherwise than safepallas, which refuses the same.
OTHERWISE: dict[str, tuple[type[Exception], str]] = {
    "request_of_another_kind": (sp.errors.WrongKindError, "a raw kernel promises nothing"),
    "raw_ref_adopted_as_another_kind": (sp.errors.WrongKindError, "raw Pallas adopts nothing"),
    "semaphore_made_by_hand": (sp.errors.NotASemaphoreError, "raw Pallas has no class to call"),
    "wait_without_decrement": (sp.errors.WaitOptionError, "raw Pallas has the argument"),
    "too_many_indices": (ValueError, "JAX refuses it where the ref is indexed"),
    "wait_send_of_a_local_copy": (Exception, "JAX refuses it: ValueError or RuntimeError"),
    "truth_of_a_semaphore": (TypeError, "JAX refuses it"),
    "arithmetic_with_a_semaphore": (AttributeError, "JAX refuses it"),
    "store_of_a_semaphore": (ValueError, "JAX refuses it"),
}


def trace(misuse: Any, tmp_path: Path) -> None:
    text = misuse.text(raw=True).replace("interpret=interpret", f"interpret={misuse.interpret}")
    path = tmp_path / f"{misuse.name}.py"
    path.write_text(text)
    call = load(path).call(False)
    if misuse.axes:
        sizes, names = (2,) * len(misuse.axes), tuple(misuse.axes)
        mesh = AbstractMesh(sizes, names, axis_types=(AxisType.Auto,) * len(names))
        call = jax.shard_map(call, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sp.errors.SemaphoreLimitWarning)
        jax.make_jaxpr(call)(FLOATS)


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_is_refused(name: str, tmp_path: Path) -> None:
    expected, _ = OTHERWISE.get(
        name, (getattr(sp.errors, RESULTS[name]["safepallas"]["trace"], None), "")
    )
    with testing.guard_raw_pallas(), pytest.raises(expected) as info:
        trace(MISUSES[name], tmp_path)
    if issubclass(expected, (sp.SemaphoreError, sp.errors.SemaphoreLimitWarning)):
        assert type(info.value) is expected
        assert str(info.value).endswith(f"[{expected.code}]")


def test_the_exceptions_are_misuses() -> None:
    assert set(OTHERWISE) <= set(MISUSES)
    assert len(MISUSES) - len(OTHERWISE) >= 48


@pytest.mark.parametrize("name", CORRECT)
def test_correct_programs_are_accepted(name: str, tmp_path: Path) -> None:
    with testing.guard_raw_pallas() as guard:
        trace(CORRECT[name], tmp_path)
    assert guard.checked["pallas_call"] == 1
    assert sum(guard.checked.values()) > 1


def test_a_refusal_names_the_line_and_the_semaphore(tmp_path: Path) -> None:
    """The frame above ours is the user's; the semaphore has the name of the parameter."""
    with (
        testing.guard_raw_pallas(),
        pytest.raises(sp.errors.IndexRangeError, match="'sems'") as info,
    ):
        trace(MISUSES["index_out_of_bounds"], tmp_path)
    frames = [str(frame.path) for frame in info.traceback]
    theirs = [path for path in frames if path.endswith("index_out_of_bounds.py")]
    last = max(i for i, path in enumerate(frames) if path in theirs)
    ours = str(Path(sp.__file__).parent)
    assert all(path.startswith(ours) for path in frames[last + 1 :])
