"""Tests without a TPU: compile kernels with the TPU compiler, and compare them with raw Pallas.

And a guard for kernels that are raw Pallas still.
"""

import base64
import importlib.util
import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import takewhile, zip_longest
from typing import Any

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import (
    AbstractDevice,
    AbstractMesh,
    Mesh,
    NamedSharding,
    PartitionSpec,
    SingleDeviceSharding,
)

from safepallas._guard.guard import guard_raw_pallas as guard_raw_pallas
from safepallas._guard.hooks import Guard as Guard
from safepallas._jax import compat

__all__ = ["Guard", "assert_lowers_like", "compile_for_tpu", "guard_raw_pallas", "tpu_mesh"]

DEFAULT_TOPOLOGY = "v5e:2x2"


def _has_libtpu() -> bool:
    return importlib.util.find_spec("libtpu") is not None


@contextmanager
def _environment(**variables: str) -> Generator[None]:
    """Environment variables, as far as they are not set, within the context alone."""
    added = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _topology_devices(topology: str) -> list[object]:
    """The devices of a described TPU, which need not be there."""
    if not _has_libtpu():
        raise ImportError(
            "safepallas.testing needs the TPU compiler, libtpu, which is not installed: "
            "pip install 'safepallas[tpu]'"
        )
    # libtpu asks the cloud's metadata server for the host's TPU, and lets one process hold it;
    # here is neither.
    with _environment(TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1"):
        return list(topologies.get_topology_desc(topology, "tpu").devices)


def _on_tpu() -> AbstractContextManager[object]:
    """Lower as for a TPU: JAX (0.12) asks the default device which one it is."""
    context: Any
    if _has_libtpu():
        context = jax.default_device(_topology_devices(DEFAULT_TOPOLOGY)[0])
        return context  # type: ignore[no-any-return]
    if jax.sharding.get_abstract_mesh().abstract_device is not None:
        return nullcontext()
    chip = AbstractDevice("TPU v5 lite", 1, "tpu")
    return jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=chip))


def tpu_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[str], *, topology: str = DEFAULT_TOPOLOGY
) -> Mesh:
    """A mesh of TPU devices that need not be there, to build a `jax.shard_map` over.

    Args:
        axis_shapes: the size of each axis, in devices; their product is at most the topology's.
        axis_names: a name for each.
        topology: as in `compile_for_tpu`.

    Returns:
        A `jax.sharding.Mesh` for `compile_for_tpu`; nothing can run on it.

    Raises:
        ImportError: where libtpu is not installed.
        ValueError: where the topology has fewer devices.

    Example::

        mesh = testing.tpu_mesh((4,), ("x",))
        sharded = jax.shard_map(fn, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
        testing.compile_for_tpu(sharded, x)
    """
    devices = _topology_devices(topology)
    count = int(np.prod(axis_shapes))
    if count > len(devices):
        raise ValueError(f"{topology} has {len(devices)} devices, fewer than the {count} asked for")
    return Mesh(np.array(devices[:count]).reshape(axis_shapes), tuple(axis_names))


def _meshes(jaxpr: object) -> Iterator[Any]:
    """The meshes of the `jax.shard_map` calls in a jaxpr, at any depth."""
    for eqn in compat.equations_of(jaxpr):
        if eqn.primitive.name == "shard_map":
            yield eqn.params["mesh"]
        for inner in compat.jaxprs_in(eqn.params):
            yield from _meshes(inner)


def _described(args: object, sharding: object) -> Any:
    """Arrays by their shapes, placed by `sharding` where they name no place themselves."""

    def describe(x: Any) -> jax.ShapeDtypeStruct:
        own = x.sharding if isinstance(x, jax.ShapeDtypeStruct) else None
        return jax.ShapeDtypeStruct(np.shape(x), x.dtype, sharding=own or sharding)

    return jax.tree_util.tree_map(describe, args)


