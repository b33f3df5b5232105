"""The typed view of raw Pallas in stubs/, as a user has it: installed beside JAX.

reject/  every line marked ``# E: <why>`` is an error in every checker, and no other line in any
accept/  correct raw kernels, which the tests also trace or run: no checker says anything, with the
         stubs and without. With them it says nothing new about the raw kernels in tests/lowering,
         about safepallas itself and about the kernels that JAX ships.
"""

import ast
import concurrent.futures
import importlib
import importlib.util
import os
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import jax
import pytest

import safepallas as sp

from ..loading import load
from ..typing.checkers import (
    CHECKERS,
    INSTALLED,
    MYPY,
    Errors,
    Files,
    Line,
    disagreements,
    marked,
    require,
)

HERE = Path(__file__).resolve().parent
LIBRARY = Path(sp.__file__).resolve().parent
STUBS = HERE.parents[1] / "stubs"
PALLAS = STUBS / "jax-stubs" / "experimental" / "pallas"
RAW_KERNELS = HERE.parent / "lowering" / "reference"
SECONDS = 300  # for one checker, with a cold cache

FOLDERS = ("reject", "accept", "reference", "library", "shipped")


class Environment(NamedTuple):
    """Directories of Python environments and of the files to check."""

    bare: Path  # JAX and safepallas
    stubbed: Path  # and the stubs
    files: Path


def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    environ = {k: v for k, v in os.environ.items() if k not in ("MYPYPATH", "PYTHONPATH")}
    return subprocess.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def environment(path: Path) -> Path:
    """A Python environment with safepallas, which finds what is installed here."""
    venv.create(path, symlinks=True)
    installed = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    (site_packages(path) / "installed.pth").write_text("\n".join(sorted(installed)) + "\n")
    # A copy, so that the checkers find what the tests import: a source tree or a wheel.
    package = site_packages(path) / "safepallas"
    shutil.copytree(LIBRARY, package, ignore=shutil.ignore_patterns("__pycache__"))
    return path


def site_packages(path: Path) -> Path:
    return next(path.glob("lib/python*/site-packages"))


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    root = tmp_path_factory.mktemp("stubs")
    bare, stubbed = environment(root / "bare"), environment(root / "stubbed")
    shutil.copytree(STUBS / "jax-stubs", site_packages(stubbed) / "jax-stubs")
    files = root / "files"
    spec = importlib.util.find_spec("jax.experimental.pallas.ops.tpu")
    assert spec is not None
    assert spec.origin is not None
    for source, name in (
        (HERE / "reject", "reject"),
        (HERE / "accept", "accept"),
        (RAW_KERNELS, "reference"),
        (LIBRARY, "library/safepallas"),
        (Path(spec.origin).parent, "shipped"),
    ):
        shutil.copytree(source, files / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "mypy.ini").write_text(MYPY)
    return Environment(bare, stubbed, files)


def check(name: str, python: Path, files: Path, cache: Path) -> Errors:
    """What a checker says in an environment of the files that it can be given there."""
    work = files.parent / f"{name}-{python.name}"
    pyright: dict[str, object] = {"typeCheckingMode": "standard"}
    if name == "pyright":
        # It loses the stubs that JAX ships where jax-stubs is installed, so it gets a copy. Where
        # a file imports `jax.experimental.topologies`, as the library does, it loses types.
        shutil.copytree(files, work, ignore=shutil.ignore_patterns("library"))
        files = work
        if (stubs := site_packages(python) / "jax-stubs").exists():
            typings = work / "typings" / "jax"
            shutil.copytree(stubs, typings, ignore=shutil.ignore_patterns("py.typed"))
        python = python.parent / "bare"
    work.mkdir(exist_ok=True)
    folders = [folder for folder in FOLDERS if (files / folder).exists()]
    interpreter = str(python / "bin" / "python")
    given = Files(files, folders, work, cache, interpreter, "", pyright, pyrefly=None)
    return CHECKERS[name](given._replace(warnings=False))


Reports = dict[tuple[str, str], Errors]


