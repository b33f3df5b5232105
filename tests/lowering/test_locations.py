"""Source locations and names: everything in a kernel points at the user's code, nothing at ours."""

import functools
import inspect
import os
import re
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.extend import source_info_util

import safepallas as sp

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(sp.__file__)), "")
X = OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)
COUNT = jax.ShapeDtypeStruct((4,), jnp.int32)
SMEM_SPEC = pl.BlockSpec(memory_space=pltpu.SMEM)
VMEM_SPEC = pl.BlockSpec(memory_space=pltpu.VMEM)
DMA = pltpu.SemaphoreType.DMA


class Buffers(sp.Scratch):
    acc = sp.vmem((8, 128), jnp.float32)
    sem = sp.dma_semaphore()
    sems = sp.dma_semaphore(2)
    send = sp.dma_semaphore()
    recv = sp.dma_semaphore()
    ready = sp.semaphore()
    counts = sp.smem((1,), jnp.int32)


# A comment at the end of a line names the equations that the line must get. Each is a test of one
# operation, in the only spelling that the comment can stand behind.
def every_operation(n: sp.Ref, x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.signal(s.ready)  # semaphore_signal
    sp.signal(s.ready, n[0])  # get semaphore_signal
    sp.signal(s.ready, device_id={"i": 1})  # semaphore_signal
    sp.wait(s.ready)  # semaphore_wait
    sp.wait(s.ready, n[0])  # get semaphore_wait
    s.counts[0] = sp.read(s.ready)  # semaphore_read swap
    barrier = sp.get_barrier_semaphore()  # get_barrier_semaphore
    sp.wait(barrier)  # semaphore_wait
    local = sp.make_async_copy(x, o, s.sem)
    local.start()  # dma_start
    local.wait()  # dma_wait
    sp.async_copy(x, o, s.sems[1])  # dma_start
    sp.wait_bytes(s.sems[1], o)  # dma_wait
    sp.async_copy(x, o, s.sem, priority=1).wait()  # dma_start dma_wait
    remote = sp.make_async_remote_copy(x, o, s.send, s.recv, {"i": 1})
    remote.start()  # dma_start
    remote.wait()  # dma_wait dma_wait
    remote.wait_send()  # dma_wait
    remote.wait_recv()  # dma_wait
    sp.async_remote_copy(x, o, s.send, s.recv, {"i": 1})  # dma_start
    sp.sync_copy(x, s.acc)  # run_scoped

    def body(inner: sp.DmaSemaphore) -> None:
        sp.async_copy(x, o, inner)  # dma_start
        sp.wait_bytes(inner, o)  # dma_wait

    sp.run_scoped(body, sp.dma_semaphore())  # run_scoped

    @sp.with_scoped(sp.semaphore())
    def decorated(own: sp.Semaphore) -> None:
        sp.signal(own)  # semaphore_signal

    decorated()  # run_scoped

    @pl.when(n[0] == 1)  # get eq convert_element_type cond
    def _() -> None:
        sp.wait(s.ready)  # semaphore_wait


def expected_equations() -> list[tuple[int, str]]:
    lines, first = inspect.getsourcelines(every_operation)
    found = [(first + i, line.partition("  # ")[2]) for i, line in enumerate(lines)]
    return sorted((number, name) for number, names in found for name in names.split())


@pytest.fixture
def call(over_mesh: Callable[..., Any]) -> Callable[..., Any]:
    params = pltpu.CompilerParams(collective_id=0)
    specs: Any = {"in_specs": [SMEM_SPEC, VMEM_SPEC]}
    kernel: Any = every_operation
    call = sp.pallas_call(kernel, OUT, scratch_shapes=Buffers, compiler_params=params, **specs)
    return over_mesh(call, i=2)


def equations(jaxpr: Any) -> Iterator[Any]:
    for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield eqn
        for value in eqn.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if hasattr(inner, "eqns"):
                    yield from equations(inner)


def kernel_jaxpr(call: Callable[..., Any], *args: Any) -> Any:
    """The jaxpr of the (only) kernel in a call."""
    everything = equations(jax.make_jaxpr(call)(*args))
    (kernel,) = (e.params["jaxpr"] for e in everything if e.primitive.name == "pallas_call")
    return kernel


def users_line(eqn: Any) -> int | None:
    """The line of this file that an equation names; None where it names none."""
    summary = source_info_util.summarize(eqn.source_info)
    if not summary:
        return None
    file, line = re.match(r"(.*?):(\d+)", summary).groups()
    assert file == __file__
    return int(line)


def test_equations_name_the_users_lines(call: Callable[..., Any]) -> None:
    found = [(users_line(e), e.primitive.name) for e in equations(kernel_jaxpr(call, COUNT, X))]
    # The scope inside sync_copy is JAX's own code. It leaves it without a line.
    assert [name for line, name in found if line is None] == ["dma_start", "dma_wait"]
    assert sorted(pair for pair in found if pair[0] is not None) == expected_equations()


def test_what_raw_leaves_without_a_line() -> None:
    def kernel(x: Any, o: Any) -> None:
        pltpu.sync_copy(x, o)

    found = equations(kernel_jaxpr(pl.pallas_call(kernel, OUT), X))
    assert [e.primitive.name for e in found if not users_line(e)] == ["dma_start", "dma_wait"]


def located(text: str) -> set[tuple[int, str]]:
    """The lines of this file in the locations of a module, and the equations lowered from them."""
    defined = dict(re.findall(r"(#loc\d+) = loc\((.*)\)", text))

    def line(reference: str) -> int | None:
        value = defined[reference]
        if at_line := re.match(r'"([^"]*)":(\d+):', value):
            assert at_line[1] == __file__
            return int(at_line[2])
        # '"name"(#loc1)', or 'callsite(#loc2 at #loc1)', where the equation's own line is the last.
        inner = re.search(r"(#loc\d+)\)$", value)
        return line(inner[1]) if inner else None

    names = {ref: re.match(r'"(\w+)[:/]', value) for ref, value in defined.items()}
    lines = {(line(ref), name[1]) for ref, name in names.items() if name}
    return {(number, name) for number, name in lines if number is not None}


def test_the_kernels_module_names_the_users_lines(
    call: Callable[..., Any], kernel_module: Callable[..., str], tpu: None
) -> None:
    text = kernel_module(call, COUNT, X)
    assert LIBRARY not in text
    assert set(re.findall(r'loc\("([^"]*)":\d+', text)) == {__file__}
    operations = ("semaphore_", "dma_", "get_barrier")
    found = {(line, name) for line, name in located(text) if name.startswith(operations)}
    wanted = {(line, name) for line, name in expected_equations() if name.startswith(operations)}
    assert found == wanted


def test_the_outer_module_names_the_users_lines(call: Callable[..., Any], tpu: None) -> None:
    lowered = jax.jit(call).trace(COUNT, X).lower(lowering_platforms=("tpu",))
    text = lowered.as_text(debug_info=True)
    assert __file__ in text
    assert LIBRARY not in text


def test_where_the_call_itself_is_made() -> None:
    def kernel(x: sp.Ref, o: sp.Ref) -> None:
        pass

    call = sp.pallas_call(kernel, OUT)

    def user(x: Any) -> Any:
        return call(x)  # here

    (eqn,) = jax.make_jaxpr(user)(X).eqns
    lines, first = inspect.getsourcelines(user)
    here = first + next(i for i, line in enumerate(lines) if "# here" in line)
    assert source_info_util.summarize(eqn.source_info).startswith(f"{__file__}:{here}")


def test_the_frame_above_ours_in_a_traceback_is_the_users() -> None:
    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
        wrong: Any = sem
        sp.wait(wrong)  # here

    with pytest.raises(sp.errors.WrongKindError) as info:
        jax.make_jaxpr(sp.pallas_call(kernel, OUT, scratch_shapes=(sp.dma_semaphore(),)))(X)
    frames = traceback.extract_tb(info.value.__traceback__)
    while frames[-1].filename.startswith(LIBRARY):
        del frames[-1]
    assert frames[-1].filename == __file__
    assert frames[-1].line == "sp.wait(wrong)  # here"


# Kernels that leave their semaphores alone run as raw and as ours, the very same function.
def plain(x: Any, o: Any, sem: Any, acc: Any) -> None:
    o[...] = x[...]


def any_number(*refs: Any) -> None:
    refs[1][...] = refs[0][...]


def some_then_any(x: Any, *rest: Any) -> None:
    rest[0][...] = x[...]


def with_options(n: int, x: Any, o: Any, sem: Any, acc: Any, *, inc: int) -> None:
    o[...] = x[...] + inc


def with_default(x: Any, o: Any, sem: Any, acc: Any, inc: int = 1) -> None:
    o[...] = x[...] + inc


class Callables:
    def __call__(self, x: Any, o: Any, sem: Any, acc: Any) -> None:
        o[...] = x[...]

    def method(self, x: Any, o: Any, sem: Any, acc: Any) -> None:
        o[...] = x[...]

    @staticmethod
    def static(x: Any, o: Any, sem: Any, acc: Any) -> None:
        o[...] = x[...]


@functools.wraps(plain)
def wraps(*args: Any) -> None:
    plain(*args)


KERNELS: dict[str, Any] = {
    "function": plain,
    "any number": any_number,
    "some, then any": some_then_any,
    "default": with_default,
    "lambda": lambda x, o, sem, acc: None,
    "method": Callables().method,
    "static method": Callables.static,
    "callable object": Callables(),
    "wraps": wraps,
    "partial": functools.partial(with_options, 1, inc=2),
    "partial of a partial": functools.partial(functools.partial(with_options, inc=2), 1),
    "partial of wraps": functools.partial(wraps),
    "partial of an object": functools.partial(Callables()),
    "partial of a method": functools.partial(Callables().method),
    "wraps a partial": functools.wraps(functools.partial(with_options, 1, inc=2))(
        lambda *args: plain(*args)
    ),
}
ACC = pltpu.VMEM((8, 128), jnp.float32)


def debug_info(call: Callable[..., Any]) -> tuple[Any, ...]:
    info = kernel_jaxpr(call, X).debug_info
    return info.traced_for, info.func_src_info, info.func_name, info.arg_names, info.result_paths


@pytest.mark.parametrize("name", [None, "a name"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_debug_info_of_a_kernel(kernel: Any, name: str | None) -> None:
    specs = (sp.dma_semaphore(), sp.vmem((8, 128), jnp.float32))
    ours = debug_info(sp.pallas_call(kernel, OUT, scratch_shapes=specs, name=name))
    assert ours == debug_info(pl.pallas_call(kernel, OUT, scratch_shapes=(DMA, ACC), name=name))


def test_debug_info_of_a_kernel_with_a_dict() -> None:
    def kernel(x: Any, o: Any, *, sem: Any, acc: Any) -> None:
        pass

    specs = {"sem": sp.dma_semaphore(2), "acc": sp.vmem((8, 128), jnp.float32)}
    ours = debug_info(sp.pallas_call(kernel, OUT, scratch_shapes=specs))
    raw: Any = {"sem": DMA((2,)), "acc": ACC}
    assert ours == debug_info(pl.pallas_call(kernel, OUT, scratch_shapes=raw))


class Two(sp.Scratch):
    sem = sp.dma_semaphore()
    acc = sp.vmem((8, 128), jnp.float32)


def takes_two(x: Any, o: Any, s: Two) -> None:
    pass


def takes_two_and_options(n: int, x: Any, o: Any, s: Two, *, inc: int) -> None:
    pass


def takes_two_and_default(x: Any, o: Any, s: Two, inc: int = 1) -> None:
    pass


TAKES_TWO: dict[str, tuple[Any, Any]] = {
    "function": (takes_two, plain),
    "partial": (functools.partial(takes_two_and_options, 1, inc=2), KERNELS["partial"]),
    "default": (takes_two_and_default, with_default),
    "any number": (any_number, any_number),
    "lambda": (lambda x, o, s: None, KERNELS["lambda"]),
}


@pytest.mark.parametrize("pair", TAKES_TWO.values(), ids=TAKES_TWO)
def test_debug_info_of_a_kernel_with_a_scratch_class(pair: tuple[Any, Any]) -> None:
    """The name and line are the kernel's, the arguments those of the reference kernel."""
    kernel, reference = pair
    _, source, name, args, _ = debug_info(sp.pallas_call(kernel, OUT, scratch_shapes=Two))
    _, _, _, raw_args, _ = debug_info(pl.pallas_call(reference, OUT, scratch_shapes=(DMA, ACC)))
    assert args == raw_args
    function = getattr(kernel, "func", kernel)
    code = function.__code__
    assert name == function.__name__
    assert source == f"{function.__name__} at {code.co_filename}:{code.co_firstlineno}"


def scope_info(body: Callable[..., Any], scoped: Any, *requests: Any) -> tuple[Any, ...]:
    def kernel(x: Any, o: Any) -> None:
        o[...] = scoped(body, *requests)

    jaxpr = kernel_jaxpr(pl.pallas_call(kernel, OUT), X)
    (info,) = (e.params["jaxpr"].debug_info for e in jaxpr.eqns if e.primitive.name == "run_scoped")
    return info.traced_for, info.func_src_info, info.func_name, info.arg_names, info.result_paths


def body(sem: Any, acc: Any) -> Any:
    return acc[...]


def body_with_options(n: int, sem: Any, acc: Any, *, inc: int) -> Any:
    return acc[...] + inc


def body_of_any(*refs: Any) -> Any:
    return refs[1][...]


BODIES: dict[str, Any] = {
    "function": body,
    "any number": body_of_any,
    "partial": functools.partial(body_with_options, 1, inc=2),
    "partial of a partial": functools.partial(functools.partial(body_with_options, 1), inc=2),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_debug_info_of_a_scope(body: Any) -> None:
    specs = (sp.dma_semaphore(), sp.vmem((8, 128), jnp.float32))
    assert scope_info(body, sp.run_scoped, *specs) == scope_info(body, pl.run_scoped, DMA, ACC)


def test_debug_info_of_with_scoped() -> None:
    def ours(body: Any, *specs: Any) -> Any:
        return sp.with_scoped(*specs)(body)()

    def raw(body: Any, *specs: Any) -> Any:
        return pl.with_scoped(*specs)(body)()

    specs = (sp.dma_semaphore(), sp.vmem((8, 128), jnp.float32))
    assert scope_info(body, ours, *specs) == scope_info(body, raw, DMA, ACC)
