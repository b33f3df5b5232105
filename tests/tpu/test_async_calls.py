"""Start and done kernels in the TPU compiler: what goes on between them, and what does not."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import safepallas as sp
from safepallas import testing

from .test_examples import EXAMPLES, load

TOPOLOGIES = ("v5e:2x2", "v6e:2x2")


def schedule(compiled: Any) -> list[tuple[str, str]]:
    """The entry computation's instructions, in the order in which they run: name and operation."""
    text = compiled.as_text()
    assert "is_scheduled=true" in text
    entry = text[text.index("ENTRY") :]
    return re.findall(r"^\s+(?:ROOT )?%([\w.-]+) = .*? ([a-z-]+)\(", entry, re.MULTILINE)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_each_product_runs_while_a_copy_is_in_flight(topology: str) -> None:
    """Between start and done stands one product, three times over; the fourth comes at the end."""
    mesh = testing.tpu_mesh((4,), ("x",), topology=topology)
    fn, args = load(EXAMPLES / "start_done.py").build(mesh)
    sharding = NamedSharding(mesh, PartitionSpec("x"))
    placed = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding) for a in args]
    compiled = testing.compile_for_tpu(fn, *placed, topology=topology)
    between = ""
    for name, operation in schedule(compiled):
        if operation == "custom-call":
            between += "k"
        elif operation == "convolution" or (operation == "fusion" and "pad" not in name):
            between += "p"
    assert between == "kpk" * 3 + "p"


class Flight(sp.Scratch):
    sem = sp.dma_semaphore()


def start(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    sp.async_copy(x, o, flight.sem)


def done(x: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    del x
    sp.wait_bytes(flight.sem, o)


def plain(x: jax.Array) -> jax.Array:
    """Where `x` is not pinned, XLA brings it to VMEM for v6e after start, and done gets that."""
    call = sp.pallas_call_async(Flight, start, done, jax.ShapeDtypeStruct(x.shape, x.dtype))
    in_flight = call.start(x)
    return x * 2 + call.done(in_flight)


def in_a_loop(x: jax.Array) -> jax.Array:
    def step(x: jax.Array, _: None) -> tuple[jax.Array, None]:
        return plain(x) - x, None

    return jax.lax.scan(step, x, None, length=3)[0]


@pytest.mark.parametrize("function", [plain, in_a_loop])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_buffers_in_flight_stay_where_they_are(topology: str, function: Any) -> None:
    """The buffers that done is given are those that start has, with no copy in between."""
    text = testing.compile_for_tpu(function, jnp.zeros((8, 128)), topology=topology).as_text()
    calls = re.findall(r"%([\w.-]+) = [^\n]*? custom-call\(([^)]*)\)", text)
    kernels = [(name, re.findall(r"%([\w.-]+)", operands)) for name, operands in calls]
    ((begun, given), (_, (x, o, sem))) = kernels
    assert x == given[0]
    parts = dict(re.findall(r"%([\w.-]+) = [^\n]*?get-tuple-element\(%([\w.-]+)\)", text))
    assert parts[o] == parts[sem] == begun


def test_buffers_are_pinned_to_hbm() -> None:
    """XLA need not move a buffer that it may move: what it is told is in the types."""
    eqns = jax.make_jaxpr(plain)(jnp.zeros((8, 128))).jaxpr.eqns
    first, second = [eqn for eqn in eqns if eqn.primitive.name == "pallas_call"]
    inputs = [first.invars[0].aval, second.invars[0].aval]
    assert ["hbm" in str(aval) for aval in (*inputs, first.params["out_avals"][0])] == [True] * 3
