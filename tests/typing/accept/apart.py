"""Kernels in two: a semaphore that leaves one and enters the next, and start and done."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

equal = np.testing.assert_array_equal
X = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
LIKE = jax.ShapeDtypeStruct(X.shape, X.dtype)
SIMULATED = pltpu.InterpretParams()


def shaped(x: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


# A semaphore that leaves one kernel and enters the next: start and done apart.
#
# No interpreter of JAX carries a semaphore from one kernel to the next (see
# ``test_between_kernels.py``, which compiles `apart` for TPUs). So the same two bodies also run in
# one kernel here, where the result can be checked.
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
        shaped(x),
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
        shaped(x),
        in_specs=[HBM],
        out_specs=HBM,
        scratch_shapes=(sp.dma_semaphore(),),
        interpret=SIMULATED,
    )(x)
    return x * 2 + copied


def check_between_kernels() -> None:
    equal(in_sequence(X), 3 * X)
    out = jax.eval_shape(apart, X)
    assert (out.shape, out.dtype) == (X.shape, X.dtype)


# A kernel's start and done, whose in-flight state goes through helpers and a dataclass.
class Flight(sp.Scratch):
    sem = sp.dma_semaphore()


def begins(scale: int, x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    assert scale == 2
    sp.async_copy(x, o, flight.sem)


def ends(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    del x
    sp.wait_bytes(flight.sem, o)


@dataclasses.dataclass(frozen=True)
class Prefetch:
    call: sp.AsyncCall[Flight]
    pending: sp.InFlight[Flight]


def begin(call: sp.AsyncCall[Flight], x: jax.Array) -> Prefetch:
    return Prefetch(call, call.start(x))


def finish(prefetch: Prefetch, after: jax.Array) -> jax.Array:
    copied: jax.Array = prefetch.call.done(prefetch.pending, after=after)
    return copied


def compute(x: jax.Array) -> jax.Array:
    call = sp.pallas_call_async(
        Flight,
        functools.partial(begins, 2),
        ends,
        shaped(x),
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=1 << 20),
        interpret=SIMULATED,
    )
    prefetch = begin(call, x)
    doubled = prefetch.pending.then(x) * 2
    return doubled + finish(prefetch, doubled)


def check_async_calls() -> None:
    equal(jax.jit(compute)(X), 3 * X)
