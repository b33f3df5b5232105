"""The boundary: what a kernel receives against what its own annotations promise."""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from safepallas import _errors
from safepallas._arrays import SemaphoreArray
from safepallas._checks import describe
from safepallas._handles import CLASS_OF, Handle
from safepallas._refs import Ref
from safepallas._specs import Scratch

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


def _resolve(annotation: Any, fn: Any, known: Mapping[str, Any]) -> Any:
    """The type that an annotation written as a string means; UNKNOWN where it cannot be told."""
    if not isinstance(annotation, str):
        return annotation
    try:
        names = dict(known)
        names.update(inspect.getclosurevars(fn).nonlocals)
        return eval(annotation, getattr(fn, "__globals__", {}), names)
    except (NameError, AttributeError, TypeError, SyntaxError, ValueError):
        # Names that exist for checkers only (imported under TYPE_CHECKING, local to the function
        # around): the operations inside the kernel still check what they are given.
        return UNKNOWN


def _agrees(value: Any, expected: Any) -> bool:
    """Whether `value` may go where `expected` is annotated. Unknown types agree with all."""
    if expected is None or expected is type(None):
        return value is None
    origin = typing.get_origin(expected)
    args = typing.get_args(expected)
    if origin is typing.Union or origin is types.UnionType:
        return any(_agrees(value, arg) for arg in args)
    if origin is typing.Annotated:
        return _agrees(value, args[0])
    if origin is SemaphoreArray:
        return isinstance(value, SemaphoreArray) and _array_agrees(value, *args)
    if origin is tuple and isinstance(value, tuple):
        if len(args) == 2 and args[1] is Ellipsis:
            return all(_agrees(v, args[0]) for v in value)
        return len(args) == len(value) and all(map(_agrees, value, args))
    if origin is dict and isinstance(value, dict):
        return all(_agrees(v, args[1]) for v in value.values())
    if not isinstance(expected, type) or expected is object:
        if isinstance(value, (Handle, SemaphoreArray)):
            return origin is None or not isinstance(origin, type) or origin is type
        return True
    if issubclass(expected, (Handle, SemaphoreArray, Scratch)):
        return isinstance(value, expected)
    if isinstance(value, (Handle, SemaphoreArray, Scratch)):
        return expected is not Ref and isinstance(value, expected)
    return True


def _array_agrees(value: SemaphoreArray[Any, Any], handle: Any, shape: Any) -> bool:
    rank = typing.get_args(shape)
    if rank and Ellipsis not in rank and len(rank) != len(value.shape):
        return False
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
    what: str,
    fn: Callable[..., Any],
    signature: inspect.Signature | None,
    args: list[Any],
    kwargs: Mapping[str, Any],
) -> None:
    """Refuse what disagrees with the annotations of `fn`, which messages call `what`.

    Raises:
        AnnotationError: for the first parameter that receives something else.
    """
    if signature is None:
        return
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return  # Python says it better, when the kernel is called
    inner = _underlying(fn)
    known = {type(v).__name__: type(v) for v in args if isinstance(v, Scratch)}
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.annotation is UNKNOWN:
            continue
        expected = _resolve(parameter.annotation, inner, known)
        if expected is UNKNOWN:
            continue
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            items = [(f"{name}[{i}]", v) for i, v in enumerate(value)]
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            items = list(value.items())
        else:
            items = [(name, value)]
        for shown, item in items:
            if _agrees(item, expected):
                continue
            raise _errors.annotation(what, shown, _shown(parameter.annotation), describe(item))


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
