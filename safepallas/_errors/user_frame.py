"""Frames of the running stack by the package that they belong to. Short: every layer needs it."""

import sys
from types import FrameType


def outside(*packages: str) -> FrameType:
    """From the caller of this outwards, the first frame whose module is in none of the packages.

    The outermost frame where there is no other.
    """
    frame = sys._getframe(1)
    inside = tuple([f"{package}." for package in packages])
    while f"{frame.f_globals.get('__name__')}.".startswith(inside) and frame.f_back is not None:
        frame = frame.f_back
    return frame
