"""Runs the code blocks of a page: ``python -m tests.docs.blocks docs/quickstart.md``.

With ``--write`` the outputs that the page shows are replaced by today's. "Write docs" in
CONTRIBUTING.md says what kinds of blocks and of comments there are. Besides:

- A ``python`` block is a file named ``example.py``, whose lines are counted within the block.
- The stack of a traceback is ``  ...``. A command that fails prints something.
- What installs something is not run: it only has to be of a form that `installs` knows.
- No other fence and no indented block: it would not run. MyST's own directives hold no code.

A page runs in a process of its own, in a fresh directory that holds copies of docs/ and stubs/ and
leads to the environment as ``.venv``, with 9 CPU devices and all warnings errors. Paths below that
directory and below site-packages are compared without these. What a page writes into docs/ (its
pictures) must be what is there; ``--write`` puts it there.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import importlib.metadata
import io
import linecache
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt
from packaging.specifiers import SpecifierSet
from sybil import Document, Region
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer, RawFencedCodeBlockLexer

ROOT = Path(__file__).resolve().parents[2]
DEVICES = 9  # one more than any mesh has: see tests/interpret
COMMAND_SECONDS = 240
HIDDEN = "invisible-code-block"
COMMENTS = (HIDDEN, "file", "output", "tested-by")
KNOWN_TO_PIP = {".", "./stubs", "safepallas", "safepallas-stubs", "--quiet", "-q", "-e"} | {
    *("mypy", "pyright", "pyrefly", "ty", "pytest", "pre-commit")
}


class PageError(Exception):
    """What is wrong with a page: its name, a line, and why."""


@dataclass
class Block:
    """A fence or a hidden block, with the outputs that belong to it."""

    region: Region
    line: int
    language: str
    file: str = ""
    options: list[str] = field(default_factory=list)
    outputs: list[Block] = field(default_factory=list)

    @property
    def source(self) -> str:
        return str(self.region.lexemes["source"])

    @property
    def versions(self) -> list[str]:
        """The JAX versions that an output is of; none if of all."""
        return [option.removeprefix("jax") for option in self.options if option[:3] == "jax"]


# --- Reading a page


def read(path: Path, root: Path = ROOT) -> list[Block]:
    """The blocks of a page that run or are written, in their order; no other block may be there."""
    blocks: list[Block] = []
    comments: dict[str, list[str]] = {}  # right before a block
    shows: Block | None = None  # the block whose output may come next
    document, end = parse(path), 0

    def demand(fulfilled: object, otherwise: str) -> None:
        if not fulfilled:
            raise PageError(f"{path.name}:{line}: {otherwise}")

    for _, region in document.regions:
        line = document.text.count("\n", 0, region.start) + 1
        between = document.text[end : region.start].strip("-> \n")
        demand(not (comments and between), "the comment before it stands before something else")
        end = region.end
        if name := region.lexemes.get("directive"):
            value = region.lexemes["arguments"].strip()
            demand(name in COMMENTS, f"the comment {name!r} is none of {', '.join(COMMENTS)}")
            if name != HIDDEN:
                comments.setdefault(name, []).append(value)
                continue
            demand(value == "python", f"an invisible code block is python, not {value!r}")
        language = HIDDEN if name else region.lexemes["language"].strip()
        (file,), (test,) = (comments.pop(key, [""]) for key in ("file", "tested-by"))
        block = Block(region, line, language, file, comments.pop("output", []))
        if language == "text" and not (test or file):
            demand(shows is not None, "this text is not the output of a python block")
            assert shows is not None
            shows.outputs.append(block)
            of_versions = len(shows.outputs) == 1 or all(one.versions for one in shows.outputs)
            demand(of_versions, "a second output, and not each says of which JAX")
            continue
        demand(not test or (root / test).is_file(), f"there is no {test}")
        runs = language in ("python", "console", "sh", HIDDEN)
        demand(test or file or runs, f"a block of language {language!r} does not run")
        blocks += [] if test else [block]
        shows = block if language in ("python", HIDDEN) and not (test or file) else None
    if comments:
        raise PageError(f"{path.name}: the last comment stands before no block")
    return blocks


def parse(path: Path) -> Document:
    """A page with its fences, MyST's directives apart, and its comments that look like directives.

    Where CommonMark sees a block that sybil's expressions do not, it is an error.
    """
    document = Document.parse(str(path))
    lines = set()
    for region in RawFencedCodeBlockLexer(re.compile(r"(?P<language>[^\n]*)$\n", re.M))(document):
        if not region.lexemes["language"].startswith("{"):
            document.add(region)
            lines.add(document.text.count("\n", 0, region.start))
    inside = [(region.start, region.end) for _, region in document.regions]
    for region in DirectiveInHTMLCommentLexer(r"[\w-]+(?=:)")(document):
        if not any(start <= region.start < end for start, end in inside):
            document.add(region)
    for token in MarkdownIt("commonmark").parse(document.text):
        start = token.map[0] if token.map else 0
        if token.type in ("fence", "code_block") and start not in lines:
            directive = re.match(r"\{([\w-]+)\}", token.info)
            if directive is None or re.search("code|test", directive[1]):
                what = repr(token.info or "an indented block")
                raise PageError(f"{path.name}:{start + 1}: {what} does not run")
    return document


# --- Commands


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Each command of a ``console`` or ``sh`` block, with the output that is shown."""
    lines = block.source.splitlines()
    while lines:
        command = lines.pop(0)
        if block.language == "console":
            if not command.startswith("$ "):
                raise PageError(f"line {block.line}: a console block begins with '$ '")
            command = command[2:]
        while command.endswith("\\"):
            command = f"{command}\n{lines.pop(0)}"
        shown = []
        while block.language == "console" and lines and not lines[0].startswith("$ "):
            shown.append(lines.pop(0))
        if command.strip():
            yield command, "\n".join(shown)


