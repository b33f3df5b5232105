"""Kernels that are only traced, and tables of what must be refused while they are."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import safepallas as sp
from safepallas._errors.explain import CLASSES as CLASS_OF_CODE

KINDS = ("regular", "barrier", "dma")
RANKS = (0, 1, 2, 3, 4)
SIZES = (2, 3, 2, 2)  # of an array along each dimension, as far as it goes
REQUESTS: dict[str, Any] = {
    "regular": sp.semaphore,
    "barrier": sp.barrier_semaphore,
    "dma": sp.dma_semaphore,
}
CLASSES = {"regular": sp.Semaphore, "barrier": sp.BarrierSemaphore, "dma": sp.DmaSemaphore}

MESHES: dict[str, AbstractMesh | None] = {
    "no mesh": None,
    "one axis": AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,)),
    "two axes": AbstractMesh((2, 3), ("x", "y"), axis_types=(AxisType.Auto,) * 2),
}

ROWS, COLS = 8, 128
FLOATS = jax.ShapeDtypeStruct((ROWS, COLS), jnp.float32)


def request(kind: str, rank: int) -> Any:
    """The request for one semaphore (rank 0) or an array of them."""
    return REQUESTS[kind](*SIZES[:rank])


SEMAPHORES = {f"{kind}{rank}": (kind, rank) for kind in KINDS for rank in RANKS}


class Buffers(sp.Scratch):
    float32 = sp.vmem((ROWS, COLS), jnp.float32)
    int32 = sp.vmem((ROWS, COLS), jnp.int32)
    int16 = sp.vmem((ROWS, COLS), jnp.int16)
    bfloat16 = sp.vmem((ROWS, COLS), jnp.bfloat16)
    narrow = sp.vmem((ROWS, COLS // 2), jnp.float32)
    flat = sp.vmem((ROWS * COLS,), jnp.float32)


World: Any = type("World", (Buffers,), {name: request(*w) for name, w in SEMAPHORES.items()})


class Kernel:
    """What a kernel under test finds: data of several types, semaphores of all kinds and ranks."""

    def __init__(self, x: Any, o: Any, scratch: Any) -> None:
        self.x, self.o, self.data = x, o, scratch

    def sem(self, kind: str, rank: int = 0) -> Any:
        return getattr(self.data, f"{kind}{rank}")

    def dead(self, kind: str, rank: int = 0) -> Any:
        """A handle or array that has left its scope."""
        leaked: list[Any] = []
        sp.run_scoped(lambda handle: leaked.append(handle), request(kind, rank))
        return leaked[0]

    def traced(self, dtype: Any, shape: tuple[int, ...] = ()) -> jax.Array:
        """A value that is not known while tracing."""
        return jnp.broadcast_to(self.x[0, 0], shape).astype(dtype)

    def store(self, value: Any) -> None:
        """Keep a number, so that JAX does not drop what has computed it."""
        self.o[0, 0] = value.astype(jnp.float32)

    def __getattr__(self, name: str) -> Any:
        if name in SEMAPHORES:
            return getattr(self.data, name)
        raise AttributeError(name)


Act = Callable[[Kernel], Any]


def trace(act: Act, mesh: str = "one axis", **options: Any) -> Any:
    """The jaxpr of a kernel that does `act`, called for one float32 array."""

    def kernel(x: Any, o: Any, scratch: Any) -> None:
        act(Kernel(x, o, scratch))

    return trace_call(sp.pallas_call(kernel, FLOATS, scratch_shapes=World, **options), mesh)


def trace_call(call: Callable[..., Any], mesh: str = "one axis") -> Any:
    """The jaxpr of a call for one float32 array, on the mesh of that name."""
    over = MESHES[mesh]
    if over is not None:
        call = jax.shard_map(call, mesh=over, in_specs=P(), out_specs=P(), check_vma=False)
    return jax.make_jaxpr(call)(jnp.zeros(FLOATS.shape, FLOATS.dtype))


def in_kernel(test: Callable[[Kernel], None]) -> Callable[[], None]:
    """Decorator: run a test inside a kernel."""

    def run() -> None:
        trace(test)

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


class Case(NamedTuple):
    """A misuse, or its valid neighbour where `error` is None."""

    name: str
    error: type[Exception] | None
    act: Act
    mesh: str = "one axis"


def table(cases: list[Case]) -> Any:
    """Decorator: run a test for each case, its name in the test's."""
    names = [case.name for case in cases]
    assert len(set(names)) == len(names), "two cases of one name"
    return pytest.mark.parametrize("case", cases, ids=names)


