"""Classes whose instances only safepallas makes: calling, copying and subclassing them raises.

A base class and no metaclass: `copy.copy` and ``cls.__new__`` go by ``__new__`` too, and checkers
take the ``__init__`` of all from here. Makers of instances call ``object.__new__``.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Never, Self

from safepallas._errors import semaphore_errors


class NoPublicConstructor:
    """The base of what users get and never make. Final is what `typing.final` marks."""

    __slots__ = ()

    # What to write instead of a call, for messages; ``{name}`` stands for the name of the class.
    _instead: ClassVar[str]

    def __init__(self, never: Never, /) -> None: ...

    if not TYPE_CHECKING:  # checkers reject these, and say it better without them

        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            instead = cls._instead.format(name=cls.__name__)
            raise semaphore_errors.constructed(cls.__name__, instead)

        def __init_subclass__(cls, **kwargs: Any) -> None:
            for base in cls.__bases__:
                if "__final__" in vars(base):
                    raise semaphore_errors.subclassed(base.__name__)
            super().__init_subclass__(**kwargs)
