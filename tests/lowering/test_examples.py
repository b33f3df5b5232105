"""Every example lowers to what its raw-Pallas twin lowers to: same jaxpr, same TPU module."""

import importlib.util
from pathlib import Path
from types import ModuleType

import jax
import pytest
from jax.sharding import AbstractMesh, AxisType

import safepallas.testing

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
TWINS = Path(__file__).resolve().parent / "twins"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"lowered_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ring(size: int) -> AbstractMesh:
    return AbstractMesh((size,), ("x",), axis_types=(AxisType.Auto,))


def test_every_example_has_a_twin() -> None:
    assert NAMES
    assert sorted(path.stem for path in TWINS.glob("raw_*.py")) == [f"raw_{n}" for n in NAMES]


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_lowers_like_its_twin(name: str, size: int) -> None:
    example, twin = load(EXAMPLES / f"{name}.py"), load(TWINS / f"raw_{name}.py")
    fn, args = example.build(ring(size))
    raw_fn, raw_args = twin.build(ring(size))
    assert [(a.shape, a.dtype) for a in args] == [(a.shape, a.dtype) for a in raw_args]
    safepallas.testing.assert_lowers_like(fn, raw_fn, *args)


def test_the_comparison_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """One chunk less in the twin, and the comparison must notice."""
    example, twin = load(EXAMPLES / "double_buffer.py"), load(TWINS / "raw_double_buffer.py")
    fn, args = example.build()
    monkeypatch.setattr(twin, "CHUNKS", twin.CHUNKS - 1)
    raw_fn, _ = twin.build()
    with pytest.raises(AssertionError):
        safepallas.testing.assert_lowers_like(fn, raw_fn, *args)


@pytest.mark.parametrize("name", NAMES)
def test_expected_agrees_with_its_twin(name: str) -> None:
    example, twin = load(EXAMPLES / f"{name}.py"), load(TWINS / f"raw_{name}.py")
    _, args = example.build(ring(3))
    assert jax.numpy.array_equal(example.expected(*args), twin.expected(*args))
