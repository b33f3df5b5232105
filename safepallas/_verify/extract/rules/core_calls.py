"""Kernels over meshes of cores: every core runs the body of its kind once, on whole operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from safepallas._jax import compat, core_meshes, jaxprs
from safepallas._verify.extract.core import Sharing
from safepallas._verify.extract.interpreter import Compiler, Do, Env, Equation, Rule, refuse, run
from safepallas._verify.extract.memory import Ref
from safepallas._verify.extract.mesh import Mesh
from safepallas._verify.extract.rules.kernel_calls import Call, enter, leave, line_of_call
from safepallas._verify.extract.values import UNKNOWN
from safepallas._verify.program import Line, Program, UndecidedError

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core

_AT_ONCE = "the cores of a device enter a kernel together"


def _core_call(compiler: Compiler, equation: Equation) -> Do:
    parts = core_meshes.core_call_parts(equation.jax)
    if parts is None:
        return refuse("This mesh of cores is not followed yet.", equation.line)
    kinds = [part for part, _ in parts.bodies]
    bodies = {part: (compiler.open_code(jaxpr), jaxpr) for part, jaxpr in parts.bodies}
    line, me = line_of_call(equation, parts.bodies[0][1]), id(equation.jax)
    inputs, outputs = equation.inputs, equation.outputs
    aliases = {output: operand for operand, output in parts.aliases}

    def do(core: Core, env: Env) -> None:
        mesh = core.shared.mesh
        places = mesh.places(kinds)
        if not enter(core, Call(parts.name, parts.collective_id, places, me, line)):
            return
        owners = core.shared.shared_by.get(me)
        if owners is None:
            owners = _owners(mesh, core.shared.members(places), core.shared.program)
            core.shared.shared_by[me] = owners
        if len(places) > 1:
            core.shared.assumed[_AT_ONCE] = None
        body, jaxpr = bodies[core.part]
        variables = (*jaxpr.constvars, *jaxpr.invars)
        names = jaxprs.argument_names(jaxpr, len(jaxpr.invars))
        names = [""] * len(jaxpr.constvars) + names
        refs: list[Any] = []
        for i, var in enumerate(variables):
            given = env[inputs[i]] if i < len(inputs) else UNKNOWN
            operand = aliases.get(i - len(inputs))
            if operand is not None:
                refs.append(refs[operand])
            elif isinstance(given, Ref):
                if len(places) > 1:
                    text = "What an earlier call hands on to several cores is not followed."
                    raise UndecidedError(text, line)
                refs.append(core.hold(given))
            elif not compat.is_ref_type(var.aval):  # a number that the body closes over
                refs.append(given)
            else:
                name = names[i] or f"argument {i}"
                together = _shared(
                    owners, var.aval, i < len(inputs) + len(outputs), f"`{name}`", line
                )
                key = (core.call, i)
                refs.append(core.new_ref(key, var.aval, name, line, given, together))
        run(body, core, refs)
        leave(core, line)

    return do


def _owners(mesh: Mesh, members: Sequence[int], program: Program) -> dict[str, Sharing | None]:
    """Who has memory together, by what it is that they share."""
    found: dict[str, Sharing | None] = {}
    by_device: dict[Any, list[int]] = {}
    by_sparse_core: dict[Any, list[int]] = {}
    for core in members:
        part, at, device = mesh.part_of(core), mesh.coordinates(core), core // mesh.cores
        by_device.setdefault(device, []).append(core)
        if (
            part.kind != core_meshes.TENSOR
        ):  # the first axis of both their meshes goes over SparseCores
            axis = part.axes[0][0]
            name = f"SparseCore {axis}={at[axis]}"
            name += f" of {program.device(device)}" if program.mesh else ""
            by_sparse_core.setdefault(name, []).append(core)
    is_alone = len(by_device) == len(members)
    for what, groups in (
        (core_meshes.DEVICE, by_device),
        (core_meshes.SPARSE_CORE, by_sparse_core),
    ):
        found[what] = None if is_alone else {core: tuple(g) for g in groups.values() for core in g}
    for name, group in by_sparse_core.items():
        if len(group) > 1 and group not in by_device.values():
            program.groups[tuple(group)] = name
    return found


def _shared(
    owners: dict[str, Sharing | None], aval: Any, is_operand: bool, name: str, line: Line
) -> Sharing | None:
    if owners[core_meshes.DEVICE] is None:
        return None
    what = core_meshes.sharing_of(aval)
    if what == core_meshes.UNCLEAR or (what == core_meshes.OWN and is_operand):
        text = f"Whether the cores have {name} together or each its own is not known."
        raise UndecidedError(text, line)
    return None if what == core_meshes.OWN else owners[what]


def _between_kernels(compiler: Compiler, equation: Equation) -> Do:
    """What makes a ref of JAX an array again: nothing is known of it."""
    line = equation.line

    def do(core: Core, env: Env) -> None:
        if core.is_inside:
            text = f"sp.verify does not know the operation {equation.name} in a kernel."
            raise UndecidedError(text, line)

    return do


RULES: dict[str, Rule] = {
    "mpmd_map": _core_call,
    "core_map": _core_call,
    "freeze": _between_kernels,
    "free_ref": _between_kernels,
}
