"""Scopes, and start and done kernels, that disagree with what is allocated for them."""

import jax
import jax.numpy as jnp

import safepallas as sp


# Bodies of run_scoped and with_scoped that disagree with what is allocated.
class Staging(sp.Scratch):
    buffer = sp.vmem((8, 128), jnp.float32)
    sem = sp.dma_semaphore()


class Other(sp.Scratch):
    sem = sp.dma_semaphore()


def copies(sem: sp.DmaSemaphore) -> None:
    del sem


def counts(sem: sp.Semaphore) -> None:
    del sem


def pair(buffer: sp.Ref, sem: sp.DmaSemaphore) -> jax.Array:
    del sem
    return buffer[...]


def slots(sems: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int, int]]) -> None:
    del sems


def staged(s: Staging) -> None:
    del s


def kernel(x: sp.Ref, o: sp.Ref) -> None:
    sp.run_scoped(copies, sp.semaphore())  # E: a regular semaphore for a DMA one
    sp.run_scoped(counts, sp.dma_semaphore())  # E: a DMA semaphore for a regular one
    sp.run_scoped(copies, sp.dma_semaphore(2))  # E: an array for one
    sp.run_scoped(slots, sp.dma_semaphore(2))  # E: rank 1 for rank 2
    sp.run_scoped(slots, sp.semaphore(2, 2))  # E: an array of another kind
    sp.run_scoped(pair, sp.dma_semaphore(), sp.vmem((8, 128), jnp.float32))  # E: in the other order
    sp.run_scoped(pair, sp.vmem((8, 128), jnp.float32))  # E: one request of two
    sp.run_scoped(copies, sp.dma_semaphore(), sp.dma_semaphore())  # E: two requests for one
    sp.run_scoped(copies)  # E: no request
    sp.run_scoped(copies, (sp.dma_semaphore(),))  # E: requests stand one by one
    sp.run_scoped(copies, sp.DmaSemaphore)  # E: a type is no request
    sp.run_scoped(staged, Other)  # E: another Scratch class
    sp.run_scoped(copies, Staging)  # E: a Scratch for one semaphore
    sp.run_scoped(staged, sp.dma_semaphore())  # E: one semaphore for a Scratch
    sp.run_scoped(sp.dma_semaphore(), copies)  # E: the body comes first
    sp.run_scoped(lambda sem: sp.wait(sem), sp.dma_semaphore())  # E: in a lambda
    sp.run_scoped(lambda s: sp.signal(s.sem), Staging)  # E: in a lambda, by name
    text: str = sp.run_scoped(pair, sp.vmem((8, 128), jnp.float32), sp.dma_semaphore())  # E: the body returns an array
    del text


@sp.with_scoped(sp.semaphore())  # E: a regular semaphore for a DMA one
def decorated(src: sp.Ref, dst: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(src, dst, sem).wait()


@sp.with_scoped(sp.dma_semaphore(2))  # E: an array for one
def decorated_slot(src: sp.Ref, dst: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(src, dst, sem).wait()


@sp.with_scoped(Other)  # E: another Scratch class
def decorated_staged(src: sp.Ref, dst: sp.Ref, s: Staging) -> None:
    sp.async_copy(src, dst, s.sem).wait()


@sp.with_scoped(sp.dma_semaphore())
def good(src: sp.Ref, dst: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(src, dst, sem).wait()


def uses(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
    good(x)  # E: an argument is missing
    good(x, o, sem)  # E: the semaphore is the decorator's
    good(x, sem)  # E: a semaphore for a ref
    sp.with_scoped(sp.dma_semaphore(), sem)  # E: a handle is no request
    sp.with_scoped("dma")  # E: nor is a name


# Start and done kernels that disagree, and what is in flight handed to the wrong one.
LIKE = jax.ShapeDtypeStruct((8, 128), jnp.float32)
X = jnp.zeros((8, 128))


class Flight(sp.Scratch):
    sem = sp.dma_semaphore()


class AsyncCallsOther(sp.Scratch):
    done = sp.semaphore()


def start(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    sp.async_copy(x, o, flight.sem)


def done(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    del x
    sp.wait_bytes(flight.sem, o)


def other_start(x: sp.Ref, o: sp.Ref, flight: AsyncCallsOther) -> None:
    del x, o
    sp.signal(flight.done)


def other_done(x: sp.Ref, o: sp.Ref, flight: AsyncCallsOther) -> None:
    del x, o
    sp.wait(flight.done)


def bare_done(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
    del x
    sp.wait_bytes(sem, o)


sp.pallas_call_async(Flight, start, other_done, LIKE)  # E: the two kernels disagree
sp.pallas_call_async(Flight, other_start, done, LIKE)  # E: the same, the other way round
sp.pallas_call_async(AsyncCallsOther, start, done, LIKE)  # E: both disagree with the class
sp.pallas_call_async(Flight, start, bare_done, LIKE)  # E: a semaphore for the Scratch
sp.pallas_call_async((sp.dma_semaphore(),), start, done, LIKE)  # E: a class, no tuple
sp.pallas_call_async(start, done, LIKE)  # E: no semaphores
sp.pallas_call_async(Flight, start, LIKE)  # E: no done kernel
sp.pallas_call_async(Flight, start, done, LIKE, grid=(2,))  # E: no grid

call = sp.pallas_call_async(Flight, start, done, LIKE)
other = sp.pallas_call_async(AsyncCallsOther, other_start, other_done, LIKE)
in_flight = call.start(X)
call.done(other.start(X))  # E: in flight by another call
other.done(in_flight)  # E: as above
call.done(X)  # E: an array is not in flight
call.done()  # E: nothing is
call(X)  # E: a pair of calls is no function
sem = in_flight.sem  # E: its semaphores are for the two kernels
sp.InFlight()  # E: only start makes one
sp.AsyncCall(start)  # E: only pallas_call_async makes one
