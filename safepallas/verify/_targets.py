"""From a device id, in any form that Pallas takes, to the core that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from safepallas.verify._core import Core
from safepallas.verify._model import Kind, Line, UndecidedError
from safepallas.verify._values import UNKNOWN


def target(
    core: Core,
    device_id: Any,
    core_index: Any,
    is_logical: bool,
    value: Callable[[Any], Any],
    line: Line,
) -> int:
    """The number of the core that an operation goes to.

    Raises:
        UndecidedError: the id is not known.
        WrongError: there is no such device.
    """
    if device_id is None and core_index is None:
        return core.number
    mesh = core.shared.mesh
    at = dict(core.at)
    if device_id is not None:
        _set_device(core, at, device_id, is_logical, value, line)
    if core_index is not None:
        index = _number(value(core_index), "core index", line)
        if not 0 <= index < mesh.cores:
            core.wrong(
                Kind.OUT_OF_RANGE,
                f"{core.place} names core {index}, but there are {mesh.cores} cores on a device "
                "here: give a core_index from 0 on, below that.",
                line,
            )
        if mesh.core_axis is not None:
            at[mesh.core_axis] = index
    return mesh.number(at)


def _number(value: Any, what: str, line: Line) -> int:
    if value is UNKNOWN:
        raise UndecidedError(f"The {what} depends on data that is not known before it runs.", line)
    return int(value)


def _set_device(
    core: Core,
    at: dict[Any, int],
    device_id: Any,
    is_logical: bool,
    value: Callable[[Any], Any],
    line: Line,
) -> None:
    axes = core.shared.mesh.devices
    if isinstance(device_id, Mapping):
        for name, part in device_id.items():
            number = _number(value(part), "device id", line)
            if isinstance(name, tuple):
                _set_joint(core, at, name, number, line)
            else:
                _set(core, at, name, number, line)
        return
    parts = device_id if isinstance(device_id, (tuple, list)) else (device_id,)
    numbers = [_number(value(part), "device id", line) for part in parts]
    if is_logical and len(numbers) == 1:
        _set_joint(core, at, tuple(axes), numbers[0], line)
        return
    if len(numbers) != len(axes):
        core.wrong(
            Kind.OUT_OF_RANGE,
            f"{core.place} names a device by {len(numbers)} coordinates, but the mesh has "
            f"{len(axes)} axes ({', '.join(map(str, axes)) or 'none'}): give one for each.",
            line,
        )
    for name, number in zip(axes, numbers, strict=True):
        _set(core, at, name, number, line)


def _set(core: Core, at: dict[Any, int], name: Any, number: int, line: Line) -> None:
    sizes = core.shared.mesh.axes
    if name not in sizes:
        raise UndecidedError(f"A device id names the axis {name!r}, which is no mesh axis.", line)
    if not 0 <= number < sizes[name]:
        core.wrong(
            Kind.OUT_OF_RANGE,
            f"{core.place} names device {name}={number}, but axis {name} has "
            f"{sizes[name]} devices, 0 to {sizes[name] - 1}: wrap the id around, for instance with "
            "jax.lax.rem, or do not communicate there.",
            line,
        )
    at[name] = number


def _set_joint(
    core: Core, at: dict[Any, int], names: tuple[Any, ...], number: int, line: Line
) -> None:
    """One number for several axes, the last one going fastest."""
    sizes = core.shared.mesh.axes
    if not all(name in sizes for name in names):
        raise UndecidedError(f"A device id names the axes {names!r}, not all of the mesh.", line)
    total = 1
    for name in names:
        total *= sizes[name]
    if not 0 <= number < total:
        core.wrong(
            Kind.OUT_OF_RANGE,
            f"{core.place} names device {number}, but there are {total} devices, 0 to {total - 1}: "
            "wrap the id around, for instance with jax.lax.rem, or do not communicate there.",
            line,
        )
    for name in reversed(names):
        number, at[name] = divmod(number, sizes[name])
