"""Handles in dataclasses, NamedTuples, dicts, lists and tuples, and as operands of control flow."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

equal = np.testing.assert_array_equal
DmaSemaphores = sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]
Semaphores = sp.SemaphoreArray[sp.Semaphore, tuple[int]]
SIMULATED = pltpu.InterpretParams()


def shaped(x: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


# Groups of handles as the carry of loops and the operands of branches.
#
# A NamedTuple with a field that may be None, a dict, a dataclass that JAX knows as a pytree; and
# one that it does not know, which goes by closure.
ROWS = 4


class Stream(NamedTuple):
    arrived: DmaSemaphores
    credit: sp.Semaphore | None
    copies: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Lane:
    sem: sp.DmaSemaphore
    done: sp.Semaphore | None = None
    name: str = dataclasses.field(default="channel", metadata={"static": True})


@dataclasses.dataclass(frozen=True)
class Plan:
    """Not a pytree: JAX never sees it."""

    src: sp.Ref
    dst: sp.Ref
    channel: Lane

    def copy(self, row: int | jax.Array) -> None:
        sp.async_copy(self.src.at[row], self.dst.at[row], self.channel.sem).wait()
        if self.channel.done is not None:
            sp.signal(self.channel.done)


def drain(by_name: dict[str, sp.Semaphore], amounts: dict[str, int | jax.Array]) -> None:
    for name, amount in amounts.items():
        sp.wait(by_name[name], amount)


def carried_groups(
    x: sp.Ref,
    o: sp.Ref,
    arrived: DmaSemaphores,
    sem: sp.DmaSemaphore,
    credit: sp.Semaphore,
    done: sp.Semaphore,
) -> None:
    def step(row: jax.Array, stream: Stream) -> Stream:
        slot = jax.lax.rem(row, 2)
        sp.async_copy(x.at[0, row], o.at[0, row], stream.arrived.at[slot]).wait()
        if stream.credit is not None:
            sp.signal(stream.credit)
        return stream._replace(copies=stream.copies + 1)

    for with_credit in (credit, None):
        begun = Stream(arrived, with_credit, jnp.int32(0))
        ended: Stream = jax.lax.fori_loop(0, ROWS, step, begun)
        if ended.credit is not None:
            sp.wait(ended.credit, ended.copies)

    # A registered dataclass: the carry of a scan, and the operand of a branch.
    def scanned(channel: Lane, row: jax.Array) -> tuple[Lane, None]:
        assert channel.name == "first"
        sp.async_copy(x.at[1, row], o.at[1, row], channel.sem).wait()
        if channel.done is not None:
            sp.signal(channel.done)
        return channel, None

    channel, _ = jax.lax.scan(scanned, Lane(sem, done, "first"), jnp.arange(ROWS))
    assert channel.done is not None
    sp.wait(channel.done, ROWS)

    def branch(channel: Lane) -> None:
        Plan(x.at[2], o.at[2], channel).copy(0)

    jax.lax.cond(x[0, 0, 0] > 0, branch, branch, Lane(sem))

    # By closure.
    plan = Plan(x.at[2], o.at[2], Lane(sem, done))

    def rest(row: jax.Array, carry: None) -> None:
        plan.copy(row)
        return carry

    jax.lax.fori_loop(1, ROWS, rest, None)

    # A dict, through a loop and into a helper.
    def count(_: jax.Array, sems: dict[str, sp.Semaphore]) -> dict[str, sp.Semaphore]:
        sp.signal(sems["credit"], 2)
        return sems

    sems: dict[str, sp.Semaphore] = jax.lax.fori_loop(0, 3, count, {"credit": credit, "done": done})
    drain(sems, {"credit": 6, "done": ROWS - 1})


def check_carried_groups() -> None:
    x = jnp.arange(1, 3 * ROWS * 128 + 1, dtype=jnp.float32).reshape(3, ROWS, 128)
    call = sp.pallas_call(
        carried_groups,
        shaped(x),
        scratch_shapes=(sp.dma_semaphore(2), sp.dma_semaphore(), sp.semaphore(), sp.semaphore()),
        interpret=SIMULATED,
    )
    equal(call(x), x)


# Handles that may be absent: optional parameters, fields and results.
@dataclasses.dataclass
class Transfer:
    src: sp.Ref
    dst: sp.Ref
    sem: sp.DmaSemaphore | None = None
    done: sp.Semaphore | None = None

    def run(self) -> None:
        if self.sem is None:
            sp.sync_copy(self.src, self.dst)
        else:
            sp.async_copy(self.src, self.dst, self.sem).wait()
        if self.done is not None:
            sp.signal(self.done)


def find(sems: dict[str, sp.Semaphore], name: str) -> sp.Semaphore | None:
    return sems.get(name)


def optional_handles(
    x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore | None, done: sp.Semaphore | None, *, silent: bool
) -> None:
    Transfer(x.at[0], o.at[0]).run()
    Transfer(x.at[1], o.at[1], sem, done=None if silent else done).run()
    if done is not None and not silent:
        sp.wait(done)
    found = find({} if done is None else {"done": done}, "done")
    if found is not None:
        sp.signal(found, 0)


def check_optional_handles() -> None:
    x = jnp.arange(256, dtype=jnp.float32).reshape(2, 128)
    for silent in (False, True):
        call = sp.pallas_call(
            functools.partial(optional_handles, silent=silent),
            shaped(x),
            scratch_shapes=(sp.dma_semaphore(), sp.semaphore()),
            interpret=SIMULATED,
        )
        equal(call(x), x)

    # Without the partial: an optional parameter takes what the allocator yields.
    def plain(x: sp.Ref, o: sp.Ref, sem: sp.DmaSemaphore | None) -> None:
        Transfer(x, o, sem).run()

    call = sp.pallas_call(plain, shaped(x), scratch_shapes=(sp.dma_semaphore(),), interpret=True)
    equal(call(x), x)


# Tuples of scalar semaphores: one parameter for all of them, indexed and zipped in Python.
SLOTS = 2


def copy_row(src: sp.Ref, dst: sp.Ref, row: int, sems: tuple[sp.DmaSemaphore, ...]) -> sp.LocalCopy:
    return sp.make_async_copy(src.at[row], dst.at[row], sems[row % len(sems)])


def semaphore_tuples(
    x: sp.Ref,
    o: sp.Ref,
    sems: tuple[sp.DmaSemaphore, ...],
    turns: tuple[sp.Semaphore, sp.Semaphore],
) -> None:
    assert len(sems) == SLOTS
    for row in range(ROWS):
        copy_row(x, o, row, sems).start()
        sp.signal(turns[row % 2])
    for row in range(ROWS):
        copy_row(x, o, row, sems).wait()
    even, odd = turns
    sp.wait(even, ROWS // 2)
    sp.wait(odd, ROWS // 2)

    # The tuple as an operand of JAX's loops, and one made here, of elements of an array.
    def again(row: jax.Array, sems: tuple[sp.DmaSemaphore, ...]) -> tuple[sp.DmaSemaphore, ...]:
        for sem in sems:
            sp.async_copy(x.at[row], o.at[row], sem).wait()
        return sems

    last: sp.DmaSemaphore = jax.lax.fori_loop(0, ROWS, again, sems)[-1]

    def body(more: DmaSemaphores) -> None:
        pair = (more.at[0], more.at[1])
        for row, sem in enumerate((*pair, last)):
            sp.async_copy(x.at[row], o.at[row], sem).wait()

    sp.run_scoped(body, sp.dma_semaphore(2))


def check_semaphore_tuples() -> None:
    x = jnp.arange(ROWS * 128, dtype=jnp.float32).reshape(ROWS, 128)
    call = sp.pallas_call(
        semaphore_tuples,
        shaped(x),
        scratch_shapes=((sp.dma_semaphore(),) * SLOTS, (sp.semaphore(), sp.semaphore())),
        interpret=SIMULATED,
    )
    equal(call(x), x)


# Handles as operands of JAX's control flow: they are pytrees, as refs are.
class Pair(NamedTuple):
    sem: sp.DmaSemaphore
    credit: sp.Semaphore


def control_flow(x: sp.Ref, o: sp.Ref, sems: DmaSemaphores, count: sp.Semaphore) -> None:
    def even(sems: DmaSemaphores, count: sp.Semaphore) -> None:
        sp.async_copy(x.at[0], o.at[0], sems.at[0]).wait()
        sp.signal(count)

    def odd(sems: DmaSemaphores, count: sp.Semaphore) -> None:
        sp.async_copy(x.at[0], o.at[0], sems.at[1]).wait()
        sp.signal(count)

    jax.lax.cond(x[0, 0] > 0, even, odd, sems, count)

    def take(pair: Pair) -> None:
        sp.async_copy(x.at[1], o.at[1], pair.sem).wait()
        sp.wait(pair.credit)

    jax.lax.switch(jnp.int32(1), [take, take], Pair(sems.at[1], count))

    def body(i: jax.Array, total: jax.Array) -> jax.Array:
        sp.async_copy(x.at[i], o.at[i], sems.at[jax.lax.rem(i, 2)]).wait()
        return total + 1

    total: jax.Array = jax.lax.fori_loop(2, ROWS, body, jnp.int32(0))
    sp.signal(count, total)
    sp.wait(count, ROWS - 2)

    def more(carry: tuple[jax.Array, jax.Array]) -> jax.Array:
        return carry[0] < 3

    def step(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        i, signals = carry
        sp.signal(count)
        return i + 1, signals + 1

    zero = jnp.int32(0)
    signals: jax.Array = jax.lax.while_loop(more, step, (zero, zero))[1]
    sp.wait(count, signals)


def check_control_flow() -> None:
    x = jnp.arange(1, ROWS * 128 + 1, dtype=jnp.float32).reshape(ROWS, 128)
    call = sp.pallas_call(
        control_flow,
        shaped(x),
        scratch_shapes=(sp.dma_semaphore(2), sp.semaphore()),
        interpret=SIMULATED,
    )
    equal(call(x), x)
