"""Cores of a device: by the axes of a core mesh, by `core_index`; joined axes beside them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractDevice, AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import safepallas as sp
from safepallas._jax import compat
from safepallas._operations import device_ids

from .core_meshes import tensor
from .helpers import Message, assert_ours, assert_says, equations, scalar_dtypes

X = jax.ShapeDtypeStruct((8, 128), jnp.float32)
CHIPS = {
    "two cores": AbstractDevice("TPU v5", 2, "tpu"),
    "one core": AbstractDevice("TPU v5 lite", 1, "tpu"),
    "no TPU": AbstractDevice("cpu", 1, "cpu"),
    "unknown": None,
}
DEVICES = {"x": 2, "y": 3}
Body = Callable[[Any, sp.Semaphore], None]


def over(call: Any, devices: dict[str, int], chip: str) -> Any:
    """A call on a mesh of such devices; on none where there are no axes."""
    if not devices:
        return call
    mesh = AbstractMesh(
        tuple(devices.values()),
        tuple(devices),
        axis_types=(AxisType.Auto,) * len(devices),
        abstract_device=CHIPS[chip],
    )
    return jax.shard_map(call, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)


def on_cores(body: Body, devices: dict[str, int], chip: str = "two cores", cores: int = 2) -> Any:
    """The jaxpr of a kernel over a mesh of TensorCores."""

    def kernel(x: Any, o: Any, raw: Any) -> None:
        body(x, sp.adopt(raw, sp.semaphore()))

    def call(x: Any) -> Any:
        scratch = (pltpu.SemaphoreType.REGULAR,)
        return pl.kernel(kernel, X, mesh=tensor(cores), scratch_types=scratch)(x)

    return jax.make_jaxpr(over(call, devices, chip))(jnp.zeros(X.shape))


def on_one(body: Body, devices: dict[str, int], chip: str) -> Any:
    """The jaxpr of a kernel by `pallas_call`."""
    call = sp.pallas_call(lambda x, o, sem: body(x, sem), X, scratch_shapes=(sp.semaphore(),))
    return jax.make_jaxpr(over(call, devices, chip))(jnp.zeros(X.shape))


def traced(x: Any) -> jax.Array:
    return x[0, 0].astype(jnp.int32)


def to(make: Callable[[Any], Any], **rest: Any) -> Body:
    return lambda x, sem: sp.signal(sem, device_id=make(x), **rest)


VALUE = sp.errors.DeviceIdError
# What the id is; without devices beside the cores, and on devices x: 2, y: 3.
IDS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "core": (lambda x: {"core": 1}, None, None),
    "traced core": (lambda x: {"core": traced(x)}, None, None),
    "core out of range": (lambda x: {"core": 2}, VALUE, VALUE),
    "negative core": (lambda x: {"core": -1}, VALUE, VALUE),
    "core by a float": (
        lambda x: {"core": 1.0},
        sp.errors.DeviceIdTypeError,
        sp.errors.DeviceIdTypeError,
    ),
    "device": (lambda x: {"x": 1}, VALUE, None),
    "device and core": (lambda x: {"x": traced(x), "core": 1}, VALUE, None),
    "device and core out of range": (lambda x: {"x": 1, "core": 2}, VALUE, VALUE),
    "joined devices": (lambda x: {("x", "y"): 5}, VALUE, None),
    "joined devices and core": (lambda x: {("x", "y"): 5, "core": 1}, VALUE, None),
    "traced joined devices and core": (lambda x: {("y", "x"): traced(x), "core": 1}, VALUE, None),
    "joined devices out of range": (lambda x: {("x", "y"): 6, "core": 1}, VALUE, VALUE),
    "core joined": (lambda x: {("x", "core"): 1}, VALUE, VALUE),
    "core joined with itself": (lambda x: {("core",): 1}, VALUE, VALUE),
    "core twice": (lambda x: {("x", "core"): 1, "core": 1}, VALUE, VALUE),
    # An int or a tuple counts the axes of the device mesh, not those of the cores.
    "int": (lambda x: 1, VALUE, VALUE),
    "tuple of one": (lambda x: (1,), VALUE, VALUE),
    "tuple of devices": (lambda x: (1, 2), VALUE, None),
    "tuple of devices and core": (lambda x: (1, 2, 1), VALUE, VALUE),
}


def judge(error: Any, make: Callable[[], Any]) -> Any:
    if error is None:
        return make()
    with pytest.raises(error) as info:
        make()
    assert_ours(info.value, error)
    return None


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("devices", [{}, DEVICES], ids=["alone", "on devices"])
@pytest.mark.parametrize("name", IDS)
def test_ids_on_core_meshes(name: str, devices: dict[str, int]) -> None:
    make, alone, beside = IDS[name]
    jaxpr = judge(beside if devices else alone, lambda: on_cores(to(make), devices))
    if jaxpr is not None:
        assert scalar_dtypes(jaxpr, "semaphore_signal") == {"int32"}


@pytest.mark.parametrize("name", ["device and core", "core out of range", "core joined"])
def test_remote_copies_take_the_same_ids(name: str) -> None:
    make, _, beside = IDS[name]

    def body(x: Any, sem: sp.Semaphore) -> None:
        sp.async_remote_copy_counted(x.at[0], x.at[1], sem, sem, make(x))

    jaxpr = judge(beside, lambda: on_cores(body, DEVICES))
    assert jaxpr is None or len(list(equations(jaxpr, "dma_start"))) == 1


# The most cores that each place is known to have, or None: a number for `core_index` below that
# is accepted, from there on refused.
PLACES: dict[str, tuple[Callable[[Body], Any], int | None]] = {
    "two cores": (lambda body: on_one(body, DEVICES, "two cores"), 2),
    "one core": (lambda body: on_one(body, DEVICES, "one core"), 1),
    "no TPU": (lambda body: on_one(body, DEVICES, "no TPU"), None),
    "unknown": (lambda body: on_one(body, DEVICES, "unknown"), None),
    "no mesh": (lambda body: on_one(body, {}, "unknown"), None),
    "mesh of two cores": (lambda body: on_cores(body, {}), 2),
    "mesh of two cores of an unknown chip": (lambda body: on_cores(body, DEVICES, "unknown"), 2),
    "mesh of one core of two": (lambda body: on_cores(body, DEVICES, cores=1), 2),
    "mesh of one core": (lambda body: on_cores(body, {}, cores=1), None),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("place", PLACES)
def test_core_index_beyond_the_cores(place: str) -> None:
    trace, cores = PLACES[place]
    for number in (0, 1, 2, 7, np.int8(1), np.int64(2)):
        error = sp.errors.AmountRangeError if cores is not None and number >= cores else None
        judge(error, lambda n=number: trace(lambda x, sem: sp.signal(sem, core_index=n)))
    trace(lambda x, sem: sp.signal(sem, core_index=traced(x)))


def test_core_index_beside_an_id() -> None:
    here, core = {"x": 1}, {"x": 1, "core": 0}
    on_cores(to(lambda x: here, core_index=1), DEVICES)
    on_cores(to(lambda x: (1, 2), core_index=1), DEVICES)
    judge(sp.errors.DeviceIdError, lambda: on_cores(to(lambda x: core, core_index=1), DEVICES))
    judge(sp.errors.DeviceIdError, lambda: on_cores(to(lambda x: {"core": 0}, core_index=1), {}))
    # Of two faults the first: the device, the core, both.
    judge(sp.errors.DeviceIdError, lambda: on_cores(to(lambda x: {"z": 1}, core_index=9), DEVICES))
    judge(sp.errors.AmountRangeError, lambda: on_cores(to(lambda x: core, core_index=9), DEVICES))


def test_a_mapped_axis_is_no_limit() -> None:
    """The axis of a `jax.vmap` is bound like one of cores, and says nothing of them."""

    def body(x: Any, o: Any, sem: sp.Semaphore) -> None:
        sp.signal(sem, core_index=1)

    call = sp.pallas_call(body, X, scratch_shapes=(sp.semaphore(),))
    jax.make_jaxpr(jax.vmap(call, axis_name="v"))(jnp.zeros((1, *X.shape)))


@pytest.mark.parametrize("axes", [("x", "y"), ("y", "x"), ("x", "y", "z"), ("z",)])
def test_joined_axes_taken_apart(axes: tuple[str, ...]) -> None:
    sizes = {"x": 2, "y": 3, "z": 5, "core": 2}
    shape = tuple(sizes[axis] for axis in axes)
    for number in range(int(np.prod(shape))):
        expected = dict(zip(axes, map(int, np.unravel_index(number, shape)), strict=True))
        for value in (number, np.int32(number)):
            apart = device_ids._taken_apart({axes: value, "core": 1}, sizes)
            assert apart == {**expected, "core": 1}
        taken = jax.jit(lambda n: device_ids._taken_apart({axes: n}, sizes))(np.int32(number))
        assert jax.tree.map(int, taken) == expected
        assert {str(value.dtype) for value in taken.values()} == {"int32"}


def test_joined_axes_are_passed_on_where_jax_can() -> None:
    """JAX 0.10.2 cannot sort the keys of a dict that holds names and tuples."""
    jaxpr = on_cores(to(lambda x: {("x", "y"): 5, "core": 1}), DEVICES)
    (signal,) = equations(jaxpr, "semaphore_signal")
    assert ("('x', 'y')" in str(signal.params["args_tree"])) != compat.KEYS_MUST_BE_ALIKE


SEM = "Semaphore 'adopted' (adopted as semaphore())"
MESSAGES: dict[str, Message] = {
    "joined with a core": Message(
        sp.errors.DeviceIdError,
        lambda: on_cores(to(lambda x: {("x", "core"): 1}), DEVICES),
        f"signal: device_id joins the axes ('x', 'core') for {SEM}, but 'core' is no axis of the "
        "device mesh: only those can be joined. Give it a coordinate of its own: {'core': i}. "
        "[device-id]",
    ),
    "core named twice": Message(
        sp.errors.DeviceIdError,
        lambda: on_cores(to(lambda x: {"core": 1}, core_index=0), {}),
        f"signal: core_index is given for {SEM}, and device_id names a core by the axis 'core'. "
        "Name the core once. [device-id]",
    ),
    "core out of range": Message(
        sp.errors.AmountRangeError,
        lambda: on_cores(lambda x, sem: sp.signal(sem, core_index=7), {}),
        f"signal: core_index 7 is out of range for {SEM}: a device has 2 cores here. Count from 0, "
        "or leave it out for this core. [amount-range]",
    ),
    "core of one": Message(
        sp.errors.AmountRangeError,
        lambda: on_cores(lambda x, sem: sp.signal(sem, core_index=1), DEVICES, "one core", 1),
        f"signal: core_index 1 is out of range for {SEM}: a device has 1 core here. Count from 0, "
        "or leave it out for this core. [amount-range]",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str) -> None:
    assert_says(MESSAGES[name], __file__)