def judge(case: Case) -> BaseException | None:
    """Trace a case: the error it demands, of that very class and with its code, or none."""
    if case.error is None:
        trace(case.act, case.mesh)
        return None
    with pytest.raises(case.error) as info:
        trace(case.act, case.mesh)
    assert_ours(info.value, case.error)
    return info.value


def judge_all(cases: list[Case]) -> None:
    """Judge all cases, in one kernel for each mesh.

    Faster than one by one. A refusal leaves nothing behind, so that the cases do not see each
    other.
    """
    wrong = []

    def act(k: Kernel) -> None:
        for case in (case for case in cases if case.mesh == mesh):
            try:
                case.act(k)
            except Exception as error:
                said = getattr(case.error, "code", "")
                if type(error) is not case.error or said not in str(error):
                    wrong.append(f"{case.name}: {error!r}")
            else:
                if case.error is not None:
                    wrong.append(f"{case.name}: accepted")

    for mesh in {case.mesh for case in cases}:
        trace(act, mesh)
    assert not wrong, "\n".join(wrong)


def judge_under_x64(cases: list[Case]) -> None:
    """The same of all cases with 64 bit types."""
    with jax.enable_x64(True):
        judge_all(cases)


def assert_ours(error: BaseException, expected: type[BaseException]) -> None:
    """`error` is exactly an `expected`, and says its code."""
    assert type(error) is expected, f"{type(error).__name__}: {error}"
    if issubclass(expected, sp.SemaphoreError):
        assert str(error).endswith(f"[{expected.code}]")


def equations(jaxpr: Any, primitive: str) -> Iterator[Any]:
    """The equations of that primitive, at any depth."""
    for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        if eqn.primitive.name == primitive:
            yield eqn
        for value in eqn.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                    yield from equations(inner, primitive)


def scalar_dtypes(jaxpr: Any, primitive: str) -> set[str]:
    """The dtypes of the numbers that equations of that primitive take."""
    return {
        str(var.aval.dtype)
        for eqn in equations(jaxpr, primitive)
        for var in eqn.invars
        if "Ref" not in str(var.aval)
    }


class Message(NamedTuple):
    """A misuse, and what it is answered.

    In the text stand for places of the test file: ``<<field[0]>>`` for a semaphore, its name and
    the line that allocates it; ``<<def kernel>>`` for a function; ``<<at text>>`` for the line that
    begins with that text; ``<<use text by kernel>>`` for where that text stands, in that function.
    """

    error: type[BaseException]
    misuse: Callable[[], Any]
    text: str


def says(misuse: Callable[[], Any], text: str, error: type[Exception] | None = None) -> Message:
    """A misuse and its message. The code at its end tells the class; without one, a TypeError."""
    code = re.search(r"\[([a-z-]+)\]$", text)
    return Message(error or (CLASS_OF_CODE[code[1]] if code else TypeError), misuse, text)


def line_of(file: str, text: str, *, anywhere: bool = False) -> tuple[int, str]:
    """The one line of a file that begins with `text`, or has it `anywhere`, and its number."""
    lines = enumerate(Path(file).read_text().splitlines(), 1)
    code = ((n, line) for n, line in lines if not re.match(r"""\s*f?["']""", line))
    found = [(n, x) for n, x in code if x.lstrip().startswith(text) or (anywhere and text in x)]
    ((number, line),) = found
    return number, line


def filled_in(text: str, file: str) -> str:
    """The text of a message with the places filled in."""

    def fill(match: re.Match[str]) -> str:
        what, _, rest = match[1].partition(" ")
        if what == "use":
            used, _, name = rest.rpartition(" by ")
            number, line = line_of(file, used, anywhere=True)
            return f"{file}:{number}:{line.index(used)} ({name})"
        if what == "at":
            return f"{file}:{line_of(file, rest)[0]}"
        if what == "def":
            return f"{rest!r} ({file}:{line_of(file, f'def {rest}(')[0]})"
        field = match[1].partition("[")[0]
        number, _ = line_of(file, f"{field} = sp.")
        return f"{match[1]!r} (allocated at {file}:{number})"

    return re.sub(r"<<(.+?)>>", fill, text)


def assert_says(message: Message, file: str) -> None:
    """The misuse raises exactly that error, with exactly that text."""
    with pytest.raises(message.error) as info:
        message.misuse()
    assert str(info.value) == filled_in(message.text, file)
    assert_ours(info.value, message.error)
