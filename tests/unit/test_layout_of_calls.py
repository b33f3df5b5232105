"""What is handed on to Pallas, and what stands in the library's own modules and public names."""

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp

LIBRARY = Path(sp.__file__).resolve().parent
PATHS = {
    ".".join(path.relative_to(LIBRARY).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(LIBRARY.rglob("*.py"))
}
SOURCES = {name: path.read_text() for name, path in PATHS.items()}
X = OUT = jax.ShapeDtypeStruct((16, 128), jnp.float32)
BLOCK = pl.BlockSpec((8, 128), lambda i: (i, 0))

# Every argument of a call is passed on.

OPTIONS: dict[str, dict[str, Any]] = {
    "no option": {},
    "grid": {"grid": (2,), "in_specs": [BLOCK], "out_specs": BLOCK},
    "grid of one int": {"grid": 2, "in_specs": [BLOCK], "out_specs": BLOCK},
    "memory spaces": {
        "in_specs": [pl.BlockSpec(memory_space=pl.ANY)],
        "out_specs": pl.BlockSpec(memory_space=pltpu.SMEM),
    },
    "grid_spec": {
        "grid_spec": pl.GridSpec(grid=(2,), in_specs=[BLOCK], out_specs=BLOCK),
    },
    "scalar prefetch": {
        "grid_spec": pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=0, grid=(2,), in_specs=[BLOCK], out_specs=BLOCK
        ),
    },
    "aliases": {"input_output_aliases": {0: 0}},
    "debug": {"debug": True},
    "interpret": {"interpret": True},
    "interpreter of TPUs": {"interpret": pltpu.InterpretParams(detect_races=True)},
    "name": {"name": "some name"},
    "compiler_params": {"compiler_params": pltpu.CompilerParams(vmem_limit_bytes=2**20)},
    "cost_estimate": {
        "cost_estimate": pl.CostEstimate(flops=1, transcendentals=2, bytes_accessed=3)
    },
    "metadata": {"metadata": {"key": "value"}},
}


def keywords(function: Any) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}


KEYWORDS = keywords(pl.pallas_call)


def kernel(*refs: Any) -> None:
    pass


