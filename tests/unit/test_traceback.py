"""Where an error of ours points: at the line that the user wrote. And raw kernels' errors."""

import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp

from .helpers import FLOATS, MESHES, Act, Kernel, line_of, trace

OURS, JAX = (os.path.dirname(package.__file__) + os.sep for package in (sp, jax))
THERE = {"x": 1}


def frame_above_ours(error: BaseException) -> traceback.FrameSummary:
    """Up from where the error was raised, the first frame that is not in safepallas."""
    frames = traceback.extract_tb(error.__traceback__)
    assert frames[-1].filename.startswith(OURS), "not raised by safepallas"
    return next(frame for frame in reversed(frames) if not frame.filename.startswith(OURS))


def frame_of_user(error: BaseException) -> traceback.FrameSummary:
    """The same, beyond the frames of Pallas as well, from which a boundary is checked."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next(frame for frame in frames if not frame.filename.startswith((OURS, JAX)))


def leaked(make: Callable[[Any], Any]) -> Any:
    things: list[Any] = []
    sp.run_scoped(lambda sem: things.append(make(sem)), sp.dma_semaphore())
    return things[0]


def copy_of(k: Kernel) -> Any:
    return leaked(lambda sem: sp.make_async_remote_copy(k.x, k.o, sem, sem, THERE))


def forged(k: Kernel) -> Any:
    return jax.tree.map(lambda _: k.x, k.dma1)


# Each on one line: the one that the error must point at.
# fmt: off
MISUSES: dict[str, Act] = {
    "signal": lambda k: sp.signal(k.dma0),
    "signal of nothing": lambda k: sp.signal(None),
    "signal amount": lambda k: sp.signal(k.regular0, 1.5),
    "signal range": lambda k: sp.signal(k.regular0, -1),
    "signal device": lambda k: sp.signal(k.regular0, device_id=9),
    "signal axis": lambda k: sp.signal(k.regular0, device_id={"z": 0}),
    "signal core": lambda k: sp.signal(k.regular0, core_index=-1),
    "wait": lambda k: sp.wait(k.dma1),
    "wait amount": lambda k: sp.wait(k.regular0, 0),
    "read": lambda k: sp.read(k.x),
    "make_async_copy": lambda k: sp.make_async_copy(k.x, k.o, k.regular0),
    "make_async_copy end": lambda k: sp.make_async_copy(k.x, k.o[...], k.dma0),
    "async_copy": lambda k: sp.async_copy(k.x, k.data.flat, k.dma0),
    "async_copy option": lambda k: sp.async_copy(k.x, k.o, k.dma0, priority=-1),
    "make_async_remote_copy": lambda k: sp.make_async_remote_copy(k.x, k.o, k.dma0, k.dma0, 9),
    "async_remote_copy": lambda k: sp.async_remote_copy(k.x, k.o, k.dma0, k.dma1, THERE),
    "sync_copy": lambda k: sp.sync_copy(k.x, k.data.int32),
    "wait_bytes": lambda k: sp.wait_bytes(k.dma0, None),
    "async_copy_counted": lambda k: sp.async_copy_counted(k.x, k.o, k.dma0),
    "async_remote_copy_counted": lambda k: sp.async_remote_copy_counted(k.x, k.o, k.dma0, 0, THERE),
    "start": lambda k: copy_of(k).start(),
    "copy wait": lambda k: copy_of(k).wait(),
    "wait_send": lambda k: copy_of(k).wait_send(),
    "wait_recv": lambda k: copy_of(k).wait_recv(),
    "dead": lambda k: sp.wait_bytes(leaked(lambda sem: sem), k.x),
    "index": lambda k: k.dma2[9],
    "index at": lambda k: k.dma2.at[0, 9],
    "index type": lambda k: k.dma2["0"],
    "no index": lambda k: k.dma2[()],
    "too many indices": lambda k: k.dma1[0, 0],
    "dead array": lambda k: k.dead("dma", 1)[0],
    "dead array iterated": lambda k: next(iter(k.dead("dma", 1))),
    "forged array": lambda k: forged(k)[0],
    "ref": lambda k: leaked(lambda sem: sem).ref,
    "adopt": lambda k: sp.adopt(k.x, sp.semaphore()),
    "adopt spec": lambda k: sp.adopt(k.x, None),
    "size": lambda k: sp.semaphore(1.5),
    "shape": lambda k: sp.vmem(8, jnp.float32),
    "request": lambda k: sp.run_scoped(lambda sem: None, 5),
    "field": lambda k: type("Bad", (sp.Scratch,), {"field": [sp.semaphore()]}),
    "scratch": lambda k: sp.pallas_call(print, FLOATS, scratch_shapes=5),
    "truth": lambda k: bool(k.dma0),
    "truth of an array": lambda k: bool(k.dma1),
    "equality": lambda k: k.dma0 == 0,
    "search": lambda k: 0 in k.dma1,
    "construction": lambda k: sp.DmaSemaphore(k.dma0.ref),
    "construction of a spec": lambda k: sp.Spec(None),
    "subclass": lambda k: type("Own", (sp.Semaphore,), {}),
}
# fmt: on


@pytest.mark.parametrize("name", MISUSES)
def test_operation(name: str) -> None:
    act = MISUSES[name]
    with pytest.raises((sp.SemaphoreError, TypeError)) as info:
        trace(act)
    frame = frame_above_ours(info.value)
    assert frame.filename == __file__
    assert frame.lineno == act.__code__.co_firstlineno


def test_operation_in_a_helper() -> None:
    """The helper's line, and further up the kernel's."""

    def helper(sem: Any) -> None:
        sp.signal(sem)  # the line

    with pytest.raises(sp.errors.WrongKindError) as info:
        trace(lambda k: helper(k.dma0))
    frame = frame_above_ours(info.value)
    assert (frame.filename, frame.name) == (__file__, "helper")
    assert frame.lineno == line_of(__file__, "sp.signal(sem)  # the line")[0]


# --- at the boundary the line is the call of the kernel ------------------------------------------


def wants_dma(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None: ...


def uses_barrier(x: sp.Ref, o: sp.Ref) -> None:
    sp.wait(sp.get_barrier_semaphore())


def does_nothing(x: sp.Ref, o: sp.Ref) -> None: ...


def reads(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
    o[0, 0] = sp.read(sem).astype(jnp.float32)


CALLS: dict[str, Callable[[], Callable[..., Any]]] = {
    "annotation": lambda: sp.pallas_call(wants_dma, FLOATS, scratch_shapes=(sp.semaphore(),)),
    "missing id": lambda: sp.pallas_call(uses_barrier, FLOATS),
    "unused id": lambda: sp.pallas_call(
        does_nothing, FLOATS, compiler_params=pltpu.CompilerParams(collective_id=1)
    ),
    "read": lambda: sp.pallas_call(
        reads,
        FLOATS,
        scratch_shapes=(sp.semaphore(),),
        interpret=pltpu.InterpretParams(),
    ),
}
AROUND: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "alone": lambda call: call,
    "jit": jax.jit,
    "make_jaxpr": jax.make_jaxpr,
    "eval_shape": lambda call: lambda x: jax.eval_shape(call, x),
    "checkpoint": jax.checkpoint,
    "shard_map": lambda call: jax.jit(
        jax.shard_map(call, mesh=MESHES["one axis"], in_specs=P(), out_specs=P(), check_vma=False)
    ),
}


def annotated(sem: sp.DmaSemaphore) -> None: ...


@pytest.mark.parametrize(
    "act",
    [
        lambda k: sp.run_scoped(annotated, sp.semaphore()),
        lambda k: sp.with_scoped(sp.semaphore())(annotated)(),
    ],
    ids=["run_scoped", "with_scoped"],
)
def test_boundary_of_a_scope(act: Act) -> None:
    with pytest.raises(sp.errors.AnnotationError) as info:
        trace(act)
    frame = frame_of_user(info.value)
    assert frame.filename == __file__
    assert frame.lineno == act.__code__.co_firstlineno


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", CALLS)
def test_boundary(name: str, around: str) -> None:
    """JAX shows its frames of Pallas below the call, as it does for a kernel of raw Pallas."""
    assert jax.config.jax_traceback_filtering == "auto"
    call = CALLS[name]()

    def function(x: Any) -> Any:
        return call(x)  # the kernel's call

    with pytest.raises(sp.SemaphoreError) as info:
        AROUND[around](function)(jnp.zeros(FLOATS.shape))
    frame = frame_of_user(info.value)
    assert (frame.filename, frame.name) == (__file__, "function")
    assert frame.lineno == line_of(__file__, "return call(x)  # the kernel's call")[0]


# --- raw kernels ---------------------------------------------------------------------------------

RAW = """
import sys, traceback
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
{first}

def kernel(x, o):
    raise ZeroDivisionError

like = jax.ShapeDtypeStruct((8, 128), jnp.float32)
try:
    jax.jit(pl.pallas_call(kernel, like))(jnp.zeros((8, 128)))
except ZeroDivisionError as error:
    for frame in traceback.extract_tb(error.__traceback__):
        print(frame.filename, frame.name)
"""


def test_importing_leaves_the_tracebacks_of_raw_kernels() -> None:
    def frames(first: str) -> str:
        environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
        run = [sys.executable, "-c", RAW.format(first=first)]
        return subprocess.check_output(run, env=environment, text=True, timeout=120)

    assert frames("import safepallas, safepallas.testing") == frames("")
    assert "pallas_call.py" in frames("")
