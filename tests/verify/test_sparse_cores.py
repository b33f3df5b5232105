"""Subcores of SparseCores: barriers, shared memory, several bodies in one kernel."""

import importlib.util
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc

import safepallas as sp
from safepallas._verify.program import Access, Barrier, Start
from safepallas.testing import compile_for_tpu

from .on_cores import DMA, NEW, REGULAR, X, finds, judge, kernel_of, scalar, undecided, vector

F32 = jnp.float32
ROWS = jax.ShapeDtypeStruct((4, 128), F32)
SHARED = pltpu.VMEM_SHARED((2, 128), F32)
OWN = pltpu.VMEM((1, 128), F32)


def subcore() -> Any:
    return lax.axis_index("subcore")


def number() -> Any:
    """Of four vector subcores."""
    return lax.axis_index("core") * 2 + subcore()


def nothing() -> None:
    pass


def on_one() -> None:
    pl.when(number() == 0)(plsc.subcore_barrier)


def through_shared_memory(barrier: Callable[[], None]) -> Any:
    """Each subcore puts a row into the memory of its SparseCore, and takes that of the other."""

    def body(x: Any, o: Any, shared: Any, own: Any, sem: Any) -> None:
        pltpu.async_copy(x.at[pl.ds(number(), 1)], shared.at[pl.ds(subcore(), 1)], sem).wait()
        barrier()
        pltpu.async_copy(shared.at[pl.ds(1 - subcore(), 1)], own, sem).wait()
        pltpu.async_copy(own, o.at[pl.ds(number(), 1)], sem).wait()

    return kernel_of(vector(), SHARED, OWN, DMA, out=ROWS)(body)


@pytest.mark.parametrize(
    ("barrier", "expected"),
    [(plsc.subcore_barrier, set()), (nothing, {"race"}), (on_one, {"deadlock", "race"})],
)
def test_the_memory_of_a_sparse_core(barrier: Callable[[], None], expected: set[str]) -> None:
    report = judge(lambda: through_shared_memory(barrier), ROWS)
    finds(report, expected, searched=False)
    if expected == {"race"}:
        assert "of SparseCore core=0 before the copy" in report.findings[0].text
    if "deadlock" in expected:
        line = on_one.__code__.co_firstlineno + 1
        assert report.findings[0].text.replace(__file__, "here.py") == (
            f"Vector subcore core=0, subcore=0 waits at here.py:{line} until all 2 cores have come "
            "to that barrier, and vector subcore core=0, subcore=1 never comes there. All of them "
            "must come to it, equally often."
        )


def test_the_search_agrees_on_a_barrier() -> None:
    def build(barrier: Callable[[], None]) -> Any:
        def body(x: Any, o: Any, shared: Any, own: Any, sem: Any) -> None:
            pltpu.async_copy(x.at[pl.ds(subcore(), 1)], shared.at[pl.ds(subcore(), 1)], sem).wait()
            barrier()
            pltpu.async_copy(shared.at[pl.ds(1 - subcore(), 1)], own, sem).wait()

        return kernel_of(vector(1, 2), SHARED, OWN, DMA, out=ROWS)(body)

    finds(judge(lambda: build(plsc.subcore_barrier), ROWS), set())
    finds(judge(lambda: build(nothing), ROWS), {"race"})
    finds(judge(lambda: build(lambda: on_first(1)), ROWS), {"deadlock", "race"})
    finds(judge(lambda: build(lambda: on_first(2)), ROWS), set())


def on_first(count: int) -> None:
    pl.when(subcore() < count)(plsc.subcore_barrier)


def test_a_barrier_is_for_the_subcores_of_one_sparse_core() -> None:
    report = judge(lambda: through_shared_memory(plsc.subcore_barrier), ROWS)
    assert report.program is not None
    met = [[e.among for e in core if isinstance(e, Barrier)] for core in report.program.cores]
    assert met == [[(0, 1)], [(0, 1)], [(2, 3)], [(2, 3)]]
    # That of SparseCore 1 is not that of SparseCore 0.
    shared = {
        event.target.core
        for core in report.program.cores
        for event in core
        if isinstance(event, Start)
        and report.program.allocations[event.target.allocation].name == "shared"
    }
    assert shared == {0, 2}


