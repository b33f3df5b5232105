"""Kernel calls and the maps over devices around them, taken apart."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from jax.extend.core import Jaxpr, JaxprEqn

from safepallas._jax import compat, jaxprs
from safepallas._jax.core_meshes import (
    Argument,
    Cores,
    Memory,
    arguments_of,
    cores_of,
    memory_of,
    stays_on_core,
)
from safepallas._jax.jaxprs import AnyJaxpr


class BlockOperand(NamedTuple):
    """An input or an output of a kernel call."""

    memory: Memory  # of the ref that the kernel sees
    array_shape: tuple[int, ...]
    block: tuple[int | None, ...]  # None for a dimension that the kernel does not see
    is_blocked: bool  # the index map counts blocks
    index_map: AnyJaxpr
    stays: bool  # in a core's memory, from one kernel to the next: nothing is copied
    is_padded: bool  # an element of the index map may lie before the array, or behind it

    def ends(self, block: Sequence[object]) -> list[tuple[int, int] | None]:
        """Where a block that the index map gives begins and ends, by dimension of the array.

        None for a dimension of which that is not known; the end of the last block may be outside.
        """
        if self.is_padded or len(block) != len(self.block):
            return [None] * len(self.array_shape)
        found: list[tuple[int, int] | None] = []
        for number, size in zip(block, self.block, strict=True):
            if not isinstance(number, int):
                found.append(None)
                continue
            start = number * size if self.is_blocked and size is not None else number
            found.append((start, start + (1 if size is None else size)))
        return found


class KernelCall(NamedTuple):
    """A ``pallas_call``. Operands: refs it closes over, grid sizes, prefetched ones, inputs."""

    body: Jaxpr
    closed_over: tuple[Argument, ...]
    arguments: tuple[Argument, ...]  # of the body: prefetched, inputs, outputs, scratch
    name: str
    grid: tuple[int | None, ...]  # None for a size that is an operand
    prefetched: int
    inputs: tuple[BlockOperand, ...]
    outputs: tuple[BlockOperand, ...]
    vmapped: tuple[int, ...]
    aliases: tuple[tuple[int, int], ...]  # operand, output
    collective_id: Hashable
    skips_barrier: bool  # no default barrier of the devices at its start
    is_parallel: bool  # a dimension of the grid has no order


def kernel_call(equation: JaxprEqn) -> KernelCall:
    params = equation.params
    body, mapping = jaxprs.open_jaxpr(params["jaxpr"])[0], params["grid_mapping"]
    first, inputs = mapping.num_index_operands, mapping.num_inputs
    blocks = [
        _block_operand(block, body.invars[first + i].aval)
        for i, block in enumerate(mapping.block_mappings)
    ]
    semantics = getattr(params["compiler_params"], "dimension_semantics", None)
    arguments = arguments_of(body)
    return KernelCall(
        body,
        tuple(arguments[: len(body.constvars)]),
        tuple(arguments[len(body.constvars) :]),
        str(params.get("name") or jaxprs.function_of(body)),
        tuple(None if compat.is_dynamic(size) else int(size) for size in mapping.grid),
        first,
        tuple(blocks[:inputs]),
        tuple(blocks[inputs:]),
        tuple(mapping.vmapped_dims),
        tuple(dict(params["input_output_aliases"]).items()),
        _collective_id(params["compiler_params"]),
        _skips_barrier(params["compiler_params"]),
        any("parallel" in str(s).lower() for s in semantics or ()),
    )


def _block_operand(mapping: Any, aval: object) -> BlockOperand:
    block: list[int | None] = []
    is_blocked = True
    for size in mapping.block_shape:
        name = type(size).__name__
        if isinstance(size, int):
            block.append(size)
        elif name == "Squeezed" or size is None:
            block.append(None)
        else:
            block.append(getattr(size, "block_size", None))
            is_blocked = is_blocked and name == "Blocked"
    return BlockOperand(
        memory_of(aval),
        tuple(mapping.array_aval.shape),
        tuple(block),
        is_blocked,
        mapping.index_map_jaxpr,
        stays_on_core(mapping.array_aval),
        any(any(getattr(size, "padding", ())) for size in mapping.block_shape),
    )


def _of_tpu(params: object) -> object:
    if isinstance(params, dict):  # by backend, as an older Pallas has it
        return params.get("mosaic_tpu") or params.get("mosaic")
    return params


def _collective_id(params: object) -> Hashable:
    found: Hashable = getattr(_of_tpu(params), "collective_id", None)
    return found


def _skips_barrier(params: object) -> bool:
    return bool(getattr(_of_tpu(params), "skip_device_barrier", False))


class CoreBody(NamedTuple):
    """What the cores of one type run."""

    cores: Cores
    body: Jaxpr
    arguments: tuple[Argument, ...]  # what it closes over first


class CoreCall(NamedTuple):
    """A kernel over meshes of cores (``pl.kernel``, ``pl.core_map``): whole operands, no grid."""

    bodies: tuple[CoreBody, ...]  # all with the same arguments; none where a mesh is not known
    name: str
    aliases: tuple[tuple[int, int], ...]  # operand, output
    collective_id: Hashable
    skips_barrier: bool


def core_call(equation: JaxprEqn) -> CoreCall:
    """Of ``mpmd_map``."""
    params = equation.params
    meshes, bodies = params.get("meshes", ()), params.get("jaxprs", ())
    return _core_call(equation, () if params.get("external_meshes") else meshes, bodies)


def core_map(equation: JaxprEqn) -> CoreCall:
    """Of the ``core_map`` of JAX 0.10.2."""
    return _core_call(equation, (equation.params["mesh"],), (equation.params["jaxpr"],))


def _core_call(
    equation: JaxprEqn, meshes: tuple[object, ...], bodies: tuple[AnyJaxpr, ...]
) -> CoreCall:
    params = equation.params
    opened = [jaxprs.open_jaxpr(body)[0] for body in bodies]
    cores = [cores_of(mesh) for mesh in meshes]
    known = [one for one in cores if one is not None]
    parts: list[CoreBody] = []
    if len(known) == len(opened):
        parts = [
            CoreBody(one, body, tuple(arguments_of(body)))
            for one, body in zip(known, opened, strict=True)
        ]
    return CoreCall(
        tuple(parts),
        str(params.get("name") or jaxprs.function_of(opened[0])),
        tuple(dict(params.get("input_output_aliases") or {}).items()),
        _collective_id(params.get("compiler_params")),
        _skips_barrier(params.get("compiler_params")),
    )


class ShardMap(NamedTuple):
    mesh: tuple[tuple[Hashable, int], ...]  # axes and their sizes
    body: AnyJaxpr
    # By operand and dimension: the mesh axes over which it is split.
    splits: tuple[tuple[tuple[Hashable, ...], ...], ...]


def shard_map(equation: JaxprEqn) -> ShardMap:
    params = equation.params
    ranks = [len(jaxprs.shape_of(atom)) for atom in equation.invars]
    return ShardMap(
        tuple(params["mesh"].shape.items()),
        params["jaxpr"],
        tuple(_split(spec, rank) for spec, rank in zip(params["in_specs"], ranks, strict=True)),
    )


def _split(spec: tuple[object, ...], rank: int) -> tuple[tuple[Hashable, ...], ...]:
    parts: list[tuple[Hashable, ...]] = []
    for part in spec:
        if part is None:
            parts.append(())
        else:
            parts.append(part if isinstance(part, tuple) else (part,))
    return tuple((parts + [()] * rank)[:rank])
