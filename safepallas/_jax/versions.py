"""Which versions of JAX the tests run with, and the warning about any other."""

import warnings
from typing import Final

import jax

from safepallas._errors import kernel_errors
from safepallas._errors.kernel_errors import JaxVersionWarning

# Both ends are tested: the newest JAX for the oldest Python that safepallas supports, and the
# newest of all. Below the first, private parts that `_compat.py` needs are not there.
OLDEST: Final = (0, 10, 2)
NEWEST: Final = (0, 12, 0, 1)


def text_of(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def warn_if_untested(version: tuple[int, ...] = jax.__version_info__) -> None:
    """Warn once, at import, of a JAX that is older or newer than those tested."""
    if not OLDEST <= version <= NEWEST:
        message = kernel_errors.jax_version(text_of(version), text_of(OLDEST), text_of(NEWEST))
        warnings.warn(message, JaxVersionWarning, stacklevel=3)
