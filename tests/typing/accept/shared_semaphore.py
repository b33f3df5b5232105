"""One DMA semaphore for several copies at once, local and remote alike: it counts bytes."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp

DEVICES, ROWS = 2, 4


class Sems(sp.Scratch):
    copies = sp.dma_semaphore()
    sent = sp.dma_semaphore()


def kernel(x: sp.Ref, mine: sp.Ref, theirs: sp.Ref, s: Sems) -> None:
    other = 1 - jax.lax.axis_index("x")
    barrier = sp.get_barrier_semaphore()
    sp.signal(barrier, device_id={"x": other})
    sp.wait(barrier)
    # All in flight at once. What arrives from the other device counts here, too.
    local = [sp.async_copy(x.at[row], mine.at[row], s.copies) for row in range(ROWS)]
    remote = sp.async_remote_copy(x, theirs, s.sent, s.copies, {"x": other})
    for copy in local:
        copy.wait()
    remote.wait()  # only now is it certain that any one of them is complete


def main() -> None:
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    like = jax.ShapeDtypeStruct((ROWS, 128), jnp.float32)
    call = sp.pallas_call(
        kernel,
        (like, like),
        in_specs=[hbm],
        out_specs=(hbm, hbm),
        scratch_shapes=Sems,
        compiler_params=pltpu.CompilerParams(collective_id=0),
        interpret=pltpu.InterpretParams(),
    )
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:DEVICES]), ("x",))
    x = jnp.arange(DEVICES * ROWS * 128, dtype=jnp.float32).reshape(-1, 128)
    fn = jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    mine, theirs = jax.jit(fn)(x)
    np.testing.assert_array_equal(mine, x)
    np.testing.assert_array_equal(theirs, jnp.roll(x, ROWS, axis=0))
