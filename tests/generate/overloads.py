"""Writes the overloads of `safepallas._kernels.overloads`: ``python -m tests.generate.overloads``.

What stands between the marks of a section is replaced, the rest is kept; a test demands that the
file is what this module writes.

A checker matches handles against a kernel's last parameters only for a fixed number of refs before
them. That number is a union of callables in one overload, not an overload each: mypy and pyrefly
list every overload of a call that fits none, so each function has at most `MOST` of them. Of such
a union mypy, pyrefly and ty use only a lone callable to infer the parameters of a lambda. Where
lambdas are likely there are two overloads: one whose only callable takes `LAMBDA_REFS` refs, the
other numbers being protocols, and one for lambdas of the other numbers.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

REFS = 16  # inputs and outputs of a kernel, one by one; more as *refs
SPECS = 6  # requests of one scope; with more, none is checked: a Scratch is
OUTER = 4  # arguments of a with_scoped function besides the allocations
LAMBDA_REFS = 2  # an input and an output
MOST = 12  # overloads of a function

LETTERS = "ABCDEF"
OUTERS = "PQRU"
PALLAS_OPTIONS = "**options: Unpack[PallasCallOptions]"
KERNEL_OPTIONS = "mesh: CoreMesh, **options: Unpack[KernelOptions]"
RESULT = "Callable[..., Any]"
UNCHECKED = "Callable[..., None]"


def _function(name: str, parameters: str, result: str) -> str:
    return f"@overload\ndef {name}({parameters}) -> {result}: ..."


def _body(refs: int, allocations: Sequence[str]) -> str:
    """The type of a kernel that takes so many refs, and then these."""
    return f"Callable[[{', '.join([*['Any'] * refs, *allocations])}], None]"


def _kernel(allocations: str, *, fewest: int = 1) -> str:
    """The type of a kernel that takes these, one letter each or a name, after its refs."""
    names = [allocations] if allocations == "Group" else [*allocations]
    named = f"Kernel{len(names)}[{', '.join(names)}]"
    return named if fewest else f"{_body(0, names)} | {named}"


def _for_lambdas(allocation: str) -> Iterator[str]:
    """The two types of a kernel that takes this after any number of refs, of at least one."""
    yield f"InOutKernel[{allocation}]"
    yield f"OtherKernel[{allocation}]"


def _tuple(letters: str) -> str:
    """The type of requests for these."""
    return f"tuple[{', '.join(f'Spec[{x}] | MemoryRef' for x in letters)}]"


def protocols() -> Iterator[str]:
    for specs in range(1, SPECS + 1):
        letters = LETTERS[:specs]
        variables = ", ".join(f"{x}_co" for x in letters)
        lines = [f"class WithScoped{specs}(Protocol[{variables}]):"]
        for outer in range(OUTER + 1):
            before = ", ".join(OUTERS[:outer])
            body = ", ".join([*OUTERS[:outer], *(f"{x}_co" for x in letters)])
            method = f"def __call__(self, fn: Callable[[{body}], T], /) -> Callable[[{before}], T]"
            lines += ["    @overload", f"    {method}: ..."]
        yield "\n".join(lines)


def kernels() -> Iterator[str]:
    def alias(name: str, members: Iterable[str]) -> str:
        return f"{name}: TypeAlias = {' | '.join(members)}"

    others = [refs for refs in range(1, REFS + 1) if refs != LAMBDA_REFS]
    for refs in others:
        before = "".join(f"r{number}: Any, " for number in range(1, refs + 1))
        yield f"class KernelOf{refs}(Protocol[A_contra]):"
        yield f"    def __call__(self, {before}last: A_contra, /) -> None: ..."
    protocols = (f"KernelOf{refs}[A]" for refs in others)
    yield alias("InOutKernel", [_body(LAMBDA_REFS, "A"), *protocols])
    yield alias("OtherKernel", (_body(refs, "A") for refs in others))
    for specs in range(1, SPECS + 1):
        bodies = (_body(refs, LETTERS[:specs]) for refs in range(1, REFS + 1))
        yield alias(f"Kernel{specs}", bodies)


def pallas_call() -> Iterator[str]:
    def call(body: str, requests: str) -> str:
        parameters = f"kernel: {body}, out_shape: Any, *, scratch_shapes: {requests}"
        return _function("pallas_call", f"{parameters}, {PALLAS_OPTIONS}", RESULT)

    for body in _for_lambdas("Group"):
        yield call(body, "type[Group]")
    # Nothing fits this one. Of tuples that fit nothing mypy reports the first overload.
    yield call(UNCHECKED, "tuple[FitsTheKernelWhereTheRestIsRight, ...]")
    for body in _for_lambdas("A"):
        yield call(body, _tuple("A"))
    for specs in range(2, SPECS + 1):
        yield call(_kernel(LETTERS[:specs]), _tuple(LETTERS[:specs]))
    yield call(UNCHECKED, "ScratchThatFitsTheKernel = ()")


def kernel() -> Iterator[str]:
    def call(body: str, requests: str, options: str = KERNEL_OPTIONS) -> str:
        parameters = f"body: {body}, out_type: Any = (), *, scratch_types: {requests}"
        return _function("kernel", f"{parameters}, {options}", RESULT)

    yield call(_kernel("Group", fewest=0), "type[Group]")
    yield call(UNCHECKED, "tuple[FitsTheKernelWhereTheRestIsRight, ...]")
    for specs in range(1, SPECS + 1):
        yield call(_kernel(LETTERS[:specs], fewest=0), _tuple(LETTERS[:specs]))
    yield call(UNCHECKED, "ScratchThatFitsTheKernel = ()")
    # Several bodies: their scratch is typed where it is a class.
    options = KERNEL_OPTIONS.replace("CoreMesh", "Sequence[CoreMesh]")
    bodies = _kernel("Group", fewest=0)
    yield call(f"Sequence[{bodies}]", "type[Group]", options)
    yield call(f"Sequence[{UNCHECKED}]", "Container = ()", options)
    parameters = f"*, out_type: Any = (), scratch_types: Asked = ..., {KERNEL_OPTIONS}"
    decorator = _function("kernel", parameters, "KernelDecorator[Asked]")
    # An overload for the decorator without scratch would be one more line in mypy's notes.
    yield f"{decorator}  # pyright: ignore[reportInvalidTypeVarUse]"


def kernel_decorator() -> Iterator[str]:
    def call(requests: str, body: str) -> str:
        return textwrap.indent(
            _function("__call__", f"self: KernelDecorator[{requests}], body: {body}, /", RESULT),
            "    ",
        )

    yield "class KernelDecorator(Generic[Asked_co]):"
    yield call("type[Group]", _kernel("Group", fewest=0))
    for specs in range(1, SPECS + 1):
        yield call(_tuple(LETTERS[:specs]), _kernel(LETTERS[:specs], fewest=0))
    yield call("ScratchThatFitsTheKernel", UNCHECKED)
    yield "    def __call__(self, body: Any, /) -> Any: ..."


def pallas_call_async() -> Iterator[str]:
    options = "compiler_params: Any = None, interpret: Any = False"
    for body in _for_lambdas("Group"):
        # The class first: pyrefly takes it for what both kernels must fit.
        parameters = f"semaphores: type[Group], start: {body}, done: {body}, out_shape: Any, *"
        yield _function("pallas_call_async", f"{parameters}, {options}", "AsyncCall[Group]")
    # Nothing fits this one, which is what pyright reports: the last.
    never = "AScratchThatFitsBothKernels"
    parameters = f"semaphores: type[{never}], start: {UNCHECKED}, done: {UNCHECKED}, out_shape: Any"
    yield _function("pallas_call_async", f"{parameters}, *, {options}", f"AsyncCall[{never}]")


def _scopes(name: str, body: str, result: str, request: str) -> Iterator[str]:
    """The overloads by the number of requests, for a body of ``(letters)`` and such a result."""
    tail = "/, *, collective_axes: Any = ()"
    yield _function(
        name, f"{body.format('[Group]')}spec: type[Group], {tail}", result.format(1, "Group")
    )
    for specs in range(1, SPECS + 1):
        letters = ", ".join(LETTERS[:specs])
        requests = ", ".join(f"{x.lower()}: {request.format(x)}" for x in LETTERS[:specs])
        parameters = f"{body.format(f'[{letters}]')}{requests}, {tail}"
        yield _function(name, parameters, result.format(specs, letters))


def _of_many(name: str, body: str, result: str) -> str:
    """The overload for more requests than the table has."""
    requests = ", ".join(f"{x.lower()}: Request" for x in f"{LETTERS}G")
    parameters = f"{body}{requests}, /, *more: Request, collective_axes: Any = ()"
    return _function(name, parameters, result)


def run_scoped() -> Iterator[str]:
    yield from _scopes("run_scoped", "body: Callable[{}, T], ", "T", "Spec[{}] | MemoryRef")
    yield _of_many("run_scoped", "body: Callable[..., T], ", "T")


def with_scoped() -> Iterator[str]:
    yield from _scopes("with_scoped", "", "WithScoped{}[{}]", "Spec[{}]")
    yield _of_many("with_scoped", "", "Callable[[Callable[..., T]], Callable[..., T]]")


SECTIONS = {
    "protocols": protocols,
    "kernels": kernels,
    "kernel_decorator": kernel_decorator,
    "pallas_call": pallas_call,
    "kernel": kernel,
    "pallas_call_async": pallas_call_async,
    "run_scoped": run_scoped,
    "with_scoped": with_scoped,
}


def rewrite(text: str) -> str:
    """The text of the module with its generated sections as they should be."""
    for name, section in SECTIONS.items():
        begin, end = f"# generated: {name}\n", f"# end of {name}\n"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        overloads = textwrap.indent("\n".join(section()), "    ")
        replacement = f"{begin}if TYPE_CHECKING:\n{overloads}\n{end}"
        text = pattern.sub(lambda _, new=replacement: new, text)  # type: ignore[misc]
    return text


PATH = Path(__file__).parents[2] / "safepallas/_kernels/overloads.py"

if __name__ == "__main__":
    PATH.write_text(rewrite(PATH.read_text()))
