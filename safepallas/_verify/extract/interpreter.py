"""From a jaxpr to steps that run it for one core, on what is known.

A jaxpr is turned into a list of Python functions once, and run as often as there are cores, grid
steps and turns of a loop. Equations that neither touch a ref nor lead to something that is needed
are left out: so a matrix product costs nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from safepallas._jax import compat
from safepallas._jax import jaxprs as _jax
from safepallas._verify.extract import values
from safepallas._verify.extract.memory import Ref
from safepallas._verify.extract.values import UNKNOWN
from safepallas._verify.program import Line, UndecidedError

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core

Env: TypeAlias = list[Any]
Do: TypeAlias = "Callable[[Core, Env], None]"
# Makes the step of an equation: from the compiler and the equation.
Rule: TypeAlias = "Callable[[Compiler, Any], Do]"

# Operations that matter although they take no ref.
_CALLS = {"pallas_call", "mpmd_map", "core_map", "run_scoped", "barrier"}


@dataclasses.dataclass(slots=True)
class Code:
    """A jaxpr, ready to run."""

    template: Env  # the constants, and room for all else
    takes: list[int]
    gives: list[int]
    steps: list[Do]


def run(code: Code, core: Core, operands: Sequence[Any]) -> list[Any]:
    """Run it for a core. Constants of an open jaxpr come before its arguments."""
    env = code.template[:]
    for at, value in zip(code.takes, operands, strict=True):
        env[at] = value
    for step in code.steps:
        step(core, env)
    return [env[at] for at in code.gives]


def line_of(equation: Any) -> Line:
    return Line(*_jax.line_of(equation))


class Compiler:
    """Turns jaxprs into code, each once. It knows operations by the rules that it is given."""

    def __init__(self, rules: dict[str, Rule]) -> None:
        self._rules = rules
        self._done: dict[int, Code] = {}
        self._matter: dict[int, bool] = {}
        self._copy: dict[int, bool] = {}
        self._keep: list[Any] = []  # numbers of objects are only theirs while they live
        self._shared: dict[Any, dict[Any, Any]] = {}
        self._around: list[Equation] = []  # what is being compiled, the innermost last

    def matters(self, jaxpr: Any) -> bool:
        """Whether a jaxpr does anything but compute."""
        jaxpr = _jax.open_jaxpr(jaxpr)[0]
        if id(jaxpr) not in self._matter:
            self._keep.append(jaxpr)
            self._matter[id(jaxpr)] = any(self._acts(e) for e in jaxpr.eqns)
        return self._matter[id(jaxpr)]

    def _acts(self, equation: Any) -> bool:
        if equation.primitive.name in _CALLS:
            return True
        if compat.ref_types_of(equation):
            # A loop or a call that gets a ref and does nothing with it does not count.
            bodies = inside(equation)
            return not bodies or any(self.matters(j) for j in bodies)
        return any(self.matters(j) for j in inside(equation))

    def _copies(self, jaxpr: Any) -> bool:
        """Whether a copy is started in a jaxpr."""
        jaxpr = _jax.open_jaxpr(jaxpr)[0]
        if id(jaxpr) not in self._copy:
            self._keep.append(jaxpr)
            self._copy[id(jaxpr)] = any(
                e.primitive.name == "dma_start" or any(self._copies(j) for j in inside(e))
                for e in jaxpr.eqns
            )
        return self._copy[id(jaxpr)]

    def quiet(self, jaxpr: Any) -> list[bool]:
        """By argument: whether it certainly meets no copy in there, under no other name either."""
        loud: set[Any] = set()
        for e in jaxpr.eqns:
            # JAX gives no ref back from a loop or a call: it forwards it (0.10.2 to 0.12.0.1).
            hands_on = any(compat.is_ref_type(v.aval) for v in e.outvars)
            copies = e.primitive.name == "dma_start" or any(self._copies(j) for j in inside(e))
            if hands_on or copies:
                loud.update(v for v in e.invars if not compat.is_literal(v))
        return [v not in loud for v in jaxpr.invars]

    def code(self, jaxpr: Any) -> Code:
        """The code of a jaxpr. The constants of one that is closed are in it."""
        inner, consts = _jax.open_jaxpr(jaxpr)
        if not inner.constvars:
            consts = ()
        # With its constants or without: one of JAX's classes holds both.
        key = id(jaxpr)
        if key not in self._done:
            self._keep.append(jaxpr)
            self._done[key] = self._compile(inner, consts)
        return self._done[key]

    def open_code(self, jaxpr: Any) -> Code:
        """The code of a jaxpr whose constants are operands."""
        inner = _jax.open_jaxpr(jaxpr)[0]
        key = -id(inner)
        if key not in self._done:
            self._keep.append(inner)
            self._done[key] = self._compile(inner, ())
        return self._done[key]

    def _compile(self, jaxpr: Any, consts: Sequence[Any]) -> Code:
        places: dict[Any, int] = {}
        template: Env = []

        def place(atom: Any) -> int:
            if compat.is_literal(atom):
                template.append(values.known(atom.val))
                return len(template) - 1
            if atom not in places:
                places[atom] = len(template)
                template.append(UNKNOWN)
            return places[atom]

        takes = [place(v) for v in (*jaxpr.constvars, *jaxpr.invars)]
        for at, value in zip(takes, consts, strict=False):
            template[at] = values.known(value, 1 << 20)
        if consts:
            takes = takes[len(consts) :]
        live = self._live(jaxpr)
        steps = []
        for equation in live:
            inputs = [place(v) for v in equation.invars]
            outputs = [place(v) for v in equation.outvars]
            around = self._around[-1] if self._around else None
            self._around.append(Equation(equation, inputs, outputs, self._shared, around))
            steps.append(self._step(self._around[-1]))
            self._around.pop()
        return Code(template, takes, [place(v) for v in jaxpr.outvars], steps)

    def _live(self, jaxpr: Any) -> list[Any]:
        needed = {v for v in jaxpr.outvars if not compat.is_literal(v)}
        live = []
        for equation in reversed(jaxpr.eqns):
            if self._acts(equation) or any(v in needed for v in equation.outvars):
                live.append(equation)
                unused = self._unused(equation)
                needed.update(
                    v
                    for i, v in enumerate(equation.invars)
                    if not compat.is_literal(v) and i not in unused
                )
        return live[::-1]

    def _unused(self, equation: Any) -> set[int]:
        """Operands whose value is never looked at: data stored to where nothing is kept."""
        if equation.primitive.name in ("swap", "addupdate"):
            aval = equation.invars[0].aval
            return set() if values.is_whole(aval.dtype) else {1}
        return set()

    def _step(self, equation: Equation) -> Do:
        name = equation.name
        if name in self._rules:
            return self._rules[name](self, equation)
        reaches = bool(compat.ref_types_of(equation.jax))
        if reaches or any(self.matters(j) for j in inside(equation.jax)):
            return refuse(f"sp.verify does not know the operation {name} yet.", equation.line)
        return compute(equation)


@dataclasses.dataclass(slots=True)
class Equation:
    """An equation, and where its operands and results are."""

    jax: Any
    inputs: list[int]
    outputs: list[int]
    shared: dict[Any, dict[Any, Any]]  # what is worked out once for all equations
    around: Equation | None = None  # that of the loop, the branch or the call that it stands in

    @property
    def name(self) -> str:
        return str(self.jax.primitive.name)

    @property
    def params(self) -> Any:
        return self.jax.params

    @property
    def line(self) -> Line:
        """The user's. What JAX's own functions put into a branch has none: that of the branch."""
        line = line_of(self.jax)
        return line if line.number or self.around is None else self.around.line


def inside(equation: Any) -> list[Any]:
    """The jaxprs among an equation's parameters."""
    return [*compat.jaxprs_in(equation.params)]


