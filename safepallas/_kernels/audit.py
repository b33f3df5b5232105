"""What can only be said of a whole kernel, once it is traced."""

import warnings
from collections.abc import Sequence
from typing import Final, NamedTuple

from jax.experimental.pallas import tpu as pltpu

from safepallas._errors import kernel_errors, user_frame
from safepallas._jax import compat
from safepallas._jax.core_types import CoreType
from safepallas._jax.kernel_equations import Facts, SpecialCopy, facts_so_far
from safepallas._semaphores.lifetime import Scope

ROOM: Final = {
    CoreType.TENSOR_CORE: kernel_errors.Room(
        512, "424 to 440", 400, "2.0 KiB on v5e, v5p and v6e", "sflag"
    ),
    CoreType.VECTOR_SUBCORE: kernel_errors.Room(
        32, "24", 25, "128 bytes on a vector subcore of v5p and v6e", "sparse_core_tile_sflag"
    ),
    CoreType.SCALAR_SUBCORE: kernel_errors.Room(
        7168,
        "7018",
        7000,
        "28 KiB on a scalar subcore of v5p and v6e",
        "sparse_core_sequencer_sflag",
    ),
}


class BarrierUse:
    """Whether a body has been seen to use the barrier semaphore: the last of several answers."""

    __slots__ = ("seen",)

    def __init__(self) -> None:
        self.seen = False


class Terms(NamedTuple):
    """What a call promises about its kernel, as far as the audit goes."""

    collective_id: object = None
    barrier_optional: bool = False  # a collective_id is fine without a barrier
    id_optional: bool = False  # a barrier is fine without a collective_id
    interpreted: bool = False  # under pltpu.InterpretParams
    side_effects: bool = False  # XLA keeps the call, whoever uses its results
    grid_axes: tuple[object, ...] = ()  # the names of its grid's axes, where they have any
    core: CoreType = CoreType.TENSOR_CORE
    one_of_several: bool = False  # bodies of one call
    others: tuple[BarrierUse, ...] = ()  # of the bodies traced before the last of several


def terms_of(compiler_params: object, interpret: object) -> Terms:
    """The terms of a call, from its arguments and JAX's settings of now."""
    assigned, interpreted = compat.ids_are_assigned(), compat.interprets_as_tpu(interpret)
    if compiler_params is None:
        return Terms(None, False, assigned, interpreted)
    effects = getattr(compiler_params, "has_side_effects", False)
    return Terms(
        getattr(compiler_params, "collective_id", None),
        getattr(compiler_params, "allow_collective_id_without_custom_barrier", False),
        assigned,
        interpreted,
        bool(effects) and effects is not pltpu.SideEffectType.PURE,
    )


def among(terms: Terms, traced_before: Sequence[BarrierUse], bodies: int) -> Terms:
    """The terms of one of several bodies of a call, by their number: the last answers for all."""
    if bodies == 1:
        return terms
    if len(traced_before) < bodies - 1:
        return terms._replace(one_of_several=True, barrier_optional=True)
    return terms._replace(one_of_several=True, others=tuple(traced_before))


_INTERPRET_TRUE = "Use interpret=True, or compile for a TPU."


def _interpreted(copy: SpecialCopy) -> tuple[str, str, str]:
    """What a copy does that ``pltpu.InterpretParams`` does not, what that does, and the fix."""
    if copy.counts:
        instead = "adds its bytes instead, so that waits end too early"
        return "adds 1 to a regular semaphore", instead, _INTERPRET_TRUE
    if copy.adds:
        return "adds to its destination", "overwrites it instead", "Compile for a TPU."
    what = "takes rows by an array or a ref of indices"
    return what, "cannot follow them", _INTERPRET_TRUE


def _barriers_that_do_not_mix(facts: Facts) -> tuple[str, str] | None:
    """Two uses of the one barrier semaphore that a device cannot tell apart; None without."""
    uses = [
        f"a barrier over {', '.join(sorted(map(repr, axes)))} ({compat.line_of(equation)})"
        for axes, equation in facts.rings.items()
    ]
    if uses and facts.by_hand is not None:
        uses.append(f"sp.get_barrier_semaphore() by hand ({compat.line_of(facts.by_hand)})")
    return (uses[0], uses[1]) if len(uses) > 1 else None


def _check_barriers(kernel: Scope, facts: Facts, terms: Terms) -> None:
    if facts.barrier is None:
        needless = terms.collective_id is not None and not terms.barrier_optional
        if needless and not any(other.seen for other in terms.others):
            raise kernel_errors.unused_collective_id(kernel.label, terms.collective_id)
    elif terms.collective_id is None and not terms.id_optional and not facts.barrier_is_tagged:
        raise kernel_errors.missing_collective_id(kernel.label, compat.line_of(facts.barrier))
    conflict = _barriers_that_do_not_mix(facts)
    if conflict is not None:
        raise kernel_errors.mixed_barriers(kernel.label, *conflict)


def audit(kernel: Scope, scratch: int, terms: Terms) -> bool:
    """Judge a kernel at the end of its body, by the equations that it has traced.

    Args:
        kernel: its scope, for messages.
        scratch: the number of semaphores in its scratch.
        terms: those of the call. Of several bodies, the last answers for a collective_id that none
            uses.

    Returns:
        Whether it uses the barrier semaphore.

    Raises:
        MissingCollectiveIdError, UnusedCollectiveIdError, MixedBarriersError,
        InterpretedReadError, InterpretedCopyError, ForeignSemaphoreError

    Warns:
        SemaphoreLimitWarning: where the TPU compiler may not have that many semaphores; it points
            at the line of the user that calls the kernel.
    """
    facts = facts_so_far(
        special_copies=terms.interpreted, core=terms.core if terms.one_of_several else None
    )
    _check_barriers(kernel, facts, terms)
    if facts.read is not None and terms.interpreted:
        raise kernel_errors.interpreted_read(kernel.label, compat.line_of(facts.read))
    copy = facts.special_copy
    if copy is not None:
        line = compat.line_of(copy.equation)
        raise kernel_errors.interpreted_copy(kernel.label, line, *_interpreted(copy))
    if facts.foreign is not None:
        raise kernel_errors.foreign_semaphore(kernel.label, compat.line_of(facts.foreign))
    held = scratch + facts.scoped
    room = ROOM[terms.core]
    if held >= room.warn_at:
        message = kernel_errors.semaphore_limit(kernel.label, held, room)
        frame = user_frame.outside("safepallas", "jax")
        warnings.warn_explicit(
            message,
            kernel_errors.SemaphoreLimitWarning,
            frame.f_code.co_filename,
            frame.f_lineno,
            module=frame.f_globals.get("__name__"),
            registry=frame.f_globals.setdefault("__warningregistry__", {}),
        )
    return facts.barrier is not None
