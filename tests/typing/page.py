"""The generated parts of docs/type-checkers.md: ``python -m tests.typing.page`` writes them."""

import ast
import concurrent.futures
import importlib.metadata
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .checkers import CHECKERS, HERE, Errors, Line, data_files, files, marked

PAGE = HERE.parents[1] / "docs" / "type-checkers.md"
COMMON = "reject/most_common.py"
LEVELS = {"mypy": "`--strict`", "pyright": "strict", "pyrefly": 'preset "strict"', "ty": "default"}


def versions() -> str:
    lines = ["| checker | version | level |", "| --- | --- | --- |"]
    for name in CHECKERS:
        lines.append(f"| {name} | {importlib.metadata.version(name)} | {LEVELS[name]} |")
    return "\n".join(lines)


def shown(message: str) -> str:
    """A message without its list of overloads."""
    overloads = re.compile(r"(?<=Possible overloads:)((?:\n    \(.*)+)")
    return overloads.sub(lambda found: f" ({found[1].count(chr(10))}, left out here)", message)


def messages(reports: Mapping[str, Errors]) -> str:
    sections = []
    for number, line in enumerate((HERE / COMMON).read_text().splitlines(), 1):
        code, mark, heading = line.partition("  # E: ")
        if not mark:
            continue
        printed = []
        for name in CHECKERS:
            text = "\n".join(map(shown, reports[name][Line(COMMON, number)]))
            printed.append(f"{name}: {text}".replace("\n", "\n  "))
        heading = heading[0].upper() + heading[1:]
        code = code.strip()
        sections.append(f"### {heading}\n\n```python\n{code}\n```\n\n```text")
        sections[-1] += "\n" + "\n".join(printed) + "\n```"
    return "\n\n".join(sections)


def limits() -> str:
    """All marked lines of limits/, each with who does not see it, why, and what refuses it."""
    parts = []
    for path in files("limits"):
        text = path.read_text()
        tree = ast.parse(text)
        title = ast.get_docstring(tree) or ""
        errors: dict[str, str] = {}
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
                keys = [ast.unparse(key) for key in node.value.keys if key is not None]
                errors = dict(zip(keys, map(ast.unparse, node.value.values), strict=True))
        rows = ["| line | not seen by | why | refused while tracing with |"]
        rows.append("| --- | --- | --- | --- |")
        for line, seeing in marked("limits", {path.name: text}).items():
            code, _, why = text.splitlines()[line.number - 1].partition("  # L")
            why = why.partition(": ")[2]
            inside = next(
                node.name
                for node in tree.body
                if isinstance(node, ast.FunctionDef)
                and node.lineno <= line.number <= (node.end_lineno or 0)
            )
            error = errors[inside].removeprefix("sp.errors.")
            blind = ", ".join(name for name in CHECKERS if name not in seeing)
            error = "nothing: it is harmless" if error == "None" else f"`{error}`"
            cells = [f"`{code.strip()}`", blind if seeing else "any", why, error]
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts.append(f"{title}\n\n".replace("``", "`") + "\n".join(rows))
    return "\n\n".join(parts)


def rewrite(text: str, sections: Mapping[str, str]) -> str:
    """The page with these sections as they should be; the rest is kept."""
    for name, content in sections.items():
        begin, end = f"<!-- generated: {name} -->\n", f"<!-- end of {name} -->\n"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        replacement = f"{begin}\n{content}\n\n{end}"
        text, count = pattern.subn(lambda _, new=replacement: new, text)  # type: ignore[misc]
        assert count == 1, name
    return text


def main() -> None:
    work = Path(tempfile.mkdtemp())
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        reports = {}
        for name, check in CHECKERS.items():
            (work / name).mkdir()
            reports[name] = pool.submit(check, data_files(work / name, work / "cache"))
    found = {name: report.result() for name, report in reports.items()}
    sections = {"versions": versions(), "messages": messages(found), "limits": limits()}
    PAGE.write_text(rewrite(PAGE.read_text(), sections))


if __name__ == "__main__":
    main()
