"""Kernels inside JAX's transformations, and those inside kernels: all as in raw Pallas.

Each case is one function of a vocabulary, which is run once with ours and once with that of raw
Pallas. Where raw works, ours gives the same jaxpr or result; where raw fails, ours fails with JAX's
own error, in the same text.
"""

import functools
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType, Mesh
from jax.sharding import PartitionSpec as P

import safepallas as sp

OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)

OURS = SimpleNamespace(
    pallas_call=sp.pallas_call,
    run_scoped=sp.run_scoped,
    dma=sp.dma_semaphore(),
    regular=sp.semaphore(),
    pair=sp.dma_semaphore(2),
    copy=sp.async_copy,
    remote=sp.async_remote_copy,
    signal=sp.signal,
    wait=sp.wait,
)
RAW = SimpleNamespace(
    pallas_call=pl.pallas_call,
    run_scoped=pl.run_scoped,
    dma=pltpu.SemaphoreType.DMA,
    regular=pltpu.SemaphoreType.REGULAR,
    pair=pltpu.SemaphoreType.DMA((2,)),
    copy=pltpu.async_copy,
    remote=pltpu.async_remote_copy,
    signal=pl.semaphore_signal,
    wait=pl.semaphore_wait,
)

Case = Callable[[Any], Any]


def x() -> jax.Array:
    return jnp.arange(8.0 * 128).reshape(8, 128)


def outcome(case: Case, lib: Any) -> tuple[str, str]:
    """The result: a value, or the type and the text of an error."""
    try:
        value = case(lib)
    except Exception as error:
        kind, text = type(error).__qualname__, str(error)
    else:
        arrays = jax.tree_util.tree_map(np.asarray, value) if is_arrays(value) else value
        kind, text = "value", repr(arrays)
    return kind, re.sub(r"0x[0-9a-f]+", "0x", text)


def is_arrays(value: Any) -> bool:
    return all(isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(value))


def cases(prefix: str) -> Any:
    """Decorator: run a test for each function above it whose name begins so."""
    found = {k.removeprefix(prefix): v for k, v in globals().items() if k.startswith(prefix)}
    return pytest.mark.parametrize("case", found.values(), ids=found)


# Around the call.


def call_of(lib: Any) -> Callable[..., Any]:
    """A call that copies its argument and adds one."""

    def kernel(x: Any, o: Any, sem: Any) -> None:
        lib.copy(x, o, sem).wait()
        o[...] += 1

    return lib.pallas_call(kernel, OUT, scratch_shapes=(lib.dma,), interpret=True)


def works_bare(lib: Any) -> Any:
    return call_of(lib)(x())


def works_under_jit(lib: Any) -> Any:
    return jax.jit(call_of(lib))(x())


def works_under_vmap(lib: Any) -> Any:
    return jax.vmap(call_of(lib))(jnp.stack([x(), -x()]))


def works_under_vmap_twice(lib: Any) -> Any:
    return jax.make_jaxpr(jax.vmap(jax.vmap(call_of(lib), in_axes=1)))(jnp.ones((2, 8, 3, 128)))


def works_under_jit_of_vmap(lib: Any) -> Any:
    return jax.make_jaxpr(jax.jit(jax.vmap(call_of(lib))))(jnp.stack([x(), -x()]))


def works_under_checkpoint(lib: Any) -> Any:
    call = jax.checkpoint(call_of(lib))
    return call(x()), jax.jit(call)(x())


def works_under_checkpoint_traced(lib: Any) -> Any:
    return jax.make_jaxpr(jax.checkpoint(call_of(lib)))(x())


def works_under_eval_shape(lib: Any) -> Any:
    return jax.eval_shape(call_of(lib), x())


def works_in_a_scan(lib: Any) -> Any:
    call = call_of(lib)
    return jax.lax.scan(lambda carry, _: (call(carry), carry[0, 0]), x(), None, length=3)


def works_in_a_branch(lib: Any) -> Any:
    call = call_of(lib)
    return jax.make_jaxpr(lambda x: jax.lax.cond(x[0, 0] > 0, call, lambda x: x, x))(x())


def works_twice_in_one_trace(lib: Any) -> Any:
    call = call_of(lib)
    return jax.make_jaxpr(lambda x: call(call(x)))(x())


