"""The base of all errors of safepallas: a `ValueError` with a stable code."""

from typing import ClassVar, Final

INT32_MAX: Final = 2**31 - 1


class SemaphoreError(ValueError):
    """A misuse of a semaphore, refused while the kernel was traced.

    A `ValueError`, as in JAX. Each subclass has a stable `code`; some are also `TypeError` or
    `IndexError`, where a caller would expect that.

    Example::

        try:
            jax.eval_shape(call, x)
        except sp.SemaphoreError as error:
            print(error.code)
    """

    code: ClassVar[str] = "semaphore-error"

    def __init__(self, message: str) -> None:
        # What is unpickled or copied has it already.
        mark = f" [{self.code}]"
        super().__init__(message.removesuffix(mark) + mark)