def refuse(text: str, line: Line) -> Do:
    """A step for what is not followed."""

    def do(core: Core, env: Env) -> None:
        raise UndecidedError(text, line)

    return do


def compute(equation: Equation) -> Do:
    """A step that computes numbers from numbers."""
    inputs, outputs = equation.inputs, equation.outputs
    if not any(values.is_worth_knowing(v.aval) for v in equation.jax.outvars):
        return lambda core, env: None  # its results are unknown in the template
    slow = values.slow_rule(equation.jax)
    fast = values.fast_rule(equation.jax)

    def by_jax(core: Core, env: Env) -> None:
        operands = [env[i] for i in inputs]
        if any(x is UNKNOWN or isinstance(x, Ref) for x in operands):
            results: Sequence[Any] = [UNKNOWN] * len(outputs)
        else:
            results = slow(operands)
        for at, result in zip(outputs, results, strict=True):
            env[at] = result

    if fast is None:
        return by_jax
    rule, (out,) = fast, outputs
    if equation.name == "select_n":
        which = inputs[0]

        def select(core: Core, env: Env) -> None:
            # What is not selected need not be known.
            chosen = env[which]
            env[out] = UNKNOWN if chosen is UNKNOWN else env[inputs[1 + int(chosen)]]

        return select
    if len(inputs) == 1:
        (one,) = inputs

        def unary(core: Core, env: Env) -> None:
            a = env[one]
            env[out] = UNKNOWN if a is UNKNOWN else rule(a)

        return unary
    if len(inputs) == 2:
        left, right = inputs

        def binary(core: Core, env: Env) -> None:
            a, b = env[left], env[right]
            if a is UNKNOWN or b is UNKNOWN:
                env[out] = UNKNOWN
                return
            result = rule(a, b)
            if result is None:
                (result,) = slow([a, b])
            env[out] = result

        return binary

    def several(core: Core, env: Env) -> None:
        operands = [env[i] for i in inputs]
        env[out] = UNKNOWN if any(x is UNKNOWN for x in operands) else rule(*operands)

    return several
