"""The names and annotations of a body's parameters, and whether it receives what they promise."""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from safepallas import raw
from safepallas._errors import semaphore_errors
from safepallas._semaphores.arrays import SemaphoreArray
from safepallas._semaphores.handles import CLASS_OF
from safepallas._semaphores.lifetime import Named, Scope, describe
from safepallas._semaphores.scratch import Scratch
from safepallas._semaphores.specs import Ref

_CONTAINERS = (tuple, list, dict, Sequence, Mapping, Iterable, Collection)

UNKNOWN = inspect.Parameter.empty
_VAR_POSITIONAL = inspect.Parameter.VAR_POSITIONAL
_NOT_POSITIONAL = (
    _VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD,
)


def signature_of(fn: Callable[..., object]) -> inspect.Signature | None:
    """The signature, also of a partial; None where Python knows none."""
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError):
        return None


def short_name(fn: Callable[..., object]) -> str:
    """``'kernel'``."""
    inner = _underlying(fn)
    return repr(getattr(inner, "__name__", type(inner).__name__))


def name_of(fn: Callable[..., object]) -> str:
    """``'kernel' (file.py:12)``: how messages name a kernel."""
    code = getattr(_underlying(fn), "__code__", None)
    name = short_name(fn)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name


def below_partials(fn: object) -> Any:
    """What a partial, or a partial of partials, calls in the end."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return fn


def _underlying(fn: Any) -> Any:
    """The function that holds the code, below partials, wrappers, methods and callable objects."""
    while True:
        fn = inspect.unwrap(fn)
        if isinstance(fn, functools.partial):
            fn = fn.func
        elif inspect.ismethod(fn):
            fn = fn.__func__
        elif not inspect.isroutine(fn) and not isinstance(fn, type):
            fn = type(fn).__call__  # an object that is callable
        else:
            return fn


def _resolve(annotation: str, fn: Any, known: Mapping[str, Any]) -> Any:
    """The type that an annotation written as a string means; UNKNOWN where it cannot be told."""
    try:
        names = dict(known)
        names.update(inspect.getclosurevars(fn).nonlocals)
        return eval(annotation, getattr(fn, "__globals__", {}), names)
    except Exception:
        # It may name what exists for checkers only (imported under TYPE_CHECKING, local to the
        # function around), or be no type at all. What is inside the kernel is checked all the same.
        return UNKNOWN


def _is_ours(value: Any) -> bool:
    return isinstance(value, (Named, Scratch))


def _plain(expected: Any) -> Any:
    """An annotation without what a type may be wrapped in."""
    while True:
        if isinstance(expected, typing.NewType):
            expected = expected.__supertype__
        elif isinstance(expected, typing.TypeVar):
            options = expected.__constraints__ or (expected.__bound__ or Any,)
            expected = typing.Union[options]  # noqa: UP007
        elif type(expected).__name__ == "TypeAliasType":  # Python 3.12 and later
            expected = expected.__value__
        elif typing.get_origin(expected) in (typing.Annotated, typing.Final):
            expected = typing.get_args(expected)[0]
        else:
            return expected


def _agrees(value: Any, expected: Any) -> bool:
    """Whether `value` may go where `expected` is annotated. Unknown types agree with all."""
    if expected is Ref or expected is raw.Ref:
        return not _is_ours(value)
    if type(value) is expected and _is_ours(value):
        return True
    expected = _plain(expected)
    if expected is Any or expected is object:
        return True
    if expected is None or expected is type(None):
        return value is None
    origin, args = typing.get_origin(expected), typing.get_args(expected)
    if origin is typing.Union or origin is types.UnionType:
        return any(_agrees(value, arg) for arg in args)
    if origin is SemaphoreArray:
        return isinstance(value, SemaphoreArray) and _array_agrees(value, *args)
    if isinstance(origin or expected, type) and issubclass(origin or expected, raw.NameOnly):
        return False  # a semaphore arrives as a handle, never as a raw ref
    if isinstance(value, (tuple, list, dict)):
        return _container_agrees(value, expected, origin, args)
    if isinstance(expected, type) and origin is None:
        if issubclass(expected, (Named, Scratch)):
            return isinstance(value, expected)
        return not _is_ours(value) or _is_protocol(expected) or isinstance(value, expected)
    # Of a generic type (list[int], type[T], Callable[...]) no semaphore is an instance.
    return not _is_ours(value) or not isinstance(origin, type) or _is_protocol(origin)


def _is_protocol(cls: type) -> bool:
    return getattr(cls, "_is_protocol", False)


def _container_agrees(value: Any, expected: Any, origin: Any, args: tuple[Any, ...]) -> bool:
    items = list(value.values() if isinstance(value, dict) else value)
    hints = getattr(expected, "__annotations__", {})
    if isinstance(expected, type) and issubclass(expected, (Named, Scratch)):
        return False
    if isinstance(value, tuple) and hints and hasattr(expected, "_fields"):  # a NamedTuple
        return all(_agrees(v, h) for v, h in zip(items, hints.values(), strict=False))
    if origin is tuple and args[-1] is not Ellipsis:
        return len(args) == len(items) and all(map(_agrees, items, args))
    if origin in _CONTAINERS:
        item = args[0] if origin is tuple else args[-1]
        return all(_agrees(v, item) for v in items)
    return True


def _array_agrees(value: SemaphoreArray[Any, Any], handle: object, shape: object) -> bool:
    rank = typing.get_args(_plain(shape))
    if rank and Ellipsis not in rank and len(rank) != len(value.shape):
        return False
    handle = _plain(handle)
    handles = typing.get_args(handle) or (handle,)
    known = tuple(CLASS_OF.values())
    return value._cls in handles or not all(h in known for h in handles)


def _shown(annotation: object) -> str:
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, type) and not typing.get_args(annotation):
        # The refs of raw Pallas are named as such: the handles have names like theirs.
        return f"{'raw.' if annotation.__module__ == raw.__name__ else ''}{annotation.__name__}"
    shown = (
        str(annotation)
        .replace("safepallas._semaphores.handles.", "")
        .replace("safepallas._semaphores.arrays.", "")
    )
    return shown.replace("safepallas.raw.", "raw.")


class Parameter(NamedTuple):
    """What a body calls one of its arguments, and what it takes there."""

    name: str
    annotation: object


def parameters_of(signature: inspect.Signature | None, count: int) -> list[Parameter]:
    """The parameters that receive the first `count` positional arguments."""
    found: list[Parameter] = []
    for parameter in signature.parameters.values() if signature else ():
        kind = parameter.kind
        if kind is _VAR_POSITIONAL:
            name, annotation = parameter.name, parameter.annotation
            rest = range(count - len(found))
            found += [Parameter(f"{name}[{i}]", annotation) for i in rest]
        if len(found) == count or kind in _NOT_POSITIONAL:
            break
        found.append(Parameter(parameter.name, parameter.annotation))
    # Too many for the signature: Python says it better, when the body is called.
    found += [Parameter(f"args[{i}]", UNKNOWN) for i in range(len(found), count)]
    return found


def _keyword(signature: inspect.Signature, name: str) -> Parameter:
    """The parameter that receives a keyword argument."""
    annotation = UNKNOWN
    for parameter in signature.parameters.values():
        if parameter.name == name or parameter.kind is inspect.Parameter.VAR_KEYWORD:
            annotation = parameter.annotation
            if parameter.name == name:
                break
    return Parameter(name, annotation)


def check(
    scope: Scope,
    fn: Callable[..., object],
    signature: inspect.Signature | None,
    parameters: list[Parameter],
    args: list[object],
    kwargs: Mapping[str, object],
) -> None:
    """Refuse what disagrees with the annotations of `fn`, the body of `scope`.

    Args:
        scope: for messages.
        fn: for what its annotations name, where they are strings.
        signature: that of `fn`.
        parameters: those that receive `args`.
        args: what `fn` is about to receive by position.
        kwargs: and by keyword.

    Raises:
        AnnotationError: for the first parameter that receives something else.
    """
    if signature is None:
        return
    pairs = list(zip(parameters, args, strict=True))
    pairs += [(_keyword(signature, name), value) for name, value in kwargs.items()]
    for (name, annotation), value in pairs:
        if annotation is UNKNOWN:
            continue
        expected = annotation
        if isinstance(annotation, str):
            known = {type(v).__name__: type(v) for v in args if isinstance(v, Scratch)}
            expected = _resolve(annotation, _underlying(fn), known)
        if expected is not UNKNOWN and not _agrees(value, expected):
            raise semaphore_errors.annotation(
                scope.label, name, _shown(annotation), describe(value)
            )
