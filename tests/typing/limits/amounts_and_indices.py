"""Values of the right type that are out of range, and bools, which are ints to checkers."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

import safepallas as sp


class Sems(sp.Scratch):
    count = sp.semaphore()
    slots = sp.semaphore(2)
    copies = sp.dma_semaphore(2, 2)


def trace(kernel: Callable[[sp.Ref, sp.Ref, Sems], None]) -> None:
    x = jnp.zeros((8, 128), jnp.float32)
    sp.pallas_call(kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), scratch_shapes=Sems)(x)


def bool_amount(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.signal(s.count, True)  # L: a bool is an int


def float_array_amount(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.signal(s.count, x[0, 0])  # L: jax.Array says nothing of its dtype


def vector_amount(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.wait(s.count, jnp.zeros(2, jnp.int32))  # L: nor of its shape


def negative_amount(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.signal(s.count, -1)  # L: int says nothing of its sign


def wait_for_nothing(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.wait(s.count, 0)  # L: nor of its value


def out_of_bounds(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.signal(s.slots.at[2])  # L: the rank is typed, the sizes are not


def bool_index(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.signal(s.slots.at[False])  # L: a bool is an int


def float_array_index(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.async_copy(x, o, s.copies.at[0, x[0, 0]])  # L: jax.Array says nothing of its dtype


def negative_priority(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.async_copy(x, o, s.copies.at[0, 0], priority=-1)  # L: int says nothing of its sign


def negative_core(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.signal(s.count, core_index=-1)  # L: int says nothing of its sign


def negative_size() -> None:
    sp.dma_semaphore(-1)  # L: int says nothing of its sign


def bool_size() -> None:
    sp.dma_semaphore(True)  # L: a bool is an int


LIMITS = {
    bool_amount: sp.errors.AmountTypeError,
    float_array_amount: sp.errors.AmountTypeError,
    vector_amount: sp.errors.AmountTypeError,
    negative_amount: sp.errors.AmountRangeError,
    wait_for_nothing: sp.errors.AmountRangeError,
    out_of_bounds: sp.errors.IndexRangeError,
    bool_index: sp.errors.IndexTypeError,
    float_array_index: sp.errors.IndexTypeError,
    negative_priority: sp.errors.CopyOptionError,
    negative_core: sp.errors.AmountTypeError,
    negative_size: sp.errors.SpecError,
    bool_size: sp.errors.SpecError,
}
