"""What extraction makes of kernels: events, regions, amounts, targets."""

import itertools
from collections.abc import Callable
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from safepallas._jax.operations import Other
from safepallas._jax.reader import Operation
from safepallas._verify.diagnostics.finding import FindingKind, WrongError
from safepallas._verify.extract.core import Core, Mesh, Shared
from safepallas._verify.extract.interpreter import Compiler, run_alone
from safepallas._verify.extract.source import RULES, Source, trace
from safepallas._verify.extract.values import UNKNOWN
from safepallas._verify.program import (
    Access,
    Program,
    Signal,
    Start,
    UndecidedError,
    Wait,
)
from safepallas._verify.program import Line as SourceLine

DMA = pltpu.SemaphoreType.DMA
REGULAR = pltpu.SemaphoreType.REGULAR
ANY = pl.BlockSpec(memory_space=pl.ANY)
F32 = jnp.float32


def mesh(**axes: int) -> AbstractMesh:
    return AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


def extract(
    kernel: Callable[..., None],
    *args: Any,
    scratch: Any = (),
    on: AbstractMesh | None = None,
    out: Any = None,
    repeat: int | None = None,
    limit: int = 100_000,
    **options: Any,
) -> Program:
    """The program of a kernel whose operands stay in HBM."""
    out = out or jax.ShapeDtypeStruct((8, 128), F32)
    args = args or (jax.ShapeDtypeStruct((8, 128), F32),)
    if "grid_spec" not in options:
        options = {"in_specs": [ANY] * len(args), "out_specs": ANY, **options}
        options["scratch_shapes"] = scratch
    if on is not None:
        options["compiler_params"] = pltpu.CompilerParams(collective_id=0)
    fn: Any = pl.pallas_call(kernel, out, **options)
    if on is not None:
        fn = jax.shard_map(fn, mesh=on, in_specs=P(), out_specs=P(), check_vma=False)
    program = Source(trace(fn, args), args).extract(repeat, limit)
    if program.unknown is not None:
        raise program.unknown
    return program


def of(program: Program, kind: type, core: int = 0) -> list[Any]:
    return [event for event in program.cores[core] if isinstance(event, kind)]


def test_every_operation_of_the_reader_has_a_rule() -> None:
    """Only what is `Other` is refused, or computed."""
    assert {*get_args(Operation)} - {*RULES} == {Other}


# Numbers


def evaluate(fn: Callable[..., Any], *args: Any) -> Any:
    """What our own interpreter makes of a function of numbers."""
    jaxpr = jax.make_jaxpr(fn)(*args)
    core = Core(Shared(Mesh({}), 1000, None), 0)
    values = [a.item() if np.ndim(a) == 0 else a for a in map(np.asarray, args)]
    return run_alone(Compiler(RULES).code(jaxpr), core, values)


EDGES = [0, 1, -1, 2, -2, 7, -7, 2**31 - 1, -(2**31)]
BINARY = [
    *(lax.add, lax.sub, lax.mul, lax.div, lax.rem, lax.max, lax.min),
    *(lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor),
    *(lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge),
    *(lax.shift_left, lax.shift_right_arithmetic, lax.shift_right_logical),
    *(jnp.floor_divide, jnp.mod, jnp.where, lax.clamp),
]


@pytest.mark.parametrize("fn", BINARY, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(), (3,)])
def test_integers_are_jax_own(fn: Any, shape: tuple[int, ...]) -> None:
    """At the edges too: where numbers wrap around, and at division by zero."""
    for a, b in itertools.product(EDGES, EDGES):
        x, y = (jnp.full(shape, n, jnp.int32) for n in (a, b))
        if fn is jnp.where:
            args = (x > 0, x, y)
        elif fn is lax.clamp:
            args = (jnp.minimum(x, y), x, jnp.maximum(x, y))
        else:
            args = (x, y)
        (found,) = evaluate(fn, *args)
        expected = fn(*args)
        np.testing.assert_array_equal(found, expected, err_msg=f"{fn.__name__} {a} {b}")
        if not shape:
            assert type(found) in (int, bool)


@pytest.mark.parametrize("dtype", [jnp.int8, jnp.uint8, jnp.int16, jnp.uint32])
def test_other_widths_wrap_around(dtype: Any) -> None:
    info = jnp.iinfo(dtype)
    for value in (info.min, 0, 1, info.max):
        x = jnp.array(value, dtype)
        for fn in (
            lambda x: x + x.dtype.type(1),
            lambda x: -x,
            lambda x: ~x,
            lambda x: x.astype(jnp.int8),
            lambda x: x.astype(jnp.int32) * 300,
            lambda x: x.astype(bool),
            jnp.abs,
            jnp.sign,
        ):
            (found,) = evaluate(fn, x)
            np.testing.assert_array_equal(found, fn(x))


