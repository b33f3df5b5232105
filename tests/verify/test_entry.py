"""`sp.verify`: a plain function; the verifier itself is imported when it is first called."""

import gc
import inspect
import pickle
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import safepallas as sp
from safepallas import verify
from safepallas._verify.extract.source import Source
from safepallas.verification import Report

LAZY = """
import sys, safepallas
{first}
assert "safepallas._verify.run" not in sys.modules
assert callable(safepallas.verify)
report = safepallas.verify(lambda: None)
from safepallas import verify
from safepallas.verification import Report
assert type(report) is type(safepallas.verify(lambda: None)) is type(verify(lambda: None)) is Report
print(report.verdict)
"""


@pytest.mark.parametrize("first", ["", "from safepallas import verify", "import safepallas.errors"])
def test_it_is_imported_when_asked_for(first: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LAZY.format(first=first)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "undecided\n", done.stderr  # there is no kernel in it


def double(x: sp.Ref, o: sp.Ref) -> None:
    o[...] = x[...] * 2


def test_it_is_one_plain_function() -> None:
    assert "verify" in dir(sp)
    assert inspect.isfunction(sp.verify)
    assert pickle.loads(pickle.dumps(sp.verify)) is sp.verify
    assert list(inspect.signature(sp.verify).parameters)[:2] == ["function", "args"]
    assert "deadlock" in (sp.verify.__doc__ or "")


def test_both_names_are_the_same_function() -> None:
    x = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    call = sp.pallas_call(double, x)
    for function in sp.verify, verify:
        report = function(call, x)
        assert type(report) is Report
        assert report.verdict == "safe"


def test_other_names_are_not_made_up() -> None:
    with pytest.raises(AttributeError, match="no attribute 'verifier'"):
        sp.verifier  # type: ignore[attr-defined] # noqa: B018


def kernel() -> Any:
    return sp.pallas_call(double, jax.ShapeDtypeStruct((8, 128), jnp.float32))


def test_an_internal_failure_in_the_set_up_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a traceback of ours, and never a verdict on half of it; the cause is kept."""
    failure = RuntimeError("no such table")

    def fails(*args: object) -> None:
        raise failure

    monkeypatch.setattr(Source, "__init__", fails)
    report = verify(kernel(), jax.ShapeDtypeStruct((8, 128), jnp.float32))
    assert report.verdict == "undecided"
    assert report.undecided is not None
    assert report.undecided.__cause__ is failure
    assert report.undecided.text == (
        "sp.verify failed on this program: RuntimeError('no such table'). Please report that."
    )
    assert report.findings == []
    with pytest.raises(sp.errors.UnsafeProtocolError, match=r"sp\.verify failed"):
        report.raise_if_unsafe()


@pytest.mark.parametrize("is_enabled", [True, False])
def test_garbage_is_collected_while_the_function_is_traced(is_enabled: bool) -> None:
    """It is off only around what is ours, and left as it was."""
    seen: dict[str, bool] = {}

    def function(x: jax.Array) -> Any:
        seen["tracing"] = gc.isenabled()
        return kernel()(x)

    def progress(text: str) -> None:
        seen["analysis"] = gc.isenabled()

    (gc.enable if is_enabled else gc.disable)()
    try:
        x = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        assert verify(function, x, progress=progress).verdict == "safe"
        assert gc.isenabled() == is_enabled
    finally:
        gc.enable()
    assert seen == {"tracing": is_enabled, "analysis": False}


@pytest.mark.parametrize("options", [{"calls": 0}, {"limit": 0}])
def test_bad_options(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        sp.verify(lambda: None, **options)  # type: ignore[arg-type]
