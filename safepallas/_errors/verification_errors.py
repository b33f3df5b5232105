"""Errors of `sp.verify` and its reports. Class, code and text of each."""

from safepallas._errors.base import SemaphoreError


class UnsafeProtocolError(SemaphoreError, AssertionError):
    """`verify` did not find a protocol safe: there are findings, or it could not decide.

    The message is the report: each finding with its lines. Fix what it names; where it could not
    decide, pass the data that it lacks. An `AssertionError` too, as tests raise.
    """

    code = "unsafe-protocol"


def unsafe_protocol(report: str) -> UnsafeProtocolError:
    return UnsafeProtocolError(report)


class PictureError(SemaphoreError):
    """The report of a verification cannot be drawn.

    Nothing ran that could be drawn, or more than 8 cores did. ``str(report)`` says what was found;
    `to_perfetto` takes any number of cores.
    """

    code = "picture"


def nothing_to_draw(why: str) -> PictureError:
    return PictureError(
        f"there is no timeline to draw: {why}. The text of the report, str(report), says more."
    )


def too_many_cores_to_draw(got: int, most: int) -> PictureError:
    return PictureError(
        f"a picture shows {most} cores at most, and this protocol runs on {got}. Verify it for "
        f"{most} devices to draw it, or use to_perfetto, which takes any number."
    )