def test_all_share_hbm() -> None:
    """Of two SparseCores, too."""

    def build(row: Callable[[], Any]) -> Any:
        def body(x: Any, o: Any, sem: Any) -> None:
            pltpu.async_copy(x.at[pl.ds(number(), 1)], o.at[pl.ds(row(), 1)], sem).wait()

        return kernel_of(vector(), DMA, out=ROWS)(body)

    finds(judge(lambda: build(number), ROWS), set())
    report = finds(judge(lambda: build(subcore), ROWS), {"race"})
    assert "`o[1]` of the device before the copy" in report.findings[0].text


def both(body_of_vector: Any, body_of_scalar: Any, *scratch: Any) -> Any:
    """One kernel with a body for each kind of subcore."""
    v, s = vector(), scalar()
    specs = [REGULAR @ s, REGULAR @ v, DMA @ v, DMA @ s]
    return pl.kernel([body_of_vector, body_of_scalar], X, mesh=[v, s], scratch_types=specs)


@pytest.mark.parametrize(
    ("waits", "expected"), [(4, set()), (3, {"leak"}), (5, {"deadlock", "leak"})]
)
def test_vector_subcores_tell_a_scalar_subcore(waits: int, expected: set[str]) -> None:
    def copies(x: Any, o: Any, done: Any, go: Any, sem: Any, _: Any) -> None:
        rows = pl.ds(number() * 2, 2)
        pltpu.async_copy(x.at[rows], o.at[rows], sem).wait()
        pl.semaphore_signal(done, 1, device_id={"core": 0})

    def counts(x: Any, o: Any, done: Any, go: Any, sem: Any, _: Any) -> None:
        pl.when(lax.axis_index("core") == 0)(lambda: pl.semaphore_wait(done, waits))

    report = judge(lambda: both(copies, counts))
    finds(report, expected - ({"leak"} if waits == 5 else set()), searched=waits != 5)
    assert report.program is not None
    assert report.program.parts[0] == "scalar subcore core=0"
    assert report.program.parts[-1] == "vector subcore core=1, subcore=1"
    if waits == 5:
        assert "Scalar subcore core=0 waits at" in report.findings[0].text


