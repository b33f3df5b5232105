"""Every example goes through the real TPU compiler, for two generations of chips, without a TPU."""

import importlib.util
from pathlib import Path

import pytest

import safepallas.testing

from ..loading import load

if importlib.util.find_spec("libtpu") is None:
    pytest.skip("libtpu is not installed: no TPU compiler here", allow_module_level=True)

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
# Those for SparseCores, which v5e has not, are in test_core_kernels.py.
NAMES = sorted(
    path.stem for path in EXAMPLES.glob("*.py") if not path.stem.startswith("sparse_core_")
)


@pytest.mark.parametrize("topology", ["v5e:2x2", "v6e:2x2"])
@pytest.mark.parametrize("name", NAMES)
def test_compiles(name: str, topology: str) -> None:
    mesh = safepallas.testing.tpu_mesh((4,), ("x",), topology=topology)
    fn, args = load(EXAMPLES / f"{name}.py").build(mesh)
    compiled = safepallas.testing.compile_for_tpu(fn, *args, topology=topology)
    assert "tpu_custom_call" in compiled.as_text()
