"""From a device id, in any form that Pallas takes, to the core that it names."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeAlias

import jax

from safepallas._jax.core_meshes import KEEPS_CORE_AXES, Cores
from safepallas._jax.core_types import CoreType
from safepallas._jax.operations import DeviceId, Target
from safepallas._jax.views import Slot
from safepallas._verify.diagnostics.finding import FindingKind
from safepallas._verify.extract.boxes import ValueOf
from safepallas._verify.extract.core import Core
from safepallas._verify.extract.interpreter import Env, Equation, places_of
from safepallas._verify.extract.memory import Value
from safepallas._verify.extract.mesh import Mesh
from safepallas._verify.extract.views import value_of
from safepallas._verify.program import Line, UndecidedError

Coordinates: TypeAlias = dict[Hashable, int]


def finder(equation: Equation, target: Target) -> Callable[[Core, Env, CoreType | None], int]:
    """How to find the core that an operation goes to: `find`, each answer worked out once."""
    leaves, form = jax.tree_util.tree_flatten((target.device_id, target.core_index))
    places = places_of(equation, leaves)
    line = equation.line
    names_nothing = target.device_id is None and target.core_index is None
    # Ids of one form name the same cores in all equations.
    found = equation.answers.targets.setdefault((form, target.is_logical), {})

    def find_once(core: Core, env: Env, lives_on: CoreType | None) -> int:
        if names_nothing and lives_on is None:
            return core.number
        numbers = [env[place] for place in places]
        key: Hashable = None
        if all(type(number) is int for number in numbers):
            # Where the id says it all, nothing is left to where a core itself is.
            who = None if _names_all(core.shared.mesh, target.device_id) else core.number
            key = (who, lives_on, *numbers)
            if key in found:
                return found[key]
        answer = find(core, target, lives_on, value_of(equation, env), line)
        if key is not None:
            found[key] = answer
        return answer

    return find_once


def _names_all(mesh: Mesh, device_id: DeviceId) -> bool:
    if mesh.cores > 1:
        return False
    if isinstance(device_id, Mapping):
        return device_id.keys() >= mesh.devices.keys()
    return device_id is not None


def find(core: Core, target: Target, lives_on: CoreType | None, value: ValueOf, line: Line) -> int:
    """The number of the core that an operation goes to.

    Args:
        core: the one that does it.
        target: what names the other.
        lives_on: the type of cores that the semaphore is on, where it is another.
        value: what is known of a number.
        line: that of the operation.

    Raises:
        UndecidedError: the id is not known, or is not told by JAX which core it means.
        WrongError: there is no such device.
    """
    mesh, here = core.shared.mesh, core.part
    there = mesh.part(lives_on) if lives_on is not None else here
    if there is None:
        raise UndecidedError("It goes to cores that run no kernel here.", line)
    at = dict(core.at)
    named: set[Hashable] = set()
    if target.device_id is not None:
        named = _set_device(core, at, target, value, line)
    axes = {name for name, _ in there.axes}
    if target.core_index is not None:
        _set_core(core, at, there, _number(value(target.core_index), "core index", line), line)
        named = named | axes
    _check_core_is_named(core, there, named, target, line)
    number = mesh.number(at, there)
    is_tensor_core = here.core_type == CoreType.TENSOR_CORE
    if not is_tensor_core and number // mesh.cores != core.number // mesh.cores:
        raise UndecidedError(_OTHER_DEVICE, line)
    return number


def _check_core_is_named(
    core: Core, there: Cores, named: set[Hashable], target: Target, line: Line
) -> None:
    """Refuse an id of which it is not known which core of the device it means."""
    here, axes = core.part, {name for name, _ in there.axes}
    named_cores = named & axes
    if named - axes - {*core.shared.mesh.devices}:
        raise UndecidedError("A device id names an axis that the cores there do not have.", line)
    if there != here and not axes <= named_cores | {name for name, _ in here.axes}:
        raise UndecidedError("A device id does not say which core of the other type.", line)
    if there == here and there.size > 1:
        if not named_cores and named:
            raise UndecidedError(_NO_CORE, line)
        by_axes = bool(named_cores) and target.core_index is None
        if by_axes and here.core_type != CoreType.TENSOR_CORE and not KEEPS_CORE_AXES:
            raise UndecidedError(_LEFT_OUT, line)


_OTHER_DEVICE = (
    "A SparseCore reaches another device: whether that runs the kernel by then is not documented."
)
# Measured: what JAX's own interpreter does, and what is in the module that JAX 0.10.2 makes.
_NO_CORE = (
    "A device id names no core, and each device has several: JAX's interpreter takes core 0, and "
    "it is not documented what the compiler takes. Name the core too."
)
_LEFT_OUT = (
    "JAX 0.10.2 leaves out the core axes of a device id where the semaphore is on SparseCores of "
    "the same type: the core signals itself. Use JAX 0.12."
)


def _set_core(core: Core, at: Coordinates, there: Cores, index: int, line: Line) -> None:
    if there.core_type == CoreType.VECTOR_SUBCORE and there.size > 1:
        text = "A core_index does not say which vector subcore: name the axes in device_id."
        raise UndecidedError(text, line)
    if not 0 <= index < there.size:
        core.wrong(
            FindingKind.OUT_OF_RANGE,
            f"{core.place} names core {index}, but there are {there.size} cores on a device "
            "here: give a core_index from 0 on, below that.",
            line,
        )
    for name, _ in there.axes:
        at[name] = index


def _number(value: Value, what: str, line: Line) -> int:
    if not isinstance(value, int):
        raise UndecidedError(f"The {what} depends on data that is not known before it runs.", line)
    return value


def _set_device(
    core: Core, at: Coordinates, target: Target, value: ValueOf, line: Line
) -> set[Hashable]:
    """Go there, and tell which axes were named."""
    axes, device_id = core.shared.mesh.devices, target.device_id
    if isinstance(device_id, Mapping):
        named: set[Hashable] = set()
        for name, part in device_id.items():
            number = _number(value(part), "device id", line)
            if isinstance(name, tuple):
                _set_joint(core, at, name, number, line)
                named |= {*name}
            else:
                _set(core, at, name, number, line)
                named.add(name)
        return named
    parts = (device_id,) if isinstance(device_id, Slot) else device_id or ()
    numbers = [_number(value(part), "device id", line) for part in parts]
    if target.is_logical and len(numbers) == 1:
        _set_joint(core, at, tuple(axes), numbers[0], line)
        return {*axes}
    if len(numbers) != len(axes):
        core.wrong(
            FindingKind.OUT_OF_RANGE,
            f"{core.place} names a device by {len(numbers)} coordinates, but the mesh has "
            f"{len(axes)} axes ({', '.join(map(str, axes)) or 'none'}): give one for each.",
            line,
        )
    for name, number in zip(axes, numbers, strict=True):
        _set(core, at, name, number, line)
    return {*axes}


def _set(core: Core, at: Coordinates, name: Hashable, number: int, line: Line) -> None:
    sizes = core.shared.mesh.axes
    if name not in sizes:
        raise UndecidedError(f"A device id names the axis {name!r}, which is no mesh axis.", line)
    if not 0 <= number < sizes[name]:
        what = "device" if name in core.shared.mesh.devices else "core"
        core.wrong(
            FindingKind.OUT_OF_RANGE,
            f"{core.place} names {what} {name}={number}, but axis {name} has "
            f"{sizes[name]} {what}s, 0 to {sizes[name] - 1}: wrap the id around, for instance with "
            "jax.lax.rem, or do not communicate there.",
            line,
        )
    at[name] = number


def _set_joint(
    core: Core, at: Coordinates, names: Sequence[Hashable], number: int, line: Line
) -> None:
    """One number for several axes, the last one going fastest."""
    sizes = core.shared.mesh.axes
    if not all(name in sizes for name in names):
        raise UndecidedError(f"A device id names the axes {names!r}, not all of the mesh.", line)
    total = math.prod(sizes[name] for name in names)
    if not 0 <= number < total:
        core.wrong(
            FindingKind.OUT_OF_RANGE,
            f"{core.place} names device {number}, but there are {total} devices, 0 to {total - 1}: "
            "wrap the id around, for instance with jax.lax.rem, or do not communicate there.",
            line,
        )
    for name in reversed(names):
        number, at[name] = divmod(number, sizes[name])