@pytest.mark.parametrize("waits", [True, False])
def test_a_scalar_subcore_tells_vector_subcores(waits: bool) -> None:
    """It fills HBM, and they read it when they are told."""

    def reads(x: Any, o: Any, done: Any, go: Any, sem: Any, _: Any) -> None:
        pl.semaphore_wait(go, 1)
        pltpu.async_copy(o.at[pl.ds(0, 1)], o.at[pl.ds(4 + number(), 1)], sem).wait()

    def fills(x: Any, o: Any, done: Any, go: Any, _: Any, sem: Any) -> None:
        @pl.when(lax.axis_index("core") == 0)
        def _() -> None:
            copy = pltpu.async_copy(x.at[pl.ds(0, 4)], o.at[pl.ds(0, 4)], sem)
            if waits:
                copy.wait()
            for i in range(4):
                there = {"core": i // 2, "subcore": i % 2}
                pl.semaphore_signal(go, 1, device_id=there)
            if not waits:
                copy.wait()

    finds(judge(lambda: both(reads, fills)), set() if waits else {"race"}, searched=False)


def test_several_bodies_of_the_library() -> None:
    def build(waits: int) -> Any:
        v, s = vector(), scalar()

        class Shared(sp.Scratch):
            sem = sp.dma_semaphore() @ v
            done = sp.semaphore() @ s

        def copies(x: sp.Ref, o: sp.Ref, scratch: Shared) -> None:
            rows = pl.ds(number() * 2, 2)
            sp.async_copy(x.at[rows], o.at[rows], scratch.sem).wait()
            sp.signal(scratch.done, device_id={"core": 0})

        def counts(x: sp.Ref, o: sp.Ref, scratch: Shared) -> None:
            pl.when(lax.axis_index("core") == 0)(lambda: sp.wait(scratch.done, waits))

        return sp.kernel([copies, counts], X, mesh=[v, s], scratch_types=Shared)

    finds(judge(lambda: build(4)), set())
    finds(judge(lambda: build(3)), {"leak"})


def test_without_a_core_it_is_the_same_sparse_core() -> None:
    """A vector subcore that names nothing tells the scalar subcore of its own SparseCore."""

    def tells(x: Any, o: Any, done: Any, *_: Any) -> None:
        pl.semaphore_signal(done, 1, device_id={})

    def counts(x: Any, o: Any, done: Any, *_: Any) -> None:
        pl.semaphore_wait(done, 2)

    finds(judge(lambda: both(tells, counts)), set())


def test_a_wait_for_the_semaphore_of_others() -> None:
    def waits(x: Any, o: Any, done: Any, go: Any, sem: Any, other: Any) -> None:
        pl.semaphore_wait(done, 1)

    def idle(x: Any, o: Any, done: Any, go: Any, sem: Any, other: Any) -> None:
        pass

    report = judge(lambda: both(waits, idle))
    undecided(report, "done (regular semaphore) is on cores of another type", __file__)


def between(mesh: Callable[[], Any], there: Callable[[], dict[str, Any]]) -> Any:
    """Each core signals one of the same type."""

    def body(x: Any, o: Any, sem: Any) -> None:
        pl.semaphore_signal(sem, 1, device_id=there())
        pl.semaphore_wait(sem, 1)

    return kernel_of(mesh(), REGULAR)(body)


@pytest.mark.parametrize(
    ("mesh", "there"),
    [
        (scalar, lambda: {"core": 1 - lax.axis_index("core")}),
        (vector, lambda: {"subcore": 1 - subcore()}),
        (vector, lambda: {"core": 1 - lax.axis_index("core"), "subcore": subcore()}),
    ],
)
def test_cores_of_the_same_kind(mesh: Callable[[], Any], there: Any) -> None:
    """JAX 0.10.2 leaves the axes out: measured, see `test_what_is_lowered`."""
    report = judge(lambda: between(mesh, there))
    if NEW:
        finds(report, set())
    else:
        undecided(report, "JAX 0.10.2 leaves out the core axes of a device id", __file__)


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs libtpu, to lower")
def test_what_is_lowered(capsys: pytest.CaptureFixture[str]) -> None:
    """Why nothing is decided under JAX 0.10.2: the signal does not say where it goes to."""

    def fn(x: jax.Array) -> Any:
        def body(x: Any, o: Any, sem: Any) -> None:
            pl.semaphore_signal(sem, 1, device_id={"subcore": 1 - subcore()})
            pl.semaphore_wait(sem, 1)

        return pl.kernel(body, X, mesh=vector(), scratch_types=(REGULAR,), debug=True)(x)

    compile_for_tpu(fn, X, topology="v6e:2x2")
    (signal,) = {line for line in capsys.readouterr().out.splitlines() if "sem_signal" in line}
    assert ("subcore_id" in signal) == NEW
    assert ("core_id" in signal) == NEW


@pytest.mark.parametrize("named", [True, False])
def test_a_copy_that_tells_a_scalar_subcore(named: bool) -> None:
    def copies(x: Any, o: Any, done: Any, go: Any, sem: Any, told: Any) -> None:
        rows = pl.ds(number() * 2, 2)
        if named:
            there = {"core": lax.axis_index("core")}
            copy = pltpu.make_async_remote_copy(x.at[rows], o.at[rows], sem, told, device_id=there)
            copy.start()
            copy.wait_send()
        else:
            pltpu.make_async_copy(x.at[rows], o.at[rows], told).start()

    def counts(x: Any, o: Any, done: Any, go: Any, sem: Any, told: Any) -> None:
        for i in range(2):
            rows = pl.ds(i * 2, 2)
            pltpu.make_async_copy(x.at[rows], o.at[rows], told).wait()

    report = judge(lambda: both(copies, counts))
    if not named and not NEW:
        undecided(report, "JAX 0.10.2 does not say which core of another type", __file__)
    else:
        finds(report, set(), searched=False)


def test_another_device() -> None:
    report = judge(
        lambda: between(scalar, lambda: {"x": 1 - lax.axis_index("x"), "core": 0}), devices=2
    )
    text = "A SparseCore reaches another device" if NEW else "JAX 0.10.2 leaves out the core axes"
    undecided(report, text, __file__)


def test_names_are_the_same_in_the_second_reading() -> None:
    """Numbers in shared memory are followed with all cores in lockstep, from the beginning."""

    def body(x: Any, numbers: Any, o: Any, shared: Any, own: Any, sem: Any) -> None:
        pltpu.async_copy(numbers, o, sem).wait()
        pltpu.async_copy(x.at[pl.ds(subcore(), 1)], shared.at[pl.ds(subcore(), 1)], sem).wait()
        pltpu.async_copy(shared.at[pl.ds(1 - subcore(), 1)], own, sem).wait()

    numbers = np.arange(32, dtype=np.int32)
    out = jax.ShapeDtypeStruct((32,), jnp.int32)
    call = judge(lambda: kernel_of(vector(), SHARED, OWN, DMA, out=out)(body), ROWS, numbers)
    report = finds(call, {"race"}, searched=False)
    texts = " ".join(finding.text for finding in report.findings)
    assert "`o` of the device" in report.notes[0].text  # all copy the same there
    assert "of SparseCore core=0 before" in texts


def test_a_core_index() -> None:
    """Of scalar subcores it says all; of vector subcores it does not."""

    def build(mesh: Any) -> Any:
        def body(x: Any, o: Any, sem: Any) -> None:
            pl.semaphore_signal(sem, 1, core_index=1 - lax.axis_index("core"))
            pl.semaphore_wait(sem, 1)

        return kernel_of(mesh, REGULAR)(body)

    finds(judge(lambda: build(scalar())), set())
    report = judge(lambda: build(vector()))
    undecided(report, "A core_index does not say which vector subcore", __file__)


# JAX 0.12 says so once in a process.
@pytest.mark.filterwarnings("ignore:jax.experimental.pallas.core_map:DeprecationWarning")
def test_core_map() -> None:
    """It closes over refs, which its cores share."""

    def build(row: Callable[[], Any]) -> Any:
        def fn(x: jax.Array) -> Any:
            source, target = jax.new_ref(x), jax.new_ref(jnp.zeros_like(x))

            def body(sem: Any) -> None:
                mine, there = source.at[pl.ds(number(), 1)], target.at[pl.ds(row(), 1)]
                pltpu.async_copy(mine, there, sem).wait()

            run: Any = pl.core_map(vector(), scratch_shapes=[DMA])
            run(body)
            return target[...]

        return fn

    finds(judge(lambda: build(number), ROWS), set())
    finds(judge(lambda: build(subcore), ROWS), {"race"})


@pytest.mark.parametrize("early", [False, True])
def test_the_indices_of_a_gather_are_read_too(early: bool) -> None:
    """So long as rows are gathered, the list of their numbers must not change."""

    def body(x: Any, numbers: Any, o: Any, names: Any, rows: Any, sem: Any, other: Any) -> None:
        pltpu.async_copy(numbers.at[pl.ds(0, 16)], names, sem).wait()
        gather = pltpu.make_async_copy(x.at[names], rows, sem)
        gather.start()
        if not early:
            gather.wait()
        pltpu.async_copy(numbers.at[pl.ds(16, 16)], names, other).wait()
        if early:
            gather.wait()

    table, numbers = jax.ShapeDtypeStruct((100, 128), F32), np.arange(32, dtype=np.int32)
    scratch = (pltpu.VMEM((16,), jnp.int32), pltpu.VMEM((16, 128), F32), DMA, DMA)
    call = judge(lambda: kernel_of(vector(), *scratch)(body), table, numbers)
    report = finds(call, {"race"} if early else set(), searched=False)
    if early:
        assert "may write `names`" in report.findings[0].text
        assert "has read it" in report.findings[0].text


def vectors(use: Callable[[Any], None], *, late: bool) -> Any:
    """What a subcore does with its vectors beside a copy into them."""

    def body(x: Any, o: Any, own: Any, sem: Any) -> None:
        copy = pltpu.async_copy(x.at[0], own, sem)
        if late:
            copy.wait()
        use(own)
        if not late:
            copy.wait()

    return kernel_of(vector(), pltpu.VMEM((128,), F32), DMA)(body)


def loads(own: Any) -> None:
    own[pl.ds(16, 16)] = own[pl.ds(0, 16)] + 1.0


def gathers(own: Any) -> None:
    index = lax.iota(jnp.int32, 8)
    plsc.store_scatter(own, [index], plsc.load_gather(own, [index]) + 1.0)


def masked(own: Any) -> None:
    view = own.at[pl.ds(0, 16)]
    mask = lax.iota(jnp.int32, 16) < 4
    plsc.store_compressed(view, own[pl.ds(16, 16)], mask=mask)


def adds(own: Any) -> None:
    plsc.addupdate(own.at[pl.ds(0, 16)], own[pl.ds(16, 16)])


def in_parallel(own: Any) -> None:
    @plsc.parallel_loop(0, 128, 16)
    def _(i: Any) -> None:
        own[pl.ds(i, 16)] = own[pl.ds(i, 16)] * 2.0


@pytest.mark.parametrize("use", [loads, gathers, masked, adds, in_parallel])
def test_loads_and_stores(use: Callable[[Any], None]) -> None:
    report = finds(judge(lambda: vectors(use, late=True)), set(), searched=False)
    assert report.program is not None
    accesses = [event for event in report.program.cores[0] if isinstance(event, Access)]
    assert {event.is_write for event in accesses} == {True, False}
    early = judge(lambda: vectors(use, late=False))
    if use is gathers:  # which of the numbers, is not known
        undecided(early, "Two accesses may overlap", __file__)
    else:
        finds(early, {"race"}, searched=False)


def test_a_parallel_loop_that_copies() -> None:
    def use(own: Any) -> None:
        @plsc.parallel_loop(0, 2)
        def _(i: Any) -> None:
            pltpu.sync_copy(own.at[pl.ds(0, 64)], own.at[pl.ds(64, 64)])

    report = judge(lambda: vectors(use, late=True))
    undecided(report, "A parallel loop that does more than load and store", __file__)


def test_beside_a_kernel_of_a_tensor_core() -> None:
    """Each kind of core runs its own kernels."""

    def fn(x: jax.Array) -> Any:
        def copies(x: Any, o: Any, sem: Any) -> None:
            pltpu.async_copy(x, o, sem).wait()

        anywhere = pl.BlockSpec(memory_space=pl.ANY)
        options: Any = {"in_specs": [anywhere], "out_specs": anywhere, "scratch_shapes": [DMA]}
        return through_shared_memory(plsc.subcore_barrier)(
            pl.pallas_call(copies, ROWS, **options)(x)
        )

    report = finds(judge(lambda: fn, ROWS), set(), searched=False)
    assert report.program is not None
    assert report.program.parts[0] == "TensorCore"
    assert [len(core) > 6 for core in report.program.cores] == [False, *[True] * 4]
