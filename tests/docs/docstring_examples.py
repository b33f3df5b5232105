"""Runs the examples of docstrings, with the names that docs/api/index.md promises them."""

import ast
import importlib.util
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp
from safepallas import testing

from ..unit.core_meshes import tensor

IMPORTS = {
    "jax": jax,
    "jnp": jnp,
    "pl": pl,
    "pltpu": pltpu,
    "P": P,
    "sp": sp,
    "testing": testing,
    "Any": Any,
}

HAS_TPU_COMPILER = importlib.util.find_spec("libtpu") is not None

SHAPE = (8, 128)
LIKE = jax.ShapeDtypeStruct(SHAPE, jnp.float32)


def _kernel(x: Any, o: Any, sem: Any) -> None:
    pltpu.async_copy(x, o, getattr(sem, "ref", sem)).wait()


def outside() -> dict[str, Any]:
    """The names that stand outside a kernel."""
    dma = [pltpu.SemaphoreType.DMA]
    return {
        "x": jnp.ones(SHAPE, jnp.float32),
        "like": LIKE,
        "mesh": tensor(2),
        "fn": lambda x: sp.pallas_call(_kernel, LIKE, scratch_shapes=(sp.dma_semaphore(),))(x),
        "call": sp.pallas_call(_kernel, LIKE, scratch_shapes=(sp.dma_semaphore(),)),
        "raw_fn": lambda x: pl.pallas_call(_kernel, LIKE, scratch_shapes=dma)(x),
    }


class Names(sp.Scratch):
    """The semaphores that an example in a kernel finds."""

    sem = sp.dma_semaphore()
    sems = sp.dma_semaphore(8)
    ready = sp.semaphore()
    send = sp.semaphore()
    recv = sp.semaphore()


def inside(x: Any, o: Any, scratch: Names) -> dict[str, Any]:
    """The names that stand in a kernel."""
    here, size = jax.lax.axis_index("x"), 2
    return {
        "x": x,
        "o": o,
        **{name: getattr(scratch, name) for name in ("sem", "sems", "ready", "send", "recv")},
        "left": jax.lax.rem(here + size - 1, size),
        "right": jax.lax.rem(here + 1, size),
    }


INSIDE = ("x", "o", "sem", "sems", "ready", "send", "recv", "left", "right")


def _execute(code: str, name: str, names: dict[str, Any]) -> None:
    """As a script: its functions see its names."""
    exec(compile(code, f"<the example of {name}>", "exec"), {**IMPORTS, **names})


def run(code: str, name: str) -> None:
    """An example that stands outside a kernel: its kernels run in Pallas's TPU interpreter."""
    # These compile, compare and decide, and nothing runs; or they name their interpreter.
    as_it_is = name.startswith(("safepallas.testing", "safepallas.verif")) or "interpret=" in code
    with nullcontext() if as_it_is else pltpu.force_tpu_interpret_mode():
        _execute(code, name, outside())


def compile_in_kernel(code: str, name: str) -> None:
    """An example that stands in a kernel: traced, and compiled for 4 TPU devices where it can."""

    def kernel(x: Any, o: Any, scratch: Names) -> None:
        _execute(code, name, inside(x, o, scratch))

    params: dict[str, Any] = {"has_side_effects": True}  # else what writes nothing is dropped
    if "barrier" in code:
        params["collective_id"] = 0
    call = sp.pallas_call(
        kernel, LIKE, scratch_shapes=Names, compiler_params=pltpu.CompilerParams(**params)
    )
    mesh = jax.sharding.AbstractMesh((2, 2), ("x", "y"))
    fn = jax.shard_map(call, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    if not HAS_TPU_COMPILER:
        jax.make_jaxpr(fn)(LIKE)
        return
    text = testing.compile_for_tpu(fn, LIKE, topology="v6e:2x2").as_text()
    assert "tpu_custom_call" in text, "the kernel is not in the compiled program"


def left_unused(code: str) -> set[str]:
    """The functions that an example defines and never uses: their bodies would not run."""
    tree = ast.parse(code)
    nodes = list(ast.walk(tree))
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    used = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return defined - used
