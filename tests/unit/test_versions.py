"""The supported versions of JAX, and the functions of Pallas that safepallas wraps, as they are."""

import inspect
import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from typing import Any

import jax
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import safepallas as sp
from safepallas._jax import versions as _versions

PROJECT = Path(__file__).resolve().parents[2]


def caught(version: tuple[int, ...]) -> list[Any]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        _versions.warn_if_untested(version)
    return found


@pytest.mark.parametrize("version", [(0, 10, 2), (0, 11, 0), (0, 12, 0), (0, 12, 0, 1)])
def test_no_warning_within_the_range(version: tuple[int, ...]) -> None:
    assert caught(version) == []


@pytest.mark.parametrize("version", [(0, 9, 0), (0, 10, 1), (0, 12, 1), (1, 0, 0)])
def test_one_warning_outside_of_it(version: tuple[int, ...]) -> None:
    (warning,) = caught(version)
    assert warning.category is sp.errors.JaxVersionWarning
    assert str(warning.message) == (
        f"safepallas is tested with JAX 0.10.2 to 0.12.0.1, and this is JAX "
        f"{'.'.join(map(str, version))}: it may not import, or may check less than it says. "
        "Install a JAX in that range, or a newer safepallas. [jax-version]"
    )


IMPORT = """
import warnings, jax
jax.__version_info__ = (9, 9, 9)
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    import safepallas
ours = [w for w in found if w.category is safepallas.errors.JaxVersionWarning]
print(len(ours), ours[0].filename)
"""


def test_the_import_warns_once_and_names_the_importer() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["1", "<string>"], done.stderr


def test_the_oldest_version_is_the_one_required() -> None:
    text = (PROJECT / "pyproject.toml").read_text()
    requirements = tomllib.loads(text)["project"]["dependencies"]
    assert f"jax>={_versions.text_of(_versions.OLDEST)}" in requirements


def test_the_tested_versions_are_those_of_the_range() -> None:
    """This run is one of its ends: the newest JAX for its Python."""
    assert jax.__version_info__ in (_versions.OLDEST, _versions.NEWEST), (
        f"the tests run with JAX {jax.__version__}: widen the range in safepallas/_jax/versions.py "
        "once they pass"
    )


# Names of parameters in order; "*" before those by keyword, "=" behind those with a default. Two
# where JAX 0.12 differs.
OPTIONS = (
    "grid_spec= grid= in_specs= out_specs= scratch_shapes= input_output_aliases= debug= interpret= "
    "name= compiler_params= cost_estimate= metadata="
)
KERNEL = "scratch_types= compiler_params= interpret= cost_estimate= debug= name= metadata="
WRAPPED: dict[str, tuple[str, ...]] = {
    "pl.pallas_call": (f"kernel out_shape * {OPTIONS}",),
    "pl.kernel": (f"body= out_type= * mesh {KERNEL}",),
    "pl.run_scoped": ("f *types collective_axes= **kw_types",),
    "pl.semaphore_signal": ("sem_or_view inc= * device_id= device_id_type= core_index=",),
    "pl.semaphore_wait": ("sem_or_view value= * decrement=",),
    "pl.semaphore_read": ("sem_or_view",),
    "pl.get_global": ("what",),
    "pltpu.make_async_copy": ("src_ref dst_ref sem", "src_ref dst_ref sem= * src_sem="),
    "pltpu.make_async_remote_copy": (
        "src_ref dst_ref send_sem recv_sem device_id device_id_type=",
    ),
    "pltpu.sync_copy": ("src_ref dst_ref * add=",),
    "pltpu.get_barrier_semaphore": ("", "tag="),
    "pltpu.core_barrier": ("sem * core_axis_name",),
    "pltpu.with_memory_space_constraint": ("x memory_space",),
    "pltpu.VMEM": ("shape dtype", "*values"),
    "pltpu.SMEM": ("shape dtype", "*values"),
    "pltpu.HBM": ("shape dtype", "*values"),
}


def written(function: Any) -> str:
    parts = []
    seen = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    star = inspect.Parameter.VAR_POSITIONAL in seen
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            star = True
            parts.append("*")
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else "="
        parts.append(f"{stars}{parameter.name}{default}")
    return " ".join(parts)


@pytest.mark.parametrize("name", WRAPPED)
def test_canary(name: str) -> None:
    """A change here is no fault yet: look whether the wrapper still says all that Pallas can."""
    module, _, attribute = name.partition(".")
    found = written(getattr({"pl": pl, "pltpu": pltpu}[module], attribute))
    expected = WRAPPED[name][-1 if jax.__version_info__ >= (0, 12) else 0]
    assert found == expected, (
        f"{name} has changed in JAX {jax.__version__}.\n  known: ({expected})\n  found: ({found})\n"
        f"Fix its callers in safepallas, then the table in {__file__}."
    )


def test_the_canary_watches_all_that_is_called() -> None:
    """Every function of Pallas that the library calls, types and predicates aside."""
    called: set[str] = set()
    for path in Path(sp.__file__).parent.rglob("*.py"):
        called |= set(re.findall(r"\b(pl(?:tpu)?\.[a-z]\w*)\(", path.read_text()))
    # In docstrings and messages; and meshes, which users make.
    named = {"pl.debug_print", "pl.ds", "pl.program_id", "pl.when"}
    named |= {"pltpu.async_copy", "pltpu.create_tensorcore_mesh"}
    assert called - named <= set(WRAPPED)
