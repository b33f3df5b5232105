"""Groups of handles as the carry of loops and the operands of branches.

A NamedTuple with a field that may be None, a dict, a dataclass that JAX knows as a pytree; and one
that it does not know, which goes by closure.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

ROWS = 4


class Stream(NamedTuple):
    arrived: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]]
    credit: sp.Semaphore | None
    sent: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Channel:
    sem: sp.DmaSemaphore
    done: sp.Semaphore | None = None
    name: str = dataclasses.field(default="channel", metadata={"static": True})


@dataclasses.dataclass(frozen=True)
class Plan:
    """Not a pytree: JAX never sees it."""

    src: sp.Ref
    dst: sp.Ref
    channel: Channel

    def copy(self, row: int | jax.Array) -> None:
        sp.async_copy(self.src.at[row], self.dst.at[row], self.channel.sem).wait()
        if self.channel.done is not None:
            sp.signal(self.channel.done)


def drain(by_name: dict[str, sp.Semaphore], amounts: dict[str, int | jax.Array]) -> None:
    for name, amount in amounts.items():
        sp.wait(by_name[name], amount)


def kernel(
    x: sp.Ref,
    o: sp.Ref,
    arrived: sp.SemaphoreArray[sp.DmaSemaphore, tuple[int]],
    sem: sp.DmaSemaphore,
    credit: sp.Semaphore,
    done: sp.Semaphore,
) -> None:
    def step(row: jax.Array, stream: Stream) -> Stream:
        slot = jax.lax.rem(row, 2)
        sp.async_copy(x.at[0, row], o.at[0, row], stream.arrived.at[slot]).wait()
        if stream.credit is not None:
            sp.signal(stream.credit)
        return stream._replace(sent=stream.sent + 1)

    for with_credit in (credit, None):
        begun = Stream(arrived, with_credit, jnp.int32(0))
        ended = jax.lax.fori_loop(0, ROWS, step, begun)
        if ended.credit is not None:
            sp.wait(ended.credit, ended.sent)

    # A registered dataclass: the carry of a scan, and the operand of a branch.
    def scanned(channel: Channel, row: jax.Array) -> tuple[Channel, None]:
        assert channel.name == "first"
        sp.async_copy(x.at[1, row], o.at[1, row], channel.sem).wait()
        if channel.done is not None:
            sp.signal(channel.done)
        return channel, None

    channel, _ = jax.lax.scan(scanned, Channel(sem, done, "first"), jnp.arange(ROWS))
    assert channel.done is not None
    sp.wait(channel.done, ROWS)

    def branch(channel: Channel) -> None:
        Plan(x.at[2], o.at[2], channel).copy(0)

    jax.lax.cond(x[0, 0, 0] > 0, branch, branch, Channel(sem))

    # By closure.
    plan = Plan(x.at[2], o.at[2], Channel(sem, done))

    def rest(row: jax.Array, carry: None) -> None:
        plan.copy(row)
        return carry

    jax.lax.fori_loop(1, ROWS, rest, None)

    # A dict, through a loop and into a helper.
    def count(_: jax.Array, sems: dict[str, sp.Semaphore]) -> dict[str, sp.Semaphore]:
        sp.signal(sems["credit"], 2)
        return sems

    sems = jax.lax.fori_loop(0, 3, count, {"credit": credit, "done": done})
    drain(sems, {"credit": 6, "done": ROWS - 1})


def main() -> None:
    x = jnp.arange(1, 3 * ROWS * 128 + 1, dtype=jnp.float32).reshape(3, ROWS, 128)
    call = sp.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=(
            sp.dma_semaphore(2),
            sp.dma_semaphore(),
            sp.semaphore(),
            sp.semaphore(),
        ),
        interpret=pltpu.InterpretParams(),
    )
    np.testing.assert_array_equal(call(x), x)
