"""No Any in the accepted kernels but JAX's own: mypy's ``disallow_any_expr``, each report judged.

mypy names each expression whose type holds an Any. Here it is followed to where it was made: to a
call or attribute of JAX, NumPy or functools, to a name that the file itself declares as Any, or to
what `pallas_call` and `kernel` return (a ``Callable[..., Any]``, as in Pallas). An Any out of
anything else of safepallas fails the test.
"""

import ast
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from .checkers import CHECK_SECONDS, HERE, MYPY, Errors, files, require, run, search_path

# Modules that are only partly annotated, or generic in ways that mypy counts as Any.
OUTSIDE = {"dataclasses", "functools", "jax", "numpy"}
# Of safepallas; and Ref.dtype: see GIVEN_AS_PALLAS_DOES in test_any_leaks.py.
CALLS_MADE = {"kernel", "pallas_call"}
OVERLOADED = {*CALLS_MADE, "pallas_call_async"}
SCOPES = (ast.Module, ast.FunctionDef, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp)


class Report(NamedTuple):
    line: int
    column: int
    end: tuple[int, int]
    message: str


class File:
    """A program, and where the names and expressions in it come from."""

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self.parents = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }
        self.bound: dict[ast.AST, dict[str, list[ast.AST]]] = {}
        for node in ast.walk(self.tree):
            for name, origin in _bindings(node):
                inner = node if isinstance(node, ast.comprehension | ast.arguments) else None
                scope = self.parents[node] if inner else self.scope(self.parents[node])
                self.bound.setdefault(scope, {}).setdefault(name, []).append(origin)

    def scope(self, node: ast.AST) -> ast.AST:
        while not isinstance(node, SCOPES):
            node = self.parents[node]
        return node

    def origins(self, name: ast.Name) -> list[ast.AST]:
        node: ast.AST = name
        while True:
            scope = self.scope(node)
            found = self.bound.get(scope, {}).get(name.id)
            if found or isinstance(scope, ast.Module):
                return found or []
            node = self.parents[scope]

    def not_ours(self, node: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> bool:
        """Whether an Any in the type of this can come from elsewhere than safepallas."""
        if node in seen:  # a name that is bound to itself, in a loop
            return True
        seen |= {node}

        def one_of(nodes: Iterator[ast.AST]) -> bool:
            return any(self.not_ours(each, seen) for each in nodes)

        match node:
            case ast.Name():
                origins = self.origins(node)
                return bool(origins) and all(self.not_ours(each, seen) for each in origins)
            case ast.alias():
                module = self.parents[node]
                name = module.module if isinstance(module, ast.ImportFrom) else node.name
                return (name or "").partition(".")[0] in OUTSIDE
            case ast.arg():
                of_lambda = isinstance(self.parents[self.parents[node]], ast.Lambda)
                return of_lambda or declares_any(node.annotation)
            case ast.Lambda():
                # mypy looks into it before it knows what it takes, and reports that as Any. What
                # run_scoped and pallas_call hand to it, tests/typing/reveal/ asserts.
                return True
            case ast.AnnAssign():
                return declares_any(node.annotation)
            case ast.FunctionDef():
                return declares_any(node.args, node.returns) or one_of(iter(node.decorator_list))
            case ast.Attribute(value=ast.Name("sp"), attr=name):
                return name in CALLS_MADE
            case ast.Attribute(attr="dtype"):  # np.dtype[Any] of an array, Any of a ref
                return True
            case ast.Attribute() | ast.Subscript() | ast.Starred():
                return self.not_ours(node.value, seen)
            case ast.Call(func=ast.Name("enumerate" | "list" | "zip")):
                return one_of(iter(node.args))
            case ast.Call():
                return self.not_ours(node.func, seen)
            case ast.List() | ast.Dict() if self.is_given_away(node):
                return True
            case ast.Tuple() | ast.List() | ast.Dict() | ast.BinOp() | ast.Compare() | ast.IfExp():
                return one_of(e for e in ast.iter_child_nodes(node) if isinstance(e, ast.expr))
        return False

    def is_given_away(self, literal: ast.expr) -> bool:
        """Whether it is an argument to a function from elsewhere, which says what its items are."""
        call = self.parents[literal]
        call = self.parents[call] if isinstance(call, ast.keyword) else call
        return isinstance(call, ast.Call) and self.not_ours(call.func)

    def refused(self, report: Report) -> bool:
        """Whether a report is about an Any of safepallas, or about something else altogether."""
        starting = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.expr | ast.stmt)
            and (node.lineno, node.col_offset) == (report.line, report.column)
        ]
        if not report.message.startswith(("Expression has type", "Expression type contains")):
            return not self.refused_overload(report)
        if '"list[Callable[..., None]]"' in report.message:  # what mypy joins kernels to
            return False
        exact = [n for n in starting if (n.end_lineno, n.end_col_offset) == report.end]
        for node in exact or starting:
            match node:
                case ast.For():
                    return not self.not_ours(node.iter)
                case ast.expr() if isinstance(self.parents[node], ast.Dict):
                    return not self.not_ours(self.parents[node] if not exact else node)
                case ast.expr():
                    return not self.not_ours(node)
        return True

    def refused_overload(self, report: Report) -> bool:
        """mypy lets no overload fit where an argument holds an Any; the rest is a true error."""
        calls = [
            call
            for call in ast.walk(self.tree)
            if isinstance(call, ast.Call)
            and ast.unparse(call.func) in {f"sp.{name}" for name in OVERLOADED}
        ]
        # At the call itself, or where its result, which mypy knows nothing of then, is used.
        named = [
            origin
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Name)
            and (node.lineno, node.col_offset) == (report.line, report.column)
            for origin in self.origins(node)
        ]
        around = [
            call
            for call in calls
            if call in named
            or (
                (call.lineno, call.col_offset) <= (report.line, report.column)
                and report.end <= (call.end_lineno or 0, call.end_col_offset or 0)
            )
        ]
        given = [e for call in around for e in [*call.args, *(k.value for k in call.keywords)]]
        return any(
            isinstance(node, ast.expr) and self.not_ours(node)
            for argument in given
            for node in ast.walk(argument)
        )


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The names that a node binds, each to what it is bound to."""
    pairs: list[tuple[ast.expr | None, ast.AST]] = []
    match node:
        case ast.Assign():
            pairs = [(target, node.value) for target in node.targets]
        case ast.AnnAssign():
            pairs = [(node.target, node)]
        case ast.For() | ast.comprehension():
            pairs = [(node.target, node.iter)]
        case ast.With():
            pairs = [(item.optional_vars, item.context_expr) for item in node.items]
        case ast.FunctionDef() | ast.ClassDef():
            yield node.name, node
        case ast.alias():
            yield (node.asname or node.name).partition(".")[0], node
        case ast.arguments():
            given = [*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg]
            yield from ((each.arg, each) for each in given if each is not None)
    for target, origin in pairs:
        for part in ast.walk(target) if target else ():
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id, origin


def declares_any(*nodes: ast.AST | None) -> bool:
    inside = [part for node in nodes if node for part in ast.walk(node)]
    return any(isinstance(part, ast.Name) and part.id == "Any" for part in inside)


def check(work: Path, cache: Path) -> dict[str, list[Report]]:
    """What mypy says of the files in ``work/programs``."""
    (work / "mypy.ini").write_text(MYPY + "\n[mypy-programs.*]\ndisallow_any_expr = True\n")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "programs"]
    command += ["--cache-dir", str(cache), "--python-executable", sys.executable]
    done = run(
        [*command, "--output", "json"], CHECK_SECONDS, directory=work, MYPYPATH=search_path()
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: dict[str, list[Report]] = {}
    for error in map(json.loads, done.stdout.splitlines()):
        assert error["file"].startswith("programs/"), error
        end = (error["end_line"], error["end_column"])
        report = Report(error["line"], error["column"], end, error["message"])
        found.setdefault(Path(error["file"]).name, []).append(report)
    return found


def test_accepted_kernels_hold_no_any_of_safepallas(
    tmp_path: Path, caches: Path, reports: dict[str, Errors]
) -> None:
    require("mypy")
    assert "mypy" in reports  # and so the cache holds what JAX is
    (tmp_path / "programs").mkdir()
    for path in files("accept"):
        shutil.copy(path, tmp_path / "programs")
    found = check(tmp_path, caches / "mypy")
    assert len(found) > 25  # each calls its kernel, and the result of that is Any
    wrong = []
    for name, judged in found.items():
        file = File((HERE / "accept" / name).read_text())
        wrong += [f"{name}:{r.line}:{r.column}: {r.message}" for r in judged if file.refused(r)]
    assert not wrong, "\n" + "\n".join(wrong)


PROGRAM = """
from typing import Any
import functools
import jax
import jax.numpy as jnp
import safepallas as sp