def test_what_is_unknown_stays_so_and_what_is_not_needed_does_not_matter() -> None:
    def fn(x: Any, y: Any) -> Any:
        return x + 1, jnp.where(y > 0, y, x), y * 2

    jaxpr = jax.make_jaxpr(fn)(jnp.int32(0), jnp.int32(3))
    core = Core(Shared(Mesh({}), 1000, None), 0)
    found = run_alone(Compiler(RULES).code(jaxpr), core, [UNKNOWN, 3])
    assert found == [UNKNOWN, 3, 6]


SHAPES: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: lax.slice(x, (1, 0), (4, 6), (2, 3)),
    "slice without strides": lambda x: x[1:3, 2:],
    "concatenate": lambda x: jnp.concatenate([x, x[:2], -x], 0),
    "reshape": lambda x: x.reshape(6, 4),
    "squeeze": lambda x: x[:1].squeeze(0),
    "broadcast": lambda x: jnp.broadcast_to(x[:, 1:2], (3, 4, 5)),
    "iota": lambda x: lax.broadcasted_iota(jnp.int32, (2, 3), 1) + x[0, 0],
    "transpose": lambda x: x.T,
    "sum": lambda x: x.sum(0),
    "cumsum": lambda x: jnp.cumsum(x, 1),
    "sort": lambda x: jnp.sort(x, 1),
    "to bytes": lambda x: x.astype(jnp.int8),
    "from floats": lambda x: (x.astype(jnp.float32) / 3).astype(jnp.int32),
    "by booleans": lambda x: jnp.where(x > 70, x, -x),
}


@pytest.mark.parametrize("name", SHAPES)
def test_small_arrays_are_jax_own(name: str) -> None:
    x = (jnp.arange(24, dtype=jnp.int32) * 37 % 201 - 50).reshape(4, 6)
    (found,) = evaluate(SHAPES[name], x)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, SHAPES[name](x))


def test_loops_that_only_compute() -> None:
    def fn(n: Any) -> Any:
        total = lax.fori_loop(0, n, lambda i, t: t + i * i, jnp.int32(0))
        ordered = lax.scan(lambda c, x: (c + x, c * x), n, jnp.arange(5), reverse=True)
        return total, *ordered, lax.cond(n > 3, lambda: n, lambda: -n)

    for value, a, b in zip(evaluate(fn, jnp.int32(6)), fn(jnp.int32(6)), "abcd", strict=True):
        np.testing.assert_array_equal(value, a, err_msg=b)


# Targets

MESH = {"x": 2, "y": 3}
FORMS: dict[str, Callable[[], Any]] = {
    "tuple": lambda: (1, 0),
    "dict": lambda: {"y": 0, "x": 1},
    "joint": lambda: {("x", "y"): 3},
}


@pytest.mark.filterwarnings("ignore:.*device_id_type:DeprecationWarning")
@pytest.mark.parametrize("form", [*FORMS, "logical"])
def test_device_ids(form: str) -> None:
    options: dict[str, Any] = {}
    make = FORMS.get(form, lambda: 3)
    if form == "logical":  # deprecated in 0.12
        options["device_id_type"] = pl.DeviceIdType.LOGICAL

    def kernel(x: Any, o: Any, sem: Any) -> None:
        pl.semaphore_signal(sem, 2, device_id=make(), **options)

    program = extract(kernel, scratch=[REGULAR], on=mesh(**MESH))
    for core in range(6):
        (signal,) = of(program, Signal, core)
        assert signal.semaphore.core == 3
        assert signal.amount == 2
    assert program.place(3) == "device x=1, y=0"


def test_an_axis_that_is_not_named_stays_as_it_is() -> None:
    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        y = lax.rem(lax.axis_index("y") + 1, 3)
        pltpu.make_async_remote_copy(x, o, send, recv, device_id={"y": y}).start()

    program = extract(kernel, scratch=[DMA, DMA], on=mesh(**MESH))
    for core in range(6):
        (start,) = of(program, Start, core)
        x, y = divmod(core, 3)
        to = 3 * x + (y + 1) % 3
        assert (start.recv.core, start.send.core) == (to, core)
        assert (start.target.core, start.source.core) == (to, core)
        assert start.amount == 8 * 128 * 4


