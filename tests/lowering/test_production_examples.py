"""The examples of production size lower like their reference kernels, x64 on and off."""

from types import ModuleType
from typing import Any

import jax
import pytest

import safepallas.testing

from .test_examples import EXAMPLES, REFERENCE, load, ring


def built(module: ModuleType, devices: int) -> tuple[Any, Any]:
    """The function, and the shapes of its arguments: nobody needs so many numbers here."""
    made = []

    def build() -> Any:
        fn, args = module.build(ring(devices), sizes=module.PRODUCTION)
        made.append(fn)
        return args

    args = jax.eval_shape(build)
    return made[0], args


@pytest.mark.parametrize("devices", [1, 2, 4])
@pytest.mark.parametrize("name", ["collective_matmul", "moe_all_to_all", "start_done"])
def test_lowers_like_its_reference(name: str, devices: int, x64: bool) -> None:
    fn, args = built(load(EXAMPLES / f"{name}.py"), devices)
    raw_fn, raw_args = built(load(REFERENCE / f"raw_{name}.py"), devices)
    assert args == raw_args
    assert all(str(a.dtype) in ("bfloat16", "int32") for a in args)
    safepallas.testing.assert_lowers_like(fn, raw_fn, *args)
