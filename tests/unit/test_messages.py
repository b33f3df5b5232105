"""What all errors have in common: codes, classes, and that no message goes untested."""

import copy
import inspect
import pickle
import re
from typing import Any

import pytest

import safepallas as sp
from safepallas import errors
from safepallas._errors import (
    kernel_errors,
    operation_errors,
    semaphore_errors,
    verification_errors,
)
from safepallas._jax import versions

from . import (
    test_async_calls,
    test_backstop_cores,
    test_messages_kernels,
    test_messages_operations,
)
from .helpers import Message

MESSAGES: list[Message] = [
    *test_backstop_cores.MESSAGES.values(),
    *test_messages_kernels.MESSAGES.values(),
    *test_messages_operations.MESSAGES.values(),
    *test_async_calls.MESSAGES.values(),
]

# Stable: users and their tests look for the codes. What else each is, besides a ValueError.
CODES: dict[str, tuple[type[sp.SemaphoreError], tuple[type[Exception], ...]]] = {
    "not-a-semaphore": (sp.errors.NotASemaphoreError, (TypeError,)),
    "scope-ended": (sp.errors.ScopeEndedError, ()),
    "wrong-kind": (sp.errors.WrongKindError, (TypeError,)),
    "not-scalar": (sp.errors.NotScalarError, (TypeError,)),
    "index-type": (sp.errors.IndexTypeError, (TypeError,)),
    "index-range": (sp.errors.IndexRangeError, (IndexError,)),
    "amount-type": (sp.errors.AmountTypeError, (TypeError,)),
    "amount-range": (sp.errors.AmountRangeError, ()),
    "device-id-type": (sp.errors.DeviceIdTypeError, (TypeError,)),
    "device-id": (sp.errors.DeviceIdError, ()),
    "axis-type": (sp.errors.AxisTypeError, (TypeError,)),
    "axis": (sp.errors.AxisError, ()),
    "not-in-kernel": (sp.errors.NotInKernelError, ()),
    "mixed-barriers": (sp.errors.MixedBarriersError, ()),
    "not-a-ref": (sp.errors.NotARefError, (TypeError,)),
    "copy-mismatch": (sp.errors.CopyMismatchError, ()),
    "wait-option": (sp.errors.WaitOptionError, (TypeError,)),
    "copy-option": (sp.errors.CopyOptionError, (TypeError,)),
    "foreign-semaphore": (sp.errors.ForeignSemaphoreError, ()),
    "counted-copy": (sp.errors.CountedCopyError, ()),
    "missing-collective-id": (sp.errors.MissingCollectiveIdError, ()),
    "unused-collective-id": (sp.errors.UnusedCollectiveIdError, ()),
    "interpreted-copy": (sp.errors.InterpretedCopyError, ()),
    "interpreted-read": (sp.errors.InterpretedReadError, ()),
    "interpreted-output": (sp.errors.InterpretedOutputError, ()),
    "missing-side-effects": (sp.errors.MissingSideEffectsError, ()),
    "in-flight": (sp.errors.InFlightError, ()),
    "annotation": (sp.errors.AnnotationError, (TypeError,)),
    "unsafe-protocol": (sp.errors.UnsafeProtocolError, (AssertionError,)),
    "picture": (sp.errors.PictureError, ()),
    "spec": (sp.errors.SpecError, (TypeError,)),
    "adopt": (sp.errors.AdoptError, (TypeError,)),
}


def subclasses(cls: type) -> set[type]:
    return {cls}.union(*map(subclasses, cls.__subclasses__()))


@pytest.mark.parametrize("code", CODES)
def test_code_and_classes(code: str) -> None:
    cls, others = CODES[code]
    assert cls.code == code
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code)
    error = cls("Text.")
    assert str(error) == f"Text. [{code}]"
    assert isinstance(error, sp.SemaphoreError)
    assert isinstance(error, ValueError)
    for builtin in (TypeError, IndexError, KeyError, AttributeError, AssertionError):
        assert isinstance(error, builtin) == (builtin in others)


def test_every_class_has_a_code_of_its_own() -> None:
    ours = subclasses(sp.SemaphoreError)
    assert ours == {sp.SemaphoreError, *(cls for cls, _ in CODES.values())}
    assert len({cls.code for cls in ours}) == len(ours)
    assert sp.errors.SemaphoreLimitWarning.code == "semaphore-limit"
    assert sp.errors.JaxVersionWarning.code == "jax-version"
    assert issubclass(sp.errors.SemaphoreLimitWarning, UserWarning)
    assert issubclass(sp.errors.JaxVersionWarning, UserWarning)


def test_every_class_is_exported() -> None:
    defined = {
        cls
        for _, cls in inspect.getmembers(errors, inspect.isclass)
        if cls.__module__ == errors.__name__
    }
    warnings = {sp.errors.SemaphoreLimitWarning, sp.errors.JaxVersionWarning}
    assert defined == subclasses(sp.SemaphoreError) | warnings
    for cls in defined:
        assert getattr(errors, cls.__name__) is cls


def test_every_class_is_raised_by_a_message_under_test() -> None:
    assert {cls for cls, _ in CODES.values()} <= {message.error for message in MESSAGES}


def test_every_message_is_under_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function of the modules that word messages is reached by one of the misuses."""
    reached: set[str] = set()
    modules = {
        name: module
        for module in (kernel_errors, operation_errors, semaphore_errors, verification_errors)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
    }
    functions = {name: getattr(module, name) for name, module in modules.items()}

    def spy(name: str) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            reached.add(name)
            return functions[name](*args, **kwargs)

        return called

    for name in functions:
        monkeypatch.setattr(modules[name], name, spy(name))
    for message in MESSAGES:
        with pytest.raises(message.error):
            message.misuse()
    with pytest.warns(sp.errors.JaxVersionWarning):
        versions.warn_if_untested((9, 9))
    with pytest.warns(sp.errors.SemaphoreLimitWarning):
        test_messages_kernels.call(lambda *_: None, (sp.semaphore(480),))
    assert reached == set(functions)


def test_every_message_ends_with_its_code_and_says_what_to_do() -> None:
    for message in MESSAGES:
        if issubclass(message.error, sp.SemaphoreError):
            assert message.text.endswith(f"[{message.error.code}]")
        # A report has a paragraph for each finding.
        assert "\n" not in message.text or message.error is sp.errors.UnsafeProtocolError


def test_a_copied_error_says_its_code_once() -> None:
    """Processes of a pool hand errors on as pickles."""
    error = sp.errors.WrongKindError("wait: got another.")
    for copied in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(copied) is sp.errors.WrongKindError
        assert str(copied) == str(error) == "wait: got another. [wrong-kind]"
