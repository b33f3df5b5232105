"""Every example lowers like its reference kernel: same jaxpr, same TPU module."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import jax
import pytest
from jax.sharding import AbstractDevice, AbstractMesh, AxisType

import safepallas.testing

from ..loading import load

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
REFERENCE = Path(__file__).resolve().parent / "reference"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def ring(size: int) -> AbstractMesh:
    return AbstractMesh((size,), ("x",), axis_types=(AxisType.Auto,))


def on_chip(name: str) -> AbstractContextManager[Any]:
    """Let JAX believe in a chip that has SparseCores, for an example that asks for them."""
    if not name.startswith("sparse_core_"):
        return nullcontext()
    chip = AbstractDevice("TPU v6 lite", 1, "tpu")
    context: Any = jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=chip))
    return context  # type: ignore[no-any-return]


def test_every_example_has_a_reference_kernel() -> None:
    assert NAMES
    assert sorted(path.stem for path in REFERENCE.glob("raw_*.py")) == [f"raw_{n}" for n in NAMES]


# JAX 0.12 says so of every copy from the memory of a vector subcore to HBM, its own too.
@pytest.mark.filterwarnings("ignore:Destination semaphore is ignored for push streams")
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_lowers_like_its_reference(name: str, size: int) -> None:
    example, reference = load(EXAMPLES / f"{name}.py"), load(REFERENCE / f"raw_{name}.py")
    fn, args = example.build(ring(size))
    raw_fn, raw_args = reference.build(ring(size))
    assert [(a.shape, a.dtype) for a in args] == [(a.shape, a.dtype) for a in raw_args]
    with on_chip(name):
        safepallas.testing.assert_lowers_like(fn, raw_fn, *args)


def test_the_comparison_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """One chunk less in the reference kernel, and the comparison must notice."""
    example, reference = (
        load(EXAMPLES / "double_buffer.py"),
        load(REFERENCE / "raw_double_buffer.py"),
    )
    fn, args = example.build()
    monkeypatch.setattr(reference, "CHUNKS", reference.CHUNKS - 1)
    raw_fn, _ = reference.build()
    with pytest.raises(AssertionError):
        safepallas.testing.assert_lowers_like(fn, raw_fn, *args)