@pytest.mark.parametrize("device_id", [{"x": 2}, {"y": -1}, (0, 3), {("x", "y"): 6}, (0,)])
def test_no_such_device(device_id: Any) -> None:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        pl.semaphore_signal(sem, device_id=device_id)

    with pytest.raises(WrongError) as caught:
        extract(kernel, scratch=[REGULAR], on=mesh(**MESH))
    assert caught.value.finding.kind is FindingKind.OUT_OF_RANGE
    (line,) = caught.value.finding.lines
    assert line.file == __file__


def test_cores_of_one_device() -> None:
    if hasattr(pltpu, "TensorCoreMesh"):
        cores = pltpu.TensorCoreMesh(axis_name="core", num_cores=2)
    else:
        cores = pltpu.create_tensorcore_mesh("core", num_cores=2)

    def body(x: Any, o: Any, *scratch: Any) -> None:
        (sem,) = scratch
        other = 1 - lax.axis_index("core")
        pl.semaphore_signal(sem, 1, core_index=other)
        pl.semaphore_wait(sem, 1)

    x = jax.ShapeDtypeStruct((8, 128), F32)
    name = "scratch_types" if hasattr(pltpu, "TensorCoreMesh") else "scratch_shapes"
    try:
        fn = pl.kernel(body, x, mesh=cores, **{name: [REGULAR]})
    except TypeError:
        fn = pl.kernel(body, x, mesh=cores, scratch_types=[REGULAR])
    program = Source(trace(fn, (x,)), (x,)).extract(None, 1000)
    assert program.mesh == ()
    assert program.parts == ("TensorCore core=0", "TensorCore core=1")
    for core in range(2):
        assert [s.semaphore.core for s in of(program, Signal, core)] == [1 - core]
        assert [w.semaphore.core for w in of(program, Wait, core)] == [core]


# Regions