@pytest.fixture(scope="session")
def reports(environments: Environment) -> Reports:
    """The errors of every installed checker, in both environments, side by side."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        started = {
            (name, python.name): pool.submit(
                check, name, python, environments.files, environments.files.parent / python.name
            )
            for name in INSTALLED
            for python in (environments.stubbed, environments.bare)
        }
        return {key: future.result() for key, future in started.items()}


def within(errors: Errors, *folders: str) -> Errors:
    return {place: found for place, found in errors.items() if place.file.split("/")[0] in folders}


@pytest.mark.parametrize("checker", CHECKERS)
def test_misuse_is_an_error_on_its_line_and_on_no_other(checker: str, reports: Reports) -> None:
    require(checker)
    texts = {f"reject/{path.name}": path.read_text() for path in (HERE / "reject").glob("*.py")}
    expected = marked("reject", texts)
    assert len(expected) >= 90
    assert disagreements(expected, {checker: reports[checker, "stubbed"]}, "reject/") == []


@pytest.mark.parametrize("checker", CHECKERS)
def test_correct_kernels_give_no_error(checker: str, reports: Reports) -> None:
    require(checker)
    assert within(reports[checker, "stubbed"], "accept") == {}


@pytest.mark.parametrize("checker", CHECKERS)
def test_annotated_kernels_give_no_error_without_the_stubs(checker: str, reports: Reports) -> None:
    require(checker)
    errors = within(reports[checker, "bare"], "accept")
    # To JAX, `with_scoped` has no type at all.
    functions = ast.parse((HERE / "accept" / "kernels.py").read_text()).body
    (scoped,) = [f for f in functions if isinstance(f, ast.FunctionDef) and f.name == "decorated"]
    lines = range(scoped.lineno, (scoped.end_lineno or 0) + 1)
    there = {Line("accept/kernels.py", number) for number in lines}
    assert {place: found for place, found in errors.items() if place not in there} == {}


@pytest.mark.parametrize("checker", sorted(CHECKERS.keys() - {"pyright"}))
def test_safepallas_gives_no_new_error(checker: str, reports: Reports) -> None:
    require(checker)
    before = within(reports[checker, "bare"], "library")
    assert within(reports[checker, "stubbed"], "library") == before


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("folder", ["shipped", "reference"])
def test_kernels_of_others_give_no_new_error(checker: str, folder: str, reports: Reports) -> None:
    require(checker)
    before = within(reports[checker, "bare"], folder)
    after = within(reports[checker, "stubbed"], folder)
    new = {
        place: [message for message in found if message not in before.get(place, [])]
        for place, found in after.items()
    }
    assert {place: found for place, found in new.items() if found} == {}


def accepted(name: str) -> ModuleType:
    return load(HERE / "accept" / f"{name}.py")


def test_correct_kernels_are_correct() -> None:
    module = accepted("kernels")
    assert len(module.KERNELS) >= 10
    assert len(module.trace()) == len(module.KERNELS)


def test_annotated_kernels_run() -> None:
    accepted("mixed").run()


def test_annotations_change_nothing_that_runs() -> None:
    module = accepted("kernels")
    annotated = module.trace()
    for kernel, _ in module.KERNELS:
        kernel.__annotations__ = {}
    assert module.trace() == annotated


def test_stubtest(environments: Environment) -> None:
    require("mypy")
    command = [str(environments.stubbed / "bin" / "python"), "-m", "mypy.stubtest"]
    version = "0.10" if jax.__version_info__ < (0, 12) else "0.12"
    for allowlist in ("allowlist.txt", f"allowlist-{version}.txt"):
        command += ["--allowlist", str(HERE / allowlist)]
    command += ["--ignore-unused-allowlist"]
    command += ["--mypy-config-file", str(environments.files.parent / "mypy.ini")]
    done = run([*command, "jax.experimental.pallas"], environments.files.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues" in done.stdout


def public(module: ModuleType) -> set[str]:
    deprecated = {name for name, (_, value) in module._deprecations.items() if value is not None}
    return {name for name in dir(module) if not name.startswith("_")} | deprecated


@pytest.mark.parametrize(
    ("name", "stub"),
    [("jax.experimental.pallas", "__init__.pyi"), ("jax.experimental.pallas.tpu", "tpu.pyi")],
)
def test_every_public_name_is_described(name: str, stub: str) -> None:
    described = set()
    for node in ast.parse((PALLAS / stub).read_text()).body:
        if isinstance(node, ast.ImportFrom):
            described |= {alias.asname for alias in node.names if alias.asname == alias.name}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            described.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            described |= {target.id for target in targets if isinstance(target, ast.Name)}
    # Modules of the package that something has imported are no names of its own.
    package = {
        path.stem for path in Path(importlib.import_module(name).__file__ or "").parent.iterdir()
    }
    assert public(importlib.import_module(name)) - described - package == set()
