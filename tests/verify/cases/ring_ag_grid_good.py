"""Ring all-gather, one grid step per hop, one recv semaphore per step; the local copy is awaited
before the first send; neighbour barrier in step 0.

SAFE (for one call): chunk s is forwarded only after recv semaphore s-1 - which carries exactly
that chunk - was awaited; a neighbour running ahead writes only to rows not touched yet. The
first write to the right neighbour is ordered after its entry by the barrier. (Called
repeatedly, its single-phase barrier would have to be looked at again: see barrier_two_calls_bad.)
"""
import numpy as np
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType, Mesh, PartitionSpec as P

F32 = jnp.float32
TILE = (8, 128)
DMA = pltpu.SemaphoreType.DMA
REG = pltpu.SemaphoreType.REGULAR
HBM = pl.BlockSpec(memory_space=pl.ANY)

CASE = {
    "id": "ring_ag_grid_good",
    "expect": "safe",
    "also": [],
    "devices": [2, 3, 4],
    "single_device": False,
    "source": 'ring all-gather with grid steps; own chunk still being written when it is sent',
    "line_hint": '',
}


def _interp(interpret):
    return pltpu.InterpretParams(detect_races=True) if interpret is True else interpret


def _data(*shape):
    return (np.arange(np.prod(shape)) % 251).astype(np.float32).reshape(shape)


def _mesh(n, interpret, mesh):
    if mesh is not None:
        return mesh
    if interpret:
        return Mesh(np.array(jax.devices()[:n]), ("x",))
    return AbstractMesh((n,), ("x",), axis_types=(AxisType.Auto,))


def _ring():
    """(number of devices, my index, left neighbour, right neighbour)"""
    n = jax.lax.axis_size("x")
    me = jax.lax.axis_index("x")
    return n, me, jax.lax.rem(me + n - 1, n), jax.lax.rem(me + 1, n)


def _neighbour_barrier(left, right):
    barrier = pltpu.get_barrier_semaphore()
    for d in (left, right):
        pl.semaphore_signal(barrier, 1, device_id=(d,))
    pl.semaphore_wait(barrier, 2)


def kernel(x_ref, o_ref, local_sem, send_sem, recv_sems):
    n, me, left, right = _ring()
    step = pl.program_id(0)
    local = pltpu.make_async_copy(x_ref, o_ref.at[me], local_sem)

    @pl.when(step == 0)
    def _():
        _neighbour_barrier(left, right)
        local.start()
        local.wait()

    chunk = jax.lax.rem(me - step + n, n)
    send = pltpu.make_async_remote_copy(
        o_ref.at[chunk], o_ref.at[chunk], send_sem, recv_sems.at[step], device_id=(right,))
    send.start()
    send.wait()  # my chunk has left, the next one has come in


def build(n, interpret=False, mesh=None):
    mesh = _mesh(n, interpret, mesh)
    call = pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((n,) + TILE, F32),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=0, grid=(n - 1,), in_specs=[HBM], out_specs=HBM,
            scratch_shapes=[DMA(()), DMA(()), DMA((n - 1,))]),
        compiler_params=pltpu.CompilerParams(collective_id=0), interpret=_interp(interpret))
    fn = jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    return fn, (_data(n * 8, 128),)


def expected(args):
    chunks = args[0].reshape(-1, 8, 128)
    return np.tile(chunks, (len(chunks), 1, 1))
