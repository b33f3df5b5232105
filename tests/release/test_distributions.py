"""Both distributions, built from a copy of the tree: what is in them, and what PyPI would say."""

import email.message
import email.parser
import fnmatch
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

import safepallas as sp

from . import tree

# The whole sdist, by its top. What is new at the top of the tree needs a place here.
TOP = {
    *(".ci", ".github", ".gitignore", ".pre-commit-config.yaml", "mypy.ini", "pyproject.toml"),
    *("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "README.md", "PKG-INFO"),
    *("docs", "safepallas", "stubs", "tests"),
}
NEVER = ["*.pyc", "*__pycache__*", "*_cache/*", ".venv/*", "dist/*", "*.egg-info/*", ".git/*"]


class Built(NamedTuple):
    project: Path  # a copy of the tree, from which they were built
    sdist: Path
    wheel: Path  # from the sdist
    direct: Path  # the wheel from the tree


def build(project: Path, out: Path) -> Built:
    """Without isolation: with the hatchling that is installed, and no network."""
    command = tree.python("-m", "build", "--no-isolation", "--outdir")
    tree.succeed([*command, str(out), "."], project)
    tree.succeed([*command, str(out / "direct"), "--wheel", "."], project)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    (direct,) = out.glob("direct/*.whl")
    return Built(project, sdist, wheel, direct)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    tree.require("build", "hatchling")
    work = tmp_path_factory.mktemp("release")
    project = tree.copy(work)
    return {
        "safepallas": build(project, work / "dist"),
        "safepallas-stubs": build(project / "stubs", work / "dist-stubs"),
    }


@pytest.fixture(params=["safepallas", "safepallas-stubs"])
def built(request: pytest.FixtureRequest, both: dict[str, Built]) -> Built:
    found: Built = both[request.param]
    return found


def in_sdist(built: Built) -> set[str]:
    with tarfile.open(built.sdist) as archive:
        names = [member.name for member in archive.getmembers() if member.isfile()]
    top = built.sdist.name.removesuffix(".tar.gz")
    assert all(name.startswith(f"{top}/") for name in names)
    return {name.removeprefix(f"{top}/") for name in names}


def in_wheel(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(wheel: Path) -> set[str]:
    """What is installed, besides the metadata."""
    return {name for name in in_wheel(wheel) if ".dist-info/" not in name}


def metadata(wheel: Path) -> email.message.Message:
    (text,) = (v for k, v in in_wheel(wheel).items() if k.endswith(".dist-info/METADATA"))
    return email.parser.Parser().parsestr(text.decode())


def test_the_wheel_of_the_library_holds_the_library(both: dict[str, Built]) -> None:
    library = {p for p in tree.files(both["safepallas"].project.parent) if p[:11] == "safepallas/"}
    assert packed(both["safepallas"].wheel) == library
    assert {"safepallas/py.typed", "safepallas/_verify/__init__.py"} <= library


def test_the_wheel_of_the_stubs_holds_the_stubs(both: dict[str, Built]) -> None:
    stubs = both["safepallas-stubs"]
    below = {
        p.relative_to(stubs.project).as_posix() for p in stubs.project.glob("jax-stubs/**/*.*")
    }
    assert packed(stubs.wheel) == below
    assert in_wheel(stubs.wheel)["jax-stubs/py.typed"] == b"partial\n"
    assert any(
        r.startswith("safepallas") for r in metadata(stubs.wheel).get_all("Requires-Dist", [])
    )


def test_the_sdist_of_the_library_is_the_whole_tree(both: dict[str, Built]) -> None:
    """All that is needed to build the site and to run the tests, this one too."""
    built = both["safepallas"]
    names = in_sdist(built)
    print(len(names), "files in the sdist")
    assert names == {*tree.files(built.project.parent), "PKG-INFO"}
    assert {name.partition("/")[0] for name in names} == TOP
    assert [n for n in names for pattern in NEVER if fnmatch.fnmatch(n, pattern)] == []


def test_the_sdist_of_the_stubs(both: dict[str, Built]) -> None:
    stubs = both["safepallas-stubs"]
    # hatchling takes along the rules by which it left out what git ignores.
    rest = {".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert in_sdist(stubs) == packed(stubs.wheel) | rest


def test_the_wheel_from_the_sdist_is_the_wheel_from_the_tree(built: Built) -> None:
    assert in_wheel(built.wheel) == in_wheel(built.direct)
    assert built.wheel.read_bytes() == built.direct.read_bytes()


def test_one_version_one_licence(built: Built) -> None:
    """The stubs read the version of the library, from an sdist out of its PKG-INFO."""
    said = metadata(built.wheel)
    assert said["Version"] == sp.__version__
    assert built.wheel.name.split("-")[1] == sp.__version__
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Requires-Python"] == ">=3.11"
    (licence,) = (v for k, v in in_wheel(built.wheel).items() if k.endswith("/licenses/LICENSE"))
    assert licence == (tree.ROOT / "LICENSE").read_bytes()
    assert said.get_payload() == (built.project / "README.md").read_text(encoding="utf-8")


def test_pypi_would_take_it(built: Built) -> None:
    """Its metadata, and the README rendered."""
    tree.require("twine")
    command = tree.python("-m", "twine", "--no-color", "check", "--strict")
    said = tree.succeed([*command, str(built.sdist), str(built.wheel)], built.sdist.parent)
    assert said.count("PASSED") == 2, said
