"""Types that get lost on the way: Any, partials, lists, raw requests, JAX's control flow."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

LIKE = jax.ShapeDtypeStruct((8, 128), jnp.float32)
X = jnp.zeros((8, 128), jnp.float32)


class Buffers(sp.Scratch):
    sem = sp.dma_semaphore()
    done = sp.semaphore()


class Others(sp.Scratch):
    done = sp.semaphore()


def trace(kernel: Callable[[sp.Ref, sp.Ref, Buffers], None]) -> None:
    sp.pallas_call(kernel, LIKE, scratch_shapes=Buffers)(X)


def copies(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, *, scale: float = 1.0) -> None:
    sp.async_copy(x, o, sem).wait()


def named(x: sp.Ref, o: sp.Ref, s: Buffers, *, scale: float = 1.0) -> None:
    sp.async_copy(x, o, s.sem).wait()


def keyword(x: sp.Ref, o: sp.Ref, *, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(x, o, sem).wait()


def grouped(x: sp.Ref, o: sp.Ref, sems: tuple[sp.DmaSemaphore, sp.Semaphore]) -> None:
    sp.async_copy(x, o, sems[0]).wait()


def partial_positional() -> None:
    kernel = functools.partial(copies, scale=2.0)
    call = sp.pallas_call(kernel, LIKE, scratch_shapes=(sp.semaphore(),))  # L(mypy): a partial
    call(X)


def partial_scratch() -> None:
    kernel = functools.partial(named, scale=2.0)
    call = sp.pallas_call(kernel, LIKE, scratch_shapes=Others)  # L(mypy): a partial
    call(X)


def either_class(wide: bool = False) -> None:
    call = sp.pallas_call(named, LIKE, scratch_shapes=Buffers if wide else Others)  # L(mypy): or
    call(X)


def lambda_of_one_ref() -> None:
    call = sp.pallas_call(
        lambda o, sem: sp.wait(sem),  # L(mypy, pyrefly, ty): a lambda of other than two refs
        LIKE,
        scratch_shapes=(sp.dma_semaphore(),),
    )
    call()


def in_a_list() -> None:
    call = sp.pallas_call(copies, LIKE, scratch_shapes=[sp.semaphore()])  # L: a list has one type
    call(X)


def in_a_dict() -> None:
    call = sp.pallas_call(keyword, LIKE, scratch_shapes={"sem": sp.semaphore()})  # L: so has a dict
    call(X)


def in_a_group() -> None:
    pair = (sp.semaphore(), sp.dma_semaphore())
    call = sp.pallas_call(grouped, LIKE, scratch_shapes=(pair,))  # L: groups are not followed
    call(X)


def raw_request() -> None:
    raw = pltpu.SemaphoreType.REGULAR(())
    call = sp.pallas_call(copies, LIKE, scratch_shapes=(raw,))  # L: Pallas has one type for all
    call(X)


def through_any() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sem: Any) -> None:
        sp.async_copy(x, o, sem).wait()  # L: Any

    sp.pallas_call(kernel, LIKE, scratch_shapes=(sp.semaphore(),))(X)


def raw_ref() -> None:
    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        def body(raw: Any) -> None:
            sp.signal(raw)  # L: what raw Pallas hands out is Any

        pl.run_scoped(body, pltpu.SemaphoreType.REGULAR)

    sp.pallas_call(kernel, LIKE)(X)


def int16_buffer() -> None:
    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        def body(raw: Any) -> None:
            sp.wait(raw)  # L: as above; an int16 buffer is no semaphore

        pl.run_scoped(body, pltpu.VMEM((), jnp.int16))

    sp.pallas_call(kernel, LIKE)(X)


def adopted_as_another(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.signal(sp.adopt(s.sem.ref, sp.semaphore()))  # L: a raw ref does not say its kind


def operand_of_cond(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    def branch(sem: sp.DmaSemaphore) -> None:
        sp.async_copy(x, o, sem).wait()

    jax.lax.cond(x[0, 0] > 0, branch, branch, s.done)  # L: operands are Any to JAX


def rebuilt_pytree(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    structure = jax.tree.structure(s.sem)
    sem = jax.tree.unflatten(structure, [s.done.ref])
    sp.async_copy(x, o, sem).wait()  # L: trees are Any to JAX


def hidden_request() -> None:
    class Hidden(sp.Scratch):
        sems = (sp.dma_semaphore(), sp.dma_semaphore())  # L: a class may hold any attribute

    del Hidden


def raw_field() -> None:
    class Raw(sp.Scratch):
        sem = pltpu.SemaphoreType.DMA  # L: as above

    del Raw


def host_device(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.signal(s.done, device_id=jax.devices()[0])  # L: jax.Device is Any


LIMITS = {
    partial_positional: sp.errors.AnnotationError,
    partial_scratch: sp.errors.AnnotationError,
    either_class: sp.errors.AnnotationError,
    lambda_of_one_ref: sp.errors.WrongKindError,
    in_a_list: sp.errors.AnnotationError,
    in_a_dict: sp.errors.AnnotationError,
    in_a_group: sp.errors.AnnotationError,
    raw_request: sp.errors.AnnotationError,
    through_any: sp.errors.WrongKindError,
    raw_ref: sp.errors.NotASemaphoreError,
    int16_buffer: sp.errors.NotASemaphoreError,
    adopted_as_another: sp.errors.AdoptError,
    operand_of_cond: sp.errors.WrongKindError,
    rebuilt_pytree: sp.errors.WrongKindError,
    hidden_request: sp.errors.SpecError,
    raw_field: sp.errors.SpecError,
    host_device: sp.errors.DeviceIdTypeError,
}
