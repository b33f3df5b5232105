"""Handles taken for values, arrays for one semaphore, and indices that do not fit."""

import jax
import jax.numpy as jnp

import safepallas as sp


# Handles taken for values: arithmetic, comparison, conversion, attributes.
def arithmetic(sem: sp.Semaphore, dma: sp.DmaSemaphore, n: int) -> None:
    sem + 1  # E: sp.signal(sem, 1)
    1 + sem  # E: the same from the right
    sem - 1  # E: sp.wait(sem)
    sem * 2  # E: no arithmetic
    -sem  # E: no arithmetic
    n @ sem  # E: no arithmetic
    sem += 1  # E: nor in place


def conversion(sem: sp.Semaphore, dma: sp.DmaSemaphore) -> None:
    int(sem)  # E: sp.read(sem)
    float(dma)  # E: sp.read(dma)
    len(sem)  # E: one semaphore has no length
    abs(sem)  # E: it is no number
    range(sem)  # E: it is no number
    list(sem)  # E: it has no elements
    for part in dma:  # E: it has no elements
        del part
    first, second = sem  # E: it has no elements
    sum([sem, sem])  # E: it is no number
    max(sem, sem)  # E: it has no order


def comparison(sem: sp.Semaphore, dma: sp.DmaSemaphore, sems: sp.SemaphoreArray[sp.Semaphore, tuple[int]]) -> None:
    while sem > 0:  # E: it has no order
        sp.wait(sem)
    if sem <= dma:  # E: it has no order
        sp.wait(sem)


def attributes(sem: sp.Semaphore, dma: sp.DmaSemaphore, sems: sp.SemaphoreArray[sp.Semaphore, tuple[int]]) -> None:
    sem.value  # E: sp.read(sem)
    sem.signal()  # E: sp.signal(sem)
    dma.wait()  # E: the copy has a wait
    sem.at[0]  # E: one semaphore has no elements
    sem.shape  # E: nor a shape
    sem.dtype  # E: its type says its kind
    sems.dtype  # E: the same
    sems.size  # E: math.prod(sems.shape)
    sem.name = "ready"  # E: no attributes of one's own
    sem.ref = dma.ref  # E: not to be set
    sems.shape = (3,)  # E: not to be set
    sem.ref[...]  # E: the raw ref is not loaded
    sem.ref + 1  # E: nor added to
    sem()  # E: it is not called
    sems()  # E: nor is an array
    del sems[0]  # E: elements stay
    sp.semaphore_signal(sem)  # E: here it is sp.signal
    sp.Semaphoree  # E: no such name


def kinds(sem: sp.Semaphore, dma: sp.DmaSemaphore, sems: sp.SemaphoreArray[sp.Semaphore, tuple[int]]) -> None:
    sem = dma  # E: a variable keeps its kind
    sems = sem  # E: and its rank
    pairs: list[sp.Semaphore] = [sem, dma]  # E: so does a list
    table: dict[str, sp.DmaSemaphore] = {"a": sems.at[0]}  # E: so does a dict
    del pairs, table


# Arrays used as one semaphore, and indices that do not fit.
class Sems(sp.Scratch):
    line = sp.dma_semaphore(4)
    plane = sp.dma_semaphore(4, 2)
    cube = sp.semaphore(2, 2, 2)
    tesseract = sp.semaphore(2, 2, 2, 2)


def unindexed(x: sp.Ref, o: sp.Ref, s: Sems) -> None:
    sp.async_copy(x, o, s.line).wait()  # E: which of the four?
    sp.async_copy(x, o, s.plane.at[0]).wait()  # E: a row is still an array
    sp.async_remote_copy(x, o, s.line, s.line.at[0], {"x": 1}).wait()  # E: the sending side
    sp.async_remote_copy(x, o, s.line.at[0], s.plane[1], {"x": 1}).wait()  # E: the receiving side
    sp.signal(s.cube)  # E: which of the eight?
    sp.wait(s.cube.at[0, 1])  # E: one index is missing
    sp.signal(s.tesseract[0, 0, 0])  # E: one index is missing
    sp.read(s.line)  # E: one count at a time
    sp.wait_bytes(s.plane, o)  # E: one semaphore at a time


def indices(s: Sems, step: jax.Array, part: slice) -> None:
    s.line.at[0, 1]  # E: one dimension, two indices
    s.plane.at[0, 1, 0]  # E: two dimensions, three indices
    s.cube[0, 0, 0, 0]  # E: three dimensions, four indices
    s.tesseract.at[0, 0, 0, 0, 0]  # E: four dimensions, five indices
    s.line.at[0].at[0]  # E: one semaphore has no elements
    s.line[0][0]  # E: the same in the short form
    s.plane.at[0].at[1].at[0]  # E: two dimensions, three steps
    s.line.at[0.5]  # E: a float is no index
    s.line["left"]  # E: nor a string
    s.line.at[None]  # E: nor None
    s.line[1:]  # E: no slices
    s.plane.at[part, 0]  # E: no slices
    s.line.at[...]  # E: no ellipsis
    s.plane.at[0, 0.5]  # E: a float among indices
    s.plane.at[(step, "right")]  # E: a string among indices
    s.plane.at[[0, 1]]  # E: a list is no index
    s.line.at[step / 2, 1]  # E: too many, and one of them computed
    s.line.at(0)  # E: brackets, not parentheses


def first(sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]) -> sp.DmaSemaphore:
    return sems.at[0]


def row(sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int, int]]) -> sp.DmaSemaphore:
    return sems.at[0]  # E: a row, not a semaphore


def helpers(s: Sems) -> None:
    first(s.plane)  # E: rank 2 where rank 1 is taken
    first(s.line.at[0])  # E: one semaphore where an array is taken
    first(s.cube.at[0, 0])  # E: an array of another kind
    row(s.line)  # E: rank 1 where rank 2 is taken
    rows, cols = s.line.shape  # E: one dimension has one size
    for sem in s.plane:
        sp.wait_bytes(sem, jnp.zeros(()))  # E: rows of an array of rank 2
