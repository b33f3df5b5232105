"""Every form of a device id, on every kind of mesh, for every operation that takes one."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import safepallas as sp

from .helpers import (
    FLOATS,
    MESHES,
    Act,
    Case,
    Kernel,
    judge_all,
    judge_under_x64,
    scalar_dtypes,
    trace,
)

CALLS: dict[str, Callable[[Kernel, Any], Any]] = {
    "signal": lambda k, where: sp.signal(k.regular0, device_id=where),
    "make_async_remote_copy": lambda k, where: sp.make_async_remote_copy(
        k.x, k.o, k.dma0, k.dma1[0], where
    ).start(),
    "async_remote_copy": lambda k, where: sp.async_remote_copy(
        k.x, k.o, k.dma0, k.dma1[0], device_id=where
    ),
    "async_remote_copy_counted": lambda k, where: sp.async_remote_copy_counted(
        k.x, k.o, k.regular0, k.regular1[0], where
    ),
}
NONE, ONE, TWO = MESHES  # x: 4; x: 2, y: 3
Verdict = type[Exception] | None
TYPE, VALUE = sp.errors.DeviceIdTypeError, sp.errors.DeviceIdError

# name: what the id is, and the verdicts without a mesh, on one axis, on two
ROWS: dict[str, tuple[Act, Verdict, Verdict, Verdict]] = {
    "0": (lambda k: 0, VALUE, None, VALUE),
    "3": (lambda k: 3, VALUE, None, VALUE),
    "4": (lambda k: 4, VALUE, VALUE, VALUE),
    "-1": (lambda k: -1, VALUE, VALUE, VALUE),
    "2**31": (lambda k: 2**31, VALUE, VALUE, VALUE),
    "2**70": (lambda k: 2**70, VALUE, VALUE, VALUE),
    "numpy int32": (lambda k: np.int32(3), VALUE, None, VALUE),
    "numpy int8": (lambda k: np.int8(3), VALUE, None, VALUE),
    "numpy uint64": (lambda k: np.uint64(3), VALUE, None, VALUE),
    "numpy 4": (lambda k: np.int64(4), VALUE, VALUE, VALUE),
    "traced int8": (lambda k: k.traced(jnp.int8), VALUE, None, VALUE),
    "traced int32": (lambda k: k.traced(jnp.int32), VALUE, None, VALUE),
    "traced uint32": (lambda k: k.traced(jnp.uint32), VALUE, None, VALUE),
    "traced int64": (lambda k: k.traced(int), VALUE, None, VALUE),
    "()": (lambda k: (), VALUE, VALUE, VALUE),
    "(1,)": (lambda k: (1,), VALUE, None, VALUE),
    "(4,)": (lambda k: (4,), VALUE, VALUE, VALUE),
    "(1, 2)": (lambda k: (1, 2), VALUE, VALUE, None),
    "(2, 0)": (lambda k: (2, 0), VALUE, VALUE, VALUE),
    "(0, 3)": (lambda k: (0, 3), VALUE, VALUE, VALUE),
    "(0, -1)": (lambda k: (0, -1), VALUE, VALUE, VALUE),
    "(traced,)": (lambda k: (k.traced(jnp.int32),), VALUE, None, VALUE),
    "(traced, 2)": (lambda k: (k.traced(int), 2), VALUE, VALUE, None),
    "(1, 2, 0)": (lambda k: (1, 2, 0), VALUE, VALUE, VALUE),
    "{x: 1}": (lambda k: {"x": 1}, VALUE, None, None),
    "{x: 2}": (lambda k: {"x": 2}, VALUE, None, VALUE),
    "{x: 4}": (lambda k: {"x": 4}, VALUE, VALUE, VALUE),
    "{x: -1}": (lambda k: {"x": -1}, VALUE, VALUE, VALUE),
    "{x: numpy int16}": (lambda k: {"x": np.int16(1)}, VALUE, None, None),
    "{x: traced}": (lambda k: {"x": k.traced(int)}, VALUE, None, None),
    "{y: 2}": (lambda k: {"y": 2}, VALUE, VALUE, None),
    "{x: 1, y: 2}": (lambda k: {"x": 1, "y": 2}, VALUE, VALUE, None),
    "{x: 1, y: 3}": (lambda k: {"x": 1, "y": 3}, VALUE, VALUE, VALUE),
    "{z: 0}": (lambda k: {"z": 0}, VALUE, VALUE, VALUE),
    "{x: 0, z: 0}": (lambda k: {"x": 0, "z": 0}, VALUE, VALUE, VALUE),
    "{0: 0}": (lambda k: {0: 0}, VALUE, VALUE, VALUE),
    "{None: 0}": (lambda k: {None: 0}, VALUE, VALUE, VALUE),
    "{xy: 5}": (lambda k: {("x", "y"): 5}, VALUE, VALUE, None),
    "{xy: 6}": (lambda k: {("x", "y"): 6}, VALUE, VALUE, VALUE),
    "{xy: traced}": (lambda k: {("x", "y"): k.traced(jnp.int32)}, VALUE, VALUE, None),
    "{xz: 0}": (lambda k: {("x", "z"): 0}, VALUE, VALUE, VALUE),
    "{xx: 0}": (lambda k: {("x", "x"): 0}, VALUE, VALUE, VALUE),
    "{x: 0, xy: 0}": (lambda k: {"x": 0, ("x", "y"): 0}, VALUE, VALUE, VALUE),
    "{xy: 0, y: 0}": (lambda k: {("x", "y"): 0, "y": 0}, VALUE, VALUE, VALUE),
    "{}": (lambda k: {}, VALUE, VALUE, VALUE),
    "{(): 0}": (lambda k: {(): 0}, VALUE, VALUE, VALUE),
    "set": (lambda k: {0}, TYPE, TYPE, TYPE),
}
NO_COORDINATES: dict[str, Act] = {
    "True": lambda k: True,
    "numpy bool": lambda k: np.bool_(False),
    "float": lambda k: 1.0,
    "numpy float": lambda k: np.float32(1),
    "str": lambda k: "x",
    "digit": lambda k: "1",
    "complex": lambda k: 1j,
    "ellipsis": lambda k: ...,
    "list": lambda k: [1],
    "numpy vector": lambda k: np.array([1]),
    "traced float": lambda k: k.traced(jnp.float32),
    "traced bool": lambda k: k.traced(jnp.bool_),
    "traced vector": lambda k: k.traced(jnp.int32, (1,)),
    "ref": lambda k: k.data.int32,
    "semaphore": lambda k: k.dma0,
}


def rows() -> dict[str, tuple[Act, Verdict, Verdict, Verdict]]:
    """The table, and what is no coordinate in every place of an id."""
    table = dict(ROWS)
    # A wrong type says more than a missing mesh or a wrong length; an unknown axis comes first.
    inside = NO_COORDINATES | {"None": lambda k: None, "tuple": lambda k: (1,)}
    for name, make in NO_COORDINATES.items():
        table[name] = (make, TYPE, TYPE, TYPE)
    for name, make in inside.items():
        table[f"({name},)"] = (lambda k, make=make: (make(k),), TYPE, TYPE, TYPE)
        table[f"(1, {name})"] = (lambda k, make=make: (1, make(k)), TYPE, TYPE, TYPE)
        table[f"{{x: {name}}}"] = (lambda k, make=make: {"x": make(k)}, VALUE, TYPE, TYPE)
        table[f"{{x: 0, y: {name}}}"] = (
            lambda k, make=make: {"x": 0, "y": make(k)},
            VALUE,
            VALUE,
            TYPE,
        )
    return table


CASES = [
    Case(
        f"{op} {name} on {mesh}",
        verdict,
        lambda k, call=call, make=make: call(k, make(k)),
        mesh,
    )
    for op, call in CALLS.items()
    for name, (make, *verdicts) in rows().items()
    for mesh, verdict in zip(MESHES, verdicts, strict=True)
]
CASES += [
    # None is this device for a signal; a remote copy must say where it goes.
    Case(
        f"{op} None on {mesh}",
        None if op == "signal" else TYPE,
        lambda k, call=call: call(k, None),
        mesh,
    )
    for op, call in CALLS.items()
    for mesh in MESHES
]
# Of two faults the first.
FAULTS = [
    Case("kind, then device", sp.errors.WrongKindError, lambda k: sp.signal(k.dma0, device_id="x")),
    Case(
        "ends, then device",
        sp.errors.CopyMismatchError,
        lambda k: sp.async_remote_copy(k.x, k.data.flat, k.dma0, k.dma0, "x"),
    ),
    Case(
        "receiving semaphore, then device",
        sp.errors.WrongKindError,
        lambda k: sp.async_remote_copy(k.x, k.o, k.dma0, k.regular0, "x"),
    ),
]


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("op", CALLS)
def test_device_ids(op: str, mesh: str) -> None:
    cases = [case for case in CASES if case.name.startswith(f"{op} ") and case.mesh == mesh]
    assert len(cases) > 100
    judge_all(cases)


def test_order_of_faults() -> None:
    judge_all(FAULTS)


def test_device_ids_under_x64() -> None:
    judge_under_x64(CASES + FAULTS)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("mesh", [ONE, TWO])
@pytest.mark.parametrize("op", CALLS)
def test_valid_ids_arrive_as_int32(op: str, mesh: str) -> None:
    column = list(MESHES).index(mesh) + 1
    primitive = "semaphore_signal" if op == "signal" else "dma_start"
    for name, row in ROWS.items():
        if row[column] is None:
            jaxpr = trace(lambda k, make=row[0]: CALLS[op](k, make(k)), mesh)
            assert scalar_dtypes(jaxpr, primitive) <= {"int32"}, name


def test_device_id_of_a_remote_copy_is_required() -> None:
    for make in (sp.make_async_remote_copy, sp.async_remote_copy):
        with pytest.raises(TypeError, match="device_id"):
            trace(lambda k, make=make: make(k.x, k.o, k.dma0, k.dma0))
    with pytest.raises(TypeError, match="device_id"):
        trace(lambda k: sp.async_remote_copy_counted(k.x, k.o, k.regular0, k.regular0))


def test_a_grid_axis_names_no_device() -> None:
    """JAX 0.10.2 would take it for the axis of a core mesh, and signal another core."""

    def kernel(x: sp.Ref, o: sp.Ref, sem: sp.Semaphore) -> None:
        assert jax.lax.axis_size("g") == 4
        sp.signal(sem, device_id={"g": 2})

    call = sp.pallas_call(kernel, FLOATS, grid=(("g", 4),), scratch_shapes=(sp.semaphore(),))
    with pytest.raises(sp.errors.DeviceIdError, match=r"names the axis 'g' .* The axes are none"):
        jax.eval_shape(call, FLOATS)
