"""From a jaxpr to steps that run it for one core, on what is known.

A jaxpr is turned into a list of Python functions once, and run as often as there are cores, grid
steps and turns of a loop. Equations that neither access a ref nor lead to something that is needed
are left out: so a matrix product costs nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from jax.extend.core import Jaxpr, JaxprEqn, Literal

from safepallas._jax import arithmetic, jaxprs, reader
from safepallas._jax import kernel_calls as calls
from safepallas._jax import operations as ops
from safepallas._jax.jaxprs import AnyJaxpr, Atom
from safepallas._jax.reader import Operation
from safepallas._jax.views import Number, Slot
from safepallas._verify.extract import values
from safepallas._verify.extract.boxes import Box
from safepallas._verify.extract.lockstep import Pause
from safepallas._verify.extract.memory import Ref, Value
from safepallas._verify.extract.values import UNKNOWN, Unknown
from safepallas._verify.program import Line, UndecidedError

if TYPE_CHECKING:
    from safepallas._verify.extract.core import Core

Env: TypeAlias = list[Value]
# A step. Most do all that they do when called; one that may have to wait for another core, or that
# runs steps which may, returns what is still to be done.
Do: TypeAlias = "Callable[[Core, Env], Pause | None]"
# Makes the step of an equation: from the compiler, the equation, and its operation.
Rule: TypeAlias = "Callable[..., Do]"
Rules: TypeAlias = Mapping[type, Rule]

# Operations that matter although they take no ref.
_ACTING = (calls.KernelCall, calls.CoreCall, ops.RunScoped, ops.SubcoreBarrier)


@dataclasses.dataclass(slots=True)
class Code:
    """A jaxpr, ready to run."""

    template: Env  # the constants, and room for all else
    arguments: list[int]  # their places there
    results: list[int]
    steps: list[Do]


def run(code: Code, core: Core, operands: Sequence[Value]) -> Generator[None, None, list[Value]]:
    """Run it for a core; it yields where the core waits for another.

    Constants of an open jaxpr come before its arguments.
    """
    env = code.template[:]
    for at, value in zip(code.arguments, operands, strict=True):
        env[at] = value
    for step in code.steps:
        pause = step(core, env)
        if pause is not None:
            yield from pause
    return [env[at] for at in code.results]


def run_inside(
    code: Code,
    core: Core,
    env: Env,
    inputs: Sequence[int],
    operands: Sequence[Value],
    twice: set[int],
) -> Generator[None, None, list[Value]]:
    """Run it, and tell those outside which memory its operands have come to be in.

    `twice` are the places of arrays that it gets more than once: in there they are one, too.
    """
    inner = code.template[:]
    marks: dict[int, Unknown] = {}
    for at, outside, value in zip(code.arguments, inputs, operands, strict=True):
        is_marked = outside in twice and value is UNKNOWN
        inner[at] = marks.setdefault(outside, Unknown()) if is_marked else value
    for step in code.steps:
        pause = step(core, inner)
        if pause is not None:
            yield from pause
    for at, outside in zip(code.arguments, inputs, strict=True):
        if isinstance(inner[at], Ref):
            env[outside] = inner[at]
    return [inner[at] for at in code.results]


def given_twice(equation: Equation) -> set[int]:
    """The places of arrays that an equation gets more than once."""
    atoms = zip(equation.jax.invars, equation.inputs, strict=True)
    return {at for atom, at in atoms if equation.inputs.count(at) > 1 and jaxprs.shape_of(atom)}


def run_alone(code: Code, core: Core, operands: Sequence[Value]) -> list[Value]:
    """Run what waits for no other core: all of a program, or what only computes."""
    running = run(code, core, operands)
    try:
        next(running)
    except StopIteration as end:
        results: list[Value] = end.value
        return results
    raise RuntimeError("a core that is followed alone waits for another")


def line_of(equation: JaxprEqn) -> Line:
    return Line(*jaxprs.line_of(equation))


@dataclasses.dataclass(slots=True)
class Answers:
    """What is worked out once for all equations that ask alike."""

    boxes: dict[Hashable, dict[tuple[int, ...], Box]] = dataclasses.field(default_factory=dict)
    targets: dict[Hashable, dict[Hashable, int]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True)
class Equation:
    """An equation, and where its operands and results are."""

    jax: JaxprEqn
    inputs: list[int]
    outputs: list[int]
    answers: Answers
    around: Equation | None  # the one whose body it is in

    @property
    def line(self) -> Line:
        """The user's. What JAX's own functions put into a branch has none: that of the branch."""
        line = line_of(self.jax)
        return line if line.number or self.around is None else self.around.line

    def literal(self, part: Number) -> Value | None:
        """A number of a view, where it is written in the equation."""
        if isinstance(part, int):
            return part
        atom = self.jax.invars[part.at]
        return values.known(atom.val) if isinstance(atom, Literal) else None


class Compiler:
    """Turns jaxprs into code, each once. It knows operations by the rules that it is given."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        # By `id`, which is an object's own only while it lives: `_keep` sees to that.
        self._code: dict[int, Code] = {}
        self._matters: dict[int, bool] = {}
        self._copies: dict[int, bool] = {}
        self._operations: dict[int, Operation] = {}
        self._keep: list[object] = []
        self._answers = Answers()
        self._around: list[Equation] = []  # what is being compiled, the innermost last

    def read(self, equation: JaxprEqn) -> Operation:
        found = self._operations.get(id(equation))
        if found is None:
            self._keep.append(equation)
            found = self._operations[id(equation)] = reader.read(equation)
        return found

    def matters(self, jaxpr: AnyJaxpr) -> bool:
        """Whether a jaxpr does anything but compute."""
        inner = jaxprs.open_jaxpr(jaxpr)[0]
        if id(inner) not in self._matters:
            self._keep.append(inner)
            self._matters[id(inner)] = any(self._acts(e) for e in inner.eqns)
        return self._matters[id(inner)]

    def _acts(self, equation: JaxprEqn) -> bool:
        if isinstance(self.read(equation), _ACTING):
            return True
        bodies = jaxprs.inner_jaxprs(equation)
        if jaxprs.takes_refs(equation):
            # A loop or a call that gets a ref and does nothing with it does not count.
            return not bodies or any(self.matters(j) for j in bodies)
        return any(self.matters(j) for j in bodies)

    def _starts_copies(self, equation: JaxprEqn) -> bool:
        """Whether it starts a copy, or something inside it does."""
        if isinstance(self.read(equation), ops.CopyStart):
            return True
        for jaxpr in jaxprs.inner_jaxprs(equation):
            inner = jaxprs.open_jaxpr(jaxpr)[0]
            if id(inner) not in self._copies:
                self._keep.append(inner)
                self._copies[id(inner)] = any(self._starts_copies(e) for e in inner.eqns)
            if self._copies[id(inner)]:
                return True
        return False

    def never_copied(self, jaxpr: Jaxpr) -> list[bool]:
        """By argument: whether it certainly is in no copy in there, under no other name either."""
        copied: set[Atom] = set()
        for e in jaxpr.eqns:
            # JAX gives no ref back from a loop or a call: it forwards it (0.10.2 to 0.12.0.1).
            if jaxprs.gives_refs(e) or self._starts_copies(e):
                copied.update(v for v in e.invars if not isinstance(v, Literal))
        return [v not in copied for v in jaxpr.invars]

    def code(self, jaxpr: AnyJaxpr) -> Code:
        """The code of a jaxpr. The constants of one that is closed are in it."""
        inner, consts = jaxprs.open_jaxpr(jaxpr)
        if not inner.constvars:
            consts = ()
        # With its constants or without: one of JAX's classes holds both.
        key = id(jaxpr)
        if key not in self._code:
            self._keep.append(jaxpr)
            self._code[key] = self._compile(inner, consts)
        return self._code[key]

    def open_code(self, jaxpr: AnyJaxpr) -> Code:
        """The code of a jaxpr whose constants are operands."""
        inner = jaxprs.open_jaxpr(jaxpr)[0]
        key = -id(inner)
        if key not in self._code:
            self._keep.append(inner)
            self._code[key] = self._compile(inner, ())
        return self._code[key]

    def _compile(self, jaxpr: Jaxpr, consts: Sequence[object]) -> Code:
        places: dict[Atom, int] = {}
        template: Env = []

        def place(atom: Atom) -> int:
            if isinstance(atom, Literal):
                template.append(values.known(atom.val))
                return len(template) - 1
            if atom not in places:
                places[atom] = len(template)
                template.append(UNKNOWN)
            return places[atom]

        arguments = [place(v) for v in (*jaxpr.constvars, *jaxpr.invars)]
        for at, value in zip(arguments, consts, strict=False):
            template[at] = values.known(value, values.MOST_OF_ARGUMENT)
        if consts:
            arguments = arguments[len(consts) :]
        steps = []
        for jax_equation in self._needed(jaxpr):
            equation = Equation(
                jax_equation,
                [place(v) for v in jax_equation.invars],
                [place(v) for v in jax_equation.outvars],
                self._answers,
                self._around[-1] if self._around else None,
            )
            self._around.append(equation)
            steps.append(self._step(equation))
            self._around.pop()
        return Code(template, arguments, [place(v) for v in jaxpr.outvars], steps)

    def _needed(self, jaxpr: Jaxpr) -> list[JaxprEqn]:
        """The equations that do something, or on whose results such a one depends."""
        variables: set[Atom] = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
        needed = []
        for equation in reversed(jaxpr.eqns):
            if self._acts(equation) or any(v in variables for v in equation.outvars):
                needed.append(equation)
                unread = self._unread(equation)
                variables.update(
                    v
                    for i, v in enumerate(equation.invars)
                    if not isinstance(v, Literal) and i != unread
                )
        return needed[::-1]

    def _unread(self, equation: JaxprEqn) -> int | None:
        """The operand whose value is never read: data stored to where nothing is kept."""
        operation = self.read(equation)
        if not isinstance(operation, (ops.RefAccess, ops.VectorAccess)):
            return None
        if operation.stored is None or arithmetic.is_integer(operation.dtype):
            return None
        return operation.stored.at

    def _step(self, equation: Equation) -> Do:
        operation = self.read(equation.jax)
        rule = self._rules.get(type(operation))
        if rule is not None:
            return rule(self, equation, operation)
        bodies = jaxprs.inner_jaxprs(equation.jax)
        if jaxprs.takes_refs(equation.jax) or any(self.matters(j) for j in bodies):
            name = getattr(operation, "name", type(operation).__name__)
            text = f"sp.verify does not know the operation {name} yet."
            return refuse(text, equation.line)
        return compute(equation)


