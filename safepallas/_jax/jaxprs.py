"""Jaxprs, equations and variables: what holds for all operations, whatever the version of JAX.

JAX 0.10.2 (Python 3.11) to 0.12.0.1 (Python 3.13). What a certain operation means, `operations`
tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var

from safepallas._jax import compat

# Open or closed: 0.12 has one class for both, and 0.10.2 two.
AnyJaxpr: TypeAlias = object
Atom: TypeAlias = Var | Literal
Place: TypeAlias = tuple[str, int, str]  # file, number and function

NOWHERE: Place = ("<unknown>", 0, "")


def open_jaxpr(jaxpr: AnyJaxpr) -> tuple[Jaxpr, Sequence[object]]:
    """A jaxpr, and the values of its constants where it holds them."""
    inner: Any = getattr(jaxpr, "jaxpr", jaxpr)
    return inner, tuple(getattr(jaxpr, "consts", ()))


def inner_jaxprs(equation: JaxprEqn) -> list[AnyJaxpr]:
    """The jaxprs among the parameters of an equation: bodies of loops, branches, scopes, calls."""
    return [*compat.jaxprs_in(equation.params)]


def all_equations(
    jaxpr: AnyJaxpr, is_entered: Callable[[JaxprEqn], bool] = lambda equation: True
) -> Iterator[JaxprEqn]:
    """The equations of a jaxpr in order, each followed by those inside it, if it is entered."""
    for equation in open_jaxpr(jaxpr)[0].eqns:
        yield equation
        if is_entered(equation):
            for inner in inner_jaxprs(equation):
                yield from all_equations(inner, is_entered)


# Variables


def shape_of(atom: Atom) -> tuple[int, ...]:
    return tuple(getattr(atom.aval, "shape", ()))


def dtype_of(atom: Atom) -> object:
    return getattr(atom.aval, "dtype", None)


def is_ref(atom: Atom) -> bool:
    return compat.is_ref_type(atom.aval)


def takes_refs(equation: JaxprEqn) -> bool:
    return any(is_ref(atom) for atom in equation.invars)


def gives_refs(equation: JaxprEqn) -> bool:
    return any(is_ref(var) for var in equation.outvars)


# Where something is in the user's source


def line_of(equation: JaxprEqn) -> Place:
    """The user's line of an equation, not of JAX nor of safepallas."""
    return compat.user_line_of(equation) or NOWHERE


def argument_names(jaxpr: Jaxpr) -> list[str]:
    """What the user calls the arguments of a body: ``""`` where that is not known."""
    count = len(jaxpr.invars)
    info = getattr(jaxpr, "debug_info", None)
    names = [str(n or "") for n in getattr(info, "arg_names", None) or ()]
    return (names + [""] * count)[:count]


def definition_of(jaxpr: Jaxpr) -> Place:
    """Where the body of a kernel is defined."""
    info = str(getattr(getattr(jaxpr, "debug_info", None), "func_src_info", None) or "")
    name, _, place = info.partition(" at ")
    file, _, number = place.rpartition(":")
    return (file, int(number), name) if file and number.isdigit() else (*NOWHERE[:2], name)


def function_of(jaxpr: Jaxpr) -> str:
    """The name of the function that a jaxpr was traced from."""
    info = getattr(jaxpr, "debug_info", None)
    return str(getattr(info, "func_src_info", None) or "kernel").partition(" at ")[0]
