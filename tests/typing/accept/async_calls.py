"""A kernel's start and done, whose in-flight state goes through helpers and a dataclass."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp


class Flight(sp.Scratch):
    sem = sp.dma_semaphore()


def start(scale: int, x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    assert scale == 2
    sp.async_copy(x, o, flight.sem)


def done(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
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
        functools.partial(start, 2),
        done,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=1 << 20),
        interpret=pltpu.InterpretParams(),
    )
    prefetch = begin(call, x)
    doubled = prefetch.pending.then(x) * 2
    return doubled + finish(prefetch, doubled)


def main() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    np.testing.assert_array_equal(jax.jit(compute)(x), 3 * x)
