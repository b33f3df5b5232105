"""Where a semaphore came from, and how long it lives."""

from collections.abc import Callable
from typing import Any

import jax


class Scope:
    """The part of a trace in which an allocation lives. One object for each time it is traced."""

    __slots__ = ("_describe", "alive")

    def __init__(self, describe: Callable[[], str]) -> None:
        self.alive = True
        self._describe = describe

    @property
    def label(self) -> str:
        """What messages call it; put into words only when asked."""
        return self._describe()


# For a raw ref adopted outside any scope of ours: only JAX knows when it ends.
UNSCOPED = Scope(lambda: "an unknown scope")


class Origin:
    """The name of a semaphore and where it came from. Put into words only when asked."""

    __slots__ = ("_source", "name")

    def __init__(self, name: str, source: Any) -> None:
        self.name = name
        self._source = source  # the Spec that allocated it; else the words themselves

    @property
    def where(self) -> str:
        source = self._source
        return source if isinstance(source, str) else f"allocated at {source._where}"

    def __str__(self) -> str:
        return f"{self.name!r} ({self.where})"


class Part:
    """The origin of what was indexed out of an array."""

    __slots__ = ("index", "whole")

    def __init__(self, whole: "Origin | Part", index: tuple[Any, ...]) -> None:
        self.whole = whole
        self.index = index

    @property
    def name(self) -> str:
        shown = ", ".join("?" if isinstance(i, jax.Array) else str(i) for i in self.index)
        return f"{self.whole.name}[{shown}]"

    @property
    def where(self) -> str:
        return self.whole.where

    def __str__(self) -> str:
        return f"{self.name!r} ({self.where})"


class Named:
    """What messages call by its name: the base of the handles and of the array."""

    __slots__ = ()


class Aux:
    """What a handle keeps beside its ref while JAX holds it flattened.

    All compare equal. JAX compares them to find a cached trace, and raw refs have neither name
    nor scope: the class of the node and the aval of its leaf say all that must agree.
    """

    __slots__ = ("origin", "scope")

    def __init__(self, origin: Origin | Part, scope: Scope) -> None:
        self.origin = origin
        self.scope = scope

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aux)

    def __hash__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return "*"
