"""The paged attention example at a production size, through the TPU compiler."""

import importlib.util
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import safepallas.testing

from ..loading import load

if importlib.util.find_spec("libtpu") is None:
    pytest.skip("libtpu is not installed: no TPU compiler here", allow_module_level=True)

PATH = Path(__file__).resolve().parents[2] / "docs" / "examples" / "paged_attention.py"
SEQUENCES, KV_HEADS, POOL, MOST = 8, 8, 2048, 256  # up to 4096 tokens; 64 query heads


@pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])
@pytest.mark.parametrize("topology", ["v5e:2x2", "v6e:2x2"])
def test_compiles_at_production_size(topology: str, x64: bool) -> None:
    example: Any = load(PATH)
    pages = jax.ShapeDtypeStruct((KV_HEADS, POOL, example.PAGE, example.HEAD), jnp.bfloat16)
    args = (
        jax.ShapeDtypeStruct((SEQUENCES,), jnp.int32),
        jax.ShapeDtypeStruct((SEQUENCES, MOST), jnp.int32),
        jax.ShapeDtypeStruct((SEQUENCES, KV_HEADS, example.GROUP, example.HEAD), jnp.bfloat16),
        pages,
        pages,
    )
    with jax.enable_x64(x64):
        compiled = safepallas.testing.compile_for_tpu(
            example.paged_attention, *args, topology=topology
        )
    assert "tpu_custom_call" in compiled.as_text()
