"""The equations of a jaxpr in plain words, for `safepallas.verify`, whatever the version of JAX.

Lines, views of refs, and the parts of a kernel call: JAX 0.10.2 (Python 3.11) to 0.12.0.1 (Python
3.13). What is private of JAX comes from `_compat`.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas._jax import compat

_WHOLE = {pl.ANY, pltpu.HBM, pltpu.SEMAPHORE}


class Slot:
    """An operand of an equation, by its place among them."""

    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at


class Span(NamedTuple):
    """A slice of one dimension; `start` and `size` are numbers or slots."""

    start: Any
    size: Any
    stride: int


class Index(NamedTuple):
    """A step of a view: a number, a slot, a `Span` or a `View` for each dimension of `shape`."""

    parts: tuple[Any, ...]
    shape: tuple[Any, ...]
    gathered: tuple[Any, ...]  # the shape of the arrays of indices, if there are any


class Reshape(NamedTuple):
    shape: tuple[int, ...]


class Bitcast(NamedTuple):
    dtype: Any


class Transpose(NamedTuple):
    order: tuple[int, ...]


class Other(NamedTuple):
    """A step that is not understood."""

    name: str


class View(NamedTuple):
    """A ref, as a slot, and the steps from it."""

    ref: Any
    steps: tuple[Any, ...]


def open_jaxpr(jaxpr: Any) -> tuple[Any, Sequence[Any]]:
    """A jaxpr, and the values of its constants where it holds them."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return inner, tuple(getattr(jaxpr, "consts", ()))


def line_of(equation: Any) -> tuple[str, int, str]:
    """The user's line of an equation: file, number and function, not of JAX nor of safepallas."""
    return compat.user_line_of(equation) or ("<unknown>", 0, "")


def argument_names(jaxpr: Any, count: int) -> list[str]:
    """What the user calls the arguments of a body: ``""`` where that is not known."""
    info = getattr(jaxpr, "debug_info", None)
    names = [str(n or "") for n in getattr(info, "arg_names", None) or ()]
    return (names + [""] * count)[:count]


def definition_of(jaxpr: Any) -> tuple[str, int, str]:
    """Where the body of a kernel is defined, as `line_of` has it."""
    info = str(getattr(getattr(jaxpr, "debug_info", None), "func_src_info", None) or "")
    name, _, place = info.partition(" at ")
    file, _, number = place.rpartition(":")
    return (file, int(number), name) if file and number.isdigit() else ("<unknown>", 0, name)


def function_of(jaxpr: Any) -> str:
    """The name of the function that a jaxpr was traced from."""
    info = getattr(jaxpr, "debug_info", None)
    return str(getattr(info, "func_src_info", None) or "kernel").partition(" at ")[0]


def space_of(aval: Any) -> Any:
    """The memory that a ref lies in."""
    space = getattr(aval, "memory_space", None)
    return getattr(space, "memory_space", space)


def stays_in_place(aval: Any) -> bool:
    """Whether an operand is handed to the kernel as it lies, and not block by block."""
    return space_of(aval) in _WHOLE


# Views


def _step(transform: Any) -> Any:
    if compat.is_indexing(transform):
        parts: list[Any] = []
        for part in transform.indices:
            if isinstance(part, pl.Slice):
                parts.append(Span(part.start, part.size, part.stride))
            elif isinstance(part, (Slot, int)):
                parts.append(part)
            else:  # a view of a ref of indices, perhaps with one of them to be ignored
                view = view_of(getattr(part, "values", part))
                if view is None or not isinstance(view.ref, Slot):
                    return Other("an index")
                parts.append(view)
        return Index(tuple(parts), tuple(transform.shape), tuple(transform.int_indexer_shape))
    name = type(transform).__name__
    if name == "ReshapeTransform":
        return Reshape(tuple(transform.shape))
    if name == "BitcastTransform":
        return Bitcast(transform.dtype)
    if name == "TransposeTransform":
        return Transpose(tuple(transform.permutation))
    return Other(name)


def view_of(ref: Any, transforms: Sequence[Any] = ()) -> Any:
    ref, steps = compat.taken_apart(ref)
    return None if ref is None else View(ref, tuple(_step(t) for t in (*steps, *transforms)))


def indices_of(equation: Any, view: View) -> list[View]:
    """The refs of indices that a view gathers or scatters by."""
    found: list[View] = []
    for step in view.steps:
        for part in step.parts if isinstance(step, Index) else ():
            if isinstance(part, View):
                found.append(part)
            elif isinstance(part, Slot) and compat.is_ref_type(equation.invars[part.at].aval):
                found.append(View(part, ()))
    return found


def slots_of(equation: Any) -> list[Slot]:
    return [Slot(i) for i in range(len(equation.invars))]


def view_accessed(equation: Any) -> tuple[View, Slot | None]:
    """Of ``get``, ``swap`` and ``addupdate``: what is accessed, and the value that is stored."""
    slots: list[Any] = slots_of(equation)
    has_value = equation.primitive.name != "get"
    rest = slots[2:] if has_value else slots[1:]
    transforms = jax.tree_util.tree_unflatten(equation.params["tree"], rest)
    return view_of(slots[0], transforms), slots[1] if has_value else None


