"""``python -m safepallas explain``: what it prints for each code, and for what is none."""

import inspect
import subprocess
import sys

import pytest

import safepallas as sp
from safepallas._errors import explain as _explain
from safepallas._verify.command_line import SAFE, USAGE, main

from .test_messages import CODES, subclasses

Capture = pytest.CaptureFixture[str]

WRONG_KIND = """\
[wrong-kind] safepallas.errors.WrongKindError(SemaphoreError, TypeError)

A semaphore of one kind was passed to an operation of another.

Copies add bytes to DMA semaphores; signals and waits count on regular and barrier ones. Give a
copy `dma_semaphore()` and wait with ``copy.wait()`` or `wait_bytes`; signal a `semaphore()`.

With a kernel that raises it, and its fix: errors/wrong-kind.html in the documentation.
"""


@pytest.mark.parametrize("asked", ["wrong-kind", "[wrong-kind]", "WrongKindError"])
def test_it_explains_a_code(asked: str, capsys: Capture) -> None:
    assert main(["explain", asked]) == SAFE
    assert capsys.readouterr() == (WRONG_KIND, "")


def test_as_a_traceback_names_it() -> None:
    """What Python prints before the colon may be asked for as it is."""
    name = f"{sp.errors.WrongKindError.__module__}.{sp.errors.WrongKindError.__qualname__}"
    assert name == "safepallas.errors.WrongKindError"
    assert _explain.explain(name) == WRONG_KIND.rstrip()


def test_it_knows_every_code() -> None:
    warnings = {sp.errors.SemaphoreLimitWarning, sp.errors.JaxVersionWarning}
    assert set(_explain.CLASSES.values()) == subclasses(sp.SemaphoreError) | warnings
    assert {*CODES, "semaphore-error", "semaphore-limit", "jax-version"} == set(_explain.CLASSES)


@pytest.mark.parametrize("code", _explain.CLASSES)
def test_every_class_says_why_and_what_to_do(code: str) -> None:
    cls = _explain.CLASSES[code]
    what, _, why = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")
    assert what.endswith(".")
    assert "\n" not in what
    assert len(why) > 50
    text = _explain.explain(code)
    assert text.startswith(f"[{code}] safepallas.errors.{cls.__name__}(")
    assert why in text


def test_the_base_leads_to_all(capsys: Capture) -> None:
    main(["explain", "semaphore-error"])
    assert capsys.readouterr().out.endswith("errors/index.html in the documentation.\n")


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("wrong-kid", "Near to it: wrong-kind."),
        ("device", "Near to it: device-id, device-id-type."),
        ("WrongKind", "Near to it: wrong-kind."),
        ("[index-rang]", "Near to it: index-range"),
        ("xyz", "There are: semaphore-error, foreign-semaphore,"),
        ("", "There are: semaphore-error,"),
    ],
)
def test_a_code_that_is_none(asked: str, near: str, capsys: Capture) -> None:
    assert main(["explain", asked]) == USAGE
    out, err = capsys.readouterr()
    assert out == ""
    wanted = asked.strip("[]")
    assert err.startswith(f"safepallas explain: error: no error has the code {wanted!r}. {near}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["wrong-kind", "not-scalar"], ["--all"]])
def test_arguments_that_cannot_be_understood(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["explain", *arguments])
    assert exit_.value.code == USAGE
    assert "usage: python -m safepallas" in capsys.readouterr().err


def test_help_names_it(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "explain   say what the code of an error means" in capsys.readouterr().out


@pytest.mark.parametrize(("asked", "code"), [("not-scalar", SAFE), ("scalar", USAGE)])
def test_in_a_process_of_its_own(asked: str, code: int) -> None:
    command = [sys.executable, "-W", "error", "-m", "safepallas", "explain", asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr
    assert (done.stdout != "", done.stderr == "") == (code == SAFE, code == SAFE)
