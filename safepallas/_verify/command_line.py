"""``python -m safepallas verify``: verify a kernel for several numbers of devices, as a test does.

The exit code says the worst that was found: 0 safe, 1 unsafe, 2 undecided, 3 not used as it should
be (no such factory, a factory that raises or returns something else, a function that JAX does not
trace).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn, cast

import jax

from safepallas._errors import explain as _explain
from safepallas._errors.verification_errors import PictureError
from safepallas._verify.diagnostics.finding import FindingKind
from safepallas._verify.entry import verify
from safepallas._verify.report.report import Report

SAFE, UNSAFE, UNDECIDED, USAGE = range(4)
CODES: Final = {"safe": SAFE, "unsafe": UNSAFE, "undecided": UNDECIDED}

# A module or factory that ends the process would else choose the exit code: 0, safe, perhaps.
_RAISED: Final = Exception, SystemExit

_EPILOG: Final = """\
factory(n) gets the number of devices and returns (fn, args): a function that calls Pallas kernels,
and its arguments, arrays or jax.ShapeDtypeStructs. Nothing runs and no device is needed: under
jax.shard_map the mesh may be a jax.sharding.AbstractMesh. Without JAX_PLATFORMS JAX is told to use
the CPU, with as many devices as the largest n, so that jax.make_mesh works too.

