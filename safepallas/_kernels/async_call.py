"""Start and done kernels: semaphores, and copies in flight, go from one to the other."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar, final

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from safepallas._errors import kernel_errors, semaphore_errors
from safepallas._errors.no_public_constructor import NoPublicConstructor
from safepallas._jax import compat
from safepallas._kernels import annotations, bodies, scopes
from safepallas._kernels.audit import terms_of
from safepallas._kernels.boundary import Layout
from safepallas._semaphores.kinds import DMA, REGULAR
from safepallas._semaphores.lifetime import describe, kernel_scope
from safepallas._semaphores.scratch import Scratch

G = TypeVar("G", bound=Scratch)
T = TypeVar("T")

_HBM = pl.BlockSpec(memory_space=pltpu.HBM)
_SEMAPHORE = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)


class _Calls(NamedTuple):
    start: Callable[..., Any]
    done: Callable[..., Any]


@final
class InFlight(NoPublicConstructor, Generic[G]):
    """What a start kernel has begun: its inputs, outputs and semaphores, for the done kernel.

    From `AsyncCall.start`, for `AsyncCall.done` of the same call. It is no pytree, on purpose: so
    it cannot leave a jitted function. The TPU compiler aborts the process where a semaphore is an
    output of the program (measured with libtpu under JAX 0.10.2 and 0.12.0.1). Calling the class
    raises `TypeError`.

    Example: see `pallas_call_async`.
    """

    __slots__ = ("_call", "_done_in", "_inputs", "_outputs", "_semaphores")

    _instead = "sp.pallas_call_async(...).start(...)"
    _call: "AsyncCall[G]"
    _inputs: tuple[Any, ...]
    _outputs: tuple[Any, ...]
    _semaphores: tuple[Any, ...]
    _done_in: list[Any]  # the traces that have waited for it

    def __repr__(self) -> str:
        return f"<InFlight of {self._call._label}>"

    def then(self, tree: T) -> T:
        """`tree` again, to be had only once the start kernel has run.

        XLA orders what does not depend on each other as it likes. What is computed from the result
        cannot come before the start kernel; with ``done(in_flight, after=...)`` it cannot come
        after the done kernel either, and so is done while the copy is in flight.

        Args:
            tree: an array, or a tree of them.

        Returns:
            The same, through `jax.lax.optimization_barrier`.
        """
        if not self._semaphores:  # the two run as one kernel
            return tree
        barrier: Any = jax.lax.optimization_barrier  # not annotated
        self._semaphores, tree = barrier((self._semaphores, tree))
        return tree


@final
class AsyncCall(NoPublicConstructor, Generic[G]):
    """A start and a done kernel, from `pallas_call_async`: call both, in one jit.

    Calling the class raises `TypeError`.

    Example: see `pallas_call_async`.
    """

    __slots__ = (
        "_done",
        "_interpret",
        "_layout",
        "_leaves",
        "_made",
        "_params",
        "_semaphores",
        "_start",
        "_tree",
    )

    _instead = "sp.pallas_call_async(...)"
    _start: Callable[..., None]
    _done: Callable[..., None]
    _semaphores: type[G]
    _layout: Layout  # of the semaphores
    _leaves: list[Any]  # shapes and dtypes of the outputs
    _tree: object  # their form
    _params: Any  # the compiler's, of the start kernel
    _interpret: Any
    _made: dict[int, _Calls]  # by the number of inputs; JAX keeps the traces of each

    @property
    def _label(self) -> str:
        return f"{annotations.name_of(self._start)} and {annotations.name_of(self._done)}"

    def __repr__(self) -> str:
        return f"<AsyncCall of {self._label}>"

    def start(self, *inputs: Any) -> InFlight[G]:
        """Run the start kernel. What it has started goes on while other work is done.

        Args:
            inputs: arrays. They stay where they are, in HBM, until the done kernel has run.

        Returns:
            What `done` takes. Each must be done exactly once on every path through the program,
            else its semaphores are left over with a count.

        Raises:
            SemaphoreError: from the kernel, as in `pallas_call`.
        """
        in_flight: InFlight[G] = object.__new__(InFlight)
        in_flight._call = self
        in_flight._inputs, in_flight._outputs, in_flight._semaphores = inputs, (), ()
        in_flight._done_in = []
        if not (self._interpret or compat.interprets_as_tpu(self._interpret)):
            # XLA is free to move a buffer to another memory between two kernels, and the copy in
            # flight would go on with the old place (seen with JAX 0.10.2 and 0.12.0.1).
            pinned = tuple(pltpu.with_memory_space_constraint(x, pltpu.HBM) for x in inputs)
            begin, _ = self._calls(len(inputs))
            results = begin(*pinned)
            in_flight._inputs = pinned
            in_flight._outputs = results[: len(self._leaves)]
            in_flight._semaphores = results[len(self._leaves) :]
        return in_flight

    def done(self, in_flight: InFlight[G], *, after: object = ()) -> Any:
        """Run the done kernel, which waits for what the start kernel has started.

        Args:
            in_flight: from `start` of the same call.
            after: an array, or a tree of them, that is to be computed before: see `InFlight.then`.

        Returns:
            The outputs, in the form of `out_shape`.

        Raises:
            InFlightError: where `in_flight` comes from elsewhere, or has been done already.
            SemaphoreError: from the kernel, as in `pallas_call`.
        """
        if type(in_flight) is not InFlight or in_flight._call is not self:
            raise kernel_errors.not_in_flight(self._label, describe(in_flight))
        trace = compat.current_trace()
        if any(before is trace for before in in_flight._done_in):
            raise kernel_errors.done_twice(self._label)
        in_flight._done_in.append(trace)
        in_flight.then(after)
        if in_flight._semaphores:
            _, finish = self._calls(len(in_flight._inputs))
            results = finish(*in_flight._inputs, *in_flight._outputs, *in_flight._semaphores)
        else:
            results = self._run_as_one(in_flight._inputs)
        return jax.tree_util.tree_unflatten(self._tree, results)

    def _calls(self, inputs: int) -> _Calls:
        """The two calls of raw Pallas, for that many inputs."""
        if inputs not in self._made:
            self._made[inputs] = _Calls(self._make_start(inputs), self._make_done(inputs))
        return self._made[inputs]

    def _body(self, kernel: Callable[..., None], params: object) -> Callable[..., Any]:
        return bodies.kernel_body(kernel, self._layout, terms_of(params, False))

    def _make_start(self, inputs: int) -> Callable[..., object]:
        places = [pltpu.HBM(leaf.shape, leaf.dtype) for leaf in self._leaves]
        semaphores = self._layout.raw
        return pl.pallas_call(
            self._body(self._start, self._params),
            (*places, *semaphores),
            in_specs=[_HBM] * inputs,
            out_specs=(*[_HBM] * len(places), *[_SEMAPHORE] * len(semaphores)),
            compiler_params=self._params,
        )

    def _make_done(self, inputs: int) -> Callable[..., object]:
        """Its outputs are the buffers that the start kernel has begun to fill."""
        outputs = len(self._leaves)
        # The barrier at the entry is the start kernel's, and the id is for the barrier.
        params = dataclasses.replace(self._params, collective_id=None)
        return pl.pallas_call(
            _with_begun(self._body(self._done, params), inputs, outputs),
            self._leaves,
            in_specs=[*[_HBM] * (inputs + outputs), *[_SEMAPHORE] * len(self._layout.raw)],
            out_specs=[_HBM] * outputs,
            input_output_aliases={inputs + i: i for i in range(outputs)},
            compiler_params=params,
        )

    def _run_as_one(self, inputs: tuple[object, ...]) -> Any:
        """Both as one kernel: no interpreter carries a semaphore out of one."""

        def both(*args: object) -> None:
            for kernel in (self._start, self._done):
                own = annotations.signature_of(kernel)
                parameters = annotations.parameters_of(own, len(args))
                annotations.check(kernel_scope(), kernel, own, parameters, list(args), {})
                kernel(*args)

        return scopes.pallas_call(
            both,
            self._leaves,
            in_specs=[_HBM] * len(inputs),
            out_specs=[_HBM] * len(self._leaves),
            scratch_shapes=self._semaphores,
            grid_spec=None,
            compiler_params=self._params,
            interpret=self._interpret,
        )(*inputs)


def _with_begun(body: Callable[..., Any], inputs: int, outputs: int) -> Callable[..., Any]:
    """`body` for a call that also takes, after its inputs, the buffers that its outputs alias."""

    def done(*args: object) -> Any:
        begun_to = inputs + outputs
        return body(*args[:inputs], *args[-outputs:], *args[begun_to:-outputs])

    done.__wrapped__ = inspect.unwrap(body)  # type: ignore[attr-defined]
    signature = annotations.signature_of(body)
    names = list(signature.parameters.values()) if signature else []
    if len(names) > inputs + outputs and all(p.kind is not p.VAR_POSITIONAL for p in names):
        written = names[inputs : inputs + outputs]
        begun = [parameter.replace(name=f"{parameter.name}_begun") for parameter in written]
        order = [*names[:inputs], *begun, *names[inputs + outputs :], *written]
        done.__signature__ = inspect.Signature(order)  # type: ignore[attr-defined]
    return done


def make_call(
    semaphores: object,
    start: Callable[..., None],
    done: Callable[..., None],
    out_shape: object,
    *,
    compiler_params: Any,
    interpret: object,
) -> Any:
    """See `_signatures.pallas_call_async`."""
    if not (isinstance(semaphores, type) and issubclass(semaphores, Scratch)):
        what = "pallas_call_async: semaphores must be a Scratch class"
        fix = "Write a class with a field for each semaphore that goes from start to done."
        raise semaphore_errors.spec(what, describe(semaphores), fix)
    for name, field in semaphores._fields.items():
        if field._kind not in (REGULAR, DMA):
            what = f"pallas_call_async: {semaphores.__name__}.{name} must be a semaphore"
            fix = "Only sp.dma_semaphore and sp.semaphore go from one kernel to another."
            raise semaphore_errors.spec(what, str(field), fix)
    leaves, tree = jax.tree_util.tree_flatten(out_shape)
    for leaf in leaves:
        if type(leaf) is not jax.ShapeDtypeStruct:
            what = "pallas_call_async: out_shape must hold jax.ShapeDtypeStructs"
            fix = "The outputs lie in HBM; semaphores are fields of the Scratch class."
            raise semaphore_errors.spec(what, describe(leaf), fix)
    if not leaves or not semaphores._fields:
        what = "pallas_call_async: there must be an output and a semaphore"
        got = f"{len(leaves)} outputs and {len(semaphores._fields)} semaphores"
        raise semaphore_errors.spec(what, got, "Without both there is nothing to wait for.")
    params = compiler_params or pltpu.CompilerParams()
    if not terms_of(params, False).side_effects:
        params = dataclasses.replace(params, has_side_effects=True)
    call: AsyncCall[Any] = object.__new__(AsyncCall)
    call._start = start
    call._done = done
    call._semaphores = semaphores
    call._layout = Layout(semaphores)
    call._leaves, call._tree = leaves, tree
    call._params = params
    call._interpret = interpret
    call._made = {}
    return call
