"""Device ids that name no device."""

import jax
from jax.experimental import pallas as pl

import safepallas as sp


class Sems(sp.Scratch):
    send = sp.dma_semaphore()
    recv = sp.dma_semaphore()
    ready = sp.semaphore()


def copies(x: sp.Ref, o: sp.Ref, s: Sems, me: jax.Array) -> None:
    sp.async_remote_copy(x, o, s.send, s.recv)  # E: to which device?
    sp.async_remote_copy(x, o, s.send, s.recv, None)  # E: a remote copy goes to another device
    sp.make_async_remote_copy(x, o, s.send, s.recv, device_id=None)  # E: the same, unstarted
    sp.async_remote_copy(x, o, s.send, s.recv, "x")  # E: an axis alone
    sp.async_remote_copy(x, o, s.send, s.recv, 1.0)  # E: a float
    sp.async_remote_copy(x, o, s.send, s.recv, [0, 1])  # E: coordinates are a tuple
    sp.async_remote_copy(x, o, s.send, s.recv, (me, 0.5))  # E: a float among coordinates
    sp.async_remote_copy(x, o, s.send, s.recv, {"x": 1.5})  # E: a float by name
    sp.async_remote_copy(x, o, s.send, s.recv, {"x": "right"})  # E: a name for a coordinate
    sp.async_remote_copy(x, o, s.send, s.recv, {0: me})  # E: axes go by name
    sp.async_remote_copy(x, o, s.send, s.recv, {"x": None})  # E: leave the axis out
    sp.async_remote_copy(x, o, s.send, s.recv, {"x", "y"})  # E: a set of axes
    sp.async_remote_copy(x, o, s.send, s.recv, s.ready)  # E: a semaphore


def signals(s: Sems, me: jax.Array) -> None:
    sp.signal(s.ready, device_id="x")  # E: an axis alone
    sp.signal(s.ready, device_id=0.0)  # E: a float
    sp.signal(s.ready, device_id=[me])  # E: coordinates are a tuple
    sp.signal(s.ready, device_id=("x", me))  # E: a name among coordinates
    sp.signal(s.ready, device_id={"x": me / 1.0, "y": 0.5})  # E: a float by name
    sp.signal(s.ready, device_id={1: me})  # E: axes go by name
    sp.signal(s.ready, device_id=me, device_id_type=pl.DeviceIdType.LOGICAL)  # E: ids are mesh coordinates
    sp.signal(s.ready, device_id={"x": me}, device_id_type=pl.DeviceIdType.MESH)  # E: always
    sp.signal(s.ready, core=0)  # E: it is called core_index