def works_on_a_real_mesh(lib: Any) -> Any:
    mesh = Mesh(np.array(jax.devices()[:1]), ("i",))
    return jax.shard_map(call_of(lib), mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(x())


def on_a_mesh(lib: Any, **axes: int) -> Any:
    names = tuple(axes)

    def kernel(x: Any, o: Any, sem: Any, ready: Any) -> None:
        there = {name: (jax.lax.axis_index(name) + 1) % axes[name] for name in names}
        lib.signal(ready, device_id=there)
        lib.signal(ready, device_id=tuple(there.values()))
        lib.wait(ready, 2)
        lib.remote(x, o, sem, sem, there).wait()

    mesh = AbstractMesh(tuple(axes.values()), names, axis_types=(AxisType.Auto,) * len(axes))
    call = lib.pallas_call(kernel, OUT, scratch_shapes=(lib.dma, lib.regular))
    over = jax.shard_map(call, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    return jax.make_jaxpr(jax.jit(over))(x())


def works_on_a_mesh_of_one_axis(lib: Any) -> Any:
    return on_a_mesh(lib, i=4)


def works_on_a_mesh_of_two_axes(lib: Any) -> Any:
    return on_a_mesh(lib, i=2, j=3)


def works_under_vmap_on_a_mesh(lib: Any) -> Any:
    mesh = AbstractMesh((2,), ("i",), axis_types=(AxisType.Auto,))
    call = jax.vmap(call_of(lib))
    over = jax.shard_map(call, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    return jax.make_jaxpr(over)(jnp.ones((4, 8, 128)))


def works_exported(lib: Any) -> Any:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        lib.copy(x, o, sem).wait()

    call = jax.jit(lib.pallas_call(kernel, OUT, scratch_shapes=(lib.dma,)))
    out = jax.export.export(call, platforms=["tpu"])(x())
    return out.in_avals, out.out_avals, out.fun_name, out.mlir_module().count("tpu_custom_call")


def works_exported_and_called(lib: Any) -> Any:
    return jax.export.export(jax.jit(call_of(lib)))(x()).call(x())


def works_as_stages(lib: Any) -> Any:
    return jax.jit(call_of(lib)).trace(x()).lower().compile()(x())


# Inside the kernel.


def inside(*scratch: str) -> Callable[[Callable[..., Any]], Case]:
    """Decorator: a kernel, which takes the vocabulary first, as a case that traces it."""

    def case_of(kernel: Callable[..., Any]) -> Case:
        def case(lib: Any) -> Any:
            requests = tuple(getattr(lib, name) for name in scratch)
            bound = functools.partial(kernel, lib)
            return jax.make_jaxpr(lib.pallas_call(bound, OUT, scratch_shapes=requests))(x())

        return case

    return case_of


@inside("dma", "regular")
def works_jit_inside(lib: Any, x: Any, o: Any, sem: Any, ready: Any) -> None:
    @jax.jit
    def helper(i: Any, ready: Any, deep: Any) -> Any:
        lib.signal(ready, i)
        jax.jit(lambda sem: lib.copy(x, o, sem).wait())(deep["sem"])
        return i + 1

    helper(helper(jnp.int32(1), ready, {"sem": sem}), ready, {"sem": sem})


@inside("dma")
def works_jit_inside_that_closes_over_a_semaphore(lib: Any, x: Any, o: Any, sem: Any) -> None:
    jax.jit(lambda: lib.copy(x, o, sem).wait())()


@inside("dma")
def works_checkpoint_inside(lib: Any, x: Any, o: Any, sem: Any) -> None:
    jax.checkpoint(lambda: lib.copy(x, o, sem).wait())()
    jax.checkpoint(lambda sem: lib.copy(x, o, sem).wait())(sem)


@inside("regular")
def works_loops_inside(lib: Any, x: Any, o: Any, ready: Any) -> None:
    jax.lax.scan(lambda c, i: (c, lib.signal(ready)), 0, jnp.arange(3))
    jax.lax.while_loop(lambda i: i < 3, lambda i: (lib.signal(ready, i), i + 1)[1], jnp.int32(0))
    jax.lax.fori_loop(0, 3, lambda i, _: lib.wait(ready, 3), None)


@inside()
def works_scope_in_jit_in_a_branch(lib: Any, x: Any, o: Any) -> None:
    @jax.jit
    def helper() -> None:
        lib.run_scoped(lambda sem: lib.copy(x, o, sem).wait(), lib.dma)

    pl.when(x[0, 0] > 0)(helper)


@inside("regular")
def works_abstract_evaluation_inside(lib: Any, x: Any, o: Any, ready: Any) -> None:
    jax.eval_shape(lambda ready: lib.signal(ready), ready)
    jax.make_jaxpr(lambda: lib.signal(ready))()
    lib.signal(ready)


@inside("regular")
def works_vmap_inside_that_leaves_the_semaphore_alone(lib: Any, x: Any, o: Any, ready: Any) -> None:
    o[...] = jax.vmap(lambda row: (lib.signal(ready), row + 1)[1])(x[...])


@inside("regular")
def works_grad_inside_beside_the_semaphore(lib: Any, x: Any, o: Any, ready: Any) -> None:
    lib.signal(ready)
    o[...] = jax.grad(lambda v: (v * v).sum())(x[...])


# What raw cannot do.


def fails_grad_through(lib: Any) -> Any:
    return jax.grad(lambda v: call_of(lib)(v).sum())(x())


def fails_grad_through_checkpoint(lib: Any) -> Any:
    return jax.grad(lambda v: jax.checkpoint(call_of(lib))(v).sum())(x())


def fails_jvp_through(lib: Any) -> Any:
    return jax.jvp(call_of(lib), (x(),), (x(),))


def fails_linearize_through(lib: Any) -> Any:
    return jax.linearize(call_of(lib), x())


@inside("regular")
def fails_vmap_inside_over_an_amount(lib: Any, x: Any, o: Any, ready: Any) -> None:
    jax.vmap(lambda i: lib.signal(ready, i))(jnp.arange(2))


@inside("dma")
def fails_vmap_inside_over_a_copy(lib: Any, x: Any, o: Any, sem: Any) -> None:
    jax.vmap(lambda i: lib.copy(x.at[i], o.at[i], sem))(jnp.arange(2))


@inside("pair")
def fails_vmap_inside_over_an_index(lib: Any, x: Any, o: Any, sems: Any) -> None:
    jax.vmap(lambda i: lib.copy(x, o, sems.at[i]))(jnp.arange(2))


@inside("pair")
def fails_vmap_inside_over_semaphores(lib: Any, x: Any, o: Any, sems: Any) -> None:
    jax.vmap(lambda sem: lib.copy(x, o, sem))(sems)


@inside("regular")
def fails_grad_inside_through_a_signal(lib: Any, x: Any, o: Any, ready: Any) -> None:
    jax.grad(lambda v: (lib.signal(ready, v.astype(jnp.int32)), v * v)[1])(x[0, 0])


@inside("pair")
def fails_semaphores_out_of_a_branch(lib: Any, x: Any, o: Any, sems: Any) -> None:
    jax.lax.cond(x[0, 0] > 0, lambda: sems.at[0], lambda: sems.at[1])


def fails_copy_that_adds_on_a_chip_that_cannot(lib: Any) -> Any:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        lib.copy(x, o, sem, add=True).wait()

    call = lib.pallas_call(kernel, OUT, scratch_shapes=(lib.dma,))
    jax.jit(call).trace(x()).lower(lowering_platforms=("tpu",))


CONSTANT = np.ones((8, 128), np.float32)


@inside("regular")
def fails_array_out_of_the_air(lib: Any, x: Any, o: Any, ready: Any) -> None:
    lib.signal(ready)
    o[...] = jnp.asarray(CONSTANT)


def fails_too_many_arguments(lib: Any) -> Any:
    return call_of(lib)(x(), x())


def fails_too_few_arguments(lib: Any) -> Any:
    return call_of(lib)()


@inside("regular")
def fails_kernel_that_returns(lib: Any, x: Any, o: Any, ready: Any) -> int:
    return 1


@cases("works_")
def test_works_as_raw_does(case: Case) -> None:
    kind, text = outcome(case, RAW)
    assert kind == "value", text
    assert outcome(case, OURS) == (kind, text)


@cases("fails_")
def test_fails_as_raw_does(case: Case) -> None:
    kind, text = outcome(case, RAW)
    assert kind != "value", text
    assert outcome(case, OURS) == (kind, text)
