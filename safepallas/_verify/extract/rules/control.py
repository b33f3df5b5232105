"""Control: calls, branches and loops, run as far as what decides them is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from safepallas._jax import jaxprs
from safepallas._jax import operations as ops
from safepallas._jax.jaxprs import AnyJaxpr
from safepallas._verify.extract import values as _values
from safepallas._verify.extract.interpreter import (
    Compiler,
    Do,
    Env,
    Equation,
    Rules,
    compute,
    given_twice,
    places_of,
    run,
    run_inside,
    set_all,
)
from safepallas._verify.extract.lockstep import Pause
from safepallas._verify.extract.memory import Ref, Value
from safepallas._verify.extract.values import UNKNOWN, Unknown
from safepallas._verify.program import UndecidedError

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core

# A loop that only computes is not followed for longer than this where it needs unknown data.
_LONG = 1000
# From so many equations on, compiling a function pays.
_MANY = 8

_HOW_OFTEN = "How often a loop runs depends on data that is not known before it runs."


def _call(compiler: Compiler, equation: Equation, call: ops.Call) -> Do:
    """A call; a long computation on arrays goes to JAX as a whole, which compiles it once."""
    code, inputs, outputs = compiler.code(call.body), equation.inputs, equation.outputs
    twice = given_twice(equation)

    def do(core: Core, env: Env) -> Pause:
        results = yield from run_inside(code, core, env, inputs, [env[i] for i in inputs], twice)
        set_all(env, outputs, results)

    is_long = len(jaxprs.open_jaxpr(call.body)[0].eqns) >= _MANY
    if call.is_jit and call.takes_arrays and is_long and not compiler.matters(call.body):
        return _at_once(equation, do)
    return do


def _cond(compiler: Compiler, equation: Equation, cond: ops.Cond) -> Do:
    codes = [compiler.code(branch) for branch in cond.branches]
    only_computes = not any(compiler.matters(branch) for branch in cond.branches)
    (which, *inputs), outputs, line = equation.inputs, equation.outputs, equation.line

    def do(core: Core, env: Env) -> Pause:
        chosen = env[which]
        if not isinstance(chosen, int):
            if not only_computes:
                text = "Which branch is taken depends on data that is not known before it runs."
                raise UndecidedError(text, line)
            set_all(env, outputs, [UNKNOWN] * len(outputs))
            return
        code = codes[min(max(int(chosen), 0), len(codes) - 1)]
        results = yield from run(code, core, [env[i] for i in inputs])
        set_all(env, outputs, results)

    return do


def _while(compiler: Compiler, equation: Equation, loop: ops.While) -> Do:
    test, body = compiler.code(loop.test), compiler.code(loop.body)
    only_computes = not compiler.matters(loop.test) and not compiler.matters(loop.body)
    a, b = loop.test_consts, loop.body_consts
    inputs, outputs, line = equation.inputs, equation.outputs, equation.line

    def do(core: Core, env: Env) -> Pause:
        operands = [env[i] for i in inputs]
        for_test, for_body, carried = operands[:a], operands[a : a + b], operands[a + b :]
        while True:
            (goes_on,) = yield from run(test, core, [*for_test, *carried])
            if not isinstance(goes_on, int):
                if not only_computes:
                    raise UndecidedError(_HOW_OFTEN, line)
                carried = [UNKNOWN] * len(outputs)
                break
            if not goes_on:
                break
            core.turn(line)
            carried = yield from run(body, core, [*for_body, *carried])
        set_all(env, outputs, carried)

    return do if not only_computes else _at_once(equation, do)


def _scan(compiler: Compiler, equation: Equation, scan: ops.Scan) -> Do:
    body, consts, carry, length = compiler.code(scan.body), scan.consts, scan.carried, scan.length
    only_computes = not compiler.matters(scan.body)
    inputs, outputs, line = equation.inputs, equation.outputs, equation.line

    def do(core: Core, env: Env) -> Pause:
        operands = [env[i] for i in inputs]
        fixed, over = operands[:consts], operands[consts + carry :]
        carried = operands[consts : consts + carry]
        given: list[list[Value]] = [[] for _ in outputs[carry:]]
        turns = range(length - 1, -1, -1) if scan.is_reverse else range(length)
        for turn in turns:
            core.turn(line)
            results = yield from run(body, core, [*fixed, *carried, *[_at(x, turn) for x in over]])
            carried = results[:carry]
            for values, value in zip(given, results[carry:], strict=True):
                values.append(value)
        stacked = [_stack(values[::-1] if scan.is_reverse else values) for values in given]
        set_all(env, outputs, [*carried, *stacked])

    if not only_computes:
        return do
    return _at_once(equation, do if length <= _LONG else None)


def _at(values: Value, turn: int) -> Value:
    return _values.known(values[turn]) if isinstance(values, np.ndarray) else UNKNOWN


def _stack(values: Sequence[Value]) -> Value:
    if not values or any(isinstance(v, (Unknown, Ref)) for v in values):
        return UNKNOWN
    return _values.known(np.stack([np.asarray(v) for v in values]))


def _at_once(equation: Equation, otherwise: Do | None) -> Do:
    """What only computes: by JAX as a whole, where all that it needs is known."""
    whole = compute(equation)
    inputs = equation.inputs

    def do(core: Core, env: Env) -> Pause | None:
        if otherwise is None or not any(isinstance(env[i], Unknown) for i in inputs):
            return whole(core, env)
        return otherwise(core, env)

    return do


_ACCESSES = (ops.RefAccess, ops.VectorAccess)


def _only_accesses(compiler: Compiler, jaxpr: AnyJaxpr) -> bool:
    """Whether it does nothing but load and store: in whatever order, that is the same."""
    for equation in jaxprs.open_jaxpr(jaxpr)[0].eqns:
        bodies = jaxprs.inner_jaxprs(equation)
        if bodies:
            if not all(_only_accesses(compiler, b) for b in bodies if compiler.matters(b)):
                return False
        elif jaxprs.takes_refs(equation) and not isinstance(compiler.read(equation), _ACCESSES):
            return False
    return True


def _parallel_loop(compiler: Compiler, equation: Equation, loop: ops.ParallelLoop) -> Do:
    """Its turns may run in any order, which makes no difference where they only load and store."""
    code, outputs, line = compiler.open_code(loop.body), equation.outputs, equation.line
    only_accesses = _only_accesses(compiler, loop.body)
    ends, consts, carries = (
        places_of(equation, slots) for slots in (loop.ends, loop.consts, loop.carried)
    )

    def do(core: Core, env: Env) -> Pause:
        if not only_accesses:
            text = "A parallel loop that does more than load and store is not followed."
            raise UndecidedError(text, line)
        numbers = [n for n in [env[at] for at in ends] if isinstance(n, int)]
        if len(numbers) < len(ends):
            raise UndecidedError(_HOW_OFTEN, line)
        fixed, carried = [env[at] for at in consts], [env[at] for at in carries]
        for i in range(*numbers):
            core.turn(line)
            carried = yield from run(code, core, [*fixed, i, *carried])
        set_all(env, outputs, carried)

    return do


RULES: Rules = {
    ops.Call: _call,
    ops.Cond: _cond,
    ops.While: _while,
    ops.Scan: _scan,
    ops.ParallelLoop: _parallel_loop,
}
