"""The generated overloads are what their generator writes, and few."""

import re
from pathlib import Path

import safepallas

from . import overloads

TEXT = (Path(safepallas.__file__).parent / "_kernels/overloads.py").read_text()


def test_the_module_is_what_the_generator_writes() -> None:
    assert overloads.rewrite(TEXT) == TEXT, "python -m tests.generate.overloads"
    for name in overloads.SECTIONS:
        assert TEXT.count(f"# generated: {name}\n") == TEXT.count(f"# end of {name}\n") == 1
    # It would notice: every section is written anew.
    spoiled = re.sub("@overload|TypeAlias = Callable", "spoiled", TEXT)
    assert overloads.rewrite(spoiled) == TEXT != spoiled


def test_a_function_has_few_overloads() -> None:
    """mypy lists all of them with a call that fits none."""
    for section in (overloads.pallas_call, overloads.kernel, overloads.kernel_decorator):
        count = "\n".join(section()).count("@overload")
        assert 1 < count <= overloads.MOST
