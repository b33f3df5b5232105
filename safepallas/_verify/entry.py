"""`sp.verify`: imported with safepallas, while the verifier itself is only where it is called."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safepallas.verification import Report

# The most events of all devices, in sum: about 1 GiB.
LIMIT = 2_000_000


def verify(
    function: Callable[..., object],
    *args: object,
    calls: int | None = None,
    limit: int = LIMIT,
    accept: Collection[str] = (),
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Decide whether the kernels of a function can deadlock, leak a semaphore or race.

    The verdict holds for the devices of the mesh and for the values in `args`, and for no others.
    It says nothing of what the compiler or the hardware may do wrong.

    Args:
        function: any traceable function that calls Pallas kernels, raw ones or those of safepallas.
        args: arrays, or ``jax.ShapeDtypeStruct`` where no control flow, index, amount or device id
            depends on their values.
        calls: how often the function is called, one call right after the other. By default twice
            where a kernel uses the barrier semaphore of ``collective_id``, which outlives a call;
            else once, for then it makes no difference.
        limit: the most events (signals, waits, copies, accesses) of all devices, in sum. The
            search for races stops at 50 times as many, over all its runs.
        accept: kinds of findings to live with, by name: ``{"remote-before-entry"}``. They are
            listed as accepted, in `accepted` of the report, and do not make the verdict
            ``"unsafe"``. Where such a finding ends the analysis, the verdict is ``"undecided"``.
        progress: called now and then with a short line of text.

    Returns:
        A report. Its verdict is ``"undecided"`` where something is not known before the kernel
        runs, where an operation is not followed, or where `limit` was reached.

    Raises:
        ValueError: `calls` or `limit` is below 1, or there is no kind of the name in `accept`.

    Example::

        class Flags(sp.Scratch):
            send = sp.dma_semaphore()
            recv = sp.dma_semaphore()

        def shift(x: sp.Ref, o: sp.Ref, s: Flags) -> None:
            sp.barrier_neighbors("x")
            right = jax.lax.rem(jax.lax.axis_index("x") + 1, 8)
            sp.async_remote_copy(x, o, s.send, s.recv, {"x": right}).wait()

        params = pltpu.CompilerParams(collective_id=0)
        call = sp.pallas_call(shift, like, scratch_shapes=Flags, compiler_params=params)
        mesh = jax.sharding.AbstractMesh((8,), ("x",))
        fn = jax.shard_map(call, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
        sp.verify(fn, x).raise_if_unsafe()
    """
    if (calls is not None and calls < 1) or limit < 1:
        raise ValueError(f"expected calls and limit of at least 1, but got {calls} and {limit}")
    from safepallas._verify.run import kinds_of, run  # late: few programs that run need it

    return run(function, args, calls, limit, kinds_of(accept), progress or _say_nothing)


def _say_nothing(text: str) -> None:
    pass
