"""What the guard checks of each operation of raw Pallas, before raw Pallas does it.

Each function gets the arguments by the names that raw Pallas gives them. None of them traces
anything: the jaxpr is that of the kernel alone.
"""

import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from safepallas._errors import operation_errors, semaphore_errors
from safepallas._errors.base import INT32_MAX
from safepallas._guard.names import Names, kind_in, kind_of_ref
from safepallas._jax import compat
from safepallas._operations.checks import amount
from safepallas._operations.copies import LocalCopy, RemoteCopy, check_counting_ends, check_ends
from safepallas._operations.device_ids import coordinate, resolve
from safepallas._operations.signal_wait import core_number
from safepallas._semaphores.kinds import DMA, REGULAR
from safepallas._semaphores.lifetime import describe

Given = Mapping[str, object]


def _unconverted(number: Any) -> Any:
    """A traced integer that safepallas would convert, as a stand-in: raw Pallas refuses it."""
    if compat.is_tracer(number) and not number.ndim and np.issubdtype(number.dtype, np.integer):
        return number if number.dtype == np.int32 else 0
    return number


def _check_device(device_id: object, id_type: object, op: str, sem: object) -> None:
    if isinstance(device_id, (tuple, list)):  # raw Pallas takes its leaves
        ids: object = tuple(_unconverted(i) for i in jax.tree_util.tree_leaves(device_id))
    elif isinstance(device_id, Mapping):
        ids = {axis: _unconverted(i) for axis, i in device_id.items()}
    else:
        ids = _unconverted(device_id)
    if getattr(id_type, "name", "MESH") == "MESH":
        resolve(ids, op, sem)
    elif isinstance(device_id, (Mapping, tuple, list)):
        raise operation_errors.device_id_logical(op, str(sem), describe(device_id))
    else:  # counted through the whole mesh, the last axis fastest
        mesh = compat.mesh_axes() or compat.axis_sizes()
        size = math.prod(mesh.values()) if mesh else INT32_MAX
        coordinate(ids, op, sem, tuple(mesh), size, device_id)


def signal(names: Names, given: Given) -> None:
    sem = names.vetted(given["sem_or_view"], "signal", "sem")
    amount(given["inc"], "signal", "inc", sem, 0)
    if given["device_id"] is not None:
        _check_device(given["device_id"], given["device_id_type"], "signal", sem)
    if given.get("core_index") is not None:
        core_number(_unconverted(given["core_index"]), sem)


def wait(names: Names, given: Given) -> None:
    sem = names.vetted(given["sem_or_view"], "wait", "sem")
    amount(given["value"], "wait", "value", sem, 1)
    if given["decrement"] is not True:
        raise operation_errors.wait_option(str(sem), describe(given["decrement"]))


def read(names: Names, given: Given) -> None:
    names.vetted(given["sem_or_view"], "read", "sem")


def core_barrier(names: Names, given: Given) -> None:
    names.vetted(given["sem"], "core_barrier", "sem")


def sync_copy(names: Names, given: Given) -> None:
    tree: object
    other: object
    sources, tree = jax.tree_util.tree_flatten(given["src_ref"])
    destinations, other = jax.tree_util.tree_flatten(given["dst_ref"])
    if tree == other:  # else JAX says which part has no partner
        for src, dst in zip(sources, destinations, strict=True):
            check_ends(src, dst, "sync_copy", "a semaphore of its own")


def check_start(remote: bool, priority: object, add: object, sem: object) -> None:
    """Refuse options that mean nothing, as the start of our copies does."""
    priorities = RemoteCopy._priorities if remote else LocalCopy._priorities
    op = f"start of a {'remote' if remote else 'local'} copy"
    if type(priority) is not int or priority not in priorities:
        expected = " or ".join(map(str, priorities))
        raise operation_errors.copy_option(op, "priority", expected, describe(priority), str(sem))
    if type(add) is not bool:
        raise operation_errors.copy_option(op, "add", "True or False", describe(add), str(sem))


def check_wait(sem: object) -> None:
    """Refuse to wait for the bytes of a copy that counts."""
    if kind_in(sem) is REGULAR:
        raise semaphore_errors.wrong_kind("wait", "sem", DMA.handle, str(sem), REGULAR.fix)


def is_remote(given: Given) -> bool:
    # JAX 0.10.2 takes neither of the two for a local copy.
    return "device_id" in given and (given["device_id"], given["send_sem"]) != (None, None)


def copy(names: Names, op: str, given: Given) -> list[object]:
    """Check a copy that is made, or made and started.

    Returns:
        Handles on its semaphores. All count bytes (DMA semaphores), or all count copies (regular
        ones, TPU v6 and later); a local copy may leave one of them out under JAX 0.12.
    """
    remote = is_remote(given)
    if remote:
        sems = [(arg, given[arg]) for arg in ("send_sem", "recv_sem")]
    else:
        op = op.replace("remote_", "")
        found = [given.get(arg) for arg in ("recv_sem", "src_sem", "sem")]
        sems = [("sem", sem) for sem in found if sem is not None] or [("sem", None)]
    counts = all(kind_of_ref(sem) is REGULAR for _, sem in sems)
    op_of_kinds = f"async_{'remote_' if remote else ''}copy_counted" if counts else op
    handles = [names.vetted(sem, op_of_kinds, arg) for arg, sem in sems]
    check = check_counting_ends if counts else check_ends
    check(given["src_ref"], given["dst_ref"], op, handles[-1])
    if remote:
        _check_device(given["device_id"], given.get("device_id_type"), op, handles[-1])
    return handles
