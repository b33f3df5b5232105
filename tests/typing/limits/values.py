"""Semaphores taken for values, where every object is welcome."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

import safepallas as sp

LIKE = jax.ShapeDtypeStruct((8, 128), jnp.float32)


class Sems(sp.Scratch):
    sem = sp.dma_semaphore()
    done = sp.semaphore()
    slots = sp.semaphore(2)


def trace(kernel: Callable[[sp.Ref, Sems], None]) -> None:
    sp.pallas_call(kernel, LIKE, scratch_shapes=Sems, interpret=True)()


def truth(o: sp.Ref, s: Sems) -> None:
    # mypy does not look at __bool__, whatever that is declared to return.
    if s.done:  # L(mypy, pyright): every object has a truth value
        sp.signal(s.done)


def negation(o: sp.Ref, s: Sems) -> None:
    waiting = not s.done  # L(mypy, pyright, pyrefly): as above
    del waiting


def conversion(o: sp.Ref, s: Sems) -> None:
    o[0, 0] = jnp.asarray(s.done)  # L: asarray takes Any


def deletion(o: sp.Ref, s: Sems) -> None:
    del s.sem  # L: no checker looks for `__delete__`


def by_name(o: sp.Ref, s: Sems) -> None:
    setattr(s, f"{'done'}", s.slots.at[0])  # L: setattr takes any name and value


LIMITS = {
    truth: TypeError,
    negation: TypeError,
    conversion: TypeError,
    deletion: AttributeError,
    by_name: AttributeError,
}
