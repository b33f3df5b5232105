"""Small kernels for which the TPU compiler is asked what it makes of them.

Run as a program, it compiles all of them with libtpu's dumps on: ``python compiled_facts.py DIR``.
Each kernel has a name of its own, which its dump has in its file name.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

N = 4
KERNELS: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {}


def dump_to(directory: str) -> None:
    """Before libtpu is loaded: write down the low-level code of each kernel."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["LIBTPU_INIT_ARGS"] = f"--xla_jf_dump_to={directory} --xla_jf_dump_llo_text=true"


if __name__ == "__main__":
    dump_to(sys.argv[1])

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from safepallas import testing  # noqa: E402

ANY = pl.BlockSpec(memory_space=pl.ANY)
IN_SMEM = pl.BlockSpec(memory_space=pltpu.SMEM)
IN_VMEM = pl.BlockSpec(memory_space=pltpu.VMEM)
DMA, REGULAR, BARRIER = (
    pltpu.SemaphoreType.DMA,
    pltpu.SemaphoreType.REGULAR,
    pltpu.SemaphoreType.BARRIER,
)
Body = Callable[..., None]


def right() -> Any:
    return lax.rem(lax.axis_index("x") + 1, N)


def on_mesh(body: Body, scratch: list[Any], **params: Any) -> Body:
    """Register a kernel on a ring of `N` devices, from HBM to HBM."""

    def build() -> Any:
        like = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        call = pl.pallas_call(
            body,
            out_shape=like,
            in_specs=[ANY],
            out_specs=ANY,
            scratch_shapes=scratch,
            name=body.__name__,
            compiler_params=pltpu.CompilerParams(**params),
        )
        mesh = testing.tpu_mesh((N,), ("x",))
        fn = jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
        return fn, (jax.ShapeDtypeStruct((8 * N, 128), jnp.float32),)

    KERNELS[body.__name__] = build
    return body


def meshed(*scratch: Any, **params: Any) -> Callable[[Body], Body]:
    return lambda body: on_mesh(body, list(scratch), **params)


def single(
    *scratch: Any,
    shape: tuple[int, ...] = (64, 128),
    dtype: Any = jnp.float32,
    source: Any = ANY,
    target: Any = ANY,
    aliases: dict[int, int] | None = None,
    **params: Any,
) -> Callable[[Body], Body]:
    """Register a kernel of one device, with two integers in SMEM and an array."""

    def register(body: Body) -> Body:
        def build() -> Any:
            like = jax.ShapeDtypeStruct(shape, dtype)
            call = pl.pallas_call(
                body,
                out_shape=like,
                in_specs=[IN_SMEM, source],
                out_specs=target,
                scratch_shapes=list(scratch),
                name=body.__name__,
                input_output_aliases=aliases or {},
                compiler_params=pltpu.CompilerParams(**params),
            )
            return call, (jax.ShapeDtypeStruct((2,), jnp.int32), like)

        KERNELS[body.__name__] = build
        return body

    return register


def copy(source: Any, target: Any, sem: Any) -> None:
    pltpu.async_copy(source, target, sem).wait()


def send(x: Any, o: Any, s: Any, r: Any) -> None:
    pltpu.async_remote_copy(x, o, s, r, device_id={"x": right()}).wait()


# The barrier at the entry


@meshed(DMA, DMA)
def entry_remote_copy(x: Any, o: Any, s: Any, r: Any) -> None:
    send(x, o, s, r)


@meshed(DMA, REGULAR)
def entry_remote_signal(x: Any, o: Any, s: Any, r: Any) -> None:
    pl.semaphore_signal(r, 1, device_id={"x": right()})
    pl.semaphore_wait(r, 1)
    copy(x, o, s)


@meshed(DMA, DMA, skip_device_barrier=True)
def entry_skipped(x: Any, o: Any, s: Any, r: Any) -> None:
    send(x, o, s, r)


@meshed(DMA, REGULAR)
def entry_local_only(x: Any, o: Any, s: Any, r: Any) -> None:
    pl.semaphore_signal(r, 1)
    pl.semaphore_wait(r, 1)
    copy(x, o, s)


def barrier_by_hand() -> None:
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, 1, device_id={"x": right()})
    pl.semaphore_wait(barrier, 1)


@meshed(DMA, DMA, collective_id=0)
def entry_own_barrier(x: Any, o: Any, s: Any, r: Any) -> None:
    barrier_by_hand()
    send(x, o, s, r)


@meshed(DMA, DMA, collective_id=0)
def entry_barrier_in_untaken_branch(x: Any, o: Any, s: Any, r: Any) -> None:
    pl.when(lax.axis_index("x") > N)(barrier_by_hand)
    send(x, o, s, r)


@meshed(DMA, DMA, collective_id=0, allow_collective_id_without_custom_barrier=True)
def entry_id_without_barrier(x: Any, o: Any, s: Any, r: Any) -> None:
    send(x, o, s, r)


@meshed(DMA, DMA, BARRIER)
def entry_barrier_scratch(x: Any, o: Any, s: Any, r: Any, b: Any) -> None:
    pl.semaphore_signal(b, 1, device_id={"x": right()})
    pl.semaphore_wait(b, 1)
    send(x, o, s, r)


# Scopes


def use(n: int) -> Callable[[Any], None]:
    def body(sem: Any) -> None:
        pl.semaphore_signal(sem, n)
        pl.semaphore_wait(sem, n)

    return body


@meshed(DMA)
def scopes_one_after_the_other(x: Any, o: Any, s: Any) -> None:
    pl.run_scoped(use(111), REGULAR)
    pl.run_scoped(lambda sems: use(112)(sems.at[0]), REGULAR((3,)))
    copy(x, o, s)


