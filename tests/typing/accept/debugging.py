"""Reading counts, printing handles, asking which is which: what debugging looks like."""

import jax
import jax.numpy as jnp
import numpy as np

import safepallas as sp


def report(sem: sp.Semaphore | sp.BarrierSemaphore | sp.DmaSemaphore) -> str:
    if isinstance(sem, sp.DmaSemaphore):
        return f"bytes on {sem}"
    return f"count on {sem!r}"


def kernel(
    x: sp.Ref,
    o: sp.Ref,
    count: sp.Semaphore,
    sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]],
) -> None:
    sp.signal(count, 5)
    before = sp.read(count)
    sp.wait(count, 2)
    copy = sp.async_copy(x, x, sems.at[0])
    copy.wait()
    o[0] = before + sp.read(count)
    o[1] = jnp.where(sp.read(sems.at[1]) == 0, 1, 0)
    sp.wait(count, 3)
    names = {report(count), report(sems.at[0]), str(sems), repr(copy)}
    assert len(names) == 4
    chosen = sems.at[0]
    assert chosen is not None
    assert count in (count,)
    assert sems.shape == (2,)


def main() -> None:
    x = jnp.ones((8, 128), jnp.float32)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((2,), jnp.int32),
        scratch_shapes=(sp.semaphore(), sp.dma_semaphore(2)),
        interpret=True,
    )
    np.testing.assert_array_equal(call(x), [8, 1])
