"""The few shapes that the site's own pictures are made of; all words are escaped."""

from collections.abc import Iterable, Sequence
from html import escape

Point = tuple[float, float]


def drawing(width: float, height: float, parts: Iterable[str]) -> bytes:
    """Return a drawing on white; its size is in pixels."""
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{ground}{"".join(parts)}</svg>'.encode()


def text(x: float, y: float, words: str, *, colour: str = "#1a1a1a", anchor: str = "start") -> str:
    """Return a line of text; ``anchor`` is ``start``, ``middle`` or ``end``."""
    style = f'font-family="sans-serif" font-size="12" fill="{colour}" text-anchor="{anchor}"'
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}</text>'


def line(points: Sequence[Point], *, colour: str, width: float = 1.5, dash: str = "") -> str:
    """Return a line through the points."""
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    broken = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="{width:g}"{broken}/>'


def dot(point: Point, radius: float, *, colour: str) -> str:
    """Return a filled circle."""
    return f'<circle cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="{radius:.1f}" fill="{colour}"/>'
