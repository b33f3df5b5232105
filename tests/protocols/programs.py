"""What each device of a mesh does in a kernel, read off the traced kernel.

Nothing of a protocol is written down again: its semaphores, amounts, devices and their arithmetic
are those of the jaxpr, evaluated for the coordinates of each device.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import safepallas as sp

from ..unit.helpers import equations

# A semaphore: the scope that it was allocated in (0 is the barrier semaphore of the collective_id)
# and its index in there. A device has its own of each.
Semaphore = tuple[int, int]
Mesh = dict[str, int]


class Enter(NamedTuple):
    """A scope begins: its semaphores exist from now on, at zero."""

    scope: int


class Exit(NamedTuple):
    scope: int


class Signal(NamedTuple):
    device: int
    sem: Semaphore
    amount: int


class Wait(NamedTuple):
    sem: Semaphore
    amount: int


Step = Enter | Exit | Signal | Wait
Program = list[Step]

BARRIER: Semaphore = (0, 0)


def coordinates(mesh: Mesh) -> list[dict[str, int]]:
    """Those of each device, in the order of their numbers."""
    return [
        dict(zip(mesh, place, strict=True))
        for place in itertools.product(*map(range, mesh.values()))
    ]


def _number(mesh: Mesh, place: dict[str, int]) -> int:
    number = 0
    for axis, size in mesh.items():
        assert 0 <= place[axis] < size, f"no such device: {place} on {mesh}"
        number = number * size + place[axis]
    return number


class _Device:
    """Runs the scalar part of a kernel for one device, and writes down the rest."""

    def __init__(self, mesh: Mesh, place: dict[str, int]) -> None:
        self.mesh, self.place = mesh, place
        self.scopes = itertools.count(1)
        self.program: Program = []

    def _target(self, device_id: dict[Any, int] | None) -> int:
        place = dict(self.place)
        for key, value in (device_id or {}).items():
            axes = key if isinstance(key, tuple) else (key,)
            rest = int(value)
            assert 0 <= rest < math.prod(self.mesh[axis] for axis in axes), (key, rest)
            for axis in reversed(axes):  # several axes taken as one: the last one counts first
                rest, place[axis] = divmod(rest, self.mesh[axis])
        return _number(self.mesh, place)

    def run(self, jaxpr: Any, known: dict[Any, Any]) -> None:
        def value(var: Any) -> Any:
            return var.val if hasattr(var, "val") else known[var]

        for eqn in jaxpr.eqns:
            name = eqn.primitive.name
            operands = [value(var) for var in eqn.invars]
            if name == "axis_index":
                known[eqn.outvars[0]] = np.int32(self.place[eqn.params["axis_name"]])
            elif name == "get_barrier_semaphore":
                known[eqn.outvars[0]] = 0
            elif name == "run_scoped":
                inner, scope = eqn.params["jaxpr"], next(self.scopes)
                assert len(inner.invars) == 1, "one array of semaphores"
                self.program.append(Enter(scope))
                outer = dict(zip(inner.constvars, operands, strict=True))
                self.run(inner, {**outer, inner.invars[0]: scope})
                self.program.append(Exit(scope))
            elif name in ("semaphore_signal", "semaphore_wait"):
                parts = jax.tree.unflatten(eqn.params["args_tree"], operands)
                scope, transforms, amount = parts[:3]
                index = jax.tree.leaves(transforms)
                assert len(index) <= 1, "one semaphore, or an array of rank one"
                sem = (scope, int(index[0]) if index else 0)
                if name == "semaphore_wait":
                    self.program.append(Wait(sem, int(amount)))
                else:
                    self.program.append(Signal(self._target(parts[3]), sem, int(amount)))
            else:
                (known[eqn.outvars[0]],) = np.atleast_1d(
                    eqn.primitive.bind(*operands, **eqn.params)
                )


def programs_of(body: Callable[[], None], mesh: Mesh) -> list[Program]:
    """What each device of the mesh does in a kernel with that body."""

    def kernel(x: Any, o: Any) -> None:
        body()

    like = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    params = pltpu.CompilerParams(collective_id=0, allow_collective_id_without_custom_barrier=True)
    call = sp.pallas_call(kernel, like, compiler_params=params)
    devices = AbstractMesh(
        tuple(mesh.values()), tuple(mesh), axis_types=(AxisType.Auto,) * len(mesh)
    )
    call = jax.shard_map(call, mesh=devices, in_specs=P(), out_specs=P(), check_vma=False)
    traced = jax.make_jaxpr(call)(jnp.zeros(like.shape, like.dtype))
    (eqn,) = equations(traced, "pallas_call")
    jaxpr = eqn.params["jaxpr"]

    def each() -> Iterator[Program]:
        for place in coordinates(mesh):
            device = _Device(mesh, place)
            device.run(jaxpr, dict.fromkeys(jaxpr.invars))
            yield device.program

    return list(each())
