"""The kernels that JAX ships, each built at a size that an interpreter can run.

A builder gives a function and its arguments; it is called anew for every trace, so that what a
kernel's module does while it builds a call is under the guard as well.
"""

import importlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import Mesh

# JAX 0.12 waits once for all pages of a block.
FUSED_WAITS = hasattr(pltpu, "TensorCoreMesh")

OPS = "jax.experimental.pallas.ops.tpu"
DEVICES = 4

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _module(name: str) -> Any:
    return importlib.import_module(f"{OPS}.{name}")


def _normal(seed: int, *shape: int, dtype: Any = jnp.float32) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape, dtype)


def all_gather(mesh: Any = None) -> Built:
    if mesh is None:
        mesh = Mesh(np.array(jax.devices()[:DEVICES]), ("x",))
    gather = _module("all_gather").all_gather
    return lambda x: gather(x, mesh=mesh, axis_name="x"), (_normal(0, DEVICES * 16, 128),)


def matmul() -> Built:
    multiply = _module("matmul").matmul
    return lambda x, y: multiply(x, y, block_shape=(128, 128)), (
        _normal(0, 128, 256),
        _normal(1, 256, 128),
    )


def example_kernel() -> Built:
    return _module("example_kernel").double, (_normal(0, 8, 128),)


def _flash(backward: bool) -> Built:
    module = _module("flash_attention")
    q, k, v = (_normal(i, 1, 1, 256, 128) for i in range(3))

    def attend(q: Any, k: Any, v: Any) -> Any:
        return module.flash_attention(q, k, v, causal=True)

    def gradient(q: Any, k: Any, v: Any) -> Any:
        return jax.grad(lambda *qkv: attend(*qkv).sum(), argnums=(0, 1, 2))(q, k, v)

    return gradient if backward else attend, (q, k, v)


def flash_attention() -> Built:
    return _flash(backward=False)


def flash_attention_backward() -> Built:
    return _flash(backward=True)


def _splash(backward: bool) -> Built:
    package = _module("splash_attention")
    mask = package.MultiHeadMask([package.CausalMask((256, 256))])
    attend = package.make_splash_mha_single_device(mask)
    q, k, v = (_normal(i, 1, 256, 128) for i in range(3))

    def gradient(q: Any, k: Any, v: Any) -> Any:
        return jax.grad(lambda *qkv: attend(*qkv).sum(), argnums=(0, 1, 2))(q, k, v)

    return gradient if backward else attend, (q, k, v)


def splash_attention() -> Built:
    return _splash(backward=False)


def splash_attention_backward() -> Built:
    return _splash(backward=True)


def _paged(inline_seq_dim: bool, quantized: bool) -> Built:
    package = _module("paged_attention")
    sequences, heads, kv_heads, dim, pages, page_size, pages_each = 2, 8, 1, 128, 8, 16, 4
    q = _normal(0, sequences, heads, dim)
    k, v = (_normal(i, kv_heads, pages, page_size, dim) for i in (1, 2))
    if quantized:
        quantize = _module("paged_attention.quantization_utils").quantize_to_int8
        k, v = (
            _module("paged_attention.quantization_utils").QuantizedTensor(*quantize(x))
            for x in (k, v)
        )
    lengths = jnp.array([50, 17], jnp.int32)
    table = jnp.arange(sequences * pages_each, dtype=jnp.int32).reshape(sequences, pages_each)

    def attend(*args: Any) -> Any:
        return package.paged_attention(
            *args, pages_per_compute_block=2, inline_seq_dim=inline_seq_dim
        )

    return attend, (q, k, v, lengths, table)


def paged_attention() -> Built:
    return _paged(inline_seq_dim=True, quantized=False)


def paged_attention_grid() -> Built:
    return _paged(inline_seq_dim=False, quantized=False)


def paged_attention_quantized() -> Built:
    return _paged(inline_seq_dim=True, quantized=True)


def ragged_paged_attention() -> Built:
    package = _module("ragged_paged_attention")
    tokens, heads, kv_heads, dim, pages, page_size = 16, 4, 2, 128, 8, 16
    q = _normal(0, tokens, heads, dim)
    kv_pages = _normal(1, pages, page_size, 2 * kv_heads, dim)
    kv_lens = jnp.array([40, 12], jnp.int32)
    table = jnp.arange(8, dtype=jnp.int32).reshape(2, 4)
    starts = jnp.array([0, 10, 16], jnp.int32)
    count = jnp.array([2], jnp.int32)

    def attend(*args: Any) -> Any:
        return package.ragged_paged_attention(
            *args, num_kv_pages_per_block=2, num_queries_per_block=8
        )

    return attend, (q, kv_pages, kv_lens, table, starts, count)


def _grouped(name: str) -> Built:
    function = getattr(_module("megablox.gmm"), name)
    lhs = _normal(0, 256, 128) if name == "gmm" else _normal(0, 128, 256)
    rhs = _normal(1, 4, 128, 128) if name == "gmm" else _normal(1, 256, 128)
    return lambda *args: function(*args), (lhs, rhs, jnp.array([100, 0, 60, 96], jnp.int32))


def megablox_gmm() -> Built:
    return _grouped("gmm")


def megablox_tgmm() -> Built:
    return _grouped("tgmm")


def _bits(name: str, function: str, key: Any) -> Built:
    module = _module(name)
    return lambda key: getattr(module, function)(key, 32, (128, 128)), (key,)


def philox() -> Built:
    return _bits("random.philox", "philox_random_bits", jnp.array([1, 2], jnp.uint32))


def threefry() -> Built:
    return _bits("random.threefry", "plthreefry_random_bits", jnp.array([1, 2], jnp.uint32))


KERNELS: dict[str, Callable[..., Built]] = {
    built.__name__: built
    for built in (
        all_gather,
        example_kernel,
        flash_attention,
        flash_attention_backward,
        matmul,
        megablox_gmm,
        megablox_tgmm,
        paged_attention,
        paged_attention_grid,
        paged_attention_quantized,
        philox,
        ragged_paged_attention,
        splash_attention,
        splash_attention_backward,
        threefry,
    )
}

# Those run in the interpreter, and what ``pltpu.InterpretParams`` needs for it. The variants left
# out run as well, and take their time. ragged_paged_attention does not: it reshapes refs (JAX
# 0.10.2 and 0.12.0.1: "'ReshapeTransform' object has no attribute 'indices'").
INTERPRETED: dict[str, dict[str, Any]] = {
    # Its steps share a receive semaphore. "on_wait" lets copies overtake each other: a wait then
    # ends with the bytes of another step and NaNs come out (both versions); JAX's race detector
    # says so (0.12.0.1).
    "all_gather": {"dma_execution_mode": "eager"},
    "example_kernel": {},
    "flash_attention": {},
    "matmul": {},
    "megablox_gmm": {},
    "megablox_tgmm": {},
    "paged_attention": {},
    "philox": {},
    "splash_attention": {},
    "threefry": {},
}
