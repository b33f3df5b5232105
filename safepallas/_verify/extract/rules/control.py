"""Control: calls, branches and loops, run as far as what decides them is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from safepallas._jax import jaxprs
from safepallas._verify.extract import values as _values
from safepallas._verify.extract.interpreter import Compiler, Do, Env, Equation, Rule, compute, run
from safepallas._verify.extract.values import UNKNOWN
from safepallas._verify.program import UndecidedError

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core

# A loop that only computes is not followed for longer than this where it needs unknown data.
_LONG = 1000
# From so many equations on, compiling a function pays.
_MANY = 8


def _set(env: Env, places: list[int], results: list[Any]) -> None:
    for at, result in zip(places, results, strict=True):
        env[at] = result


def _call(key: str) -> Rule:
    def rule(compiler: Compiler, equation: Equation) -> Do:
        code = compiler.code(equation.params[key])
        inputs, outputs = equation.inputs, equation.outputs

        def do(core: Core, env: Env) -> None:
            _set(env, outputs, run(code, core, [env[i] for i in inputs]))

        return do

    return rule


def _jit(compiler: Compiler, equation: Equation) -> Do:
    """A call; a long computation on arrays goes to JAX as a whole, which compiles it once."""
    inline = _call("jaxpr")(compiler, equation)
    body = equation.params["jaxpr"]
    are_scalars = not any(getattr(v.aval, "shape", ()) for v in equation.jax.invars)
    if are_scalars or compiler.matters(body) or len(jaxprs.open_jaxpr(body)[0].eqns) < _MANY:
        return inline
    return _at_once(equation, inline)


def _cond(compiler: Compiler, equation: Equation) -> Do:
    branches = equation.params["branches"]
    codes = [compiler.code(b) for b in branches]
    only_computes = not any(compiler.matters(b) for b in branches)
    (which, *inputs), outputs, line = equation.inputs, equation.outputs, equation.line

    def do(core: Core, env: Env) -> None:
        chosen = env[which]
        if chosen is UNKNOWN:
            if not only_computes:
                raise UndecidedError(
                    "Which branch is taken depends on data that is not known before it runs.", line
                )
            _set(env, outputs, [UNKNOWN] * len(outputs))
            return
        code = codes[min(max(int(chosen), 0), len(codes) - 1)]
        _set(env, outputs, run(code, core, [env[i] for i in inputs]))

    return do


def _while(compiler: Compiler, equation: Equation) -> Do:
    params = equation.params
    test, body = compiler.code(params["cond_jaxpr"]), compiler.code(params["body_jaxpr"])
    only_computes = not any(compiler.matters(params[k]) for k in ("cond_jaxpr", "body_jaxpr"))
    a, b = params["cond_nconsts"], params["body_nconsts"]
    inputs, outputs, line = equation.inputs, equation.outputs, equation.line

    def do(core: Core, env: Env) -> None:
        operands = [env[i] for i in inputs]
        for_test, for_body, carried = operands[:a], operands[a : a + b], operands[a + b :]
        while True:
            (goes_on,) = run(test, core, [*for_test, *carried])
            if goes_on is UNKNOWN:
                if not only_computes:
                    raise UndecidedError(
                        "How often a loop runs depends on data that is not known before it runs.",
                        line,
                    )
                carried = [UNKNOWN] * len(outputs)
            if goes_on is UNKNOWN or not goes_on:
                break
            core.turn(line)
            carried = run(body, core, [*for_body, *carried])
        _set(env, outputs, carried)

    return do if not only_computes else _at_once(equation, do)


def _scan(compiler: Compiler, equation: Equation) -> Do:
    params = equation.params
    body = compiler.code(params["jaxpr"])
    only_computes = not compiler.matters(params["jaxpr"])
    consts, carry = jaxprs.scan_counts(equation.jax)
    length, is_reverse = params["length"], params["reverse"]
    inputs, outputs, line = equation.inputs, equation.outputs, equation.line

    def do(core: Core, env: Env) -> None:
        operands = [env[i] for i in inputs]
        fixed, carried, over = (
            operands[:consts],
            operands[consts : consts + carry],
            operands[consts + carry :],
        )
        given: list[list[Any]] = [[] for _ in outputs[carry:]]
        turns = range(length - 1, -1, -1) if is_reverse else range(length)
        for turn in turns:
            core.turn(line)
            item = [UNKNOWN if x is UNKNOWN else _values.known(x[turn]) for x in over]
            results = run(body, core, [*fixed, *carried, *item])
            carried = results[:carry]
            for values, value in zip(given, results[carry:], strict=True):
                values.append(value)
        stacked = [_stack(values[::-1] if is_reverse else values) for values in given]
        _set(env, outputs, [*carried, *stacked])

    if not only_computes:
        return do
    return _at_once(equation, do if length <= _LONG else None)


def _stack(values: list[Any]) -> Any:
    if not values or any(v is UNKNOWN for v in values):
        return UNKNOWN
    return _values.known(np.stack([np.asarray(v) for v in values]))


def _at_once(equation: Equation, otherwise: Do | None) -> Do:
    """What only computes: by JAX as a whole, where all that it needs is known."""
    whole = compute(equation)
    inputs = equation.inputs

    def do(core: Core, env: Env) -> None:
        if otherwise is None or not any(env[i] is UNKNOWN for i in inputs):
            whole(core, env)
        else:
            otherwise(core, env)

    return do


RULES: dict[str, Rule] = {
    "jit": _jit,
    "pjit": _jit,
    "closed_call": _call("call_jaxpr"),
    "core_call": _call("call_jaxpr"),
    "custom_jvp_call": _call("call_jaxpr"),
    "custom_vjp_call": _call("call_jaxpr"),
    "custom_vjp_call_jaxpr": _call("fun_jaxpr"),
    "checkpoint": _call("jaxpr"),
    "remat": _call("jaxpr"),
    "remat2": _call("jaxpr"),
    "cond": _cond,
    "while": _while,
    "scan": _scan,
}
