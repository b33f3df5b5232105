"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import safepallas

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
WRONG = ROOT / "docs" / "tour" / "wrong_kernel.py"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_wrong_kernel_is_the_one_of_the_tour() -> None:
    assert blocks("python")[0] == WRONG.read_text()


def test_mypy_says_what_the_readme_says() -> None:
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file=", WRONG.name]
    source = str(Path(safepallas.__file__).parents[1])
    environment = {"MYPYPATH": "" if "site-packages" in source else source, "PATH": ""}
    answer = subprocess.run(
        mypy, cwd=WRONG.parent, env=environment, text=True, capture_output=True, check=False
    )
    assert answer.stdout == blocks("text")[0]
    assert answer.returncode == 1


def test_the_trace_says_what_the_readme_says() -> None:
    code = compile(WRONG.read_text(), WRONG.name, "exec")
    names: dict[str, object] = {}
    exec(code, names)
    import jax
    import jax.numpy as jnp

    shape = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    kernel, buffers = names["kernel"], names["Buffers"]
    call = safepallas.pallas_call(kernel, shape, scratch_shapes=buffers)  # type: ignore[call-overload]
    with pytest.raises(safepallas.WrongKindError) as caught:
        jax.eval_shape(call, shape)
    assert f"safepallas.WrongKindError: {caught.value}\n" == blocks("text")[1]


def test_the_right_kernel_runs() -> None:
    right = blocks("python")[1]
    subprocess.run([sys.executable, "-c", right], check=True, timeout=120, env=_environment())


def test_the_first_two_commands() -> None:
    first, second = blocks("sh")
    assert first.strip().endswith("docs/tour/tour.py")
    assert second.strip().endswith("pytest")
    assert "\n" not in first.strip() + second.strip()


def test_the_tour_ends_well() -> None:
    tour = [sys.executable, str(ROOT / "docs" / "tour" / "tour.py")]
    shown = subprocess.run(
        tour, check=True, timeout=300, text=True, capture_output=True, env=_environment()
    )
    assert blocks("text")[0] in shown.stdout
    assert shown.stdout.endswith("ring all-gather on 4 simulated devices: ok\n")


def _environment() -> dict[str, str]:
    source = str(Path(safepallas.__file__).parents[1])
    found = {} if "site-packages" in source else {"PYTHONPATH": source, "MYPYPATH": source}
    return {**found, "PATH": "", "JAX_PLATFORMS": "cpu"}
