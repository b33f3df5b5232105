"""No Any leaks out of the public API."""

import inspect
import json
import shlex
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import safepallas as sp
from safepallas import verification

from .checkers import CHECK_SECONDS, HERE, Errors, Line, library_parent, require, run

# What else holds an Any, and why. A parameter of this type is JAX's or Pallas's own matter.
TAKEN_AS_PALLAS_DOES = {
    "AsyncCall.start.inputs",
    "Ref.__getitem__.index",
    "Ref.__setitem__.index",
    "kernel.compiler_params",
    "kernel.cost_estimate",
    "kernel.interpret",
    "kernel.mesh",
    "kernel.out_type",
    "pallas_call_async.compiler_params",
    "pallas_call_async.interpret",
    "pallas_call_async.out_shape",
    "pallas_call.compiler_params",
    "pallas_call.cost_estimate",
    "pallas_call.grid",
    "pallas_call.grid_spec",
    "pallas_call.in_specs",
    "pallas_call.interpret",
    "pallas_call.out_shape",
    "pallas_call.out_specs",
    "run_scoped.collective_axes",
    "with_scoped.collective_axes",
}
IN_TYPES_OF_NUMPY_AND_JAX = {  # np.integer[Any], jax.typing.DTypeLike
    "async_remote_copy.device_id",
    "async_remote_copy_counted.device_id",
    "make_async_remote_copy.device_id",
    "signal.device_id",
    "smem.dtype",
    "vmem.dtype",
}
GIVEN_AS_PALLAS_DOES = {
    "AsyncCall.done.return",
    "Ref.dtype.return",
    "pallas_call.return",
    "SemaphoreArray.ref.return",  # whose elements have refs of the kind's own type
}
# What the overloads say, no checker reads from the implementation. tests/typing/reveal/ asserts
# each of them.
OVERLOADED = {
    "SemaphoreArray.__getitem__.i",
    "SemaphoreArray.__getitem__.return",
    "SemaphoreArray.__iter__.return",
    "Spec.__get__.owner",
    "Spec.__get__.return",
    "barrier_semaphore.return",
    "dma_semaphore.return",
    "kernel.body",
    "kernel.return",
    "kernel.scratch_types",
    "pallas_call.scratch_shapes",
    "pallas_call_async.return",
    "pallas_call_async.semaphores",
    "run_scoped.specs",
    "semaphore.return",
    "with_scoped.return",
    "with_scoped.specs",
}


def verify_types(package: str, parent: Path, work: Path) -> dict[str, Any]:
    """``pyright --verifytypes``, which looks for the package with the first Python of PATH."""
    for name in ("python", "python3"):
        shim = work / name
        shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        shim.chmod(0o755)
    command = [sys.executable, "-m", "pyright", "--verifytypes", package, "--ignoreexternal"]
    done = run(
        [*command, "--outputjson"],
        CHECK_SECONDS,
        PATH=f"{work}:/usr/bin:/bin",
        PYTHONPATH=str(parent),
        PYRIGHT_PYTHON_IGNORE_WARNINGS="1",
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)["typeCompleteness"]
    return report


def unknown(report: dict[str, Any]) -> list[str]:
    return [s["name"] for s in report["symbols"] if s["isExported"] and not s["isTypeKnown"]]


def test_all_public_types_are_known(tmp_path: Path) -> None:
    require("pyright")
    report = verify_types("safepallas", library_parent(), tmp_path)
    assert not unknown(report)
    assert report["completenessScore"] == 1
    modules = {module["name"] for module in report["modules"]}
    assert {"safepallas", "safepallas.raw", "safepallas.testing"} <= modules


def test_an_unknown_type_is_seen(tmp_path: Path) -> None:
    require("pyright")
    package = tmp_path / "leaky"
    package.mkdir()
    (package / "py.typed").touch()
    (package / "__init__.py").write_text("def leak(x):\n    return x\n")
    report = verify_types("leaky", tmp_path, tmp_path)
    assert unknown(report) == ["leaky.leak"]
    assert report["completenessScore"] < 1


def test_mypy_looks_for_expressions_of_any(reports: dict[str, Errors]) -> None:
    """In files named as reveal/without_any.py, of which the other tests demand that it has none."""
    require("mypy")
    assert (HERE / "reveal" / "without_any.py").exists()
    found = reports["mypy"][Line("untyped/without_any.py", 5)]
    assert 'Expression has type "Any"' in found


def holds_any(annotation: Any) -> bool:
    if annotation is Any:
        return True
    parts = annotation if isinstance(annotation, list) else typing.get_args(annotation)
    return any(map(holds_any, parts))


def signatures() -> Iterator[tuple[str, Any]]:
    """All public functions, and the methods of public classes that are safepallas's own."""
    for name in dir(sp):
        value = getattr(sp, name)
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        if not inspect.isclass(value):
            yield name, value
            continue
        bases = [base for base in value.__mro__ if base.__module__.startswith("safepallas")]
        for method in sorted({key for base in bases for key in vars(base)}):
            if method.startswith("_") and not method.endswith("__"):
                continue
            found = inspect.getattr_static(value, method)
            found = found.fget if isinstance(found, property) else found
            if inspect.isfunction(found):
                yield f"{name}.{method}", found


def hints(function: Any) -> dict[str, Any]:
    # `sp.verify` imports what it returns when it is called.
    return typing.get_type_hints(function, localns=vars(verification))


def test_every_any_in_a_signature_has_its_reason() -> None:
    found = {
        f"{name}.{parameter}"
        for name, function in signatures()
        for parameter, annotation in hints(function).items()
        if holds_any(annotation)
    }
    # Constructors, which take Never, raise whatever they are given.
    found -= {one for one in found if ".__new__." in one or ".__init_subclass__." in one}
    reasons = TAKEN_AS_PALLAS_DOES | IN_TYPES_OF_NUMPY_AND_JAX | GIVEN_AS_PALLAS_DOES | OVERLOADED
    assert found == reasons


@pytest.mark.parametrize("annotation", [Any, list[Any], dict[str, tuple[Any, ...]]])
def test_any_is_found_where_it_hides(annotation: Any) -> None:
    assert holds_any(annotation)
    assert not holds_any(dict[str, tuple[int, ...]])
