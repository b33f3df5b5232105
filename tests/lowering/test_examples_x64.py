"""Every example in a program with 64 bit types: it lowers like its reference kernel, and compiles.

Raw Pallas takes such a kernel apart: a Python int that indexes data is an int64 then, which the TPU
lowering of JAX 0.10.2 and 0.12.0.1 refuses (measured). So an example keeps to int32, or traces its
kernel under ``jax.enable_x64(False)``.
"""

import importlib.util

import jax
import jax.numpy as jnp
import pytest

import safepallas.testing

from .test_examples import EXAMPLES, NAMES, REFERENCE, load, on_chip, ring


@pytest.mark.filterwarnings("ignore:Destination semaphore is ignored for push streams")
@pytest.mark.parametrize("name", NAMES)
def test_lowers_like_its_reference_with_64_bit_types(name: str) -> None:
    example, reference = load(EXAMPLES / f"{name}.py"), load(REFERENCE / f"raw_{name}.py")
    with jax.enable_x64(True), on_chip(name):
        fn, args = example.build(ring(4))
        raw_fn, _ = reference.build(ring(4))
        safepallas.testing.assert_lowers_like(fn, raw_fn, *args)


@pytest.mark.filterwarnings("ignore:Destination semaphore is ignored for push streams")
@pytest.mark.parametrize("name", NAMES)
def test_compiles_with_64_bit_types(name: str) -> None:
    if importlib.util.find_spec("libtpu") is None:
        pytest.skip("libtpu is not installed: no TPU compiler here")
    topology = "v6e:2x2" if name.startswith("sparse_core_") else "v5e:2x2"
    with jax.enable_x64(True), on_chip(name):
        fn, args = load(EXAMPLES / f"{name}.py").build(ring(4))
        compiled = safepallas.testing.compile_for_tpu(fn, *args, topology=topology)
    if topology == "v5e:2x2":  # JAX 0.10.2 cannot read its own HLO of a SparseCore kernel
        assert "tpu_custom_call" in compiled.as_text()


def test_64_bit_types_were_on() -> None:
    """The tests above can fail: the same kernel without a word on types does not lower."""
    example = load(EXAMPLES / "double_buffer.py")
    x = jax.ShapeDtypeStruct((example.CHUNKS, example.ROWS, example.COLS), jnp.float32)
    like = jax.ShapeDtypeStruct(x.shape[1:], x.dtype)
    call = safepallas.pallas_call(
        example.kernel,
        like,
        in_specs=[example.pl.BlockSpec(memory_space=example.pl.ANY)],
        scratch_shapes=example.Buffers,
    )
    with jax.enable_x64(True), pytest.raises(Exception, match="32-bit signless integer"):
        safepallas.testing.assert_lowers_like(call, call, x)
