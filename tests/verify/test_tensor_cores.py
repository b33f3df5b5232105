"""Several TensorCores of a device: each has semaphores of its own, and all share HBM."""

from collections.abc import Callable
from typing import Any

import jax
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp
from safepallas._verify.program import Barrier, Enter, Signal

from .on_cores import DMA, REGULAR, X, finds, judge, kernel_of, tensor, undecided

SCRATCH = (pltpu.VMEM((4, 128), X.dtype), REGULAR, DMA)


def me() -> Any:
    return lax.axis_index("core")


def half(core: Any) -> Any:
    return pl.ds(core * 4, 4)


def tell(sem: Any, how: str) -> None:
    if how == "core_index":
        pl.semaphore_signal(sem, 1, core_index=1 - me())
    else:
        pl.semaphore_signal(sem, 1, device_id={"core": 1 - me()})


@pytest.mark.parametrize("how", ["core_index", "device_id"])
@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        ("", set()),
        ("waits first", {"deadlock"}),
        ("waits for too much", {"deadlock"}),
        ("no wait", {"leak"}),
        ("one core only", {"deadlock", "leak"}),
    ],
)
def test_signals_between_two(how: str, mistake: str, expected: set[str]) -> None:
    def body(x: Any, o: Any, sem: Any) -> None:
        if mistake == "waits first":
            pl.semaphore_wait(sem, 1)
        if mistake == "one core only":
            pl.when(me() == 0)(lambda: tell(sem, how))
            pl.when(me() == 0)(lambda: pl.semaphore_wait(sem, 1))
            return
        tell(sem, how)
        if mistake == "waits for too much":
            pl.semaphore_wait(sem, 2)
        elif not mistake:
            pl.semaphore_wait(sem, 1)

    finds(judge(lambda: kernel_of(tensor(), REGULAR)(body)), expected)


def exchange(barrier: Callable[[Any], None], *, own: bool = True) -> Any:
    """Each writes its half of the output, all wait, and each reads the half of the other."""

    def body(x: Any, o: Any, buffer: Any, ready: Any, sem: Any) -> None:
        rows = half(me()) if own else half(0)
        pltpu.async_copy(x.at[half(me())], o.at[rows], sem).wait()
        barrier(ready)
        pltpu.async_copy(o.at[half(1 - me())], buffer, sem).wait()

    return kernel_of(tensor(), *SCRATCH)(body)


def test_two_cores_may_write_the_same_bytes() -> None:
    """Both copy the first half of the input there: it is noted (rule 11)."""

    def body(x: Any, o: Any, buffer: Any, ready: Any, sem: Any) -> None:
        pltpu.async_copy(x.at[half(0)], o.at[half(0)], sem).wait()

    report = finds(judge(lambda: kernel_of(tensor(), *SCRATCH)(body)), set())
    (note,) = report.notes
    assert "both copy `x[0:4]` of the device, which nothing in the program writes" in note.text
    assert "\nNote: the same bytes twice at " in str(report)


def core_barrier(ready: Any) -> None:
    pltpu.core_barrier(ready, core_axis_name="core")


def nothing(ready: Any) -> None:
    pass


def on_one_core(ready: Any) -> None:
    pl.when(me() == 0)(lambda: core_barrier(ready))


def signal_only(ready: Any) -> None:
    tell(ready, "core_index")


@pytest.mark.parametrize(
    ("barrier", "own", "expected"),
    [
        (core_barrier, True, set()),
        (nothing, True, {"race"}),
        (core_barrier, False, {"race"}),
        (signal_only, True, {"race", "leak"}),
        (on_one_core, True, {"deadlock", "leak", "race"}),
    ],
)
def test_hbm_is_shared(barrier: Callable[[Any], None], own: bool, expected: set[str]) -> None:
    report = finds(judge(lambda: exchange(barrier, own=own)), expected)
    if not own:
        (race, *_) = report.findings
        assert "writes" not in race.text
        assert "`o[0:4]` of the device" in race.text
        assert "TensorCore core=1" in race.text


def test_a_barrier_again_and_again() -> None:
    """A barrier may follow a barrier, and what is read before the last is not overwritten."""

    def body(x: Any, o: Any, buffer: Any, ready: Any, sem: Any) -> None:
        for _ in range(2):
            pltpu.async_copy(x.at[half(me())], o.at[half(me())], sem).wait()
            core_barrier(ready)
            pltpu.async_copy(o.at[half(1 - me())], buffer, sem).wait()
            core_barrier(ready)

    finds(judge(lambda: kernel_of(tensor(), *SCRATCH)(body)), set())


def test_a_round_without_the_second_barrier() -> None:
    def body(x: Any, o: Any, buffer: Any, ready: Any, sem: Any) -> None:
        for _ in range(2):
            pltpu.async_copy(x.at[half(me())], o.at[half(me())], sem).wait()
            core_barrier(ready)
            pltpu.async_copy(o.at[half(1 - me())], buffer, sem).wait()

    report = finds(judge(lambda: kernel_of(tensor(), *SCRATCH)(body)), {"race"})
    assert {line.number for line in report.findings[0].lines if not line.number} == set()


