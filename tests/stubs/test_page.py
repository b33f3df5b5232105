"""docs/stubs.md shows a raw kernel and what mypy says of it where the stubs are installed."""

import re
import shutil
import sys
from pathlib import Path

from ..typing.checkers import require
from .test_stubs import HERE, STUBS, environment, run, site_packages

PAGE = HERE.parents[1] / "docs" / "stubs.md"


def test_mypy_says_what_the_page_says(tmp_path: Path) -> None:
    require("mypy")
    text = PAGE.read_text(encoding="utf-8")
    ((name, kernel),) = re.findall(r"<!--- file: (\S+) -->\n+```python\n(.*?)```", text, re.S)
    ((command, shown),) = re.findall(r"```console\n\$ mypy (.*?)\n(.*?)```", text, re.S)
    python = environment(tmp_path / "stubbed")
    shutil.copytree(STUBS / "jax-stubs", site_packages(python) / "jax-stubs")
    (tmp_path / name).write_text(kernel, encoding="utf-8")
    mypy = [sys.executable, "-m", "mypy", "--python-executable", str(python / "bin" / "python")]
    answer = run([*mypy, *command.split()], tmp_path)
    assert answer.stdout == shown
    assert answer.returncode == 1
    assert kernel.count("# error: ") == shown.count(": error: ") == 2
