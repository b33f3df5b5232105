"""Fixtures of the lowering tests."""

import base64
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
from jax.extend.mlir import ir
from jax.sharding import AbstractDevice, AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P
from jaxlib.mosaic.python import tpu as dialect

CHIP = AbstractDevice("TPU v5 lite", 1, "tpu")


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Run a test with 32 and with 64 bit types."""
    with jax.enable_x64(request.param):
        yield request.param


@pytest.fixture
def index(x64: bool) -> Callable[[int], Any]:
    """An index as raw Pallas must have it: with 64 bit types it cannot lower a Python int."""
    return np.int32 if x64 else int


@pytest.fixture
def tpu() -> Iterator[None]:
    """Let the lowering believe in a TPU: JAX 0.12 asks which one it is for `run_scoped`."""
    with jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=CHIP)):
        yield


@pytest.fixture
def over_mesh() -> Callable[..., Any]:
    """Put a call on a mesh with axes of these sizes, all of its arrays on every device."""

    def over(call: Callable[..., Any], **axes: int) -> Callable[..., Any]:
        kinds = (AxisType.Auto,) * len(axes)
        sizes, names = tuple(axes.values()), tuple(axes)
        mesh = AbstractMesh(sizes, names, axis_types=kinds, abstract_device=CHIP)
        return jax.shard_map(call, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)

    return over


@pytest.fixture
def kernel_module() -> Callable[..., str]:
    """The kernel's own module in a lowered call, as text with locations.

    It travels as bytecode in the configuration of a custom call. JAX 0.12 sends the locations apart
    from it, in the order of the operations.
    """

    def decode(call: Callable[..., Any], *args: Any) -> str:
        lowered = jax.jit(call).trace(*args).lower(lowering_platforms=("tpu",)).as_text()
        modules = re.findall(r"(?:body|debug_locations)\\22: \\22([\w+/=]+)", lowered)
        assert modules
        context = ir.Context()
        context.allow_unregistered_dialects = True
        dialect.register_dialect(context)
        return "".join(
            ir.Module.parse(base64.b64decode(module), context=context).operation.get_asm(
                enable_debug_info=True
            )
            for module in modules
        )

    return decode
