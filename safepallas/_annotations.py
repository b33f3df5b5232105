"""The boundary: what a kernel receives against what its own annotations promise."""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from safepallas import _errors
from safepallas._arrays import SemaphoreArray
from safepallas._describe import describe
from safepallas._handles import CLASS_OF
from safepallas._refs import Ref
from safepallas._scope import Named, Scope
from safepallas._specs import Scratch

_CONTAINERS = (tuple, list, dict, Sequence, Mapping, Iterable, Collection)

UNKNOWN = inspect.Parameter.empty


def signature_of(fn: Callable[..., Any]) -> inspect.Signature | None:
    """The signature, also of a partial; None where Python knows none."""
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError):
        return None


def name_of(fn: Callable[..., Any]) -> str:
    """``'kernel' (file.py:12)``: how messages name a kernel."""
    inner = _underlying(fn)
    code = getattr(inner, "__code__", None)
    name = getattr(inner, "__name__", type(inner).__name__)
    return f"{name!r} ({code.co_filename}:{code.co_firstlineno})" if code else repr(name)


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
    if expected is Ref:
        return not _is_ours(value)
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


def _array_agrees(value: SemaphoreArray[Any, Any], handle: Any, shape: Any) -> bool:
    rank = typing.get_args(_plain(shape))
    if rank and Ellipsis not in rank and len(rank) != len(value.shape):
        return False
    handle = _plain(handle)
    handles = typing.get_args(handle) or (handle,)
    known = tuple(CLASS_OF.values())
    return value._cls in handles or not all(h in known for h in handles)


def _shown(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__name__
    return str(annotation).replace("safepallas._handles.", "").replace("safepallas._arrays.", "")


def check(
    scope: Scope,
    fn: Callable[..., Any],
    signature: inspect.Signature | None,
    args: list[Any],
    kwargs: Mapping[str, Any],
) -> None:
    """Refuse what disagrees with the annotations of `fn`, the body of `scope`.

    Raises:
        AnnotationError: for the first parameter that receives something else.
    """
    if signature is None:
        return
    known = {type(v).__name__: type(v) for v in args if isinstance(v, Scratch)}
    inner = None
    rest = dict(kwargs)
    for position, parameter in enumerate(signature.parameters.values()):
        name, annotation, kind = parameter.name, parameter.annotation, parameter.kind
        items: list[tuple[str, Any]]
        if kind is inspect.Parameter.VAR_POSITIONAL:
            items = [(f"{name}[{i}]", value) for i, value in enumerate(args[position:])]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            items = list(rest.items())
        elif name in rest:
            items = [(name, rest.pop(name))]
        elif position < len(args) and kind is not inspect.Parameter.KEYWORD_ONLY:
            items = [(name, args[position])]
        else:
            continue  # its default; or Python says what is missing, when the kernel is called
        if annotation is UNKNOWN:
            continue
        if isinstance(annotation, str):
            inner = inner or _underlying(fn)
            annotation = _resolve(annotation, inner, known)
            if annotation is UNKNOWN:
                continue
        for shown, value in items:
            if not _agrees(value, annotation):
                expected = _shown(parameter.annotation)
                raise _errors.annotation(scope.label, shown, expected, describe(value))


def parameter_names(signature: inspect.Signature | None, count: int) -> list[str]:
    """What the kernel calls its first `count` positional arguments."""
    names = [f"args[{i}]" for i in range(count)]
    for i, parameter in enumerate(signature.parameters.values() if signature else ()):
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            names[i:] = [f"{parameter.name}[{j}]" for j in range(count - i)]
        if i >= count or parameter.kind in (
            inspect.Parameter.VAR_POSITIONAL,
            inspect.Parameter.KEYWORD_ONLY,
            inspect.Parameter.VAR_KEYWORD,
        ):
            break
        names[i] = parameter.name
    return names
