"""Copies that share a semaphore, are waited for elsewhere, or count."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp

equal = np.testing.assert_array_equal
SIMULATED = pltpu.InterpretParams()


# One DMA semaphore for several copies at once, local and remote alike: it counts bytes.
DEVICES, ROWS = 2, 4


class Sems(sp.Scratch):
    copies = sp.dma_semaphore()
    send = sp.dma_semaphore()


def kernel(x: sp.Ref, mine: sp.Ref, theirs: sp.Ref, s: Sems) -> None:
    other = 1 - jax.lax.axis_index("x")
    barrier = sp.get_barrier_semaphore()
    sp.signal(barrier, device_id={"x": other})
    sp.wait(barrier)
    # All in flight at once. What arrives from the other device counts here, too.
    local = [sp.async_copy(x.at[row], mine.at[row], s.copies) for row in range(ROWS)]
    remote = sp.async_remote_copy(x, theirs, s.send, s.copies, {"x": other})
    for copy in local:
        copy.wait()
    remote.wait()  # only now is it certain that any one of them is complete


def check_shared_semaphore() -> None:
    like = jax.ShapeDtypeStruct((ROWS, 128), jnp.float32)
    call = sp.pallas_call(
        kernel,
        (like, like),
        scratch_shapes=Sems,
        compiler_params=pltpu.CompilerParams(collective_id=0),
        interpret=SIMULATED,
    )
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:DEVICES]), ("x",))
    x = jnp.arange(DEVICES * ROWS * 128, dtype=jnp.float32).reshape(-1, 128)
    fn = jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    mine, theirs = jax.jit(fn)(x)
    equal(mine, x)
    equal(theirs, jnp.roll(x, ROWS, axis=0))


# Copies that are waited for without the object that started them.
STEPS, LINES, COLS = 3, 8, 128


class Buffers(sp.Scratch):
    window = sp.vmem((2, LINES, COLS), jnp.float32)
    arrived = sp.dma_semaphore(2)
    bulk = sp.dma_semaphore()
    all_of_it = sp.vmem((STEPS, LINES, COLS), jnp.float32)


def wait_elsewhere(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    """Starts in one grid step what the next waits for."""
    step = pl.program_id(0)
    slot = jax.lax.rem(step, 2)

    @pl.when(step == 0)
    def _first() -> None:
        sp.make_async_copy(x.at[0], s.window.at[0], s.arrived.at[0]).start()

    @pl.when(step + 1 < STEPS)
    def _next() -> None:
        sp.make_async_copy(x.at[step + 1], s.window.at[1 - slot], s.arrived.at[1 - slot]).start()

    # A descriptor made for waiting alone.
    sp.make_async_copy(s.window.at[slot], s.window.at[slot], s.arrived.at[slot]).wait()
    o[...] = s.window[slot]

    # Many copies, one wait for all their bytes.
    for i in range(STEPS):
        sp.async_copy(x.at[i], s.all_of_it.at[i], s.bulk, priority=0)
    sp.wait_bytes(s.bulk, s.all_of_it)
    o[...] += s.all_of_it[0]


def check_wait_elsewhere() -> None:
    x = jnp.arange(STEPS * LINES * COLS, dtype=jnp.float32).reshape(STEPS, LINES, COLS)

    def window(i: jax.Array) -> tuple[jax.Array, int, int]:
        return i, 0, 0

    call = sp.pallas_call(
        wait_elsewhere,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(STEPS,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((None, LINES, COLS), window),
        scratch_shapes=Buffers,
        interpret=SIMULATED,
    )
    equal(call(x), x + x[0])


# Counted copies, on regular semaphores, waited for by their number.
class Counts(sp.Scratch):
    arrived = sp.semaphore()
    left = sp.semaphore(2)
    rows = sp.vmem((4, 128), jnp.float32)


def gather(table: sp.Ref, rows: sp.Ref, done: sp.Semaphore, count: int) -> None:
    for i in range(count):
        sp.async_copy_counted(table.at[2 * i], rows.at[i], done)


def counted_copies(x: sp.Ref, o: sp.Ref, s: Counts) -> None:
    gather(x, s.rows, s.arrived, 4)
    sp.wait(s.arrived, 4)
    sp.async_copy_counted(s.rows, o, sem=s.left[0])
    sp.wait(s.left.at[0])


def swap(x: sp.Ref, o: sp.Ref, send: sp.Semaphore, recv: sp.Semaphore) -> None:
    other = 1 - jax.lax.axis_index("x")
    # An int: interpret=True of JAX 0.10.2 knows no axis names for a remote copy.
    sp.async_remote_copy_counted(x, o, send, recv, other)
    sp.wait(send)
    sp.wait(recv)


def check_counted_copies() -> None:
    x = jnp.arange(8 * 128, dtype=jnp.float32).reshape(8, 128)
    out = jax.ShapeDtypeStruct((4, 128), jnp.float32)
    call = sp.pallas_call(counted_copies, out, scratch_shapes=Counts, interpret=True)
    equal(call(x), x[::2])

    semaphores = (sp.semaphore(), sp.semaphore())
    swapping = sp.pallas_call(swap, out, scratch_shapes=semaphores, interpret=True)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    spec = jax.sharding.PartitionSpec("x")
    fn = jax.shard_map(swapping, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    equal(jax.jit(fn)(x), jnp.roll(x, 4, axis=0))
