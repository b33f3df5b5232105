"""A copy between devices that goes on while XLA multiplies: one kernel starts it, another waits.

Every device multiplies its rows with the weights of all devices. The weights travel round the ring
to the left: while a device multiplies with those it has, the next ones come in from its right. The
product is XLA's own; what surrounds it are the two kernels of one `sp.pallas_call_async`, whose
semaphores go from the first to the second.

`python docs/examples/start_done.py` simulates four devices on the CPU, race detector on. There the
two run as one kernel: no interpreter of JAX carries a semaphore from one kernel to the next.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Four devices and an idle one: with none idle the simulator of jax 0.10 can hang.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=5")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import safepallas as sp


class Sizes(NamedTuple):
    """What one device holds, in elements."""

    rows: int  # of x
    inner: int
    cols: int
    dtype: Any


SMALL = Sizes(rows=64, inner=256, cols=512, dtype=jnp.float32)
PRODUCTION = Sizes(rows=1024, inner=4096, cols=4096, dtype=jnp.bfloat16)


class Flight(sp.Scratch):
    """What is on its way between the kernels."""

    send = sp.dma_semaphore()
    recv = sp.dma_semaphore()


def start(w: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    size = jax.lax.axis_size("x")
    left = jax.lax.rem(jax.lax.axis_index("x") + size - 1, np.int32(size))

    # The left neighbour must have a buffer before anything is sent to it.
    sp.barrier_neighbors("x")
    sp.async_remote_copy(w, o, flight.send, flight.recv, {"x": left})


def done(w: sp.Ref, o: sp.Ref, flight: Flight) -> None:
    sp.wait_bytes(flight.send, w)
    sp.wait_bytes(flight.recv, o)


def build(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None,
    *,
    sizes: Sizes = SMALL,
    interpret: Any = False,
) -> tuple[Callable[..., jax.Array], tuple[jax.Array, ...]]:
    """The function and arguments for it, for a mesh with one axis "x" of any size."""
    assert mesh is not None
    size = mesh.shape["x"]
    shift = sp.pallas_call_async(
        Flight,
        start,
        done,
        jax.ShapeDtypeStruct((sizes.inner, sizes.cols), sizes.dtype),
        compiler_params=pltpu.CompilerParams(collective_id=0),
        interpret=interpret,
    )

    def products(x: jax.Array, w: jax.Array) -> jax.Array:
        found = []
        for _ in range(size - 1):
            in_flight = shift.start(w)
            found.append(in_flight.then(x) @ w)
            w = shift.done(in_flight, after=found[-1])
        found.append(x @ w)
        return jnp.stack(found, axis=1)

    fn = jax.shard_map(products, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    # Small whole numbers: every sum is exact, in whatever order.
    x = jnp.arange(size * sizes.rows * sizes.inner, dtype=jnp.int32).reshape(-1, sizes.inner) % 7
    w = jnp.arange(size * sizes.inner * sizes.cols, dtype=jnp.int32).reshape(-1, sizes.cols) % 5
    return fn, (x.astype(sizes.dtype), w.astype(sizes.dtype))


def expected(x: jax.Array, w: jax.Array) -> jax.Array:
    """Row by row, the products with all weights, those of the row's own device first."""
    inner = x.shape[1]
    blocks = w.reshape(-1, inner, w.shape[1])
    size = len(blocks)
    every = jnp.einsum("dri,eic->drec", x.reshape(size, -1, inner), blocks)
    turned = [jnp.roll(every[d], -d, axis=1) for d in range(size)]
    return jnp.concatenate(turned)


def main() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("x",))
    fn, args = build(mesh, interpret=pltpu.InterpretParams(detect_races=True))
    np.testing.assert_array_equal(jax.jit(fn)(*args), expected(*args))
    print(f"products around a ring of {mesh.size} simulated devices: ok")


if __name__ == "__main__":
    main()
