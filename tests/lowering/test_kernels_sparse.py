"""Gather and scatter copies on SparseCore: each kernel lowers like its reference kernel."""

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc
from jax.sharding import AbstractDevice, AbstractMesh

import safepallas as sp
from safepallas.testing import assert_lowers_like, compile_for_tpu

needs_libtpu = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None,
    reason="libtpu is not installed: no TPU compiler here",
)
V6E = AbstractDevice("TPU v6 lite", 1, "tpu")
TABLE = jax.ShapeDtypeStruct((1024, 128), jnp.float32)
INDICES = jax.ShapeDtypeStruct((64,), jnp.int32)
ROWS = jax.ShapeDtypeStruct((64, 128), jnp.float32)
SCRATCH = (
    pltpu.VMEM((64,), jnp.int32),
    pltpu.VMEM((64, 128), jnp.float32),
    pltpu.VMEM_SHARED((64, 128), jnp.float32),
    pltpu.SemaphoreType.DMA,
)


@pytest.fixture(autouse=True)
def with_sparse_cores() -> Iterator[None]:
    """Let the lowering believe in a TPU v6e."""
    with jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=V6E)):
        yield


def on_subcores(kernel: Any) -> Any:
    mesh = plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore")
    return lambda *args: pl.kernel(kernel, ROWS, mesh=mesh, scratch_types=SCRATCH)(*args)


# One body for both: `m` is safepallas or raw Pallas, and its semaphore is its own.


def gather(m: Any, table: Any, i: Any, o: Any, rows: Any, shared: Any, sem: Any) -> None:
    m.async_copy(table.at[i], rows, sem).wait()


def gather_by_a_part(m: Any, table: Any, i: Any, o: Any, rows: Any, shared: Any, sem: Any) -> None:
    half = pl.ds(0, 32)
    m.async_copy(table.at[i.at[half]], rows.at[half], sem).wait()


def gather_by_a_vector(
    m: Any, table: Any, i: Any, o: Any, rows: Any, shared: Any, sem: Any
) -> None:
    some = pl.ds(0, 16)
    m.async_copy(table.at[i[some]], rows.at[some], sem).wait()


def gather_but_some(m: Any, table: Any, i: Any, o: Any, rows: Any, shared: Any, sem: Any) -> None:
    m.async_copy(table.at[plsc.Indices(i, ignored_value=-1)], rows, sem).wait()


def gather_a_traced_number(
    m: Any, table: Any, i: Any, o: Any, rows: Any, shared: Any, sem: Any
) -> None:
    some = pl.ds(0, pl.multiple_of(i[pl.ds(0, 16)][0], 8))
    m.async_copy(table.at[i.at[some]], rows.at[some], sem).wait()


def gather_columns(m: Any, table: Any, i: Any, o: Any, rows: Any, shared: Any, sem: Any) -> None:
    columns = pl.ds(0, 64)
    m.async_copy(table.at[i, columns], rows.at[:, columns], sem).wait()


def gather_of_a_part(m: Any, table: Any, i: Any, o: Any, rows: Any, shared: Any, sem: Any) -> None:
    m.async_copy(table.at[pl.ds(0, 512)].at[i], rows, sem).wait()


def gather_at_once(m: Any, table: Any, i: Any, o: Any, rows: Any, shared: Any, sem: Any) -> None:
    m.sync_copy(table.at[i], rows)


def wait_elsewhere(m: Any, table: Any, i: Any, o: Any, rows: Any, shared: Any, sem: Any) -> None:
    m.make_async_copy(table.at[i], rows, sem).start()
    m.make_async_copy(table.at[i], rows, sem).wait()


def scatter(m: Any, table: Any, i: Any, o: Any, rows: Any, shared: Any, sem: Any) -> None:
    m.async_copy(rows, o.at[i], sem).wait()


def add_while_gathering(
    m: Any, table: Any, i: Any, o: Any, rows: Any, shared: Any, sem: Any
) -> None:
    m.async_copy(table.at[i], rows, sem, add=True).wait()
    m.sync_copy(table.at[i], rows, add=True)


