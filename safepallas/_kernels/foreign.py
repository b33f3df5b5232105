"""Semaphores of other cores: in a kernel of several bodies, each body receives those of all."""

from collections.abc import Iterable
from typing import Any

from safepallas._jax import compat
from safepallas._semaphores.kinds import kind_of
from safepallas._semaphores.meshes import core_of, mesh_of

# A core signals the semaphores of others, and waits for its own alone.
_OF_ITS_OWN = frozenset({"dma_start", "dma_wait", "semaphore_read", "semaphore_wait"})


def _is_foreign(ref_type: Any, core: str) -> bool:
    mesh = mesh_of(ref_type)
    return mesh is not None and core_of(mesh) != core


def first_foreign(equations: Iterable[Any], core: str) -> Any:
    """The first equation that waits, reads or copies with semaphores of other cores only.

    A remote copy may name one of each: it signals the other core when it arrives there.
    """
    for eqn in equations:
        if eqn.primitive.name in _OF_ITS_OWN:
            refs = compat.ref_types_of(eqn)
            semaphores = [ref for ref in refs if kind_of(ref.dtype) is not None]
            if semaphores and all(_is_foreign(ref, core) for ref in semaphores):
                return eqn
        for jaxpr in compat.jaxprs_in(eqn.params):
            found = first_foreign(compat.equations_of(jaxpr), core)
            if found is not None:
                return found
    return None
