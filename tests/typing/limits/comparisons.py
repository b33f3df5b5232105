"""Comparisons of handles. mypy and pyright report that the two sides can never be equal. pyrefly
and ty take ``==`` between any two objects, as Python does, and no annotation of ``__eq__`` changes
that: where it does not fit, they ask the other side.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

import safepallas as sp

LIKE = jax.ShapeDtypeStruct((8, 128), jnp.float32)


class Sems(sp.Scratch):
    copied = sp.dma_semaphore()
    done = sp.semaphore()
    slots = sp.semaphore(2)


def trace(kernel: Callable[[sp.Ref, Sems], None]) -> None:
    sp.pallas_call(kernel, LIKE, scratch_shapes=Sems, interpret=True)()


def equal_to_a_number(o: sp.Ref, s: Sems) -> None:
    empty = s.done == 0  # L(pyrefly, ty): every object has ==
    del empty


def unequal_to_a_number(o: sp.Ref, s: Sems) -> None:
    busy = s.copied != 1  # L(pyrefly, ty): every object has !=
    del busy


def number_in_an_array(o: sp.Ref, s: Sems) -> None:
    found = 0 in s.slots  # L(ty): whatever can be iterated over can be searched
    del found


def two_kinds(o: sp.Ref, s: Sems) -> None:
    same = s.done == s.copied  # L(pyrefly, ty): every object has ==
    assert not same


def one_and_many(o: sp.Ref, s: Sems) -> None:
    same = s.done == s.slots  # L(pyrefly, ty): every object has ==
    assert not same


LIMITS = {
    equal_to_a_number: TypeError,
    unequal_to_a_number: TypeError,
    number_in_an_array: TypeError,
    two_kinds: None,  # harmless: False
    one_and_many: None,  # harmless: False
}
