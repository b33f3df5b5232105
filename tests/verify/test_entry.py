"""`sp.verify`: a plain function; the verifier itself is imported when it is first called."""

import inspect
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import safepallas as sp
from safepallas import verify
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


@pytest.mark.parametrize("options", [{"calls": 0}, {"limit": 0}])
def test_bad_options(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        sp.verify(lambda: None, **options)  # type: ignore[arg-type]