def add_while_scattering(
    m: Any, table: Any, i: Any, o: Any, rows: Any, shared: Any, sem: Any
) -> None:
    m.async_copy(rows, shared.at[i], sem, add=True).wait()


Body = Callable[..., None]
BODIES: dict[str, Body] = {
    body.__name__: body
    for body in (
        *(gather, gather_by_a_part, gather_by_a_vector, gather_but_some, gather_a_traced_number),
        *(gather_columns, gather_of_a_part, gather_at_once, wait_elsewhere, scatter),
        *(add_while_gathering, add_while_scattering),
    )
}


def ours_of(body: Body) -> Any:
    def kernel(table, i, o, indices, rows, shared, sem):
        sp.sync_copy(i, indices)
        body(sp, table, indices, o, rows, shared, sp.adopt(sem, sp.dma_semaphore()))

    return on_subcores(kernel)


def raw_of(body: Body) -> Any:
    def kernel(table, i, o, indices, rows, shared, sem):
        pltpu.sync_copy(i, indices)
        body(pltpu, table, indices, o, rows, shared, sem)

    return on_subcores(kernel)


@pytest.mark.parametrize("name", BODIES)
def test_lowers_as_raw_pallas(name: str) -> None:
    body = BODIES[name]
    assert_lowers_like(ours_of(body), raw_of(body), TABLE, INDICES)


@needs_libtpu
@pytest.mark.parametrize("topology", ["v5p:2x2x1", "v6e:2x2"])
@pytest.mark.parametrize("name", BODIES)
def test_compiles(name: str, topology: str) -> None:
    compiled = compile_for_tpu(ours_of(BODIES[name]), TABLE, INDICES, topology=topology)
    assert compiled is not None


@needs_libtpu
def test_no_priority_on_sparse_cores() -> None:
    def body(m: Any, table: Any, i: Any, o: Any, rows: Any, shared: Any, sem: Any) -> None:
        m.async_copy(o, rows, sem, priority=1).wait()

    with pytest.raises(jax.errors.JaxRuntimeError, match="Priority not supported on SparseCore"):
        compile_for_tpu(ours_of(body), TABLE, INDICES, topology="v6e:2x2")


HALF = pl.ds(0, 32)
MISMATCHES: dict[str, Body] = {
    "fewer rows": lambda m, table, i, o, rows, shared, sem: m.async_copy(
        table.at[i], rows.at[HALF], sem
    ),
    "fewer indices": lambda m, table, i, o, rows, shared, sem: m.async_copy(
        table.at[i.at[HALF]], rows, sem
    ),
    "fewer columns": lambda m, table, i, o, rows, shared, sem: m.async_copy(
        table.at[i, HALF], rows, sem
    ),
    "scatter of fewer rows": lambda m, table, i, o, rows, shared, sem: m.async_copy(
        rows.at[HALF], o.at[i], sem
    ),
    "fewer rows of a traced number": lambda m, table, i, o, rows, shared, sem: m.async_copy(
        table.at[i.at[pl.ds(0, i[pl.ds(0, 16)][0])]], rows.at[:, HALF], sem
    ),
    "a vector of indices": lambda m, table, i, o, rows, shared, sem: m.async_copy(
        table.at[i[pl.ds(0, 16)]], rows, sem
    ),
    "the whole table": lambda m, table, i, o, rows, shared, sem: m.async_copy(table, o.at[i], sem),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_ends_that_do_not_match_are_refused(name: str) -> None:
    """Raw Pallas finds it when lowered, or lets the compiler ask for a bug to be filed."""
    with pytest.raises(sp.errors.CopyMismatchError):
        jax.make_jaxpr(ours_of(MISMATCHES[name]))(TABLE, INDICES)
    jax.make_jaxpr(raw_of(MISMATCHES[name]))(TABLE, INDICES)
