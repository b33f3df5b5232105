"""The two commands of the README, and the kernel that it shares with the tour."""

import re
import subprocess
import sys
from pathlib import Path

import safepallas

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
TOUR = ROOT / "docs" / "tour"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_wrong_kernel_is_the_one_of_the_tour() -> None:
    assert blocks("python")[0] == (TOUR / "wrong_kernel.py").read_text()


def test_the_first_two_commands() -> None:
    first, second = blocks("sh")
    assert first.strip().endswith("docs/tour/tour.py")
    assert second.strip().endswith("pytest")
    assert "\n" not in first.strip() + second.strip()


def test_the_tour_shows_what_the_readme_shows() -> None:
    """It is what the first command runs."""
    source = str(Path(safepallas.__file__).parents[1])
    paths = {} if "site-packages" in source else {"PYTHONPATH": source, "MYPYPATH": source}
    shown = subprocess.run(
        [sys.executable, str(TOUR / "tour.py")],
        check=True,
        timeout=300,
        text=True,
        capture_output=True,
        env={**paths, "PATH": "", "JAX_PLATFORMS": "cpu"},
    )
    command, _, answer = blocks("console")[0].partition("\n")
    assert command == "$ mypy --strict wrong_kernel.py"
    assert answer in shown.stdout
    assert shown.stdout.endswith("ring all-gather on 4 simulated devices: ok\n")
