"""What a kernel may be, and what may stand around its call."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

DmaSemaphores = sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]
Semaphores = sp.SemaphoreArray[sp.Semaphore, tuple[int]]
SIMULATED = pltpu.InterpretParams()
X = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128)
LIKE = jax.ShapeDtypeStruct(X.shape, X.dtype)
ACC = sp.vmem((8, 128), jnp.float32)
ONE = (sp.dma_semaphore(),)
equal = np.testing.assert_array_equal


class Sem(sp.Scratch):
    sem = sp.dma_semaphore()


# Kernels with options: functools.partial over keyword-only parameters, with and without defaults.
#
# The options may stand before the refs, too, bound by position.
class Buffers(sp.Scratch):
    acc = ACC
    sem = sp.dma_semaphore()


def scaled(
    x: sp.Ref, o: sp.Ref, acc: sp.Ref, sem: sp.DmaSemaphore, *, scale: float, shift: float = 0.0
) -> None:
    sp.async_copy(x, acc, sem).wait()
    o[...] = acc[...] * scale + shift


def rows_first(rows: int, x: sp.Ref, o: sp.Ref, s: Buffers, *, negate: bool = False) -> None:
    o[...] = jnp.zeros(o.shape, o.dtype)
    sp.async_copy(x.at[:rows], s.acc.at[:rows], s.sem).wait()
    part = s.acc[:rows]
    o[:rows] = -part if negate else part


def check_partial_kernels() -> None:
    scratch = (ACC, sp.dma_semaphore())
    for scale in (1.0, 3.0):
        partial = functools.partial(scaled, scale=scale)
        call = sp.pallas_call(partial, LIKE, scratch_shapes=scratch, interpret=True)
        equal(call(X), X * scale)

    partial = functools.partial(scaled, scale=2.0, shift=1.0)
    shifted = sp.pallas_call(partial, LIKE, scratch_shapes=scratch, interpret=True)
    equal(shifted(X), X * 2 + 1)

    first = sp.pallas_call(
        functools.partial(rows_first, 4, negate=True), LIKE, scratch_shapes=Buffers, interpret=True
    )
    equal(first(X), -X.at[4:].set(0.0))

    # A default after the scratch, left alone.
    def halved(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, by: float = 0.5) -> None:
        sp.async_copy(x, o, sem).wait()
        o[...] *= by

    at_half = sp.pallas_call(halved, LIKE, scratch_shapes=ONE, interpret=True)
    equal(at_half(X), X / 2)


# Kernels that are methods and callable objects.
@dataclasses.dataclass(frozen=True)
class Scale:
    by: float

    def kernel(self, x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
        sp.async_copy(x, s.acc, s.sem).wait()
        o[...] = s.acc[...] * self.by

    def __call__(self, x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
        sp.async_copy(x, o, sem).wait()
        o[...] *= self.by

    @staticmethod
    def copy(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
        sp.async_copy(x, o, sem).wait()


def check_methods() -> None:
    scale = Scale(3.0)
    bound = sp.pallas_call(scale.kernel, LIKE, scratch_shapes=Buffers, interpret=True)
    equal(bound(X), X * 3)
    called = sp.pallas_call(scale, LIKE, scratch_shapes=ONE, interpret=True)
    equal(called(X), X * 3)
    static = sp.pallas_call(Scale.copy, LIKE, scratch_shapes=ONE, interpret=True)
    equal(static(X), X)


# Kernels over any number of refs, and kernels that take everything in one ``*refs``.
def everything(*refs: Any) -> None:
    *inputs, o, sem = refs
    for i, x in enumerate(inputs):
        sp.async_copy(x, o.at[i], sem).wait()


def data_then_scratch(x: sp.Ref, *rest: Any) -> None:
    *others, o, s = rest
    for i, ref in enumerate((x, *others)):
        sp.async_copy(ref, o.at[i], s.sem).wait()


def only_data(*refs: sp.Ref) -> None:
    *inputs, o = refs
    for i, x in enumerate(inputs):
        sp.sync_copy(x, o.at[i])


def check_star_refs() -> None:
    xs = [jnp.full((8, 128), float(i)) for i in range(3)]
    like = jax.ShapeDtypeStruct((3, 8, 128), jnp.float32)
    wanted = jnp.stack(xs)
    equal(sp.pallas_call(everything, like, scratch_shapes=ONE, interpret=True)(*xs), wanted)
    equal(sp.pallas_call(data_then_scratch, like, scratch_shapes=Sem, interpret=True)(*xs), wanted)
    equal(sp.pallas_call(only_data, like, interpret=True)(*xs), wanted)


# More refs than most kernels have, and more requests than the checkers match with parameters.
SEVEN = (
    sp.dma_semaphore(),
    sp.dma_semaphore(2),
    sp.semaphore(),
    sp.semaphore(2),
    ACC,
    ACC,
    sp.smem((1,), jnp.int32),
)


def last_of_nine(
    a: sp.Ref,
    b: sp.Ref,
    c: sp.Ref,
    d: sp.Ref,
    e: sp.Ref,
    f: sp.Ref,
    g: sp.Ref,
    x: sp.Ref,
    o: sp.Ref,
    sem: sp.DmaSemaphore,
) -> None:
    del a, b, c, d, e, f, g
    sp.async_copy(x, o, sem).wait()


def named(
    a: sp.Ref,
    b: sp.Ref,
    c: sp.Ref,
    d: sp.Ref,
    e: sp.Ref,
    f: sp.Ref,
    g: sp.Ref,
    x: sp.Ref,
    o: sp.Ref,
    s: Sem,
) -> None:
    last_of_nine(a, b, c, d, e, f, g, x, o, s.sem)


def seven(
    x: sp.Ref,
    o: sp.Ref,
    sem: sp.DmaSemaphore,
    slots: DmaSemaphores,
    ready: sp.Semaphore,
    free: Semaphores,
    left: sp.Ref,
    right: sp.Ref,
    count: sp.Ref,
) -> None:
    del ready, free, right, count
    sp.async_copy(x, left, sem).wait()
    sp.async_copy(left, o, slots.at[1]).wait()


def scoped(x: sp.Ref, o: sp.Ref) -> None:
    def body(
        sem: sp.DmaSemaphore,
        slots: DmaSemaphores,
        ready: sp.Semaphore,
        free: Semaphores,
        left: sp.Ref,
        right: sp.Ref,
        count: sp.Ref,
    ) -> None:
        seven(x, o, sem, slots, ready, free, left, right, count)

    sp.run_scoped(body, *SEVEN)
    sp.with_scoped(*SEVEN)(seven)(x, o)


def check_many_refs() -> None:
    inputs = [X * i for i in range(7)] + [X]
    calls = [
        sp.pallas_call(last_of_nine, LIKE, scratch_shapes=ONE, interpret=True),
        sp.pallas_call(named, LIKE, scratch_shapes=Sem, interpret=True),
    ]
    for call in calls:
        equal(call(*inputs), X)
    matched = sp.pallas_call(seven, LIKE, scratch_shapes=SEVEN, interpret=True)
    equal(matched(X), X)
    equal(sp.pallas_call(scoped, LIKE, interpret=True)(X), X)


# The arguments that pallas_call passes on, and what may stand around a call.
def kernel(x: sp.Ref, o: sp.Ref, s: Sem) -> None:
    sp.async_copy(x, o, s.sem).wait()


def pair(x: sp.Ref, first: sp.Ref, second: sp.Ref, s: Sem) -> None:
    sp.async_copy(x, first, s.sem).wait()
    second[...] = first[...] + 1.0


@functools.partial(jax.jit, static_argnames="interpret")
def copy(x: jax.Array, *, interpret: bool = False) -> jax.Array:
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(2,),
        in_specs=[pl.BlockSpec((4, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((4, 128), lambda i: (i, 0)),
        scratch_shapes=Sem,
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
        interpret=interpret,
        name="copy",
        cost_estimate=pl.CostEstimate(flops=0, bytes_accessed=8192, transcendentals=0),
        metadata={"owner": "typing"},
        debug=False,
    )
    result: jax.Array = call(x)
    return result


def check_forms_of_calls() -> None:
    equal(copy(X, interpret=True), X)
    for out_shape in ((LIKE, LIKE), [LIKE, LIKE]):
        first, second = sp.pallas_call(pair, out_shape, scratch_shapes=Sem, interpret=True)(X)
        equal(first, X)
        equal(second, X + 1)
    in_place = sp.pallas_call(
        kernel, LIKE, scratch_shapes=Sem, input_output_aliases={0: 0}, interpret=True
    )
    equal(jax.jit(in_place)(X), X)
    batched = jax.vmap(sp.pallas_call(kernel, LIKE, scratch_shapes=Sem, interpret=True))
    equal(batched(jnp.stack([X, -X])), jnp.stack([X, -X]))


# A grid with scalar prefetch: the scratch stands in scratch_shapes=, not in the grid_spec.
PAGES, ROWS, COLS = 5, 8, 128


class Page(sp.Scratch):
    page = sp.vmem((ROWS, COLS), jnp.float32)
    arrived = sp.dma_semaphore()


def with_class(table: sp.Ref, pages: sp.Ref, o: sp.Ref, s: Page) -> None:
    sp.async_copy(pages.at[table[pl.program_id(0)]], s.page, s.arrived).wait()
    o[...] = s.page[...]


def with_tuple(
    table: sp.Ref, pages: sp.Ref, o: sp.Ref, page: sp.Ref, arrived: sp.DmaSemaphore
) -> None:
    sp.async_copy(pages.at[table[pl.program_id(0)]], page, arrived).wait()
    o[...] = page[...]


def check_scalar_prefetch() -> None:
    table = jnp.array([3, 0, 3, 4], jnp.int32)
    pages = jnp.arange(PAGES * ROWS * COLS, dtype=jnp.float32).reshape(PAGES, ROWS, COLS)
    like = jax.ShapeDtypeStruct((len(table) * ROWS, COLS), jnp.float32)

    def window(i: jax.Array, table: sp.Ref) -> tuple[jax.Array, int]:
        return i, 0

    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=table.shape,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((ROWS, COLS), window),
    )
    wanted = pages[table].reshape(-1, COLS)
    by_class = sp.pallas_call(
        with_class, like, grid_spec=grid_spec, scratch_shapes=Page, interpret=SIMULATED
    )
    equal(by_class(table, pages), wanted)
    by_tuple = sp.pallas_call(
        with_tuple,
        like,
        grid_spec=grid_spec,
        scratch_shapes=(sp.vmem((ROWS, COLS), jnp.float32), sp.dma_semaphore()),
        interpret=SIMULATED,
    )
    equal(by_tuple(table, pages), wanted)


# Functions and decorators that build calls for any kernel and any Scratch.
G = TypeVar("G", bound=sp.Scratch)


class Wide(Buffers):
    more = sp.semaphore(2)


def elementwise(
    kernel: Callable[[sp.Ref, sp.Ref, G], None], scratch: type[G]
) -> Callable[[jax.Array], jax.Array]:
    """A call for a kernel of one input and one output of the same shape."""

    def call(x: jax.Array) -> jax.Array:
        like = jax.ShapeDtypeStruct(x.shape, x.dtype)
        result: jax.Array = sp.pallas_call(kernel, like, scratch_shapes=scratch, interpret=True)(x)
        return result

    return call


def in_a_scope(body: Callable[[G], jax.Array], scratch: type[G]) -> jax.Array:
    return sp.run_scoped(body, scratch)


def fetch(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, o, s.sem).wait()


def double(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    fetch(x, s.acc, s)
    o[...] = s.acc[...] * 2.0


def in_scope(x: sp.Ref, o: sp.Ref) -> None:
    def body(s: Wide) -> jax.Array:
        fetch(x, s.acc, s)
        return s.acc[...] + 1.0

    o[...] = in_a_scope(body, Wide)


@functools.partial(sp.pallas_call, out_shape=LIKE, scratch_shapes=ONE, interpret=True)
def decorated(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore) -> None:
    sp.async_copy(x, o, sem).wait()


def looped(x: sp.Ref, o: sp.Ref, sems: DmaSemaphores) -> None:
    @pl.loop(0, 8)
    def _row(i: jax.Array) -> None:
        sp.async_copy(x.at[i], o.at[i], sems.at[jax.lax.rem(i, 2)]).wait()

    def again(carry: None, i: jax.Array) -> tuple[None, jax.Array]:
        sp.async_copy(x.at[i], o.at[i], sems.at[0]).wait()
        return carry, i

    jax.lax.scan(again, None, jnp.arange(2))


def wait_for(sem: sp.Semaphore | sp.DmaSemaphore, like: sp.Ref) -> None:
    match sem:
        case sp.Semaphore():
            sp.wait(sem)
        case sp.DmaSemaphore():
            sp.wait_bytes(sem, like)


def matched(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore, done: sp.Semaphore) -> None:
    sp.make_async_copy(x, o, sem).start()
    sp.signal(done)
    for each in (sem, done):
        wait_for(each, o)


def check_builders() -> None:
    equal(elementwise(double, Buffers)(X), X * 2)
    equal(elementwise(double, Wide)(X), X * 2)
    equal(sp.pallas_call(in_scope, LIKE, interpret=True)(X), X + 1)
    equal(decorated(X), X)
    slots = (sp.dma_semaphore(2),)
    equal(sp.pallas_call(looped, LIKE, scratch_shapes=slots, interpret=True)(X), X)
    pair = (sp.dma_semaphore(), sp.semaphore())
    equal(sp.pallas_call(matched, LIKE, scratch_shapes=pair, interpret=True)(X), X)
