"""Handles taken for values: arithmetic, comparison, conversion, attributes."""

import safepallas as sp


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
