"""The words of errors of `verify` and its reports. See `_messages.py`."""

from safepallas._errors import PictureError, UnsafeProtocolError


def unsafe_protocol(report: str) -> UnsafeProtocolError:
    return UnsafeProtocolError(report)


def nothing_to_draw(why: str) -> PictureError:
    return PictureError(
        f"there is no timeline to draw: {why}. The text of the report, str(report), says more."
    )


def too_many_cores_to_draw(got: int, most: int) -> PictureError:
    return PictureError(
        f"a picture shows {most} cores at most, and this protocol runs on {got}. Verify it for "
        f"{most} devices to draw it, or use to_perfetto, which takes any number."
    )