def installs(command: str) -> bool:
    """Whether a command makes an environment or installs something, which must be known here."""
    if re.fullmatch(r"python3? -m venv \.venv|(source|\.) \.venv/bin/activate", command):
        return True
    install = re.fullmatch(r"(?:\.venv/bin/)?(?:python3? -m )?pip install (.*)", command)
    if install is None:
        return False
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for word in re.sub("['\"]", "", install[1]).split():
        name, _, extras = word.rstrip("]").partition("[")
        known = project["optional-dependencies"] if name in (".", "safepallas") else ()
        if name not in KNOWN_TO_PIP or set(extras.split(",")) - {"", *known}:
            raise PageError(f"{command!r}: pip is told to install {word!r}")
    return True


def execute(command: str) -> tuple[int, str]:
    """The exit code of a command, and all that it prints, as it is shown."""
    parts = [part for part in command.split(" && ") if not installs(part.strip())]
    done = subprocess.run(
        ["bash", "-c", " && ".join(parts) or "true"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    return done.returncode, as_shown(done.stdout)


# --- Outputs

STACK = re.compile(r"(^Traceback \(most recent call last\):\n)(?:[ \t].*\n)+(?=\S)", re.M)
JAX_NOTE = re.compile(r"^-{20}\nFor simplicity, JAX has removed .*\n?", re.M)


def as_shown(text: str) -> str:
    """Without directories, without stacks and without JAX's note on what it left out of them."""
    for directory in (str(Path.cwd()), sysconfig.get_path("purelib")):
        text = text.replace(f"{directory}{os.sep}", "")
    return JAX_NOTE.sub("", STACK.sub(r"\1  ...\n", text)).rstrip()


def same(want: str, got: str, options: list[str]) -> bool:
    """Whether an output is the one that is shown."""
    version = re.compile(r"(?<=Traced with JAX )[\d.]*\d")
    want, got = (version.sub("x", text.rstrip()) + "\n" for text in (want, got))
    if "shortened" in options:
        return doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)
    return want == got


def holds(versions: list[str]) -> bool:
    """Whether the installed JAX is one of these."""
    jax = importlib.metadata.version("jax")
    return all(SpecifierSet(v).contains(jax, prereleases=True) for v in versions)


# --- Running a page


class Page:
    """Runs the blocks of one page, and collects what is wrong and what would be right."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []
        self.edits: list[tuple[Block, str]] = []
        self.before = contents()
        self.written: dict[Path, bytes] = {}
        self.main = types.ModuleType("__main__")

    def run(self) -> None:
        """Run all blocks in their order, in the current directory."""
        blocks = read(self.path)
        sys.modules["__main__"] = self.main
        for block in blocks:
            if block.file:
                Path(block.file).parent.mkdir(parents=True, exist_ok=True)
                Path(block.file).write_text(block.source, encoding="utf-8")
            elif block.language in ("console", "sh"):
                self.shell(block)
            else:
                self.python(block)
        for path, content in contents().items():
            if self.before.get(path) != content:
                self.problems.append(f"{path} is not what the page writes")
                self.written[path] = content

    def python(self, block: Block) -> None:
        name = str(Path("hidden.py" if block.language == HIDDEN else "example.py").absolute())
        lines = block.source.splitlines(keepends=True)
        linecache.cache[name] = (len(block.source), None, lines, name)
        raised = ""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            try:
                exec(compile(block.source, name, "exec", dont_inherit=True), self.main.__dict__)
            except BaseException as error:  # an exit would end the runner, too
                kind = type(error)
                module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
                raised = f"{module}{kind.__qualname__}: {error}"
        got = as_shown(printed.getvalue() + raised)
        if got and not block.outputs:
            self.problems.append(f"line {block.line}: printed or raised, and not shown:\n{got}")
        for output in block.outputs:
            if holds(output.versions):
                self.compare(output, output.source, got)
                self.edits.append((output, got))

    def shell(self, block: Block) -> None:
        session = []
        for command, shown in commands(block):
            status, got = execute(command)
            session.append(f"$ {command}\n{got}".rstrip())
            if status and (block.language == "sh" or not got):
                self.problems.append(f"line {block.line}: exit {status}: {command}\n{got}")
            elif block.language == "console" and holds(block.versions):
                self.compare(block, shown, got)
        if block.language == "console" and holds(block.versions):
            self.edits.append((block, "\n".join(session)))

    def compare(self, block: Block, shown: str, got: str) -> None:
        if not same(shown, got, block.options):
            shown, got = shown.rstrip() or "(nothing)", got or "(nothing)"
            self.problems.append(f"line {block.line}: shown\n{shown}\n-- and printed\n{got}\n--")

    def write(self) -> None:
        """Put what was printed into the page, and its pictures beside it."""
        text = self.path.read_text(encoding="utf-8")
        for block, got in sorted(self.edits, key=lambda edit: -edit[0].region.start):
            if same(block.source, got, block.options):
                continue
            start = block.region.start + block.region.lexemes["source"].offset
            end = text.rfind("\n", 0, block.region.end) + 1
            text = f"{text[:start]}{got}\n{text[end:]}"
        self.path.write_text(text, encoding="utf-8")
        for path, content in self.written.items():
            (ROOT / path).write_bytes(content)


def contents() -> dict[Path, bytes]:
    """All files in docs/ of the current directory, but for caches."""
    return {
        path: path.read_bytes()
        for path in sorted(Path("docs").rglob("*"))
        if path.is_file() and not any(part[0] in "._" for part in path.parts)
    }


def prepare(directory: Path) -> None:
    """Make a directory the current one, with what commands on a page may use."""
    ignore = shutil.ignore_patterns(".*", "__pycache__")
    for name in ("docs", "stubs"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, directory / name, ignore=ignore)
    (directory / ".venv").symlink_to(sys.prefix)
    os.chdir(directory)
    sys.path.insert(0, str(directory))
    os.environ.update(
        PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        PYTHONUNBUFFERED="1",
        PYTHONWARNINGS="error",
        JAX_PLATFORMS="cpu",
        XLA_FLAGS=f"--xla_force_host_platform_device_count={DEVICES}",
        TPU_SKIP_MDS_QUERY="1",
        ALLOW_MULTIPLE_LIBTPU_LOAD="1",
        NO_COLOR="1",
        PYRIGHT_PYTHON_IGNORE_WARNINGS="1",
    )
    warnings.simplefilter("error")
    import safepallas

    source = str(Path(safepallas.__file__).parents[1])
    if "site-packages" not in source:
        os.environ.update(MYPYPATH=source, PYTHONPATH=source)


def main() -> int:
    """Run pages, one process each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="put today's outputs into the pages")
    arguments = parser.parse_args()
    if len(arguments.pages) > 1:
        options = ["--write"] if arguments.write else []
        command = [sys.executable, *sys.orig_argv[1 : -len(sys.argv) + 1], *options]
        return max(subprocess.call([*command, str(page)]) for page in arguments.pages)
    path = arguments.pages[0].resolve()
    with tempfile.TemporaryDirectory() as directory:
        prepare(Path(directory).resolve())
        page = Page(path)
        try:
            page.run()
        except PageError as error:
            page.problems.append(str(error))
        os.chdir(ROOT)
    if arguments.write:
        page.write()
    for problem in page.problems:
        print(f"{arguments.pages[0]}: {problem}", file=sys.stderr)
    return 1 if page.problems else 0


if __name__ == "__main__":
    if Path(sys.path[0] or ".").resolve() == Path(__file__).resolve().parent:
        del sys.path[0]  # run by its path: what lies beside it is not for pages
    sys.exit(main())
