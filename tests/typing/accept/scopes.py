"""Scopes, as functions and as decorators, and handles in closures."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

equal = np.testing.assert_array_equal
SIMULATED = pltpu.InterpretParams()


def shaped(x: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


# run_scoped in a kernel, and run_scoped inside it; the result of the body comes out.
class Inner(sp.Scratch):
    buffer = sp.vmem((8, 128), jnp.float32)
    sem = sp.dma_semaphore()


def kernel(x: sp.Ref, o: sp.Ref) -> None:
    def outer(ready: sp.Semaphore, sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]) -> None:
        sp.signal(ready)

        def inner(buffer: sp.Ref, sem: sp.DmaSemaphore) -> jax.Array:
            sp.async_copy(x, buffer, sem).wait()
            sp.wait(ready)
            return buffer[...] * 2.0

        doubled = sp.run_scoped(inner, sp.vmem((8, 128), jnp.float32), sp.dma_semaphore())

        def store(s: Inner) -> None:
            s.buffer[...] = doubled + 1.0
            sp.async_copy(s.buffer, o, s.sem).wait()

        sp.run_scoped(store, Inner)
        sp.async_copy(o, o, sems.at[1]).wait()

    sp.run_scoped(outer, sp.semaphore(), sp.dma_semaphore(2))


def check_nested_scopes() -> None:
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
    call = sp.pallas_call(kernel, shaped(x), interpret=SIMULATED)
    equal(call(x), x * 2 + 1)


# The decorator form of a scope: functions that bring their own semaphores.
class Staging(sp.Scratch):
    buffer = sp.vmem((8, 128), jnp.float32)
    sems = sp.dma_semaphore(2)


@sp.with_scoped(sp.dma_semaphore())
def copy(src: sp.Ref, dst: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(src, dst, sem).wait()


@sp.with_scoped(Staging)
def copy_staged(src: sp.Ref, dst: sp.Ref, s: Staging) -> None:
    sp.async_copy(src, s.buffer, s.sems.at[0]).wait()
    sp.async_copy(s.buffer, dst, s.sems.at[1]).wait()


@sp.with_scoped(sp.semaphore(), sp.dma_semaphore())
def load(src: sp.Ref, done: sp.Semaphore, sem: sp.DmaSemaphore) -> jax.Array:
    sp.async_copy(src, src, sem).wait()
    sp.signal(done)
    sp.wait(done)
    return src[...]


def with_scoped(x: sp.Ref, o: sp.Ref) -> None:
    copy(x.at[0], o.at[0])
    copy_staged(x.at[1], o.at[1])
    o[2] = load(x.at[2]) + 1.0

    @sp.with_scoped(sp.dma_semaphore())
    def last(sem: sp.DmaSemaphore) -> None:
        sp.async_copy(x.at[3], o.at[3], sem).wait()

    last()


def check_with_scoped() -> None:
    x = jnp.arange(4 * 1024, dtype=jnp.float32).reshape(4, 8, 128)
    call = sp.pallas_call(with_scoped, shaped(x), interpret=SIMULATED)
    equal(call(x), x.at[2].add(1.0))


# Handles in closures: under pl.when, in loops, in functions made inside the kernel.
STEPS, ROWS, COLS = 4, 8, 128


class Buffers(sp.Scratch):
    row = sp.vmem((ROWS, COLS), jnp.float32)
    sem = sp.dma_semaphore()
    odd = sp.semaphore()


def closures(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    step = pl.program_id(0)

    @pl.when(step == 0)
    def _init() -> None:
        o[...] = jnp.zeros(o.shape, o.dtype)

    def fetch() -> sp.LocalCopy:
        return sp.async_copy(x.at[step], s.row, s.sem)

    fetch().wait()

    @pl.when(jax.lax.rem(step, 2) == 1)
    def _count() -> None:
        sp.signal(s.odd)

        @pl.when(step == 1)
        def _again() -> None:
            sp.signal(s.odd, 2)

    o[...] += s.row[...]

    @pl.when(step == pl.num_programs(0) - 1)
    def _drain() -> None:
        sp.wait(s.odd, STEPS // 2 + 2)


def check_closures() -> None:
    x = jnp.arange(STEPS * ROWS * COLS, dtype=jnp.float32).reshape(STEPS, ROWS, COLS)
    call = sp.pallas_call(
        closures,
        jax.ShapeDtypeStruct((ROWS, COLS), jnp.float32),
        grid=(STEPS,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((ROWS, COLS), lambda i: (0, 0)),
        scratch_shapes=Buffers,
        interpret=SIMULATED,
    )
    equal(call(x), x.sum(axis=0))
