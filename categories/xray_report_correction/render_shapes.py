"""Thin things drawn on the film from their true shape in space: tubes, wires, bones, spheres as path lengths (mm)."""

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline

from categories.xray_report_correction.projection import Eye

Floats = NDArray[np.float64]


def by(x: float, y: float, z: float) -> Floats:
    """Return a way in space (mm): to the left, to the front, to the head."""
    return np.array([x, y, z], float)


def curve(knots: list[tuple[float, float, float]] | Floats, step_mm: float = 4.0) -> Floats:
    """Return a smooth line (n, 3) through the knots."""
    points = np.asarray(knots, float)
    if len(points) < 3:
        return np.asarray(points)
    along = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    many = max(4, int(along[-1] / step_mm))
    spline = make_interp_spline(along, points, k=min(3, len(points) - 1))
    return np.asarray(spline(np.linspace(0, along[-1], many)))


def add_tube(
    film: Floats, eye: Eye, line: Floats, radius: float | Floats, mu: float, core: float | None = None
) -> None:
    """Add a tube of attenuation ``mu`` (1/mm) round a line (n, 3); a share ``core`` of the radius is hollow."""
    places, grown = eye.locate(line)
    radii = np.broadcast_to(np.asarray(radius, float), (len(line),)) * grown / eye.plate.pixel_mm
    length = _chords(film.shape, places, radii)
    if length is None:
        return
    box, chord = length
    if core is not None:
        inner = _chords(film.shape, places, radii * core, box)
        if inner is not None:
            chord = chord - inner[1]
    scale = eye.plate.pixel_mm / float(grown.mean())
    film[box] += chord * (mu * scale)


def add_ball(film: Floats, eye: Eye, centre: Floats, radius: float, mu: float) -> None:
    """Add a sphere of attenuation ``mu`` (1/mm) about a point (3,)."""
    add_tube(film, eye, np.stack([centre, centre + 0.01]), radius, mu)


def add_plate(film: Floats, eye: Eye, corners: Floats, mu_mm: float, soft_mm: float = 1.0) -> None:
    """Add a thin plate: a polygon (n, 3) whose path adds ``mu_mm``, its rim softened."""
    places, _ = eye.locate(corners)
    reach = soft_mm / eye.plate.pixel_mm
    box = _box(film.shape, places, np.full(len(places), 3 * reach))
    if box is None:
        return
    rows, columns = np.mgrid[box].astype(float)
    inside = np.zeros(rows.shape, bool)
    nearest = np.full(rows.shape, np.inf)
    for (x0, y0), (x1, y1) in zip(places, np.roll(places, -1, axis=0), strict=True):
        crosses = (y0 > rows) != (y1 > rows)
        slope = (x1 - x0) / (y1 - y0) if y1 != y0 else 0.0
        inside ^= crosses & (columns < x0 + (rows - y0) * slope)
        nearest = np.minimum(nearest, _distance(columns, rows, (x0, y0), (x1, y1))[0])
    signed = np.where(inside, nearest, -nearest)
    film[box] += mu_mm * np.clip(signed / (2 * reach) + 0.5, 0, 1)


def _chords(
    shape: tuple[int, ...], places: Floats, radii: Floats, box: tuple[slice, slice] | None = None
) -> tuple[tuple[slice, slice], Floats] | None:
    """Return path lengths in pixels through a tube given by its places on the film, in the box that holds it."""
    box = box or _box(shape, places, radii)
    if box is None:
        return None
    chord = np.zeros((box[0].stop - box[0].start, box[1].stop - box[1].start))
    for n in range(len(places) - 1):
        part = _box(shape, places[n : n + 2], radii[n : n + 2])
        if part is None:
            continue
        rows, columns = np.mgrid[part].astype(float)
        away, share = _distance(columns, rows, tuple(places[n]), tuple(places[n + 1]))
        radius = radii[n] + (radii[n + 1] - radii[n]) * share
        found = 2 * np.sqrt(np.maximum(radius**2 - away**2, 0))
        # A wire thinner than a pixel is spread over it, not lost between pixels.
        found = np.where(radius < 1, np.pi / 1.4 * radius**2 * np.clip(1.2 - away, 0, 1), found)
        window = tuple(slice(p.start - b.start, p.stop - b.start) for p, b in zip(part, box, strict=True))
        chord[window] = np.maximum(chord[window], found)
    return box, chord


def _distance(x: Floats, y: Floats, start: tuple[float, ...], end: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Return distances to a segment and the share of the way along it."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    share = np.clip(((x - start[0]) * dx + (y - start[1]) * dy) / max(dx * dx + dy * dy, 1e-9), 0, 1)
    return np.hypot(x - start[0] - share * dx, y - start[1] - share * dy), share


def _box(shape: tuple[int, ...], places: Floats, reach: Floats) -> tuple[slice, slice] | None:
    low = np.floor((places - reach[:, None]).min(0)).astype(int) - 2
    high = np.ceil((places + reach[:, None]).max(0)).astype(int) + 3
    left, top = np.maximum(low, 0)
    right, bottom = min(int(high[0]), shape[1]), min(int(high[1]), shape[0])
    if right <= left or bottom <= top:
        return None
    return slice(int(top), bottom), slice(int(left), right)
