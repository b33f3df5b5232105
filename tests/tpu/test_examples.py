"""Every example goes through the real TPU compiler, for two generations of chips, without a TPU."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import safepallas.testing

if importlib.util.find_spec("libtpu") is None:
    pytest.skip("libtpu is not installed: no TPU compiler here", allow_module_level=True)

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"compiled_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("topology", ["v5e:2x2", "v6e:2x2"])
@pytest.mark.parametrize("name", NAMES)
def test_compiles(name: str, topology: str) -> None:
    devices: Any = np.array(topologies.get_topology_desc(topology, "tpu").devices)
    if name.startswith("ring_"):
        mesh, spec = Mesh(devices, ("x",)), PartitionSpec("x")
    else:
        mesh, spec = Mesh(devices[:1], ("x",)), PartitionSpec()
    fn, args = load(EXAMPLES / f"{name}.py").build(mesh)
    sharding = NamedSharding(mesh, spec)
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding) for a in args]
    compiled = safepallas.testing.compile_for_tpu(fn, *shapes, topology=topology)
    assert "tpu_custom_call" in compiled.as_text()