exit codes: 0 safe, 1 unsafe, 2 undecided and nothing unsafe, 3 wrong usage.
With several numbers of devices FILE gets the number in its name: ring.svg becomes ring.4.svg.
"""


class UsageError(Exception):
    """What the user gave cannot be verified. The text says why."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit with 3, as 2 (argparse's own) means undecided."""
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: error: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code.

    Raises:
        SystemExit: With code 3, for arguments that cannot be understood; with 0 for ``--help``.
    """
    given = _parser().parse_args(arguments)
    try:
        if given.command == "explain":
            print(_explain.explain(given.code))
            return SAFE
        use_cpu(max(given.devices))
        factory = find_factory(given.factory)
        codes = [verify_one(given, factory, size) for size in given.devices]
    except (UsageError, _explain.UnknownCodeError) as error:
        print(f"safepallas {given.command}: error: {error}", file=sys.stderr)
        return USAGE
    return UNSAFE if UNSAFE in codes else max(codes)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m safepallas", description="Tools of safepallas.")
    commands = parser.add_subparsers(
        required=True, dest="command", metavar="command", parser_class=_Parser
    )
    explain = commands.add_parser(
        "explain",
        help="say what the code of an error means, and how to fix it",
        description="Say what the code of an error means, and how to fix it.",
    )
    explain.add_argument("code", help="as it stands at the end of the message: wrong-kind")
    verify = commands.add_parser(
        "verify",
        help="decide deadlocks, leaked semaphores and races, before anything runs",
        description="Decide deadlocks, leaked semaphores and races, before anything runs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verify.add_argument("factory", metavar="module:factory", help="or path/to/file.py:factory")
    verify.add_argument(
        "--devices", metavar="N", type=_positive, nargs="+", required=True, help="how many, each"
    )
    verify.add_argument(
        "--calls",
        metavar="N",
        type=_positive,
        help="how often the function is called in a row (by default twice where the barrier "
        "semaphore is used, which outlives a call)",
    )
    verify.add_argument(
        "--accept",
        metavar="KIND",
        choices=[kind.value for kind in FindingKind],
        nargs="+",
        default=[],
        help="kinds of findings that do not make the verdict unsafe: "
        + ", ".join(kind.value for kind in FindingKind),
    )
    verify.add_argument("--perfetto", metavar="FILE", type=Path, help="write a timeline there")
    verify.add_argument("--svg", metavar="FILE", type=Path, help="draw a picture there")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer above 0")
    return int(text)


def use_cpu(devices: int) -> None:
    """Let JAX pretend to so many devices, on the CPU, unless the environment says otherwise.

    To be called before anything asks JAX for its devices: a TPU is left alone then.
    """
    if not os.environ.get("JAX_PLATFORMS"):
        jax.config.update("jax_platforms", "cpu")
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_force_host_platform_device_count" not in flags:
        flag = f"--xla_force_host_platform_device_count={devices}"
        os.environ["XLA_FLAGS"] = f"{flags} {flag}".strip()


def find_factory(name: str) -> Callable[[int], object]:
    """Import ``module:factory`` or ``path/to/file.py:factory``.

    Raises:
        UsageError: There is none, or importing its module raises.
    """
    module_name, colon, attribute = name.rpartition(":")
    if not (colon and module_name and attribute):
        raise UsageError(f"{name!r} is not module:factory. Write it as in my_kernels:ring.")
    try:
        module = _import(module_name)
    except UsageError:
        raise
    except _RAISED as error:
        raise UsageError(f"importing {module_name} raised {_said(error)}.") from error
    factory: object = module
    for part in attribute.split("."):
        if not hasattr(factory, part):
            raise UsageError(f"{module_name} has no {attribute!r}.")
        factory = getattr(factory, part)
    if not callable(factory):
        raise UsageError(f"{name} cannot be called: it is {type(factory).__name__} {factory!r}.")
    return cast("Callable[[int], object]", factory)


def _import(name: str) -> ModuleType:
    if name.endswith(".py"):
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"there is no file {name}.")
        # As python does for a script, so that it may import its neighbours.
        sys.path.insert(0, str(path.resolve().parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise UsageError(f"{name} cannot be imported.")
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return module
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise UsageError(
                f"there is no module {error.name!r} (looked for from {Path.cwd()})."
            ) from error
        raise


def verify_one(given: argparse.Namespace, factory: Callable[[int], object], size: int) -> int:
    """Verify for one number of devices, print the report, write the files."""
    what = f"{given.factory}({size})"
    try:
        made = factory(size)
    except _RAISED as error:
        raise UsageError(f"{what} raised {_said(error)}.") from error
    if not (isinstance(made, tuple | list) and len(made) == 2):
        raise UsageError(f"{what} must return (fn, args), and returned {_short(made)}.")
    fn, args = cast("tuple[object, object]", made)
    if not callable(fn) or not isinstance(args, tuple | list):
        raise UsageError(
            f"{what} must return (fn, args), a function and a tuple, and returned "
            f"({_short(fn)}, {_short(args)})."
        )
    report = _verify(what, fn, cast("Sequence[object]", args), given.calls, given.accept)
    # As short as can be, and still the names that an editor finds.
    text = str(report).replace(f"{Path.cwd()}{os.sep}", "")
    print(f"{what}\n{text}\n")
    several = len(given.devices) > 1
    for path, write in (given.perfetto, report.to_perfetto), (given.svg, report.to_svg):
        if path is not None:
            _write(path.with_suffix(f".{size}{path.suffix}") if several else path, write)
    return CODES[report.verdict]


def _verify(
    what: str,
    fn: Callable[..., object],
    args: Sequence[object],
    calls: int | None,
    accept: Sequence[str],
) -> Report:
    try:
        return verify(fn, *args, calls=calls, accept=accept, progress=_Progress(what))
    except _RAISED as error:
        raise UsageError(f"{what} cannot be verified: {_said(error)}.") from error


def _write(path: Path, write: Callable[[str], None]) -> None:
    """The verdict stands, whether it can be drawn or not."""
    try:
        write(str(path))
    except PictureError as error:
        print(f"safepallas verify: {path} is not written: {error}", file=sys.stderr)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}.") from error
    else:
        print(f"safepallas verify: wrote {path}", file=sys.stderr)


class _Progress:
    """Lines on stderr, once something takes long: the first after two seconds."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.started = self.last = time.monotonic()

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if now - self.last >= 2:
            self.last = now
            print(f"{self.what}: {text} ({now - self.started:.0f} s)", file=sys.stderr, flush=True)


def _said(error: BaseException) -> str:
    """The error in a line, with the innermost line of it that is not in an installed package."""
    text = f"{type(error).__name__}: {error}".strip().rstrip(".:")
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename
        and not frame.filename.startswith((_HERE, "<"))
        and os.path.exists(frame.filename)
        and "importlib" not in frame.filename
    ]
    return f"{text} ({own[-1].filename}:{own[-1].lineno})" if own else text


_HERE: Final = str(Path(__file__).resolve().parent.parent) + os.sep


def _short(value: object) -> str:
    text = f"{type(value).__name__} {value!r}"
    return text if len(text) <= 80 else text[:77] + "..."
