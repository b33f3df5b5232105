"""What stands in the place of Pallas's operations under the guard: check, then the original."""

import functools
import inspect
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, final

from safepallas._errors import user_frame
from safepallas._guard import checks as _guard_checks
from safepallas._guard.names import Names
from safepallas._semaphores.lifetime import Scope

_WAITS = ("wait", "wait_send", "wait_recv", "wait_read", "wait_write")


@final
class Guard:
    """What `guard_raw_pallas` yields.

    Attributes:
        checked: how many operations were checked and how many kernels and scopes traced, by the
            name of the raw function or, for what is done with a copy, of the method:
            ``{"pallas_call": 1, "make_async_copy": 1, "start": 1, "wait": 1}``.

    Example::

        with testing.guard_raw_pallas() as guard:
            jax.eval_shape(raw_fn, x)
        assert guard.checked["pallas_call"] == 1
    """

    __slots__ = ("checked",)

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<Guard, checked: {dict(self.checked)}>"


class Hooks:
    """What all replaced functions share: the guards that are entered, on whatever threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.guards: list[Guard] = []
        self.names = Names()

    def apply(self) -> bool:
        """Whether a replaced function, which asks, is to check what it was called with.

        Not once the guard has been left, and not for safepallas, which has checked it.
        """
        caller = user_frame.outside("safepallas._guard")
        name = str(caller.f_globals.get("__name__", ""))
        return bool(self.guards) and name.partition(".")[0] != "safepallas"

    def count(self, operation: str) -> None:
        with self.lock:
            for guard in self.guards:
                guard.checked[operation] += 1


def _arguments_of(original: Any) -> Callable[[Any, Any], Mapping[str, Any] | None]:
    """How a call's arguments get the names of the parameters; None where they do not fit.

    Versions of JAX differ in what else there is, and then Pallas itself says what does not fit.
    """
    signature = inspect.signature(original)

    def arguments(args: Any, kwargs: Any) -> Mapping[str, Any] | None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return None
        bound.apply_defaults()
        return bound.arguments

    return arguments


def operation(hooks: Hooks, original: Any, check: Callable[..., None]) -> Any:
    """Check, then do."""
    arguments = _arguments_of(original)

    @functools.wraps(original)
    def guarded(*args: object, **kwargs: object) -> Any:
        given = arguments(args, kwargs) if hooks.apply() else None
        if given is not None:
            check(hooks.names, given)
            hooks.count(original.__name__)
        return original(*args, **kwargs)

    return guarded


def copy(hooks: Hooks, original: Any) -> Any:
    """Check, make the copy, and check what is done with it."""
    arguments, name = _arguments_of(original), original.__name__

    @functools.wraps(original)
    def guarded(*args: object, **kwargs: object) -> Any:
        given = arguments(args, kwargs) if hooks.apply() else None
        if given is None:
            return original(*args, **kwargs)
        sems = _guard_checks.copy(hooks.names, name, given)
        remote = _guard_checks.is_remote(given)
        if not name.startswith("make_"):  # it is started as well
            options = given.get("priority", 0), given.get("add", False)
            _guard_checks.check_start(remote, *options, sems[-1])
        hooks.count(name)
        return _watch(original(*args, **kwargs), hooks, sems, remote)

    return guarded


def barrier(hooks: Hooks, original: Any) -> Any:
    """Take down the name of the barrier semaphore."""
    scope = Scope(lambda: "the kernel")

    @functools.wraps(original)
    def guarded(*args: object, **kwargs: object) -> Any:
        ref = original(*args, **kwargs)
        if hooks.apply():
            hooks.names.learn(ref, "barrier", lambda: "pltpu.get_barrier_semaphore()", scope)
            hooks.count(original.__name__)
        return ref

    return guarded


def _watch(raw: object, hooks: Hooks, sems: list[object], remote: bool) -> Any:
    """A copy of raw Pallas, whose methods check from now on before it is started or waited for."""
    is_inside = False  # one method calls another

    def watched(name: str, method: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(method)
        def checked(*args: object, **kwargs: object) -> Any:
            nonlocal is_inside
            if is_inside:
                return method(*args, **kwargs)
            is_inside = True
            try:
                _check_use(hooks, sems, remote, name, *args, **kwargs)
                return method(*args, **kwargs)
            finally:
                is_inside = False

        return checked

    for name in ("start", *_WAITS):
        if hasattr(raw, name):
            setattr(raw, name, watched(name, getattr(raw, name)))  # on this copy alone
    return raw


def _check_use(
    hooks: Hooks,
    sems: list[object],
    remote: bool,
    name: str,
    priority: object = 0,
    *,
    add: object = False,
) -> None:
    """What is checked before the method of that name: `start`, with its arguments, or a wait."""
    for sem in sems:
        hooks.names.check_alive(sem, name)
        if name != "start":
            _guard_checks.check_wait(sem)
    if name == "start":
        _guard_checks.check_start(remote, priority, add, sems[-1])
    hooks.count(name)
