"""`sp.verify`: a function to its users, and a package that is imported when first asked for."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import safepallas as sp
from safepallas.verify import Report, verify

LAZY = """
import sys, safepallas
assert "safepallas.verify" not in sys.modules
{first}
assert callable(safepallas.verify)
report = safepallas.verify(lambda: None)
from safepallas.verify import Report, verify
assert type(report) is type(safepallas.verify(lambda: None)) is type(verify(lambda: None)) is Report
print(report.verdict)
"""


@pytest.mark.parametrize(
    "first", ["", "import safepallas.verify", "from safepallas.verify import Kind"]
)
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


def test_the_package_is_the_function() -> None:
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
