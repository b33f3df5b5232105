"""The reference kernel, in raw Pallas, of docs/examples/sparse_core_gather.py."""

from collections.abc import Callable
from typing import Any

import jax
import jax.experimental.pallas.tpu_sc as plsc
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS, COLS, LOOKUPS = 1000, 128, 2048
CHUNK = 16  # rows that one copy gathers
SLOTS = (np.int32(0), np.int32(1))  # also with 64 bit types, where an int indexes as an int64


def gather(table: jax.Array, indices: jax.Array, *, interpret: Any = False) -> jax.Array:
    """``table[indices]``, for as many indices as fill pairs of chunks on every subcore."""
    one: Any = {"num_cores": 1, "num_subcores": 1} if interpret else {}
    mesh = plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore", **one)
    subcores = mesh.num_cores * mesh.num_subcores
    chunks = len(indices) // (subcores * CHUNK)
    assert chunks % 2 == 0
    assert chunks * subcores * CHUNK == len(indices)

    def kernel(
        table: Any,
        indices: Any,
        o: Any,
        even: Any,
        odd: Any,
        rows: Any,
        fetched: Any,
        gathered: Any,
        stored: Any,
    ) -> None:
        subcore: int | jax.Array = 0
        if subcores > 1:
            core = jax.lax.axis_index("core")
            subcore = core * mesh.num_subcores + jax.lax.axis_index("subcore")
        names = (even, odd)
        buffers = (rows.at[SLOTS[0]], rows.at[SLOTS[1]])

        def place(chunk: int | jax.Array) -> Any:
            return pl.ds((subcore * chunks + chunk) * CHUNK, CHUNK)

        def fetch(chunk: int | jax.Array, slot: np.int32) -> Any:
            return pltpu.make_async_copy(indices.at[place(chunk)], names[slot], fetched.at[slot])

        def load(slot: np.int32) -> Any:
            return pltpu.make_async_copy(table.at[names[slot]], buffers[slot], gathered.at[slot])

        def store(chunk: int | jax.Array, slot: np.int32) -> Any:
            return pltpu.make_async_copy(buffers[slot], o.at[place(chunk)], stored.at[slot])

        fetch(0, SLOTS[0]).start()
        fetch(1, SLOTS[1]).start()

        def pair(_: jax.Array, first: jax.Array) -> jax.Array:
            for slot in SLOTS:
                chunk = first + slot

                @pl.when(first > 0)
                def _free(chunk: jax.Array = chunk, slot: np.int32 = slot) -> None:
                    store(chunk - 2, slot).wait()

                fetch(chunk, slot).wait()
                load(slot).start()
            for slot in SLOTS:
                chunk = first + slot
                load(slot).wait()
                store(chunk, slot).start()

                @pl.when(chunk + 2 < chunks)
                def _prefetch(chunk: jax.Array = chunk, slot: np.int32 = slot) -> None:
                    fetch(chunk + 2, slot).start()

            return first + 2

        jax.lax.fori_loop(0, chunks // 2, pair, np.int32(0))
        store(chunks - 2, SLOTS[0]).wait()
        store(chunks - 1, SLOTS[1]).wait()

    out = jax.ShapeDtypeStruct((len(indices), table.shape[1]), table.dtype)
    scratch = (
        pltpu.VMEM((CHUNK,), jnp.int32),
        pltpu.VMEM((CHUNK,), jnp.int32),
        pltpu.VMEM((2, CHUNK, table.shape[1]), table.dtype),
        pltpu.SemaphoreType.DMA((2,)),
        pltpu.SemaphoreType.DMA((2,)),
        pltpu.SemaphoreType.DMA((2,)),
    )
    call = pl.kernel(kernel, out, mesh=mesh, scratch_types=scratch, interpret=interpret)
    rows: jax.Array = call(table, indices)
    return rows


def build(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None, *, interpret: Any = False
) -> tuple[Callable[..., jax.Array], tuple[jax.Array, ...]]:
    """The function and arguments for it. It runs on one device: no mesh is needed."""
    table = jax.random.normal(jax.random.key(0), (ROWS, COLS), jnp.float32)
    indices = jax.random.randint(jax.random.key(1), (LOOKUPS,), 0, ROWS, jnp.int32)

    def fn(table: jax.Array, indices: jax.Array) -> jax.Array:
        return gather(table, indices, interpret=interpret)

    return fn, (table, indices)
