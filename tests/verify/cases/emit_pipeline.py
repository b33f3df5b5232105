"""A kernel that streams HBM through VMEM with pltpu.emit_pipeline (4 blocks, one input, one
output).

Right: emit_pipeline allocates its own buffers and DMA semaphores (run_scoped) and awaits every copy
it starts. The jaxpr contains the library's start/wait protocol with dynamic slots, conditions on
the step number and loop carries: it must not raise a false alarm.
"""

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from . import TILE, Form, call, tiles

RIGHT = Form()


def kernel(x_ref, o_ref):
    def body(x_blk, o_blk):
        o_blk[...] = x_blk[...] * 2.0 + 1.0

    spec = pl.BlockSpec((1, *TILE), lambda i: (i, 0, 0))
    pltpu.emit_pipeline(body, grid=(4,), in_specs=[spec], out_specs=[spec])(x_ref, o_ref)


def build(n, correct):
    one = call(kernel, out=(4,))

    def fn(x):  # emit_pipeline asks for the kind of chip while it is traced
        chip = jax.sharding.AbstractDevice(device_kind="TPU v5 lite", num_cores=1, platform="tpu")
        with jax.sharding.use_abstract_mesh(
            jax.sharding.AbstractMesh((), (), abstract_device=chip)
        ):
            return one(x)

    return fn, (tiles(4),)
