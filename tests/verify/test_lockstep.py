"""Cores in lockstep, where numbers travel between them: by turns, in the thread of the caller."""

import gc
import threading
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from safepallas import verify
from safepallas._verify.extract.core import Core

DEVICES = 32
X = jax.ShapeDtypeStruct((8, 128), jnp.float32)
NUMBER = pltpu.SMEM((1,), jnp.int32)
DMA, REGULAR = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR


def counts_first(extra: int = 0) -> Any:
    """Each device tells the next one how many signals it wants of it, and waits for so many."""

    def kernel(x: Any, o: Any, wanted: Any, told: Any, done: Any, send: Any, recv: Any) -> None:
        me = lax.axis_index("x")
        wanted[0] = lax.rem(me, 3) + 1
        right = {"x": lax.rem(me + 1, DEVICES)}
        left = {"x": lax.rem(me + DEVICES - 1, DEVICES)}
        copy = pltpu.make_async_remote_copy(wanted, told, send, recv, device_id=right)
        copy.start()
        copy.wait()

        @pl.loop(0, told[0])
        def _(i: Any) -> None:
            pl.semaphore_signal(done, 1, device_id=left)

        pl.semaphore_wait(done, wanted[0] + extra)

    whole = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(
        kernel,
        X,
        in_specs=[whole],
        out_specs=whole,
        scratch_shapes=[NUMBER, NUMBER, REGULAR, DMA, DMA],
    )
    mesh = AbstractMesh((DEVICES,), ("x",), axis_types=(AxisType.Auto,))
    return jax.shard_map(call, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise AssertionError(f"{thread} was started")

    monkeypatch.setattr(threading.Thread, "start", refuse)


@pytest.mark.usefixtures("no_threads")
@pytest.mark.parametrize(("extra", "verdict"), [(0, "safe"), (1, "unsafe")])
def test_it_needs_no_thread(extra: int, verdict: str) -> None:
    """Also where no core can go on: the last wait of each is for one signal too many."""
    report = verify(counts_first(extra), X)
    assert report.verdict == verdict, str(report)
    assert report.program is not None
    assert len(report.program.cores) == DEVICES


def test_an_interrupt_leaves_nothing_behind() -> None:
    """While some cores have ended and others wait, as Ctrl-C would come."""
    told: list[str] = []

    def interrupt(text: str) -> None:
        told.append(text)
        raise KeyboardInterrupt

    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt) as caught:
        verify(counts_first(), X, progress=interrupt)
    (text,) = told
    assert text.startswith(f"16 of {DEVICES} devices read")
    assert threading.active_count() == threads
    assert gc.isenabled()
    del caught
    gc.collect()
    assert not [one for one in gc.get_objects() if isinstance(one, Core)]
    assert verify(counts_first(), X).verdict == "safe"
