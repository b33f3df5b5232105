"""Buffers of a kernel: loads, stores, and scopes in which they live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safepallas._jax import operations as ops
from safepallas._jax.core_meshes import Sharing
from safepallas._verify.extract.interpreter import (
    Compiler,
    Do,
    Env,
    Equation,
    Rules,
    run,
    set_all,
)
from safepallas._verify.extract.lockstep import Pause
from safepallas._verify.extract.memory import Ref
from safepallas._verify.extract.values import UNKNOWN
from safepallas._verify.extract.views import ViewReader
from safepallas._verify.program import Access, Allocate, Release, UndecidedError

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core

_COLLECTIVE = (
    "run_scoped over collective_axes is not followed: JAX's TPU compiler (0.10.2 to 0.12.0.1) does "
    "not take it either."
)


_VERBS = {False: "loads", True: "stores to"}


def _ref_access(compiler: Compiler, equation: Equation, access: ops.RefAccess) -> Do:
    view, line = ViewReader(equation, access.view), equation.line
    out = equation.outputs[0] if equation.outputs else None
    ref_at = equation.inputs[access.view.ref.at]
    is_write, verb = access.is_write, _VERBS[access.is_write]
    stored_at = None if access.stored is None else equation.inputs[access.stored.at]

    def do(core: Core, env: Env) -> None:
        if not core.is_inside and not isinstance(env[ref_at], Ref):
            return  # of JAX, between kernels: no kernel has it
        ref, box = view(env)
        if core.is_inside:  # XLA moves an index into the array, and a kernel does not
            core.check_bounds(ref, box, verb, line, is_partial=access.is_masked)
        if not ref.is_private:
            core.emit(Access(core.own_region(ref, box, line), is_write, line))
        contents = ref.contents
        if contents is None:
            return
        at = None if access.is_masked else box.at
        if out is not None:
            env[out] = contents.load(at)
        if stored_at is not None:
            stored = env[stored_at]
            contents.store(at, UNKNOWN if isinstance(stored, Ref) else stored, access.adds)

    return do


def _vector_access(compiler: Compiler, equation: Equation, access: ops.VectorAccess) -> Do:
    """Of SparseCores. Where there is a mask, it may be a part of the view only."""
    view, line, is_write = ViewReader(equation, access.view), equation.line, access.is_write
    verb = _VERBS[is_write]

    def do(core: Core, env: Env) -> None:
        ref, box = view(env)
        core.check_bounds(ref, box, verb, line, is_partial=access.is_partial)
        region = core.own_region(ref, box, line)
        if access.is_partial:
            region = region._replace(exact=False)
        core.emit(Access(region, is_write, line))
        if is_write and ref.contents is not None:
            ref.contents.store(None if access.is_partial else box.at, UNKNOWN)

    return do


def _run_scoped(compiler: Compiler, equation: Equation, scope: ops.RunScoped) -> Do:
    code, line, me = compiler.open_code(scope.body), equation.line, id(equation.jax)
    inputs, outputs = equation.inputs, equation.outputs
    allocated = [(name, memory) for name, memory in scope.allocated if memory is not None]
    is_private = all(memory.sharing is Sharing.CORE for _, memory in allocated)

    def do(core: Core, env: Env) -> Pause:
        if scope.is_collective:
            raise UndecidedError(_COLLECTIVE, line)
        if core.shared.mesh.cores > 1 and not is_private:
            text = "run_scoped of memory that several cores may share is not followed."
            raise UndecidedError(text, line)
        turn = core.count((core.call, me))
        stack, opened = core.stack, len(core.open)
        refs = [
            core.new_scoped_ref((core.call, me, turn, i), memory, name or f"scoped {i}", line)
            for i, (name, memory) in enumerate(allocated)
        ]
        allocations = tuple([ref.allocation for ref in refs])
        core.emit(Allocate(allocations, line))
        results = yield from run(code, core, [*[env[i] for i in inputs], *refs])
        core.emit(Release(allocations, line))
        core.stack = stack
        del core.open[opened:]
        set_all(env, outputs, results)

    return do


RULES: Rules = {
    ops.RefAccess: _ref_access,
    ops.VectorAccess: _vector_access,
    ops.RunScoped: _run_scoped,
}