def params_of(call: Any) -> dict[str, str]:
    (eqn,) = jax.make_jaxpr(call)(X).eqns
    return {key: str(value) for key, value in eqn.params.items()}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_arrive_as_in_raw_pallas(options: dict[str, Any]) -> None:
    ours = params_of(sp.pallas_call(kernel, OUT, **options))
    assert ours == params_of(pl.pallas_call(kernel, OUT, **options))
    if options:
        assert ours != params_of(pl.pallas_call(kernel, OUT))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_arrive_beside_scratch(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The very objects, but for a grid_spec, which carries the scratch."""
    arrived: dict[str, Any] = {}
    monkeypatch.setattr(pl, "pallas_call", lambda kernel, out, **rest: arrived.update(rest))
    specs = (sp.dma_semaphore(2),)
    sp.pallas_call(kernel, OUT, scratch_shapes=specs, **options)
    scratch = arrived.pop("scratch_shapes")
    if "grid_spec" in options:
        spec = arrived["grid_spec"]
        assert type(spec) is type(options["grid_spec"])
        given = vars(options["grid_spec"])
        changed = {key for key, value in vars(spec).items() if given[key] is not value}
        assert changed == {"scratch_shapes"}
        assert not given["scratch_shapes"]
        assert scratch == ()
        scratch = arrived["grid_spec"].scratch_shapes
        del arrived["grid_spec"]
    assert scratch == (pltpu.SemaphoreType.DMA((2,)),)
    for name, value in options.items():
        if name != "grid_spec":
            assert arrived[name] is value
    assert set(arrived) | {"scratch_shapes", "grid_spec"} == KEYWORDS


@pytest.mark.parametrize("name", ["pallas_call", "run_scoped", "with_scoped"])
def test_keywords_and_defaults_are_those_of_pallas(name: str) -> None:
    ours = inspect.signature(getattr(sp, name)).parameters
    raw = inspect.signature(getattr(pl, name)).parameters
    assert keywords(getattr(sp, name)) == keywords(getattr(pl, name))
    for key in keywords(getattr(sp, name)) - {"input_output_aliases"}:
        assert ours[key].default == raw[key].default
    if name == "pallas_call":
        assert [*ours][:2] == [*raw][:2] == ["kernel", "out_shape"]
        assert ours["input_output_aliases"].default is None  # raw: a dict, which all calls share
        assert raw["input_output_aliases"].default == {}


@pytest.mark.parametrize("name", ["signal", "wait", "read"])
def test_arguments_of_operations_are_those_of_pallas(name: str) -> None:
    """In name, order and default, but for what is not offered and for the semaphore's name."""
    ours = [*inspect.signature(getattr(sp, name)).parameters.values()]
    raw = [*inspect.signature(getattr(pl, f"semaphore_{name}")).parameters.values()]
    raw = [p for p in raw if p.name not in ("decrement", "device_id_type")]
    assert ours[0].name == "sem"
    assert [(p.name, p.default, p.kind) for p in ours[1:]] == [
        (p.name, p.default, p.kind) for p in raw[1:]
    ]


# What stands in the sources.


def test_private_names_of_jax() -> None:
    """In one module, and few."""
    private = r"jax\._src|jax\.interpreters|jaxlib|from jax import _\w+"
    assert [name for name in SOURCES if re.search(private, SOURCES[name])] == ["_jax.compat"]
    imports = [
        alias.name
        for node in ast.walk(ast.parse(SOURCES["_jax.compat"]))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("jax._src")
        for alias in node.names
    ]
    assert len(imports) == len(re.findall(private, SOURCES["_jax.compat"])) - 1  # its docstring
    assert len(imports) == 7, "the comment at the imports says how many"


def test_modules_are_short() -> None:
    long = {name for name, source in SOURCES.items() if source.count("\n") > 600}
    assert long <= {"_kernels.overloads"}  # written by a generator


# The public names.

PUBLIC = {name: value for name, value in vars(sp).items() if not name.startswith("_")}
MODULES = {name for name, value in PUBLIC.items() if inspect.ismodule(value)}
NAMES = sorted(set(PUBLIC) - MODULES)
FUNCTIONS = [name for name in NAMES if inspect.isfunction(PUBLIC[name])]


def test_the_public_names() -> None:
    assert {"errors", "raw", "testing", "verification"} >= MODULES
    reexported = re.findall(r"(?:import |^    )(\w+) as (\w+)", SOURCES["__init__"], re.M)
    private = {("versions", "_versions"), ("compat", "_compat"), ("os", "_os")}
    known = {("__version__", "__version__"), ("errors", "errors"), ("safepallas", "sp")} | private
    assert sorted({*reexported} - known) == [(name, name) for name in NAMES]
    assert set(FUNCTIONS) == {
        *("semaphore", "barrier_semaphore", "dma_semaphore", "vmem", "smem"),
        *("run_scoped", "with_scoped", "pallas_call", "kernel", "adopt"),
        *("pallas_call_async", "barrier_neighbors", "barrier_all", "core_barrier"),
        *("signal", "wait", "read", "get_barrier_semaphore"),
        *("make_async_copy", "make_async_remote_copy", "async_copy", "async_remote_copy"),
        "verify",
        *("sync_copy", "wait_bytes", "async_copy_counted", "async_remote_copy_counted"),
    }


def test_importing_it_imports_nothing_else_that_is_heavy() -> None:
    """Only its own modules, what is of Python, and the public names that JAX gives to parts of it.

    All else is there with Pallas.
    """
    code = """
import sys
import jax.experimental.pallas.tpu
before = set(sys.modules)
import safepallas
new = set(sys.modules) - before
names = "jax.extend", "jax._src.extend", "jax.experimental.hijax", "jax.experimental.xla_metadata"
names += "jax._src.xla_metadata", "jax._src.xla_transform"
new = {name.partition(".")[0] for name in new if not name.startswith(names)}
print(*sorted(new - {"safepallas"}))
print(*sorted(name for name in new - {"safepallas"} if name not in sys.stdlib_module_names))
print("safepallas.testing" in sys.modules)
"""
    environment = {**os.environ, "PYTHONPATH": str(LIBRARY.parent), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    stdlib, foreign, testing = done.stdout.splitlines()
    print("new modules of the standard library:", stdlib or "none")
    assert not foreign
    assert testing == "False"
