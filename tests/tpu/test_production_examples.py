"""The examples of production size fit the chip: compiled for 2 and 4 devices, without a TPU."""

from typing import Any

import jax
import pytest

import safepallas.testing

from .test_examples import EXAMPLES, load


def compile_production(name: str, devices: int, topology: str) -> str:
    module = load(EXAMPLES / f"{name}.py")
    mesh = safepallas.testing.tpu_mesh((devices,), ("x",), topology=topology)
    made = []

    def build() -> Any:
        fn, args = module.build(mesh, sizes=module.PRODUCTION)
        made.append(fn)
        return args

    args = jax.eval_shape(build)
    return safepallas.testing.compile_for_tpu(made[0], *args, topology=topology).as_text()


@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize("topology", ["v5e:2x2", "v6e:2x2"])
@pytest.mark.parametrize("name", ["collective_matmul", "moe_all_to_all", "start_done"])
def test_compiles(name: str, topology: str, devices: int) -> None:
    assert "tpu_custom_call" in compile_production(name, devices, topology)


@pytest.mark.parametrize("name", ["collective_matmul", "moe_all_to_all", "start_done"])
def test_compiles_with_64_bit_types(name: str) -> None:
    with jax.enable_x64(True):
        assert "tpu_custom_call" in compile_production(name, 4, "v5e:2x2")
