"""``python -m safepallas explain CODE``: what the code at the end of a message means.

Cause and fix are the docstring of the class: it is there where the documentation is not.
"""

import difflib
import inspect
from typing import Any, Final

from safepallas import errors

CLASSES: Final[dict[str, type[Any]]] = {
    cls.code: cls for cls in vars(errors).values() if isinstance(cls, type) and hasattr(cls, "code")
}


class UnknownCodeError(Exception):
    """There is no such code. The text names those that are near."""


def explain(asked: str) -> str:
    """The class that has a code, what it says of itself, and the page that says more.

    Args:
        asked: a code, as it is or in brackets, ``[wrong-kind]``, or the name of a class.

    Raises:
        UnknownCodeError: There is none of that name.
    """
    wanted = asked.strip("[]").rpartition(".")[2]
    codes = {cls.__name__: code for code, cls in CLASSES.items()}
    code = codes.get(wanted, wanted)
    if code not in CLASSES:
        like_it = difflib.get_close_matches(wanted, [*CLASSES, *codes])
        near = dict.fromkeys(codes.get(name, name) for name in like_it)
        meant = f"Near to it: {', '.join(near)}." if near else f"There are: {', '.join(CLASSES)}."
        raise UnknownCodeError(f"no error has the code {wanted!r}. {meant}")
    cls = CLASSES[code]
    bases = ", ".join(base.__name__ for base in cls.__bases__)
    more = f"With a kernel that raises it, and its fix: errors/{code}.html in the documentation."
    if cls is errors.SemaphoreError:
        more = "All of its subclasses: errors/index.html in the documentation."
    return f"[{code}] safepallas.errors.{cls.__name__}({bases})\n\n{inspect.getdoc(cls)}\n\n{more}"