def view_masked(equation: Any) -> tuple[View, Slot | None]:
    """The same of Pallas' own loads and stores, which may have a mask."""
    parts = jax.tree_util.tree_unflatten(equation.params["args_tree"], slots_of(equation))
    stored = parts[2] if equation.primitive.name == "masked_swap" else None
    return view_of(parts[0], parts[1]), stored


class Operation(NamedTuple):
    """The parts of a signal, a wait or a read: slots all."""

    view: View
    amount: Any
    device_id: Any
    core_index: Any
    is_logical: bool


def semaphore_parts(equation: Any) -> Operation:
    """Of ``semaphore_signal``, ``semaphore_wait`` and ``semaphore_read``."""
    parts = jax.tree_util.tree_unflatten(equation.params["args_tree"], slots_of(equation))
    signals = equation.primitive.name == "semaphore_signal"
    return Operation(
        view_of(parts[0], parts[1]),
        parts[2] if len(parts) > 2 else None,
        parts[3] if signals else None,
        parts[4] if signals else None,
        compat.is_logical(equation),
    )


class Copy(NamedTuple):
    """The parts of a copy, or of a wait for one: views, or None."""

    source: View
    target: View
    recv: View | None
    send: View | None
    device_id: Any
    is_logical: bool


def copy_parts(equation: Any) -> Copy:
    """Of ``dma_start`` and ``dma_wait``. A wait is for as many bytes as `target` holds."""
    return _copy(equation.params["tree"], len(equation.invars), compat.is_logical(equation))


@functools.lru_cache(maxsize=1024)  # a loop that is written out has the same copy many times
def _copy(tree: Any, count: int, is_logical: bool) -> Copy:
    source, target, recv, send, device_id = tree.unflatten([Slot(i) for i in range(count)])
    return Copy(
        view_of(source), view_of(target), view_of(recv), view_of(send), device_id, is_logical
    )


# Loops


def scan_counts(equation: Any) -> tuple[int, int]:
    """How many of the operands of a scan are constants, and how many are carried."""
    params = equation.params
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()
    return len(consts), len(carry)


# Kernel calls


class Operand(NamedTuple):
    """A block operand of a kernel call."""

    aval: Any  # the ref that the kernel sees
    array_shape: tuple[int, ...]
    block: tuple[int | None, ...]  # None for a dimension that the kernel does not see
    is_blocked: bool  # the index map counts blocks
    index_map: Any
    name: str


class Call(NamedTuple):
    """A ``pallas_call``, taken apart. Operands: grid sizes, prefetched ones, inputs."""

    jaxpr: Any
    name: str
    grid: tuple[int | None, ...]  # None for a size that is an operand
    prefetched: int
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    vmapped: tuple[int, ...]
    aliases: tuple[tuple[int, int], ...]  # operand, output
    collective_id: Any


def _operand(mapping: Any, aval: Any, name: str) -> Operand:
    block: list[int | None] = []
    is_blocked = True
    for dim in mapping.block_shape:
        kind = type(dim).__name__
        if isinstance(dim, int):
            block.append(dim)
        elif kind == "Squeezed" or dim is None:
            block.append(None)
        else:
            block.append(getattr(dim, "block_size", None))
            is_blocked = is_blocked and kind == "Blocked"
    return Operand(
        aval,
        tuple(mapping.array_aval.shape),
        tuple(block),
        is_blocked,
        mapping.index_map_jaxpr,
        name,
    )


def collective_id_of(params: Any) -> Any:
    if isinstance(params, dict):  # by backend, as an older Pallas has it
        params = params.get("mosaic_tpu") or params.get("mosaic")
    return getattr(params, "collective_id", None)


def call_parts(equation: Any) -> Call:
    params = equation.params
    jaxpr, mapping = open_jaxpr(params["jaxpr"])[0], params["grid_mapping"]
    names = argument_names(jaxpr, len(jaxpr.invars))
    first, inputs = mapping.num_index_operands, mapping.num_inputs
    blocks = [
        _operand(m, jaxpr.invars[first + i].aval, names[first + i])
        for i, m in enumerate(mapping.block_mappings)
    ]
    grid = tuple(None if compat.is_dynamic(d) else int(d) for d in mapping.grid)
    name = params.get("name") or function_of(jaxpr)
    return Call(
        jaxpr,
        str(name),
        grid,
        first,
        tuple(blocks[:inputs]),
        tuple(blocks[inputs:]),
        tuple(mapping.vmapped_dims),
        tuple(dict(params["input_output_aliases"]).items()),
        collective_id_of(params["compiler_params"]),
    )


@functools.cache  # asked for with every view
def bits_of(dtype: Any) -> int:
    """The bits of one element."""
    name = str(dtype)
    digits = "".join(c for c in name.partition("_")[0] if c.isdigit())
    if name.startswith(("int", "uint")) and digits in ("2", "4"):
        return int(digits)
    if name.startswith(("float4", "float6")):
        return int(name[5])
    return int(dtype.itemsize) * 8


# Meshes


def partition_axes(spec: Any, rank: int) -> list[tuple[Any, ...]]:
    """The mesh axes over which each dimension of an operand of a shard_map is split."""
    parts: list[tuple[Any, ...]] = []
    for part in tuple(spec):
        if part is None:
            parts.append(())
        else:
            parts.append(part if isinstance(part, tuple) else (part,))
    return (parts + [()] * rank)[:rank]
