"""Kernels in two forms, a right and a wrong one, and what they share.

Each module has a `kernel` and ``build(devices, correct)``, which returns a function and its
arguments, and says in `RIGHT` and `WRONG` what must be found. The verdicts were found by an
exhaustive search over interleavings, not by `verify`.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

TILE = (8, 128)
DMA = pltpu.SemaphoreType.DMA
REGULAR = pltpu.SemaphoreType.REGULAR
HBM = pl.BlockSpec(memory_space=pl.ANY)


@dataclasses.dataclass(frozen=True)
class Form:
    """What is expected of one form of a kernel, called once."""

    expect: str = "safe"  # or the kind of a finding
    also: tuple[str, ...] = ()  # other kinds that may be found as well
    devices: tuple[int, ...] = (1,)
    safe_on: tuple[int, ...] = ()  # fewer devices, on which a wrong form is safe
    line: str = ""  # part of a line that a finding of that kind names


def tiles(*lead):
    """So many tiles of floats."""
    return jax.ShapeDtypeStruct((*lead, *TILE), jnp.float32)


def vmem(*lead):
    return pltpu.VMEM((*lead, *TILE), jnp.float32)


def call(kernel, *scratch, correct=None, out=(), hbm=1, out_in_hbm=True, grid=None, prefetch=0,
         has_barrier=False):  # fmt: skip
    """A `pl.pallas_call` with so many inputs in HBM (None: all in VMEM), and tiles as output."""
    if correct is not None:
        kernel = functools.partial(kernel, correct=correct)
    specs = {}
    if hbm is not None:
        specs["in_specs"] = [HBM] * hbm
    if out_in_hbm:
        specs["out_specs"] = HBM
    params = pltpu.CompilerParams(collective_id=0) if has_barrier else None
    if grid is None and not prefetch:
        specs["scratch_shapes"] = scratch
        return pl.pallas_call(kernel, tiles(*out), compiler_params=params, **specs)
    whole = pl.BlockSpec(TILE, lambda *_: (0, 0))
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=prefetch,
        grid=grid or (1,),
        scratch_shapes=scratch,
        **{"out_specs": whole, **specs},
    )
    return pl.pallas_call(kernel, tiles(*out), grid_spec=grid_spec, compiler_params=params)


def on_ring(fn, devices, in_specs=None):
    mesh = AbstractMesh((devices,), ("x",), axis_types=(AxisType.Auto,))
    return jax.shard_map(
        fn, mesh=mesh, in_specs=in_specs or P("x"), out_specs=P("x"), check_vma=False
    )


def rows(devices):
    """A tile for each device."""
    return jax.ShapeDtypeStruct((8 * devices, 128), jnp.float32)


def ring():
    """The number of devices, and of this one, the left and the right neighbour."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    return n, me, jax.lax.rem(me + n - 1, n), jax.lax.rem(me + 1, n)


def signal_and_wait(semaphore, devices):
    for device in devices:
        pl.semaphore_signal(semaphore, 1, device_id=(device,))
    pl.semaphore_wait(semaphore, len(devices))


def copy_here(source, target, semaphore):
    copy = pltpu.make_async_copy(source, target, semaphore)
    copy.start()
    copy.wait()