def test_the_line_of_a_barrier_is_the_one_that_calls_it() -> None:
    """Its signals stand in branches that JAX makes."""

    def body(x: Any, o: Any, sem: Any) -> None:
        core_barrier(sem)
        pl.when(me() == 0)(lambda: core_barrier(sem))

    report = finds(judge(lambda: kernel_of(tensor(), REGULAR)(body)), {"deadlock", "leak"})
    (deadlock, leak) = report.findings
    wrapper = core_barrier.__code__.co_firstlineno + 1
    assert [line.number for line in deadlock.lines] == [wrapper]
    assert leak.lines[0].number == wrapper
    assert deadlock.text.replace(__file__, "here.py") == (
        f"TensorCore core=0 waits at here.py:{wrapper} for 1 on `sem`, which holds 0 (TensorCore "
        "core=1 has added 1): nobody adds to it any more. Add what is missing, or wait for less."
    )


def test_the_barrier_of_the_library() -> None:
    class Scratch(sp.Scratch):
        buffer = sp.vmem((4, 128), X.dtype)
        ready = sp.semaphore()
        sem = sp.dma_semaphore()

    def build(times: int) -> Any:
        def body(x: sp.Ref, o: sp.Ref, s: Scratch) -> None:
            sp.async_copy(x.at[half(me())], o.at[half(me())], s.sem).wait()
            for _ in range(times):
                sp.core_barrier(s.ready, core_axis_name="core")
            sp.async_copy(o.at[half(1 - me())], s.buffer, s.sem).wait()

        return sp.kernel(body, X, mesh=tensor(), scratch_types=Scratch)

    finds(judge(lambda: build(1)), set())
    finds(judge(lambda: build(2)), set())
    finds(judge(lambda: build(0)), {"race"})


def test_a_barrier_of_three_cores() -> None:
    def body(x: Any, o: Any, sem: Any) -> None:
        core_barrier(sem)

    report = finds(judge(lambda: kernel_of(tensor(3), REGULAR)(body)), set())
    assert report.program is not None
    assert [sum(type(e) is Signal for e in core) for core in report.program.cores] == [2] * 3


@pytest.mark.parametrize("waits", [True, False])
def test_a_copy_to_the_other_core(waits: bool) -> None:
    """VMEM is each core's own: what comes there tells of it there."""

    def body(x: Any, o: Any, buffer: Any, send: Any, recv: Any) -> None:
        copy = pltpu.make_async_remote_copy(
            x.at[half(0)], buffer, send, recv, device_id={"core": 1 - me()}
        )
        copy.start()
        copy.wait_send()
        if waits:
            copy.wait_recv()
        buffer[...] = buffer[...] + 1.0
        if not waits:
            copy.wait_recv()

    scratch = (pltpu.VMEM((4, 128), X.dtype), DMA, DMA)
    finds(judge(lambda: kernel_of(tensor(), *scratch)(body)), set() if waits else {"race"})


def ring(there: Callable[[], dict[str, Any]], collective_id: int | None = None) -> Any:
    """Each core of each device signals a core of the next device."""

    def body(x: Any, o: Any, sem: Any) -> None:
        if collective_id is not None:
            barrier: Any = pltpu.get_barrier_semaphore()  # type: ignore[no-untyped-call, unused-ignore]
            pl.semaphore_signal(barrier, 1, device_id=there())
            pl.semaphore_wait(barrier, 1)
        pl.semaphore_signal(sem, 1, device_id=there())
        pl.semaphore_wait(sem, 1)

    return pl.kernel(
        body,
        X,
        mesh=tensor(),
        scratch_types=(REGULAR,),
        compiler_params=pltpu.CompilerParams(collective_id=collective_id),
    )


def right() -> Any:
    return lax.rem(lax.axis_index("x") + 1, 2)


def test_cores_of_several_devices() -> None:
    report = finds(judge(lambda: ring(lambda: {"x": right(), "core": me()}), devices=2), set())
    assert report.program is not None
    assert [report.program.place(core) for core in range(4)] == [
        "TensorCore core=0 of device x=0",
        "TensorCore core=1 of device x=0",
        "TensorCore core=0 of device x=1",
        "TensorCore core=1 of device x=1",
    ]
    assert " ".join(str(report).split()).startswith(
        "safe: body on 2 devices (x=2) with 2 cores each."
    )
    assert "the cores of a device enter a kernel at the same time" in " ".join(str(report).split())


def test_one_core_gets_all_signals() -> None:
    report = judge(lambda: ring(lambda: {"x": right(), "core": 0}), devices=2)
    finds(report, {"deadlock", "leak"})
    assert "TensorCore core=1 of device x=0 waits at" in " ".join(str(report).split())


