"""From a function to its program: the events of every core, in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
from jax.extend.core import JaxprEqn

from safepallas._jax import jaxprs
from safepallas._jax import kernel_calls as calls
from safepallas._jax import operations as ops
from safepallas._jax.collectives import Collective
from safepallas._jax.core_meshes import Cores
from safepallas._jax.jaxprs import AnyJaxpr
from safepallas._verify.diagnostics.finding import WrongError
from safepallas._verify.extract import values as _values
from safepallas._verify.extract.core import Core, LockstepError, Shared
from safepallas._verify.extract.interpreter import (
    Code,
    Compiler,
    Rules,
    line_of,
    run,
    run_alone,
)
from safepallas._verify.extract.lockstep import Lockstep, Pause
from safepallas._verify.extract.memory import may_be_kept
from safepallas._verify.extract.mesh import ONE, Mesh, add_part
from safepallas._verify.extract.rules import (
    buffers,
    collectives,
    control,
    copies,
    core_calls,
    kernel_calls,
    semaphores,
)
from safepallas._verify.program import (
    Access,
    Allocate,
    Assumption,
    Event,
    Line,
    Program,
    Region,
    Release,
    Semaphore,
    Signal,
    Start,
    UndecidedError,
    Wait,
)

RULES: Rules = {
    **control.RULES,
    **semaphores.RULES,
    **copies.RULES,
    **buffers.RULES,
    **kernel_calls.RULES,
    **core_calls.RULES,
    **collectives.RULES,
}


def trace(function: Callable[..., Any], args: tuple[Any, ...]) -> AnyJaxpr:
    """The jaxpr of a function; what it raises itself is raised here."""
    return jax.make_jaxpr(function)(*args)


class Source:
    """A traced function: its jaxpr, the values of its arguments, and the mesh that it runs on."""

    def __init__(self, closed: AnyJaxpr, args: tuple[Any, ...]) -> None:
        self._jaxpr = closed
        self._values = [
            _values.UNKNOWN
            if isinstance(x, jax.ShapeDtypeStruct)
            else _values.known(x, _values.MOST_OF_ARGUMENT)
            for x in jax.tree_util.tree_leaves(args)
        ]
        self._compiler = Compiler(RULES)
        self.mesh = self._find_mesh()
        self.uses_barrier = False
        self.sends_numbers = False  # from one core to another
        for equation in jaxprs.all_equations(closed):
            operation = self._compiler.read(equation)
            if isinstance(operation, ops.BarrierSemaphore):
                self.uses_barrier = True
            elif isinstance(operation, Collective):
                self.sends_numbers |= operation.compute is not None
            elif isinstance(operation, ops.CopyStart):
                self.sends_numbers |= _sends_numbers(equation, operation)
        self._code: Code | None = None

    def _find_mesh(self) -> Mesh:
        """The devices that the function maps over, and the cores that its kernels run on."""
        read = self._compiler.read
        devices: dict[Hashable, int] | None = None
        parts: list[Cores] = []
        line: Line | None = None
        for equation in jaxprs.all_equations(self._jaxpr, lambda e: not _is_kernel(read(e))):
            operation = read(equation)
            if isinstance(operation, calls.ShardMap):
                sizes = dict(operation.mesh)
                if devices is not None and sizes != devices:
                    text = "The function maps over different meshes."
                    raise UndecidedError(text, line_of(equation))
                devices, line = sizes, line_of(equation)
            elif isinstance(operation, calls.KernelCall):
                add_part(parts, ONE, line_of(equation))
            elif isinstance(operation, calls.CoreCall):
                for body in operation.bodies:
                    add_part(parts, body.cores, line_of(equation))
        mesh = Mesh(devices or {}, tuple(parts) or (ONE,))
        if not mesh.size:
            raise UndecidedError("The mesh has no devices.", line)
        return mesh

    def extract(
        self, repeat: int | None, limit: int, tell: Callable[[str], None] = lambda text: None
    ) -> Program:
        """Write down what each core does.

        Args:
            repeat: how often the function is called, one call right after the other; None for
                twice where it uses the barrier semaphore, else once.
            limit: the most events.

        Raises:
            UndecidedError: something is not known, or there are too many events, and there is no
                beginning to analyse. Else that is what `unknown` of the program says.
            WrongError: an index or a device id is out of range, or a semaphore of another kind.
        """
        times = repeat if repeat is not None else 2 if self.uses_barrier else 1
        if self._code is None:
            self._code = self._compiler.code(self._jaxpr)
        try:
            return self._extract(self._code, times, limit, tell, in_lockstep=self.sends_numbers)
        except LockstepError:
            return self._extract(self._code, times, limit, tell, in_lockstep=True)

    def _extract(
        self, code: Code, times: int, limit: int, tell: Callable[[str], None], *, in_lockstep: bool
    ) -> Program:
        size = self.mesh.size
        lockstep = Lockstep(size) if in_lockstep and size > 1 else None
        shared = Shared(self.mesh, limit, lockstep)
        try:
            return self._follow(code, times, shared, tell)
        except (UndecidedError, WrongError) as error:
            error.found = shared.program.found  # certain, whatever comes after
            raise

    def _follow(
        self, code: Code, times: int, shared: Shared, tell: Callable[[str], None]
    ) -> Program:
        size, lockstep = self.mesh.size, shared.lockstep
        cores = [Core(shared, number) for number in range(size)]
        shared.program.cores = [core.events for core in cores]

        def tell_of(core: Core) -> None:
            if core.number % 16 == 15:
                what = "cores" if shared.program.parts else "devices"
                tell(f"{core.number + 1} of {size} {what} read, {shared.events:,} events")

        whole: set[int] = set()
        stops: list[UndecidedError] = []

        def follow(core: Core) -> Pause:
            try:
                for _ in range(times):
                    yield from run(code, core, self._values)
                whole.add(core.number)
            except UndecidedError as error:
                stops.append(error)
            tell_of(core)

        if lockstep is not None:
            lockstep.run([follow(core) for core in cores])
            _require_met(lockstep, {core.number for core in cores} - whole)
        else:
            for core in cores:
                try:
                    for _ in range(times):
                        run_alone(code, core, self._values)
                    whole.add(core.number)
                except UndecidedError as error:
                    stops.append(error)
                tell_of(core)
                if shared.is_full:
                    break
                if not stops and core.calls != len(shared.call_ids):
                    raise UndecidedError("Not all devices call the same kernels.")
        if stops:
            # What is certain before the first unknown value stands (rule 12).
            if not any(core.events for core in cores):
                raise stops[0]
            shared.program.unknown = stops[0]
            shared.program.open_cores = frozenset(range(size)) - whole
        if not shared.call_ids:
            raise UndecidedError("The function calls no Pallas kernel: there is nothing to verify.")
        return _finish(shared, cores, times)


def _require_met(lockstep: Lockstep, stuck: set[int]) -> None:
    """Collectives are no events: who waits there for ever is told here, and not as a deadlock."""
    if stuck and stuck <= lockstep.exchanging:
        raise UndecidedError("Not all devices come to the same collectives.")


def _is_kernel(operation: object) -> bool:
    return isinstance(operation, (calls.KernelCall, calls.CoreCall))


def _sends_numbers(equation: JaxprEqn, copy: ops.CopyStart) -> bool:
    """Whether a copy takes to another core what control there may depend on."""
    if copy.target.device_id is None:
        return False
    views = copy.destination.choices or (copy.destination,)
    refs = [equation.invars[view.ref.at] for view in views]
    return any(may_be_kept(jaxprs.shape_of(ref), jaxprs.dtype_of(ref)) for ref in refs)


def _unite_scopes(cores: list[list[Event]], program: Program) -> None:
    """Make one allocation of the buffers of scopes at one place that another core copies to.

    Which scope of the other core is open is not known to the one that copies: it is known by where
    it lies (rule 6). What no other core reaches stays apart, by scope and by turn.
    """
    allocations = program.allocations
    reached = {
        allocations[event.target.allocation].place
        for core, events in enumerate(cores)
        for event in events
        if isinstance(event, Start) and event.target.core != core
    } - {None}
    if not reached:
        return
    first: dict[Hashable, int] = {}
    number = {
        mine: first.setdefault(one.place, mine)
        for mine, one in allocations.items()
        if one.place in reached
    }

    def at(region: Region) -> Region:
        return region._replace(allocation=number.get(region.allocation, region.allocation))

    for events in cores:
        for i, event in enumerate(events):
            if isinstance(event, (Allocate, Release)):
                mine = tuple([number.get(one, one) for one in event.allocations])
                events[i] = event._replace(allocations=mine)
            elif isinstance(event, Access):
                events[i] = event._replace(region=at(event.region))
            elif isinstance(event, Start):
                events[i] = event._replace(source=at(event.source), target=at(event.target))


# What a DMA semaphore counts, in bytes (libtpu 0.0.52; `tests/tpu/test_compiler_facts.py`).
_GRANULE = 32


def _count_granules(cores: Sequence[list[Event]], program: Program) -> None:
    """Make one unit of the amounts on a place that scopes use for semaphores of several kinds."""
    kinds: dict[Semaphore, set[bool]] = defaultdict(set)
    found: list[tuple[list[Event], int, Semaphore]] = []
    for events in cores:
        for i, event in enumerate(events):
            of_event = [event.send, event.recv] if isinstance(event, Start) else []
            if isinstance(event, (Signal, Wait)):
                of_event = [event.semaphore]
            for one in of_event:
                if one is not None and one.scope >= 0:
                    is_dma = program.allocations[one.scope].what.startswith("DMA")
                    kinds[one].add(is_dma)
                    if not is_dma and not isinstance(event, Start):
                        found.append((events, i, one))
    for events, i, one in found:
        event = events[i]
        if len(kinds[one]) > 1 and isinstance(event, (Signal, Wait)):
            events[i] = event._replace(amount=event.amount * _GRANULE)


def _finish(shared: Shared, cores: Sequence[Core], times: int) -> Program:
    """Leave out the accesses to what is in no copy: one core never races with itself."""
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
    _unite_scopes(kept, program)
    _count_granules(kept, program)
    program.cores = kept
    program.assumed = _assumed(shared, times)
    return program


def _assumed(shared: Shared, times: int) -> list[Assumption]:
    """All that the verdict takes for granted."""
    found = [Assumption("values", text) for text in _values_of(shared)]
    found += shared.assumed
    if times > 1:
        text = f"the function is called {times} times, one right after the other"
        found.append(Assumption("calls", text))
    return found


def _values_of(shared: Shared) -> list[str]:
    """``n = [5, 6]``, and where devices have others, which has which."""
    place = shared.program.place
    found: dict[str, None] = {}
    for (_, name), texts in shared.prefetched.items():
        if len(set(texts.values())) == 1 and len(texts) == shared.mesh.size:
            found[f"{name} = {next(iter(texts.values()))}"] = None
            continue
        cores: dict[str, list[int]] = defaultdict(list)
        for core, text in texts.items():
            cores[text].append(core)
        said = []
        for text, those in cores.items():
            more = f" and {len(those) - 1} more" if those[1:] else ""
            said.append(f"{text} on {place(those[0])}{more}")
        rest = [f"{len(said) - _MOST} more"] if len(said) > _MOST else []
        found[f"{name} = {', '.join([*said[:_MOST], *rest])}"] = None
    return [*found]


_MOST = 16  # different values that are said
