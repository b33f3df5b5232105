"""A semaphore that leaves one kernel and enters the next: start and done apart.

No interpreter of JAX carries a semaphore from one kernel to the next (see
``test_between_kernels.py``, which compiles `apart` for TPUs). So the same two bodies also run in
one kernel here, where the result can be checked.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

HBM = pl.BlockSpec(memory_space=pltpu.HBM)
SEMAPHORE = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
PARAMS = pltpu.CompilerParams(has_side_effects=True)  # a copy is not dropped once it has begun


def start(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.make_async_copy(x, o, sem).start()


def done(x: sp.Ref, begun: sp.Ref, sem: sp.DmaSemaphore, o: sp.Ref) -> None:
    del x, o  # x lives until here, and o is what begun was
    sp.wait_bytes(sem, begun)


def apart(x: jax.Array) -> jax.Array:
    """Twice x and x, copied meanwhile."""
    # Both buffers stay where they are while the copy is on its way.
    pinned = pltpu.with_memory_space_constraint(x, pltpu.HBM)
    begun, sem = sp.pallas_call(
        start,
        (pltpu.HBM(x.shape, x.dtype), sp.dma_semaphore()),
        in_specs=[HBM],
        out_specs=(HBM, SEMAPHORE),
        compiler_params=PARAMS,
    )(pinned)
    doubled = x * 2
    copied: jax.Array = sp.pallas_call(
        done,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[HBM, HBM, SEMAPHORE],
        out_specs=HBM,
        input_output_aliases={1: 0},
        compiler_params=PARAMS,
    )(pinned, begun, sem)
    return doubled + copied


def in_sequence(x: jax.Array) -> jax.Array:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
        start(x, o, sem)
        done(x, o, sem, o)

    copied: jax.Array = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[HBM],
        out_specs=HBM,
        scratch_shapes=(sp.dma_semaphore(),),
        interpret=pltpu.InterpretParams(),
    )(x)
    return x * 2 + copied


def main() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    np.testing.assert_array_equal(in_sequence(x), 3 * x)
    out = jax.eval_shape(apart, x)
    assert (out.shape, out.dtype) == (x.shape, x.dtype)
