"""From a function to its program: the events of every core, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax

from safepallas._jax import compat, core_meshes, jaxprs
from safepallas._jax.core_meshes import Cores
from safepallas._verify.extract import values as _values
from safepallas._verify.extract.core import Core, LockstepError, Shared
from safepallas._verify.extract.interpreter import Code, Compiler, inside, line_of, run
from safepallas._verify.extract.lockstep import Lockstep
from safepallas._verify.extract.memory import may_be_kept
from safepallas._verify.extract.mesh import ONE, Mesh, add_part
from safepallas._verify.extract.rules import control as _control
from safepallas._verify.extract.rules import core_calls, kernel_calls, operations, sparse_cores
from safepallas._verify.program import Access, Event, Line, Program, Start, UndecidedError

RULES = {
    **_control.RULES,
    **operations.RULES,
    **kernel_calls.RULES,
    **core_calls.RULES,
    **sparse_cores.RULES,
}


def trace(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The jaxpr of a function; what it raises itself is raised here."""
    return jax.make_jaxpr(function)(*args)


class Source:
    """A traced function: its jaxpr, the values of its arguments, and the mesh that it runs on."""

    def __init__(self, closed: Any, args: tuple[Any, ...]) -> None:
        self._jaxpr = closed
        leaves = jax.tree_util.tree_leaves(args)
        self._values = [
            _values.UNKNOWN if isinstance(x, jax.ShapeDtypeStruct) else _values.known(x, 1 << 20)
            for x in leaves
        ]
        self.mesh = _mesh_of(closed)
        self.uses_barrier = False
        self.sends_numbers = False
        for equation in _equations(closed, True):
            if equation.primitive.name == "get_barrier_semaphore":
                self.uses_barrier = True
            elif equation.primitive.name == "dma_start":
                self.sends_numbers |= _sends_numbers(equation)
        self._compiler = Compiler(RULES)
        self._code: Code | None = None

    def extract(
        self, repeat: int | None, limit: int, tell: Callable[[str], None] = lambda text: None
    ) -> Program:
        """Write down what each core does.

        Args:
            repeat: how often the function is called, one call right after the other; None for
                twice where it uses the barrier semaphore, else once.
            limit: the most events.

        Raises:
            UndecidedError: something is not known, or there are too many events.
            WrongError: an index or a device id is out of range, or a semaphore of another kind.
        """
        times = repeat if repeat is not None else 2 if self.uses_barrier else 1
        if self._code is None:
            self._code = self._compiler.code(self._jaxpr)
        try:
            return self._extract(times, limit, tell, in_lockstep=self.sends_numbers)
        except LockstepError:
            return self._extract(times, limit, tell, in_lockstep=True)

    def _extract(
        self, times: int, limit: int, tell: Callable[[str], None], *, in_lockstep: bool
    ) -> Program:
        code, size = self._code, self.mesh.size
        assert code is not None
        lockstep = Lockstep(size) if in_lockstep and size > 1 else None
        shared = Shared(self.mesh, limit, lockstep)
        cores = [Core(shared, number) for number in range(size)]
        shared.program.cores = [core.events for core in cores]

        def follow(core: Core) -> None:
            for _ in range(times):
                run(code, core, self._values)
            if core.number % 16 == 15:
                what = "cores" if shared.program.parts else "devices"
                tell(f"{core.number + 1} of {size} {what} read, {shared.events:,} events")

        if lockstep is not None:
            lockstep.run([partial(follow, core) for core in cores])
        else:
            for core in cores:
                follow(core)
                if core.calls != len(shared.call_ids):
                    raise UndecidedError("Not all devices call the same kernels.")
        if not shared.call_ids:
            raise UndecidedError("The function calls no Pallas kernel: there is nothing to verify.")
        return _finish(shared, cores, times)


def _sends_numbers(equation: Any) -> bool:
    """Whether a copy takes to another core what control there may depend on."""
    refs = compat.ref_types_of(equation)
    if not any(may_be_kept(ref.shape, ref.dtype) for ref in refs):
        return False  # most copies are of floats
    parts = jaxprs.copy_parts(equation)
    aval = equation.invars[parts.target.ref.at].aval
    return parts.device_id is not None and may_be_kept(aval.shape, aval.dtype)


def _finish(shared: Shared, cores: list[Core], times: int) -> Program:
    """Leave out the accesses to what no copy touches: one core never races with itself."""
    copied = {
        region.allocation
        for core in cores
        for event in core.events
        if isinstance(event, Start)
        for region in (event.source, event.target, *event.indices)
    }
    shares = {
        number
        for number, allocated in shared.program.allocations.items()
        if allocated.shared_by is not None
    }
    copied |= shares  # they may race by themselves
    kept: list[list[Event]] = []
    for core in cores:
        mine: list[Event] = []
        for event in core.events:
            if isinstance(event, Access) and (
                event.region.allocation not in copied or (mine and mine[-1] == event)
            ):
                continue
            mine.append(event)
        kept.append(mine)
    program = shared.program
    program.cores = kept
    program.assumed = [*shared.assumed]
    if times > 1:
        program.assumed.append(f"the function is called {times} times, one right after the other")
    return program


def _equations(jaxpr: Any, in_kernels: bool = False) -> Iterator[Any]:
    """All equations, those inside kernels only if asked for."""
    for equation in jaxprs.open_jaxpr(jaxpr)[0].eqns:
        yield equation
        if in_kernels or equation.primitive.name not in ("pallas_call", "mpmd_map", "core_map"):
            for inner in inside(equation):
                yield from _equations(inner, in_kernels)


def _mesh_of(jaxpr: Any) -> Mesh:
    devices: dict[Any, int] | None = None
    parts: list[Cores] = []
    line: Line | None = None
    for equation in _equations(jaxpr):
        name = equation.primitive.name
        if name == "shard_map":
            sizes = dict(equation.params["mesh"].shape)
            if devices is not None and sizes != devices:
                raise UndecidedError("The function maps over different meshes.", line_of(equation))
            devices, line = sizes, line_of(equation)
        elif name == "pallas_call":
            add_part(parts, ONE, line_of(equation))
        elif name in ("mpmd_map", "core_map"):
            call = core_meshes.core_call_parts(equation)
            for part, _ in call.bodies if call is not None else ():
                add_part(parts, part, line_of(equation))
    mesh = Mesh(devices or {}, tuple(parts) or (ONE,))
    if not mesh.size:
        raise UndecidedError("The mesh has no devices.", line)
    return mesh
