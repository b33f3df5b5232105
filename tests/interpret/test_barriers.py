"""The barriers on simulated devices: they end, in time, with no race and nothing left over.

After each barrier a device writes into the memory of another one, which is a race unless that one
has entered: the race detector of the interpreter looks on.
"""

import pytest

from .test_examples import run

# Run with the sizes of the axes as sys.argv[2], one device more than they need in sys.argv[1].
CODE = """
import os, sys
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={sys.argv[1]}"
import jax, jax.numpy as jnp, numpy as np
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P
import safepallas as sp
sizes = tuple(map(int, sys.argv[2].split("x")))
names = ("x", "y")[:len(sizes)]
count = int(np.prod(sizes))
mesh = jax.sharding.Mesh(np.array(jax.devices()[:count]).reshape(sizes), names)
def shift(x, o, axes, send, recv):
    size = jax.lax.axis_size(axes)
    right = jax.lax.rem(jax.lax.axis_index(axes) + 1, size)
    sp.async_remote_copy(x, o, send, recv, {axes: right}).wait()
def sequence(x, o, send, recv):
    sp.barrier_all("x")
    sp.barrier_neighbors("x")
    shift(x, o, "x", send, recv)
    sp.barrier_all(["x"])
    shift(x, o, "x", send, recv)
    sp.barrier_neighbors("x")
    o[...] = o[...] + 1
def joint(x, o, send, recv):
    sp.barrier_all(names)
    shift(x, o, names, send, recv)
    sp.barrier_all(names[::-1])
    o[...] = o[...] + 1
def call(kernel):
    def fn(x):
        made = sp.pallas_call(
            kernel,
            jax.ShapeDtypeStruct((8, 128), jnp.float32),
            scratch_shapes=(sp.dma_semaphore(), sp.dma_semaphore()),
            compiler_params=pltpu.CompilerParams(collective_id=0),
            interpret=pltpu.InterpretParams(detect_races=True),
        )
        return made(made(x[0]))[None]  # the same collective_id again at once
    spec = P(names)
    return jax.jit(jax.shard_map(fn, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
x = jnp.arange(count * 8 * 128, dtype=jnp.float32).reshape(count, 8, 128)
wide = x.reshape(*sizes, 8, 128)
np.testing.assert_array_equal(call(sequence)(x), jnp.roll(wide, 2, 0).reshape(x.shape) + 2)
if len(sizes) > 1:
    np.testing.assert_array_equal(call(joint)(x), jnp.roll(x, 2, 0) + 2)
"""


@pytest.mark.parametrize("sizes", ["1", "2", "5", "6", "2x3"])
def test_barriers(sizes: str) -> None:
    devices = 1
    for size in sizes.split("x"):
        devices *= int(size)
    assert run("-c", CODE, str(devices + 1), sizes) == ""
