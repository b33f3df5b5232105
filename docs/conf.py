"""The site: ``python -m sphinx -W --keep-going -n -b html docs <out>`` builds it from docs/."""

import re
import sys
from pathlib import Path

import safepallas

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "_ext"))

project = "safepallas"
author = "The safepallas authors"
project_copyright = "The safepallas authors"
version = release = safepallas.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "docstrings",
]
# Tests build the site with a page or a directory too many in a copy of docs/.
exclude_patterns = ["_build", ".*", "**/.*"]

nitpicky = True
myst_heading_anchors = 4

autodoc_member_order = "bysource"
maximum_signature_line_length = 88  # longer ones show a parameter to a line
autodoc_typehints_format = "short"
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"safepallas {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False

# Of a console block only the commands are copied, without the prompt.
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
copybutton_exclude = ".linenos, .gp, .go"

# Files of the root that are pages here too. They link, and are linked to, as on GitHub.
ROOT_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
}
INCLUDE = re.compile(r"```\{include\} \.\./(\w+\.md)\n```")
RELATIVE = re.compile(r"\]\((?![a-z]+:|#)(docs/)?")


def read_source(app, docname, source):
    """Take in what a page includes of the root, and let its links reach what they mean."""

    def root_file(match):
        path = DOCS.parent / match[1]
        app.env.note_dependency(str(path))
        return RELATIVE.sub(lambda m: "](" if m[1] else "](../", path.read_text(encoding="utf-8"))

    text = INCLUDE.sub(root_file, source[0])
    for name, page in ROOT_PAGES.items():
        up = "../" * docname.count("/")
        text = re.sub(rf"\]\((\.\./)+{re.escape(name)}(?=[)#])", f"]({up}{page}", text)
    source[0] = text


def setup(app):
    app.connect("source-read", read_source)
