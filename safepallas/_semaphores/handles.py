"""Handles: scalar semaphores that may be used."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, final

import jax
import numpy as np

from safepallas._errors import semaphore_errors
from safepallas._semaphores import kinds
from safepallas._semaphores.lifetime import Aux, Named, Origin, Part, Scope, allocated
from safepallas.raw import BarrierSemaphoreRef, DmaSemaphoreRef, SemaphoreRef


class Handle(Named):
    """What the three handles share. Not public: each handle is a class of its own."""

    __slots__ = ("_origin", "_ref", "_scope", "_vetted")

    _kind: ClassVar[kinds.Kind]

    def __str__(self) -> str:
        return f"{type(self).__name__} {self._origin}"

    def __repr__(self) -> str:
        return f"<{self}>"

    if not TYPE_CHECKING:  # checkers reject all of these, and say it better without them

        def __bool__(self):
            raise semaphore_errors.used_as_value(str(self), "has no truth value")

        def __array__(self, *args, **kwargs):
            raise semaphore_errors.used_as_value(str(self), "cannot be loaded")

        def __eq__(self, other):
            if isinstance(other, (int, float, complex, np.generic, np.ndarray, jax.Array)):
                raise semaphore_errors.used_as_value(str(self), "cannot be compared with a number")
            return self is other

        __hash__ = object.__hash__


@final
class Semaphore(Handle):
    """One regular semaphore: `signal` adds to it, `wait` takes from it, `read` shows its count.

    A counting semaphore (int32) on one TPU core. It comes from ``sp.semaphore()`` in a scope, or
    from `adopt`. Calling the class raises `TypeError`.

    Example, in a kernel::

        sp.signal(ready, 2)
        sp.wait(ready)
        pl.semaphore_wait(ready.ref, 1)  # raw Pallas takes the ref
    """

    __slots__ = ()
    _kind = kinds.REGULAR
    _instead = allocated(kinds.REGULAR.request)

    @property
    def ref(self) -> SemaphoreRef:
        """The raw Pallas ref, the way back to raw Pallas.

        Raises:
            ScopeEndedError: after the scope that allocated the semaphore.
        """
        return cast(SemaphoreRef, self._live_ref())


@final
class BarrierSemaphore(Handle):
    """One barrier semaphore: `signal` and `wait`, between the devices that run the same kernel.

    The one that `collective_id` names comes from `get_barrier_semaphore`; it outlives the kernel
    and must be waited back to zero. Calling the class raises `TypeError`.

    Example, in a kernel::

        barrier = sp.get_barrier_semaphore()
        sp.signal(barrier, device_id={"x": right})
        pl.semaphore_signal(barrier.ref, device_id={"x": left})  # raw Pallas takes the ref
        sp.wait(barrier, 2)
    """

    __slots__ = ()
    _kind = kinds.BARRIER
    _instead = allocated(kinds.BARRIER.request)

    @property
    def ref(self) -> BarrierSemaphoreRef:
        """The raw Pallas ref, the way back to raw Pallas.

        Raises:
            ScopeEndedError: after the scope that allocated the semaphore.
        """
        return cast(BarrierSemaphoreRef, self._live_ref())


@final
class DmaSemaphore(Handle):
    """One DMA semaphore: a copy signals it, in bytes, and the wait for the copy takes from it.

    `read` shows its count. It comes from ``sp.dma_semaphore()`` in a scope, or from `adopt`.
    Calling the class raises `TypeError`.

    Example, in a kernel::

        sp.async_copy(x.at[0], o.at[0], sem).wait()
        pltpu.make_async_copy(x.at[1], o.at[1], sem.ref).start()  # raw Pallas takes the ref
        sp.wait_bytes(sem, o.at[1])
    """

    __slots__ = ()
    _kind = kinds.DMA
    _instead = allocated(kinds.DMA.request)

    @property
    def ref(self) -> DmaSemaphoreRef:
        """The raw Pallas ref, the way back to raw Pallas.

        Raises:
            ScopeEndedError: after the scope that allocated the semaphore.
        """
        return cast(DmaSemaphoreRef, self._live_ref())


H = TypeVar("H", bound=Handle)

CLASS_OF: dict[kinds.Kind, type[Handle]] = {
    cls._kind: cls for cls in (Semaphore, BarrierSemaphore, DmaSemaphore)
}


def make(cls: type[H], ref: Any, origin: Origin | Part, scope: Scope, *, vetted: bool = True) -> H:
    """A handle on `ref`, which the caller knows to be one semaphore of the class's kind."""
    handle = object.__new__(cls)
    handle._ref = ref
    handle._origin = origin
    handle._scope = scope
    handle._vetted = vetted
    return handle


def _register(cls: type[Handle]) -> None:
    def flatten(handle: Handle) -> tuple[tuple[Any], Aux]:
        return (handle._ref,), Aux(handle._origin, handle._scope)

    def flatten_with_keys(handle: Handle) -> tuple[tuple[tuple[Any, Any]], Aux]:
        return ((jax.tree_util.GetAttrKey("ref"), handle._ref),), flatten(handle)[1]

    def unflatten(aux: Aux, children: Iterable[Any]) -> Handle:
        # Whatever stands in the tree now is checked when the handle is first used.
        (ref,) = children
        return make(cls, ref, aux.origin, aux.scope, vetted=False)

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)


for _cls in CLASS_OF.values():
    _register(_cls)