def compile_for_tpu(
    fn: Callable[..., object], *args: object, topology: str = DEFAULT_TOPOLOGY
) -> Any:
    """Compile a function with the real TPU compiler, on a machine without a TPU.

    What it proves: the kernel lowers, and fits the chip (VMEM, semaphores). What it does not: that
    the kernel ends, or computes the right thing.

    Args:
        fn: any function that `jax.jit` takes; under `jax.shard_map` over a mesh of `tpu_mesh`, or
            over a `jax.sharding.AbstractMesh`, it is compiled for as many devices.
        args: arrays, or `jax.ShapeDtypeStruct` in their place; trees of them.
        topology: the chip and how many: ``"v5e:2x2"``, ``"v6e:2x2"``, ``"v5p:2x2x1"``.

    Returns:
        A `jax.stages.Compiled`, with ``.as_text()``, ``.memory_analysis()``, ``.cost_analysis()``.

    Raises:
        ImportError: where libtpu is not installed.
        ValueError: where the topology has fewer devices than the mesh.

    Example::

        compiled = testing.compile_for_tpu(fn, x, topology="v6e:2x2")
        assert "tpu_custom_call" in compiled.as_text()
    """
    devices = _topology_devices(topology)
    with jax.default_device(devices[0]):
        meshes = list(_meshes(jax.make_jaxpr(fn)(*_described(args, None)).jaxpr))
    sharding: object
    if not meshes:
        sharding = SingleDeviceSharding(devices[0])
    elif isinstance(meshes[0], Mesh):
        sharding = None  # the mesh has devices
    else:
        abstract = meshes[0]
        mesh = tpu_mesh(abstract.axis_sizes, abstract.axis_names, topology=topology)
        sharding = NamedSharding(mesh, PartitionSpec())
    placed = _described(args, sharding)
    with jax.default_device(devices[0]):
        return jax.jit(fn).trace(*placed).lower(lowering_platforms=("tpu",)).compile()


def _traced_and_lowered(fn: Callable[..., Any], args: Any) -> tuple[str, str]:
    def compared(*args: object) -> Any:  # the name of the outer function is not compared
        return fn(*args)

    with _on_tpu(), compat.without_locations():
        traced = jax.jit(compared).trace(*args)
        lowered = traced.lower(lowering_platforms=("tpu",))
        return str(traced.jaxpr), str(lowered.as_text(debug_info=True))


def _readable(module: str) -> str:
    """A module with the strings of its kernels in place of their bytecode (base64 of MLIR's)."""

    def strings(match: re.Match[str]) -> str:
        found = re.findall(rb"(?<=\x00)[\x20-\x7e]+(?=\x00)", base64.b64decode(match[1]))
        return "\n".join(["kernel:", *(text.decode() for text in found)])

    return re.sub(r"(?<=22)(TUzv[A-Za-z0-9+/=]+)", strings, module)


def _first_difference(ours: str, raw: str) -> str:
    pairs = zip_longest(ours.splitlines(), raw.splitlines(), fillvalue="(nothing)")
    for number, (a, b) in enumerate(pairs, 1):
        if a != b:
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b)))  # noqa: B905
            part = slice(max(0, same - 60), same + 140)
            return f"line {number}:\n  ours: {a[part]}\n  raw:  {b[part]}"
    return "what is not printed: the bytecode of a kernel"


def assert_lowers_like(
    fn: Callable[..., object], raw_fn: Callable[..., object], *args: object
) -> None:
    """Assert that two functions trace to the same jaxpr and lower to the same TPU module.

    For a kernel moved over to safepallas and the same kernel in raw Pallas: the jaxprs are compared
    as printed, the modules byte for byte, with source locations off. The kernel functions must
    have the same name and parameter names, as these are part of the module.

    Args:
        fn: the function moved over.
        raw_fn: the one it must equal.
        args: arrays, or `jax.ShapeDtypeStruct` in their place.

    Raises:
        AssertionError: with the first line that differs.

    Example::

        testing.assert_lowers_like(fn, raw_fn, x)
    """
    described = _described(args, None)
    ours, raw = (_traced_and_lowered(f, described) for f in (fn, raw_fn))
    if ours[0] != raw[0]:
        raise AssertionError(f"the jaxprs differ at {_first_difference(ours[0], raw[0])}")
    if ours[1] != raw[1]:
        difference = _first_difference(_readable(ours[1]), _readable(raw[1]))
        raise AssertionError(f"the lowered TPU modules differ at {difference}")
