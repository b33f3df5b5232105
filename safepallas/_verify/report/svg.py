"""The few shapes of SVG that a picture needs, on a light ground, without anything external."""

from __future__ import annotations

from html import escape
from typing import Final

# Letters of one width, so that what fits is known. Some renderers look at the first name only.
FONT: Final = "'DejaVu Sans Mono', Menlo, Consolas, monospace"
SIZE: Final = 11
LETTER: Final = 7.0  # the width of a letter of that size, in whole pixels, as renderers round it


class Canvas:
    """Shapes, in the order in which they are drawn."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        *,
        stroke: str = "none",
        round_: float = 0,
        opacity: float = 1,
        title: str = "",
    ) -> None:
        self.add(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_:g}" '
            f'fill="{fill}" stroke="{stroke}" fill-opacity="{opacity:g}"',
            "rect",
            title,
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, color: str, *, width: float = 1
    ) -> None:
        self.parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" '
            f'stroke-width="{width:g}"/>'
        )

    def arrow(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        color: str,
        *,
        dashed: bool = False,
        width: float = 1.4,
        title: str = "",
    ) -> None:
        """A line with a head at its second end."""
        length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1)
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        bx, by = x2 - 7 * ux, y2 - 7 * uy
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self.add(
            f'<path d="M{x1:.1f} {y1:.1f} L{bx:.1f} {by:.1f}" stroke="{color}" fill="none" '
            f'stroke-width="{width:g}" stroke-opacity="0.8"{dash}',
            "path",
            title,
        )
        left = f"{bx - 3.5 * uy:.1f} {by + 3.5 * ux:.1f}"
        right = f"{bx + 3.5 * uy:.1f} {by - 3.5 * ux:.1f}"
        self.parts.append(f'<path d="M{x2:.1f} {y2:.1f} L{left} L{right} Z" fill="{color}"/>')

    def text(
        self,
        x: float,
        y: float,
        text: str,
        color: str,
        *,
        bold: bool = False,
        size: float = SIZE,
        title: str = "",
    ) -> None:
        """`y` is where the letters stand."""
        weight = ' font-weight="bold"' if bold else ""
        bigger = f' font-size="{size:g}"' if size != SIZE else ""
        inner = f"<title>{escape(title)}</title>" if title else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" fill="{color}"{weight}{bigger}>{inner}{escape(text)}</text>'
        )

    def add(self, shape: str, tag: str, title: str) -> None:
        if title:
            self.parts.append(f"{shape}><title>{escape(title)}</title></{tag}>")
        else:
            self.parts.append(f"{shape}/>")

    def document(self, width: float, height: float, title: str) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" role="img" font-family="{FONT}" '
            f'font-size="{SIZE}">\n<title>{escape(title)}</title>\n'
            f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>\n'
        )
        return head + "\n".join(self.parts) + "\n</svg>\n"


def fit(text: str, pixels: float, size: float = SIZE) -> str:
    """The text, cut where there is no room for all of it."""
    letters = max(int(pixels / (LETTER * size / SIZE)), 1)
    return text if len(text) <= letters else text[: letters - 1] + "…"
