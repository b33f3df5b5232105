"""Docstrings as the site shows them: `name` becomes a link. For pydoc they stay as they are.

Sphinx knows an object by the module that defines it; readers know it by the one they import.
"""

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

import safepallas
import safepallas.errors
import safepallas.raw
import safepallas.testing
import safepallas.verification

# In the order in which a bare name is looked up.
MODULES = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        safepallas.errors,
        safepallas,
        safepallas.testing,
        safepallas.verification,
        safepallas.raw,
    )
}

# Types in signatures that other projects, or only type checkers, know.
FOREIGN = re.compile(
    r"(jax|jaxlib|numpy|np|pl|pltpu|plsc|typing|collections|contextlib|enum|types|os)\..*"
    r"|[A-Z]|[A-Z]\w*_co|TypeVar|ByAxis|CoreMesh|Shape|Index|ArrayLike|DTypeLike|Verdict"
    r"|ArrayIndexer|SemaphoreRefIndexer|RefIndexer|AbstractContextManager"
    r"|Program|Schedule|UndecidedError|Line|Where|Step"
)


def public_names(module: ModuleType) -> dict[str, str]:
    """What readers call each public thing of a module, and where the reference has it."""
    return {
        name: f"{module.__name__}.{name}"
        for name in getattr(module, "__all__", None) or vars(module)
        if not name.startswith("_")
        and str(getattr(getattr(module, name), "__module__", "")).startswith("safepallas")
    }


PUBLIC = {
    name: full
    for module in reversed(MODULES.values())  # the first module wins
    for name, full in public_names(module).items()
}


def full_name(name: str) -> str | None:
    """``sp.signal``, ``signal``, ``LocalCopy.start`` or a private module's name of it, in full."""
    name = re.sub(r"^(sp|safepallas)\.", "", name)
    head, _, below = name.partition(".")
    names = PUBLIC
    if head in MODULES:
        names, name = public_names(MODULES[head]), below
    # What is defined in safepallas._semaphores.handles is shown as safepallas.Semaphore.
    first, dot, rest = re.sub(r"^_\w+\.([a-z]\w*\.)*", "", name).partition(".")
    return f"{names[first]}{dot}{rest}" if first in names else None


def link(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Write `name` of a docstring as reStructuredText: a link, or code where it is no name."""
    try:
        own = set(inspect.signature(obj).parameters)
    except (TypeError, ValueError):
        own = set()

    def one(match: re.Match[str]) -> str:
        target = None if match[1] in own else full_name(match[1].removesuffix("()"))
        return f":py:obj:`{match[1]} <{target}>`" if target else f"``{match[1]}``"

    lines[:] = [re.sub(r"(?<![`\w:])`([^`<>]+)`(?!`)", one, line) for line in lines]


def resolve(app: Sphinx, env: Any, node: Any, contnode: nodes.Element) -> nodes.Element | None:
    """Find what signatures and ``Raises:`` name; leave other projects' names without a link."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    name = full_name(target)
    if name is not None and name != target:
        domain = env.get_domain("py")
        found = domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, contnode)
        if found is not None:
            return found
    own_name = re.sub(r"^safepallas\.(_?\w+\.)*", "", target)
    return contnode if FOREIGN.fullmatch(own_name) else None


def unlink_variables(app: Sphinx, doctree: nodes.document) -> None:
    """Take the links off type variables: a ``T`` is not `raw.Ref.T`."""
    for node in list(doctree.findall(addnodes.pending_xref)):
        if re.fullmatch("[A-Z]", node["reftarget"]):
            node.replace_self(node.children)


def one_signature(app: Sphinx) -> None:
    """Show the signature that runs, not the dozens of overloads that type checkers read."""
    library = Path(safepallas.__file__).parent
    for path in library.rglob("*.py"):
        if "@overload" not in path.read_text(encoding="utf-8"):
            continue
        name = ".".join(path.relative_to(library.parent).with_suffix("").parts)
        analyzer = ModuleAnalyzer.for_module(name.removesuffix(".__init__"))
        analyzer.analyze()
        analyzer.overloads.clear()


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", one_signature)
    app.connect("autodoc-process-docstring", link)
    app.connect("doctree-read", unlink_variables)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
