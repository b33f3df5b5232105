"""What a kernel leaves in memory, and on itself: nothing that stays, nothing that is in the way."""

import copy
import functools
import gc
import pickle
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

X = OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)


def trace(kernel: Any, *scratch: Any) -> str:
    return str(jax.make_jaxpr(sp.pallas_call(kernel, OUT, scratch_shapes=scratch))(X))


class Kept(sp.Scratch):
    sem = sp.dma_semaphore()


def new_kernel() -> Any:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
        sp.async_copy(x, o, sem).wait()

    return kernel, (sp.dma_semaphore(),)


def new_kernel_with_a_scratch() -> Any:
    def kernel(x: sp.Ref, o: sp.Ref, s: Kept) -> None:
        sp.async_copy(x, o, s.sem).wait()

    return kernel, Kept


def new_partial() -> Any:
    kernel, scratch = new_kernel()
    return functools.partial(kernel), scratch


def new_callable() -> Any:
    class Kernel:
        def __call__(self, x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
            sp.async_copy(x, o, sem).wait()

    return Kernel(), (sp.dma_semaphore(),)


def new_kernel_with_a_scope() -> Any:
    def body(own: sp.Semaphore) -> None:
        sp.signal(own)

    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        sp.run_scoped(body, sp.semaphore())

    return kernel, ()


def new_kernel_that_fails() -> Any:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        sp.signal(sem, True)

    return kernel, (sp.semaphore(),)


MAKERS = [
    new_kernel,
    new_kernel_with_a_scratch,
    new_partial,
    new_callable,
    new_kernel_with_a_scope,
    new_kernel_that_fails,
]


@pytest.mark.parametrize("make", MAKERS, ids=[make.__name__ for make in MAKERS])
def test_a_kernel_is_collected_after_use(make: Any) -> None:
    def use() -> weakref.ref[Any]:
        kernel, scratch = make()
        for interpret in True, pltpu.InterpretParams():
            call: Any = sp.pallas_call(kernel, OUT, scratch_shapes=scratch, interpret=interpret)
            try:
                jax.make_jaxpr(call)(X)
                jax.jit(call)(jnp.zeros((8, 128))) if interpret is True else None
            except sp.errors.AmountTypeError:
                pass
        return weakref.ref(kernel)

    used = use()
    gc.collect()
    assert used() is None


def test_scratch_classes_stay_as_jax_forgets_no_pytree_class() -> None:
    """One class for each time that a function which defines one runs; kernels do go."""

    def use() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        class Buffers(sp.Scratch):
            sem = sp.dma_semaphore()

        def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
            sp.async_copy(x, o, s.sem).wait()

        jax.make_jaxpr(sp.pallas_call(kernel, OUT, scratch_shapes=Buffers))(X)
        return weakref.ref(kernel), weakref.ref(Buffers)

    kernel, buffers = use()
    gc.collect()
    assert kernel() is None
    assert buffers() is not None


def test_a_plain_pytree_class_stays_as_well() -> None:
    """Raw JAX does the same to any class that is registered."""

    def use() -> weakref.ref[Any]:
        class Group:
            pass

        jax.tree_util.register_pytree_node(Group, lambda _: ((), None), lambda *_: None)
        return weakref.ref(Group)

    group = use()
    gc.collect()
    assert group() is not None


def test_handles_are_collected_with_the_trace() -> None:
    scopes: list[weakref.ref[Any]] = []

    class Witness:
        pass

    def kernel(x: sp.Ref, o: sp.Ref, sems: Any) -> None:
        witness = Witness()
        scopes.append(weakref.ref(witness))
        held = [sems[0], sems, sp.make_async_copy(x, o, sems[0]), witness]
        held.append(held)
        pl.when(x[0, 0] > 0)(lambda: held[2].start())

    trace(kernel, sp.dma_semaphore(2))
    gc.collect()
    assert scopes[0]() is None


class Kernel:
    """A kernel with an option, as an object and as a method."""

    def __init__(self, inc: int) -> None:
        self.inc = inc

    def __call__(self, x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        sp.signal(sem, self.inc)

    def method(self, x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        sp.signal(sem, self.inc)


def function(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore, inc: int) -> None:
    sp.signal(sem, inc)


def pickled(kernel: Any) -> Any:
    return pickle.loads(pickle.dumps(kernel))


def test_an_object_is_collected_after_use_of_its_method() -> None:
    kernel = Kernel(2)
    trace(kernel.method, sp.semaphore())
    alive = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_used_kernels_can_be_copied(copied: Any) -> None:
    """As they can be after use in raw Pallas; and a copy is a kernel of its own."""
    kernel = Kernel(2)
    before = trace(kernel, sp.semaphore())
    other = copied(kernel)
    assert trace(other, sp.semaphore()) == before
    other.inc = 3
    another = copied(other)
    assert trace(another, sp.semaphore()) == before.replace("] 2:i32[]", "] 3:i32[]") != before
    assert trace(kernel, sp.semaphore()) == before

    partial = functools.partial(function, inc=2)
    before = trace(partial, sp.semaphore())
    assert trace(copied(partial), sp.semaphore()) == before
    assert copied(function) is function
