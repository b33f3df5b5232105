"""Meshes of cores of a chip that is not here."""

from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc
from jax.sharding import AbstractDevice, AbstractMesh

CHIP = AbstractDevice("TPU v6 lite", 1, "tpu")

RENAMED = hasattr(pltpu, "TensorCoreMesh")  # in JAX 0.12
TENSOR_CORE_MESH = f"pltpu.{'TensorCoreMesh' if RENAMED else 'create_tensorcore_mesh'}(...)"


def tensor(cores: int = 1) -> Any:
    """A mesh of TensorCores with the axis ``core``."""
    if RENAMED:
        return pltpu.TensorCoreMesh(axis_name="core", num_cores=cores)
    return pltpu.create_tensorcore_mesh("core", num_cores=cores)


def vector() -> Any:
    """All vector subcores of the SparseCores: axes ``core`` and ``subcore``."""
    return plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore")


def scalar() -> Any:
    """All scalar subcores of the SparseCores: the axis ``core``."""
    return plsc.ScalarSubcoreMesh(axis_name="core")


def on_sparse_cores(fn: Callable[[], Any]) -> Callable[[], Any]:
    """`fn`, called where JAX believes in a chip that has SparseCores."""

    def call() -> Any:
        mesh = AbstractMesh((), (), abstract_device=CHIP)
        with jax.sharding.use_abstract_mesh(mesh):
            return fn()

    return call
