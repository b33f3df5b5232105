"""Frames of the running stack by the package that they belong to. Short: every layer needs it."""

import sys
from types import FrameType


def outside(*packages: str) -> FrameType:
    """From the caller of this outwards, the first frame whose module is in none of the packages.

    The outermost frame where there is no other.
    """
    frame = sys._getframe(1)
    while _is_in(frame, packages) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _is_in(frame: FrameType, packages: tuple[str, ...]) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return any(module == package or module.startswith(f"{package}.") for package in packages)
