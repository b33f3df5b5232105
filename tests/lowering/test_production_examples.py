"""The examples of production size lower like their twins at that size too, x64 on and off."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import pytest
from jax.sharding import AbstractMesh, AxisType

import safepallas.testing

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
TWINS = Path(__file__).resolve().parent / "twins"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"production_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built(module: ModuleType, devices: int) -> tuple[Any, Any]:
    """The function, and the shapes of its arguments: nobody needs so many numbers here."""
    mesh = AbstractMesh((devices,), ("x",), axis_types=(AxisType.Auto,))
    made = []

    def build() -> Any:
        fn, args = module.build(mesh, sizes=module.PRODUCTION)
        made.append(fn)
        return args

    args = jax.eval_shape(build)
    return made[0], args


@pytest.mark.parametrize("devices", [1, 2, 4])
@pytest.mark.parametrize("name", ["collective_matmul", "moe_all_to_all", "start_done"])
def test_lowers_like_its_twin(name: str, devices: int, x64: bool) -> None:
    fn, args = built(load(EXAMPLES / f"{name}.py"), devices)
    raw_fn, raw_args = built(load(TWINS / f"raw_{name}.py"), devices)
    assert args == raw_args
    assert all(str(a.dtype) in ("bfloat16", "int32") for a in args)
    safepallas.testing.assert_lowers_like(fn, raw_fn, *args)