VIEWS: dict[str, tuple[tuple[int, ...], Callable[[Any, Any], Any]]] = {
    "whole": ((4, 8, 128), lambda r, i: r),
    "one": ((4, 8, 128), lambda r, i: r.at[2]),
    "traced": ((4, 8, 128), lambda r, i: r.at[i]),
    "slice": ((4, 8, 128), lambda r, i: r.at[1:3, pl.ds(i, 4)]),
    "slice of a slice": ((4, 8, 128), lambda r, i: r.at[1:4].at[pl.ds(i, 2)].at[1]),
    "stride": ((4, 16, 128), lambda r, i: r.at[:, pl.ds(1, 4, 3)]),
    "reshaped": ((4, 8, 128), lambda r, i: r.reshape(2, 2, 8, 128).at[i]),
    "merged": ((4, 8, 128), lambda r, i: r.reshape(32, 128).at[pl.ds(i + 7, 8)]),
    "part of a merged one": ((4, 8, 128), lambda r, i: r.reshape(32, 128).at[pl.ds(11, 3)]),
    "across": ((4, 8, 128), lambda r, i: r.reshape(32, 128).at[pl.ds(4, 8)]),
    "reshaped inside": (
        (4, 8, 128),
        lambda r, i: r.at[pl.ds(i, 2)].reshape(16, 128).at[pl.ds(12, 4)],
    ),
    "inside a stride": ((16, 8, 128), lambda r, i: r.at[pl.ds(1, 4, 3)].at[2]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_regions_are_what_numpy_would_access(name: str) -> None:
    shape, view = VIEWS[name]

    def kernel(n: Any, x: Any, o: Any, sem: Any) -> None:
        source = view(x, n[0])
        pltpu.make_async_copy(source, view(o, n[0]), sem).start()

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[ANY], out_specs=ANY, scratch_shapes=[DMA]
    )
    x = jax.ShapeDtypeStruct(shape, F32)
    fn = pl.pallas_call(kernel, x, grid_spec=spec)
    (start,) = of(
        Source(trace(fn, (np.array([1], np.int32), x)), (np.array([1], np.int32), x)).extract(
            None, 100
        ),
        Start,
    )
    accessed = view(Numpy(np.arange(np.prod(shape)).reshape(shape)), 1).array
    places = np.unravel_index(accessed.ravel(), shape)
    low, high = [int(p.min()) for p in places], [int(p.max()) + 1 for p in places]
    assert (start.source.low, start.source.high) == (tuple(low), tuple(high))
    assert start.source[2:] == start.target[2:]
    # What leaves gaps in its box, and not at regular strides, is marked: a race may be none.
    steps = start.source.step or (1,) * len(low)
    boxes = [-(-(b - a) // n) for a, b, n in zip(low, high, steps, strict=True)]
    assert start.source.exact == (accessed.size == np.prod(boxes))
    assert start.amount == accessed.size * 4


class Numpy:
    """A NumPy array that is indexed as a ref is."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.at = self

    def reshape(self, *shape: int) -> "Numpy":
        return Numpy(self.array.reshape(shape))

    def __getitem__(self, index: Any) -> "Numpy":
        parts = index if isinstance(index, tuple) else (index,)
        found = [
            slice(p.start, p.start + p.size * p.stride, p.stride) if isinstance(p, pl.Slice) else p
            for p in parts
        ]
        found = [slice(p.start, p.stop, p.step) if isinstance(p, slice) else p for p in found]
        return Numpy(self.array[tuple(found)])


@pytest.mark.parametrize(
    ("dtype", "other", "rows", "amount"),
    [(jnp.bfloat16, jnp.int32, (2, 4), 512), (jnp.float32, jnp.bfloat16, (0, 1), 256)],
)
def test_views_of_other_widths(dtype: Any, other: Any, rows: Any, amount: int) -> None:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        views = [ref.bitcast(other).at[2, pl.ds(1, 1)] for ref in (x, o)]
        pltpu.make_async_copy(*views, sem).start()

    x = jax.ShapeDtypeStruct((4, 8, 128), dtype)
    (start,) = of(extract(kernel, x, out=x, scratch=[DMA]), Start)
    assert (start.source.low, start.source.high) == ((2, rows[0], 0), (3, rows[1], 128))
    assert start.amount == amount


def test_an_unknown_place_may_be_anywhere_in_its_dimension() -> None:
    def kernel(n: Any, x: Any, o: Any, sem: Any) -> None:
        pltpu.make_async_copy(x.at[n[0], 2:4], o.at[n[0], 2:4], sem).start()

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[ANY], out_specs=ANY, scratch_shapes=[DMA]
    )
    x, n = jax.ShapeDtypeStruct((4, 8, 128), F32), jax.ShapeDtypeStruct((1,), jnp.int32)
    fn = pl.pallas_call(kernel, x, grid_spec=spec)
    (start,) = of(Source(trace(fn, (n, x)), (n, x)).extract(None, 100), Start)
    assert (start.source.low, start.source.high) == ((0, 2, 0), (4, 4, 128))
    assert start.amount == 2 * 128 * 4
    assert not start.source.exact
    assert not start.target.exact


@pytest.mark.parametrize(("dtype", "size"), [(jnp.bfloat16, 2), (jnp.int8, 1), (jnp.int32, 4)])
def test_amounts_are_bytes(dtype: Any, size: int) -> None:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        copy = pltpu.make_async_copy(x, o, sem)
        copy.start()
        copy.wait()

    x = jax.ShapeDtypeStruct((32, 128), dtype)
    program = extract(kernel, x, out=x, scratch=[DMA])
    assert [e.amount for e in of(program, (Start, Wait))] == [32 * 128 * size] * 2


# Control


def prefetched(
    kernel: Callable[..., None], *tables: Any, scratch: Any, grid: Any = (1,)
) -> Program:
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=len(tables),
        grid=grid,
        in_specs=[ANY],
        out_specs=ANY,
        scratch_shapes=scratch,
    )
    x = jax.ShapeDtypeStruct((8, 128), F32)
    return extract(kernel, *tables, x, out=x, grid_spec=spec)


def test_loops_and_branches_on_tables() -> None:
    def kernel(n: Any, x: Any, o: Any, sem: Any) -> None:
        step = pl.program_id(0)

        def turn(i: Any, total: Any) -> Any:
            @pl.when(lax.rem(i, 2) == 0)
            def _() -> None:
                pl.semaphore_signal(sem.at[step], i + 1)

            return total + i

        total = lax.fori_loop(n[0], n[step + 1], turn, 0)
        lax.while_loop(
            lambda t: t > 0, lambda t: (pl.semaphore_signal(sem.at[2], t), t - 5)[1], total
        )

    program = prefetched(kernel, np.array([1, 4, 6], np.int32), scratch=[REGULAR((3,))], grid=(2,))
    found = [(e.semaphore.indices, e.amount) for e in of(program, Signal)]
    first, second = [((0,), 3), ((2,), 6), ((2,), 1)], [((1,), 3), ((1,), 5)]
    assert found == [*first, *second, *(((2,), n) for n in (15, 10, 5))]


def test_numbers_that_a_kernel_writes_itself() -> None:
    def kernel(n: Any, x: Any, o: Any, table: Any, sem: Any, done: Any) -> None:
        table[0] = n[1] * 2
        table[1] = table[0] + 1
        pl.semaphore_signal(sem, table[1])
        copy = pltpu.make_async_copy(n, table, done)
        copy.start()
        copy.wait()
        pl.semaphore_signal(sem, table[0])

    program = prefetched(
        kernel, np.array([4, 8], np.int32), scratch=[pltpu.SMEM((2,), jnp.int32), REGULAR, DMA]
    )
    assert [e.amount for e in of(program, Signal)] == [17, 4]


UNKNOWN_PLACES: dict[str, Callable[..., None]] = {
    "branch": lambda n, sem: pl.when(n > 0)(lambda: pl.semaphore_signal(sem.at[0], 1)),
    "loop": lambda n, sem: lax.fori_loop(
        0, n, lambda i, c: (pl.semaphore_signal(sem.at[0], 1), c)[1], 0
    ),
    "semaphores": lambda n, sem: pl.semaphore_signal(sem.at[n], 1),
    "signalled": lambda n, sem: pl.semaphore_signal(sem.at[0], n),
    "waited": lambda n, sem: pl.semaphore_wait(sem.at[0], n),
}


@pytest.mark.parametrize("name", UNKNOWN_PLACES)
def test_what_is_not_known_is_undecided_with_its_line(name: str) -> None:
    def kernel(n: Any, x: Any, o: Any, sem: Any) -> None:
        UNKNOWN_PLACES[name](n[0], sem)

    with pytest.raises(UndecidedError, match=name) as caught:
        prefetched(kernel, jax.ShapeDtypeStruct((1,), jnp.int32), scratch=[REGULAR((2,))])
    line = caught.value.line
    assert isinstance(line, SourceLine)
    assert line.file == __file__
    assert line.number > 0


def test_what_a_semaphore_holds_is_not_known() -> None:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        pl.when(pl.semaphore_read(sem) > 0)(lambda: pl.semaphore_wait(sem, 1))

    with pytest.raises(UndecidedError, match="branch"):
        extract(kernel, scratch=[REGULAR])


def test_scopes_in_a_loop_have_new_names_each_time_and_the_same_on_all_devices() -> None:
    def kernel(x: Any, o: Any) -> None:
        def turn(i: Any, c: Any) -> Any:
            pl.run_scoped(lambda sem: pl.semaphore_signal(sem, 1), REGULAR)
            return c

        lax.fori_loop(0, lax.axis_index("x") + 1, turn, 0)

    program = extract(kernel, on=mesh(x=3))
    numbers = [[e.semaphore.scope for e in of(program, Signal, core)] for core in range(3)]
    assert [len(n) for n in numbers] == [1, 2, 3]
    assert len(set(numbers[2])) == 3
    assert numbers[0] == numbers[2][:1]
    assert numbers[1] == numbers[2][:2]


# Blocks


def blocks(kernel: Callable[..., None], index: Any, grid: tuple[int, ...] = (4,)) -> list[Any]:
    x = jax.ShapeDtypeStruct((32, 128), F32)
    spec = pl.BlockSpec((8, 128), index)
    program = extract(
        kernel,
        x,
        out=x,
        scratch=[DMA],
        grid=grid,
        in_specs=[spec],
        out_specs=pl.BlockSpec((8, 128), lambda i, *_: (i, 0)),
    )
    return of(program, Access)


def copies(x: Any, o: Any, sem: Any) -> None:
    copy = pltpu.make_async_copy(x, o, sem)
    copy.start()
    copy.wait()


def test_the_pipeline_writes_inputs_and_reads_outputs() -> None:
    accesses = blocks(copies, lambda i: (i, 0))
    # Before each step but the first an output leaves as the next input comes.
    assert [a.is_write for a in accesses] == [True, *[True, False] * 3, False]


def test_a_block_that_stays_is_not_moved() -> None:
    accesses = blocks(copies, lambda i: (0, 0))
    assert [a.is_write for a in accesses].count(True) == 1
    assert [a.is_write for a in accesses].count(False) == 4


def test_accesses_to_what_no_copy_reaches_are_left_out() -> None:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        o[...] = x[...] * 2

    assert blocks(kernel, lambda i: (i, 0)) == []
