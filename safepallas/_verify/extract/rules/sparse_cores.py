"""What only SparseCores have: the barrier of the subcores, their loads and stores, their loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safepallas._jax import compat, core_meshes, jaxprs
from safepallas._verify.extract.interpreter import (
    Compiler,
    Do,
    Env,
    Equation,
    Rule,
    compute,
    inside,
    run,
)
from safepallas._verify.extract.rules import operations
from safepallas._verify.extract.values import UNKNOWN
from safepallas._verify.extract.views import Look
from safepallas._verify.program import Access, Barrier, UndecidedError

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core


def _barrier(compiler: Compiler, equation: Equation) -> Do:
    """``plsc.subcore_barrier``: all vector subcores of a SparseCore wait for each other."""
    line = equation.line

    def do(core: Core, env: Env) -> None:
        mesh, part = core.shared.mesh, core.part
        if part.kind != core_meshes.VECTOR:
            raise UndecidedError("A barrier of subcores on other cores is not followed.", line)
        _, (axis, size) = part.axes
        among = tuple([mesh.number({**core.at, axis: i}, part) for i in range(size)])
        turn = core.count((core.call, "barrier"))
        if size > 1:
            core.emit(Barrier((core.call, among[0], turn, "subcores"), among, line))

    return do


def _access(compiler: Compiler, equation: Equation) -> Do:
    """Loads and stores of vectors. Where there is a mask, it may be a part of the view only."""
    parts, line = core_meshes.vector_access(equation.jax), equation.line
    look = Look(equation, parts.view)

    def do(core: Core, env: Env) -> None:
        ref, box = look(env)
        region = operations.region_of(core, ref, box, line)
        if parts.is_partial:
            region = region._replace(exact=False)
        core.emit(Access(region, parts.is_write, line))
        if parts.is_write and ref.contents is not None:
            ref.contents.store(None if parts.is_partial else box.at, UNKNOWN)

    return do


def _or_compute(compiler: Compiler, equation: Equation) -> Do:
    """Names that JAX uses twice: on refs, and on arrays."""
    if compat.ref_types_of(equation.jax):
        return _access(compiler, equation)
    return compute(equation)


def _swap(compiler: Compiler, equation: Equation) -> Do:
    rule = _access if "has_mask" in equation.params else operations.RULES["swap"]
    return rule(compiler, equation)


# What the turns of a parallel loop may do to memory, in whatever order.
_LOADS_AND_STORES = {
    *("get", "swap", "addupdate", "masked_load", "masked_swap"),
    *("load", "gather", "scatter"),
}


def _only_accesses(compiler: Compiler, jaxpr: Any) -> bool:
    for equation in jaxprs.open_jaxpr(jaxpr)[0].eqns:
        bodies = [body for body in inside(equation) if compiler.matters(body)]
        if not all(_only_accesses(compiler, body) for body in bodies):
            return False
        touches = bool(compat.ref_types_of(equation))
        if touches and not inside(equation) and equation.primitive.name not in _LOADS_AND_STORES:
            return False
    return True


def _parallel_loop(compiler: Compiler, equation: Equation) -> Do:
    """Its turns may run in any order, which makes no difference where they only load and store."""
    parts, line = core_meshes.parallel_loop_parts(equation.jax), equation.line
    code, outputs = compiler.open_code(parts.body), equation.outputs
    only_accesses = _only_accesses(compiler, parts.body)
    places = equation.inputs

    def do(core: Core, env: Env) -> None:
        if not only_accesses:
            text = "A parallel loop that does more than load and store is not followed."
            raise UndecidedError(text, line)
        lower, upper, step = (env[places[slot.at]] for slot in parts.ends)
        if lower is UNKNOWN or upper is UNKNOWN or step is UNKNOWN:
            raise UndecidedError(
                "How often a loop runs depends on data that is not known before it runs.", line
            )
        consts = [env[places[slot.at]] for slot in parts.consts]
        carried = [env[places[slot.at]] for slot in parts.carried]
        for i in range(int(lower), int(upper), int(step)):
            core.turn(line)
            carried = run(code, core, [*consts, i, *carried])
        for at, result in zip(outputs, carried, strict=True):
            env[at] = result

    return do


RULES: dict[str, Rule] = {
    "barrier": _barrier,
    "load": _access,
    "swap": _swap,
    "gather": _or_compute,
    "scatter": _or_compute,
    "parallel_loop": _parallel_loop,
}