@meshed(DMA)
def scopes_nested(x: Any, o: Any, s: Any) -> None:
    def outer(sem: Any) -> None:
        pl.semaphore_signal(sem, 111)
        pl.run_scoped(use(112), REGULAR)
        pl.semaphore_wait(sem, 111)

    pl.run_scoped(outer, REGULAR)
    copy(x, o, s)


@meshed(DMA)
def scopes_in_branches(x: Any, o: Any, s: Any) -> None:
    lax.cond(
        lax.axis_index("x") == 0,
        lambda: pl.run_scoped(use(111), REGULAR),
        lambda: pl.run_scoped(use(112), REGULAR),
    )
    copy(x, o, s)


@meshed(DMA)
def scopes_of_a_jitted_helper(x: Any, o: Any, s: Any) -> None:
    @jax.jit
    def helper() -> Any:
        pl.run_scoped(use(111), REGULAR)
        return jnp.int32(0)

    helper()
    copy(x, o, s)
    helper()


@meshed(DMA)
def scope_left_above_zero(x: Any, o: Any, s: Any) -> None:
    pl.run_scoped(lambda sem: pl.semaphore_signal(sem, 111), REGULAR)
    copy(x, o, s)


# Amounts


@meshed(DMA, REGULAR)
def amount_negative(x: Any, o: Any, s: Any, r: Any) -> None:
    pl.semaphore_signal(r, 3)
    pl.semaphore_signal(r, -2)
    pl.semaphore_wait(r, 1)
    copy(x, o, s)


@meshed(DMA, REGULAR)
def amount_zero(x: Any, o: Any, s: Any, r: Any) -> None:
    pl.semaphore_wait(r, 0)
    pl.semaphore_signal(r, 0)
    copy(x, o, s)


@meshed(DMA, REGULAR)
def wait_without_decrement(x: Any, o: Any, s: Any, r: Any) -> None:
    pl.semaphore_signal(r, 113)
    pl.semaphore_wait(r, 112, decrement=False)
    pl.semaphore_wait(r, 111)
    copy(x, o, s)


# Bytes


@single(DMA)
def bytes_of_a_tile(i: Any, x: Any, o: Any, s: Any) -> None:
    copy(x.at[pl.ds(0, 8)], o.at[pl.ds(0, 8)], s)


@single(DMA)
def bytes_of_a_row(i: Any, x: Any, o: Any, s: Any) -> None:
    copy(x.at[pl.ds(0, 1)], o.at[pl.ds(0, 1)], s)


@single(pltpu.SMEM((1,), jnp.int32), DMA, shape=(1,), dtype=jnp.int32)
def bytes_of_one_integer(i: Any, x: Any, o: Any, m: Any, s: Any) -> None:
    copy(x, m, s)
    copy(m, o, s)


@single(pltpu.SMEM((200,), jnp.int32), DMA, shape=(200,), dtype=jnp.int32)
def bytes_of_200_integers(i: Any, x: Any, o: Any, m: Any, s: Any) -> None:
    copy(x, m, s)
    copy(m, o, s)


@single(DMA)
def bytes_of_nothing(i: Any, x: Any, o: Any, s: Any) -> None:
    copy(x.at[pl.ds(0, 0)], o.at[pl.ds(0, 0)], s)
    copy(x, o, s)


@single(DMA)
def bytes_of_a_traced_size(i: Any, x: Any, o: Any, s: Any) -> None:
    n = pl.multiple_of(i[0] * 8, 8)
    copy(x.at[pl.ds(0, n)], o.at[pl.ds(0, n)], s)


# Bounds


@single(DMA, target=IN_VMEM)
def bounds_of_a_local_copy(i: Any, x: Any, o: Any, s: Any) -> None:
    at = pl.multiple_of(i[0] * 8, 8)
    copy(x.at[pl.ds(at, 8)], o.at[pl.ds(at, 8)], s)


@single(DMA, target=IN_VMEM, disable_bounds_checks=True)
def bounds_not_checked(i: Any, x: Any, o: Any, s: Any) -> None:
    at = pl.multiple_of(i[0] * 8, 8)
    copy(x.at[pl.ds(at, 8)], o.at[pl.ds(at, 8)], s)


@single(DMA)
def bounds_in_hbm(i: Any, x: Any, o: Any, s: Any) -> None:
    at = pl.multiple_of(i[0] * 8, 8)
    copy(x.at[pl.ds(at, 8)], o.at[pl.ds(0, 8)], s)


@single(source=IN_VMEM, target=IN_VMEM)
def bounds_of_loads(i: Any, x: Any, o: Any) -> None:
    o[pl.ds(i[1], 8)] = x[pl.ds(i[0], 8)]


# Copies that overlap themselves


@single(pltpu.VMEM((64, 128), jnp.float32), DMA)
def overlap_in_vmem(i: Any, x: Any, o: Any, b: Any, s: Any) -> None:
    copy(b.at[pl.ds(0, 16)], b.at[pl.ds(8, 16)], s)
    copy(b, o, s)


# The pipeline


def blocks(x: Any, o: Any) -> None:
    o[...] = x[...] + 1


def _pipeline() -> Any:
    block = pl.BlockSpec((16, 128), lambda i: (i, 0))
    like = jax.ShapeDtypeStruct((128, 128), jnp.float32)
    call = pl.pallas_call(
        blocks, out_shape=like, grid=(8,), in_specs=[block], out_specs=block, name="pipeline"
    )
    return call, (like,)


KERNELS["pipeline"] = _pipeline


if __name__ == "__main__":
    for build in KERNELS.values():
        fn, args = build()
        testing.compile_for_tpu(fn, *args)
