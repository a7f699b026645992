"""The lead letter that names a side."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.xray_report_correction.film import DEPTH

Floats = NDArray[np.float64]
STROKES = {
    "L": (((0.0, 0.0), (0.0, 1.0)), ((0.0, 1.0), (0.55, 1.0))),
    "R": (
        ((0.0, 0.0), (0.0, 1.0)),
        ((0.0, 0.0), (0.38, 0.02)),
        ((0.38, 0.02), (0.56, 0.14)),
        ((0.56, 0.14), (0.56, 0.38)),
        ((0.56, 0.38), (0.38, 0.5)),
        ((0.38, 0.5), (0.0, 0.5)),
        ((0.3, 0.5), (0.6, 1.0)),
    ),
}
"""Lines of each letter: across and down, in heights of the letter."""
WHITE = 0.95
"""Of the largest pixel value: lead, processed."""


def add_marker(film: Floats, letter: str, place: tuple[float, float], height: float, tilt: float) -> None:
    """Burn a letter of a height (pixels) into a picture, its upper left at (column, row), tilted by degrees."""
    size = int(height * 1.9)
    rows, columns = np.mgrid[0:size, 0:size].astype(float)
    nearest = np.full(rows.shape, np.inf)
    cosine, sine = np.cos(np.deg2rad(tilt)), np.sin(np.deg2rad(tilt))
    edge = 0.4 * height
    for start, end in STROKES[letter]:
        (x0, y0), (x1, y1) = (
            (edge + height * (x * cosine - y * sine), edge + height * (x * sine + y * cosine)) for x, y in (start, end)
        )
        dx, dy = x1 - x0, y1 - y0
        share = np.clip(((columns - x0) * dx + (rows - y0) * dy) / (dx * dx + dy * dy), 0, 1)
        nearest = np.minimum(nearest, np.hypot(columns - x0 - share * dx, rows - y0 - share * dy))
    lead = np.clip((0.085 * height - nearest) / 1.5 + 0.5, 0, 1)
    lead = ndi.gaussian_filter(lead, max(0.6, 0.012 * height))
    left, top = int(place[0] - edge), int(place[1] - edge)
    y, x = max(top, 0), max(left, 0)
    part = film[y : top + size, x : left + size]
    cut = lead[y - top : y - top + part.shape[0], x - left : x - left + part.shape[1]]
    part[...] = part * (1 - cut) + WHITE * DEPTH * cut