class Buffers(sp.Scratch):
    done = sp.semaphore()
    sems = sp.dma_semaphore(2)

def body(x: sp.Ref, o: sp.Ref, s: Buffers, raw: Any) -> None:
    copy = sp.async_copy(x, o, s.sems.at[0])
    for sem in s.sems:
        sp.wait_bytes(sem, o)
    shape = x.shape
    made = jnp.zeros(shape, x.dtype)
    again = made + raw
    call = sp.pallas_call(body, jax.ShapeDtypeStruct(shape, made.dtype), scratch_shapes=Buffers)
    later = functools.partial(sp.run_scoped, body)
    result = call(made)
    total, _ = sp.run_scoped(lambda t: t, Buffers), sp.read(s.done)
    jax.tree.map(lambda spare: spare, [shape])
    print([shape])
"""
OURS = [
    "s.sems",
    "s.sems.at",
    "s.sems.at[0]",
    "sp.async_copy(x, o, s.sems.at[0])",
    "sp.async_copy",
    "sem",
    "s.done",
    "sp.read(s.done)",
    "x",
    "x.shape",
    "shape",
    "Buffers",
    "sp.semaphore()",
    "sp.dma_semaphore(2)",
    "sp.run_scoped(lambda t: t, Buffers)",
    "sp.run_scoped",
]
NOT_OURS = [
    "x.dtype",
    "made",
    "made + raw",
    "raw",
    "call",
    "call(made)",
    "jnp.zeros(shape, x.dtype)",
    "functools.partial(sp.run_scoped, body)",
    "spare",
    "lambda spare: spare",
]


ANY = 'Expression has type "Any"'


def report_on(code: str, message: str) -> Report:
    """A report on the first expression of `PROGRAM` that reads so."""
    nodes = (node for node in ast.walk(ast.parse(PROGRAM)) if isinstance(node, ast.expr))
    node = next(node for node in nodes if ast.unparse(node) == code)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    end = (node.end_lineno, node.end_col_offset)
    return Report(node.lineno, node.col_offset, end, message)


@pytest.mark.parametrize("code", OURS)
def test_an_any_of_safepallas_is_refused(code: str) -> None:
    assert File(PROGRAM).refused(report_on(code, ANY))


def test_a_list_is_what_the_function_takes_that_it_is_given_to() -> None:
    given, printed = (
        Report(node.lineno, node.col_offset, (node.end_lineno or 0, node.end_col_offset or 0), ANY)
        for node in ast.walk(ast.parse(PROGRAM))
        if isinstance(node, ast.List)
    )
    assert not File(PROGRAM).refused(given)
    assert File(PROGRAM).refused(printed)


@pytest.mark.parametrize("code", NOT_OURS)
def test_an_any_of_jax_is_not(code: str) -> None:
    assert not File(PROGRAM).refused(report_on(code, ANY))


def test_other_errors_are_refused() -> None:
    message = 'Argument 3 to "async_copy" has incompatible type "Semaphore"'
    assert File(PROGRAM).refused(report_on("s.sems.at[0]", message))