def places_of(equation: Equation, slots: Sequence[Slot]) -> list[int]:
    return [equation.inputs[slot.at] for slot in slots]


def refuse(text: str, line: Line) -> Do:
    """A step for what is not followed."""

    def do(core: Core, env: Env) -> None:
        raise UndecidedError(text, line)

    return do


def set_all(env: Env, places: Sequence[int], results: Sequence[Value]) -> None:
    for at, result in zip(places, results, strict=True):
        env[at] = result


def compute(equation: Equation) -> Callable[[Core, Env], None]:
    """A step that computes numbers from numbers."""
    if not arithmetic.gives_numbers(equation.jax, values.MOST_ELEMENTS):
        return lambda core, env: None  # its results are unknown in the template
    of_scalars = arithmetic.scalar_rule(equation.jax)
    if of_scalars is None:
        return _compute_any(equation)
    if arithmetic.selects(equation.jax):
        return _select(equation)
    return _compute_scalars(equation, of_scalars)


def _compute_any(equation: Equation) -> Callable[[Core, Env], None]:
    inputs, outputs = equation.inputs, equation.outputs
    rule, move = values.rule_of(equation.jax), values.moves_of(equation.jax)

    def do(core: Core, env: Env) -> None:
        operands = []
        for i in inputs:
            operand = env[i]
            if move is not None and i == inputs[0] and isinstance(operand, values.Partial):
                rest = [env[other] for other in inputs[1:]]
                env[outputs[0]] = move(
                    operand, [UNKNOWN if isinstance(r, Ref) else r for r in rest]
                )
                return
            if isinstance(operand, (Unknown, Ref)):
                set_all(env, outputs, [UNKNOWN] * len(outputs))
                return
            operands.append(operand)
        set_all(env, outputs, rule(operands))

    return do


def _select(equation: Equation) -> Callable[[Core, Env], None]:
    (which, *cases), (out,) = equation.inputs, equation.outputs

    def select(core: Core, env: Env) -> None:
        # What is not selected need not be known.
        chosen = env[which]
        env[out] = env[cases[int(chosen)]] if isinstance(chosen, int) else UNKNOWN

    return select


def _compute_scalars(equation: Equation, rule: arithmetic.Rule) -> Callable[[Core, Env], None]:
    inputs, (out,) = equation.inputs, equation.outputs
    otherwise = _compute_any(equation)
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
                otherwise(core, env)
            else:
                env[out] = result

        return binary

    def several(core: Core, env: Env) -> None:
        operands = [env[i] for i in inputs]
        env[out] = UNKNOWN if any(x is UNKNOWN for x in operands) else rule(*operands)

    return several