def test_with_a_collective_id_cores_of_one_device_enter_at_once() -> None:
    """Those of other devices have to be met first."""
    report = judge(lambda: ring(lambda: {"x": right(), "core": me()}, 3), devices=2)
    finds(report, set())
    assert report.program is not None
    for core, events in enumerate(report.program.cores):
        entries = [event for event in events if isinstance(event, Enter)]
        assert [entry.barrier for entry in entries] == [False, False]
        pair = (core // 2 * 2, core // 2 * 2 + 1)
        assert [e.among for e in events if isinstance(e, Barrier)] == [pair, pair]


def test_a_device_id_has_to_name_the_core_too() -> None:
    report = judge(lambda: ring(lambda: {"x": right()}), devices=2)
    undecided(report, "names no core, and each device has several", __file__)


def test_there_is_no_such_core() -> None:
    def body(x: Any, o: Any, sem: Any) -> None:
        pl.semaphore_signal(sem, 1, device_id={"core": me() + 1})

    report = judge(lambda: kernel_of(tensor(), REGULAR)(body))
    assert [finding.kind.value for finding in report.findings] == ["out-of-range"]
    assert report.findings[0].text == (
        "TensorCore core=1 names core core=2, but axis core has 2 cores, 0 to 1: wrap the id "
        "around, for instance with jax.lax.rem, or do not communicate there."
    )


def test_a_kernel_call_runs_on_the_first_core() -> None:
    """Of a function with both kinds of calls: the other core goes on at once."""

    def both(x: jax.Array) -> Any:
        def copies(x: Any, o: Any, sem: Any) -> None:
            pltpu.async_copy(x, o, sem).wait()

        anywhere = pl.BlockSpec(memory_space=pl.ANY)
        options: Any = {"in_specs": [anywhere], "out_specs": anywhere, "scratch_shapes": [DMA]}
        return exchange(core_barrier)(pl.pallas_call(copies, X, **options)(x))

    report = finds(judge(lambda: both), set())
    assert report.program is not None
    assert report.program.calls[0] == "copies"
    assert [sum(type(e) is Enter for e in core) for core in report.program.cores] == [2, 1]


@pytest.mark.parametrize("shared_out", [True, False])
def test_a_pipeline(shared_out: bool) -> None:
    """Pallas deals the blocks out to the cores, or, if it is not told to, both do all of them."""
    long = jax.ShapeDtypeStruct((32, 128), X.dtype)
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    options: Any = {}
    if shared_out:
        options = {"core_axis_name": "core", "dimension_semantics": (pltpu.PARALLEL,)}

    def doubles(x: Any, o: Any) -> None:
        o[...] = x[...] * 2.0

    def body(x: Any, o: Any) -> None:
        pltpu.emit_pipeline(doubles, grid=(4,), in_specs=[block], out_specs=[block], **options)(
            x, o
        )

    report = judge(lambda: kernel_of(tensor(), out=long)(body), long)
    finds(report, set() if shared_out else {"race"}, searched=False)


def test_different_meshes() -> None:
    def body(x: Any, o: Any) -> None:
        pltpu.sync_copy(x, o)

    def both(x: jax.Array) -> Any:
        return kernel_of(tensor(3))(body)(kernel_of(tensor(2))(body)(x))

    undecided(judge(lambda: both), "Kernels on different meshes of TensorCores are not", __file__)


def test_a_shared_scope() -> None:
    def body(x: Any, o: Any) -> None:
        def scope(sem: Any) -> None:
            pltpu.async_copy(x, o, sem).wait()

        pl.run_scoped(scope, DMA, collective_axes="core")

    report = judge(lambda: kernel_of(tensor())(body))
    undecided(report, "run_scoped over collective_axes is not followed: JAX's TPU", __file__)


@pytest.mark.parametrize("told", [True, False])
def test_numbers_in_shared_memory(told: bool) -> None:
    """Core 0 writes how often core 1 is to signal: they have to be followed in lockstep."""
    count = jax.ShapeDtypeStruct((1,), "int32")

    def body(x: Any, o: Any, here: Any, ready: Any, done: Any, sem: Any) -> None:
        @pl.when(me() == 0)
        def _() -> None:
            here[0] = 3
            pltpu.async_copy(here, o, sem).wait()
            if told:
                pl.semaphore_signal(ready, 1, core_index=1)
            pl.semaphore_wait(done, 3)

        @pl.when(me() == 1)
        def _() -> None:
            if told:
                pl.semaphore_wait(ready, 1)
            pltpu.async_copy(o, here, sem).wait()

            @pl.loop(0, here[0])
            def _(i: Any) -> None:
                pl.semaphore_signal(done, 1, core_index=0)

    scratch = (pltpu.SMEM((1,), "int32"), REGULAR, REGULAR, DMA)
    report = judge(lambda: kernel_of(tensor(), *scratch, out=count)(body))
    if told:
        finds(report, set())
    else:  # it depends on the schedule what core 1 reads, and that alone is certain
        assert [finding.kind.value for finding in report.findings] == ["race"]
        assert report.undecided is not None
        assert "How often a loop runs depends on data" in report.undecided.text
