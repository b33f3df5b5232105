"""Start and done kernels that disagree, and what is in flight handed to the wrong one."""

import jax
import jax.numpy as jnp

import safepallas as sp

LIKE = jax.ShapeDtypeStruct((8, 128), jnp.float32)
X = jnp.zeros((8, 128))


class Flight(sp.Scratch):
    sem = sp.dma_semaphore()


class Other(sp.Scratch):
    done = sp.semaphore()


def start(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    sp.async_copy(x, o, flight.sem)


def done(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    del x
    sp.wait_bytes(flight.sem, o)


def other_start(x: sp.Ref, o: sp.Ref, flight: Other) -> None:
    del x, o
    sp.signal(flight.done)


def other_done(x: sp.Ref, o: sp.Ref, flight: Other) -> None:
    del x, o
    sp.wait(flight.done)


def bare_done(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
    del x
    sp.wait_bytes(sem, o)


sp.pallas_call_async(Flight, start, other_done, LIKE)  # E: the two kernels disagree
sp.pallas_call_async(Flight, other_start, done, LIKE)  # E: the same, the other way round
sp.pallas_call_async(Other, start, done, LIKE)  # E: both disagree with the class
sp.pallas_call_async(Flight, start, bare_done, LIKE)  # E: a semaphore for the Scratch
sp.pallas_call_async((sp.dma_semaphore(),), start, done, LIKE)  # E: a class, no tuple
sp.pallas_call_async(start, done, LIKE)  # E: no semaphores
sp.pallas_call_async(Flight, start, LIKE)  # E: no done kernel
sp.pallas_call_async(Flight, start, done, LIKE, grid=(2,))  # E: no grid

call = sp.pallas_call_async(Flight, start, done, LIKE)
other = sp.pallas_call_async(Other, other_start, other_done, LIKE)
in_flight = call.start(X)
call.done(other.start(X))  # E: in flight by another call
other.done(in_flight)  # E: as above
call.done(X)  # E: an array is not in flight
call.done()  # E: nothing is
call(X)  # E: a pair of calls is no function
sem = in_flight.sem  # E: its semaphores are for the two kernels
sp.InFlight()  # E: only start makes one
sp.AsyncCall(start)  # E: only pallas_call_async makes one
