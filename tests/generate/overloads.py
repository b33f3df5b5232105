"""Writes the overloads of `safepallas/_kernels/overloads.py`: ``python -m tests.generate.overloads``.

A type checker can match handles against a kernel's last parameters only for a fixed number of
parameters. So there is an overload for each number of refs and specs; a test demands that the file
is what this module writes. What stands between the marks is replaced, the rest is kept.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

REFS = 8  # of a kernel: inputs and outputs
SPECS = 6  # of one scope; more want a Scratch
OUTER = 4  # arguments of a with_scoped function besides the allocations

OPTIONS = (
    "grid_spec: Any = None, grid: Any = (), in_specs: Any = ..., out_specs: Any = ..., "
    "input_output_aliases: Mapping[int, int] = ..., debug: bool = False, interpret: Any = False, "
    "name: str | None = None, compiler_params: Any = None, cost_estimate: Any = None, "
    "metadata: dict[str, str] | None = None"
)
KERNEL_OPTIONS = (
    "compiler_params: Any = None, interpret: Any = False, cost_estimate: Any = None, "
    "debug: bool = False, name: str | None = None, metadata: dict[str, str] | None = None"
)
LETTERS = "ABCDEF"
OUTERS = "PQRU"


def _function(name: str, parameters: str, result: str) -> str:
    return f"@overload\ndef {name}({parameters}) -> {result}: ..."


def _body(refs: int, allocations: Sequence[str]) -> str:
    """The type of a kernel that takes so many refs, and then these."""
    return f"Callable[[{', '.join([*['Any'] * refs, *allocations])}], None]"


def _tuple(letters: str) -> str:
    """The type of requests for these."""
    return f"tuple[{', '.join(f'Spec[{x}] | MemoryRef' for x in letters)}]"


def _boundary(
    name: str, kernel: str, out: str, scratch: str, options: str, *, fewest: int = 1
) -> Iterator[str]:
    """The overloads of a function that takes a kernel of at least `fewest` refs.

    It takes it as the argument `kernel`, and its scratch as the argument `scratch`.
    """

    def call(body: str, requests: str) -> str:
        parameters = f"{kernel}: {body}, {out}, *, {scratch}: {requests}, {options}"
        return _function(name, parameters, "Callable[..., Any]")

    # These three match no scratch. Of a call that fits nothing, mypy says what the first overload
    # wants that takes a tuple, or a class; pyrefly and ty show the first of all, pyright the last.
    untyped = "Callable[..., None]"
    yield call(untyped, "ATupleOrScratchThatFitsTheKernel")
    yield call(untyped, "tuple[ARequestThatFitsTheKernel, ...] = ()")
    yield call(untyped, "type[AScratchThatFitsTheKernel]")
    for refs in range(fewest, REFS + 1):
        yield call(_body(refs, ["Group"]), "type[Group]")
    for specs in range(1, SPECS + 1):
        letters = LETTERS[:specs]
        for refs in range(fewest, REFS + 1):
            yield call(_body(refs, letters), _tuple(letters))
    # What types cannot follow (dicts, lists, containers of specs) is checked while tracing.
    yield call(untyped, "Mapping[str, Requests] | list[Any]")
    for before in range(SPECS):
        first = "".join("Spec[Any] | MemoryRef, " for _ in range(before))
        yield call(untyped, f"tuple[{first}Container, *tuple[Requests, ...]]")
    yield call(untyped, "Spec[ATupleOrScratchThatFitsTheKernel]")


def pallas_call() -> Iterator[str]:
    yield from _boundary("pallas_call", "kernel", "out_shape: Any", "scratch_shapes", OPTIONS)


def kernel() -> Iterator[str]:
    def call(before: str, requests: str, mesh: str, result: str) -> str:
        parameters = f"{before}scratch_types: {requests}, mesh: {mesh}, {KERNEL_OPTIONS}"
        return _function("kernel", parameters, result)

    out = "out_type: Any = ()"
    options = f"mesh: CoreMesh, {KERNEL_OPTIONS}"
    *first, last = _boundary("kernel", "body", out, "scratch_types", options, fewest=0)
    yield from first
    # Several bodies: their scratch is typed where it is a class.
    meshes, result = "Sequence[CoreMesh]", "Callable[..., Any]"
    for refs in range(REFS + 1):
        bodies = f"body: Sequence[{_body(refs, ['Group'])}], {out}, *, "
        yield call(bodies, "type[Group]", meshes, result)
    bodies = f"body: Sequence[Callable[..., None]], {out}, *, "
    yield call(bodies, "Container = ()", meshes, result)
    # The form of a decorator.
    yield call(f"*, {out}, ", "type[Group]", "CoreMesh", "KernelWith1[Group]")
    for specs in range(1, SPECS + 1):
        letters = LETTERS[:specs]
        decorator = f"KernelWith{specs}[{', '.join(letters)}]"
        yield call(f"*, {out}, ", _tuple(letters), "CoreMesh", decorator)
    decorator = "Callable[[Callable[..., None]], Callable[..., Any]]"
    yield call(f"*, {out}, ", "Container = ()", "CoreMesh", decorator)
    yield last


def kernel_decorators() -> Iterator[str]:
    for specs in range(1, SPECS + 1):
        variables = [f"{x}_co" for x in LETTERS[:specs]]
        lines = [f"class KernelWith{specs}(Protocol[{', '.join(variables)}]):"]
        for refs in range(REFS + 1):
            body = _body(refs, variables)
            lines += [
                "    @overload",
                f"    def __call__(self, body: {body}, /) -> Callable[..., Any]: ...",
            ]
        yield "\n".join(lines)


def pallas_call_async() -> Iterator[str]:
    def call(half: str, semaphores: str, result: str) -> str:
        options = "compiler_params: Any = None, interpret: Any = False"
        # The class first: pyrefly takes it for what both halves must fit.
        parameters = f"semaphores: {semaphores}, start: {half}, done: {half}, out_shape: Any, *"
        return _function("pallas_call_async", f"{parameters}, {options}", f"AsyncCall[{result}]")

    never = "AScratchThatFitsBothKernels"  # for messages, as above
    yield call("Callable[..., None]", f"type[{never}]", never)
    for refs in range(1, REFS + 1):
        parameters = ", ".join(["Any"] * refs + ["Group"])
        yield call(f"Callable[[{parameters}], None]", "type[Group]", "Group")


def run_scoped() -> Iterator[str]:
    tail = "*, collective_axes: Any = ()"
    yield _function("run_scoped", f"body: Callable[[Group], T], spec: type[Group], /, {tail}", "T")
    for specs in range(1, SPECS + 1):
        letters = LETTERS[:specs]
        requests = ", ".join(f"{x.lower()}: Spec[{x}] | MemoryRef" for x in letters)
        body = f"body: Callable[[{', '.join(letters)}], T]"
        yield _function("run_scoped", f"{body}, {requests}, /, {tail}", "T")


def with_scoped() -> Iterator[str]:
    tail = "*, collective_axes: Any = ()"
    yield _function("with_scoped", f"spec: type[Group], /, {tail}", "WithScoped1[Group]")
    for specs in range(1, SPECS + 1):
        letters = LETTERS[:specs]
        requests = ", ".join(f"{x.lower()}: Spec[{x}]" for x in letters)
        result = f"WithScoped{specs}[{', '.join(letters)}]"
        yield _function("with_scoped", f"{requests}, /, {tail}", result)


def protocols() -> Iterator[str]:
    for specs in range(1, SPECS + 1):
        letters = LETTERS[:specs]
        variables = ", ".join(f"{x}_co" for x in letters)
        lines = [f"class WithScoped{specs}(Protocol[{variables}]):"]
        for outer in range(OUTER + 1):
            before = ", ".join(OUTERS[:outer])
            body = ", ".join([*OUTERS[:outer], *(f"{x}_co" for x in letters)])
            lines += [
                "    @overload",
                f"    def __call__(self, fn: Callable[[{body}], T], /)"
                f" -> Callable[[{before}], T]: ...",
            ]
        yield "\n".join(lines)


SECTIONS = {
    "protocols": protocols,
    "kernel_decorators": kernel_decorators,
    "pallas_call": pallas_call,
    "kernel": kernel,
    "pallas_call_async": pallas_call_async,
    "run_scoped": run_scoped,
    "with_scoped": with_scoped,
}


def rewrite(text: str) -> str:
    """The text of `safepallas/_kernels/overloads.py` with its generated sections as they should be."""
    for name, section in SECTIONS.items():
        begin, end = f"# generated: {name}\n", f"# end of {name}\n"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        overloads = textwrap.indent("\n".join(section()), "    ")
        replacement = f"{begin}if TYPE_CHECKING:\n{overloads}\n{end}"
        text = pattern.sub(lambda _, new=replacement: new, text)  # type: ignore[misc]
    return text


if __name__ == "__main__":
    path = Path(__file__).parents[2] / "safepallas/_kernels/overloads.py"
    path.write_text(rewrite(path.read_text()))
