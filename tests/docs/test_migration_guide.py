"""docs/migration-guide.md: its typed kernels satisfy mypy; the raw ones compute the same.

That the two lower alike is asserted by the page itself, when its blocks run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import safepallas

from .blocks import DEVICES, HIDDEN, ROOT, Block, read

PAGE = ROOT / "docs" / "migration-guide.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = [block for block in read(PAGE) if block.language in ("python", HIDDEN)]
IMPORTS = next(block for block in BLOCKS if block.language == "python")

# In place of the page's own `same` and `differs`.
RUN = """
import contextlib
from jax.experimental.pallas import tpu as pltpu
pltpu.set_tpu_interpret_mode()
ran = []

def same(raw, typed, *args):
    # emit_pipeline asks which TPU it is.
    tpu = jax.sharding.AbstractDevice("TPU v5 lite", 1, "tpu")
    mesh = jax.sharding.AbstractMesh((), (), abstract_device=tpu)
    one_device = args[-1].shape == BLOCKS.shape
    with jax.sharding.use_abstract_mesh(mesh) if one_device else contextlib.nullcontext():
        wanted, got = jax.jit(raw)(*args), jax.jit(typed)(*args)
    assert not jnp.isnan(wanted).any()
    assert (wanted == got).all()
    ran.append(typed)

differs = same
"""
COUNT = 19  # comparisons on the page; more when a pair is added


def shown_after(heading: str) -> list[Block]:
    """The python blocks that stand right after a line of the page."""
    found = []
    for block in BLOCKS:
        before = TEXT[: block.region.start].rstrip().splitlines()
        if block.language == "python" and before[-1] == heading:
            found.append(block)
    return found


def test_every_raw_kernel_has_a_typed_one() -> None:
    raw, typed = shown_after("**Raw**"), shown_after("**Typed**")
    assert len(raw) == len(typed) >= 14
    assert not [block.line for block in raw if "sp." in block.source]
    headings = re.findall(r"\*\*(Raw|Typed)\*\*", TEXT)
    assert headings == ["Raw", "Typed"] * len(raw)


@pytest.fixture
def environment() -> dict[str, str]:
    source = str(Path(safepallas.__file__).parents[1])
    found = {} if "site-packages" in source else {"PYTHONPATH": source, "MYPYPATH": source}
    flags = f"--xla_force_host_platform_device_count={DEVICES}"
    return {**os.environ, **found, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}


def test_mypy_is_content(tmp_path: Path, environment: dict[str, str]) -> None:
    """Each typed block as a module of its own, with the imports that the page begins with."""
    names = []
    for block in shown_after("**Typed**"):
        names.append(f"line_{block.line}.py")
        (tmp_path / names[-1]).write_text(f"{IMPORTS.source}\n{block.source}", encoding="utf-8")
    strict = ["--strict", "--untyped-calls-exclude=jax", "--cache-dir", str(tmp_path / "cache")]
    mypy = [sys.executable, "-m", "mypy", *strict, *names]
    answer = subprocess.run(
        mypy, cwd=tmp_path, env=environment, text=True, capture_output=True, check=False
    )
    assert answer.stdout == f"Success: no issues found in {len(names)} source files\n"


def test_both_compute_the_same(tmp_path: Path, environment: dict[str, str]) -> None:
    """All of the page in one program, under the interpreter that simulates TPUs."""
    program = []
    for block in BLOCKS:
        if block.outputs or "no interpreter" in block.source:
            continue
        source = re.sub(r"^def (same|differs)\(", r"def _unused_\1(", block.source, flags=re.M)
        if "assert_lowers_like(typed_call" not in source:
            program.append(source)
        if block is IMPORTS:
            program.append(RUN)
    program.append(f"assert len(ran) == {COUNT}, len(ran)")
    (tmp_path / "page.py").write_text("\n".join(program), encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "page.py"],
        cwd=tmp_path,
        env=environment,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
