"""Lesions within the lung: airspace disease, bands, nodules."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.xray_report_correction.lesions_pleura import sides
from categories.xray_report_correction.projection import Eye
from categories.xray_report_correction.render_landmarks import LUNG_OF
from categories.xray_report_correction.render_scene import WATER, Scene
from categories.xray_report_correction.render_shapes import add_tube, curve
from categories.xray_report_correction.state import Finding, NoRoomError

Floats = NDArray[np.float64]
ZONES = {"upper": (0.71, 0.93), "mid": (0.38, 0.62), "lower": (0.05, 0.29)}
"""Where a lesion's middle lies in a zone: shares of the way from the dome to the lung's top. Zones are thirds of it."""
LOBE_OF = {
    ("right", "upper"): "lung_upper_lobe_right",
    ("right", "middle"): "lung_middle_lobe_right",
    ("right", "lower"): "lung_lower_lobe_right",
    ("left", "upper"): "lung_upper_lobe_left",
    ("left", "lower"): "lung_lower_lobe_left",
}


def consolidation(scene: Scene, finding: Finding) -> None:
    """Fill airspaces over about ``extent`` mm, in a lobe as far as its fissure, with air-filled bronchi."""
    for side in sides(finding):
        rng = np.random.default_rng([finding.track, side == "left"])
        region = _region(scene, finding, side)
        radius = finding.extent / 2
        centre = _Room(scene, region, side, finding.location, 0.45 * radius).place(rng)
        box, (x, y, z) = scene.grid(centre - 1.7 * radius, centre + 1.7 * radius)
        shape = radius * rng.uniform(0.88, 1.15, 3)
        away = np.sqrt(sum(((a - c) / s) ** 2 for a, c, s in zip((x, y, z), centre, shape, strict=True)))
        rough = (
            smooth_field(away.shape, scene.torso.spacing, rng, 9.0) * 0.16
            + smooth_field(away.shape, scene.torso.spacing, rng, 4.0) * 0.08
        )
        dense = np.clip((1.08 - away + rough) / 0.42, 0, 1) * (0.82 + 0.10 * np.clip(rough * 4, -1, 1))
        part = scene.torso.hu[box]
        within = region[box]
        part[...] = np.where(within & (part < 20), part + (20 - part) * dense, part)
        _bronchi(scene, finding.track, side, centre, radius, rng)


def _bronchi(scene: Scene, track: int, side: str, centre: Floats, radius: float, rng: np.random.Generator) -> None:
    """Put air-filled bronchi, coming from the hilum, through a filled region."""
    hilum = scene.marks.carina + np.array([-38.0 if side == "right" else 38.0, -5, -28])
    out = (centre - hilum) / max(float(np.linalg.norm(centre - hilum)), 1.0)
    lines = []
    for _ in range(int(rng.integers(3, 6))):
        swing = out + rng.normal(0, 0.42, 3)
        swing /= np.linalg.norm(swing)
        start = centre - 0.75 * radius * out + rng.normal(0, 0.22 * radius, 3)
        middle = start + swing * radius * 0.55 + rng.normal(0, 1.5, 3)
        lines.append((curve(np.stack([start, middle, start + swing * radius * 1.1])), rng.uniform(1.2, 1.9)))

    def draw(film: Floats, eye: Eye) -> None:
        for line, wide in lines:
            add_tube(film, eye, line, np.linspace(wide, wide * 0.6, len(line)), -0.9 * WATER)

    scene.thin.append((track, draw))


def atelectasis(scene: Scene, finding: Finding) -> None:
    """Lay bands across the zone, flat and about horizontal; their thickness adds up to ``extent`` mm a side."""
    for side in sides(finding):
        rng = np.random.default_rng([finding.track, side == "left"])
        lung = scene.torso.mask(*LUNG_OF[side])
        count = int(np.clip(round(finding.extent / 4.5), 1, 3))
        first = _Room(scene, lung, side, finding.location, 22).place(rng)
        for number in range(count):
            centre = first + np.array(
                [rng.normal(0, 7), rng.normal(0, 8), number * rng.uniform(11, 16) - 6 * (count - 1)]
            )
            _band(scene, lung, centre, finding.extent / count, rng)


def _band(scene: Scene, lung: NDArray[np.bool_], centre: Floats, thick: float, rng: np.random.Generator) -> None:
    tilt = np.array([rng.normal(0, 0.2), rng.normal(0, 0.12), 1.0])
    tilt /= np.linalg.norm(tilt)
    half = np.array([rng.uniform(24, 40), rng.uniform(20, 32), 14.0])
    box, (x, y, z) = scene.grid(centre - half, centre + half)
    bend = rng.uniform(1, 4) * ((x - centre[0]) / half[0]) ** 2
    part = scene.torso.hu[box]
    rough = smooth_field(part.shape, scene.torso.spacing, rng, 9.0)
    off = (x - centre[0]) * tilt[0] + (y - centre[1]) * tilt[1] + (z - centre[2]) * tilt[2] + bend + 0.9 * rough
    inside = 1 - np.sqrt(((x - centre[0]) / half[0]) ** 2 + ((y - centre[1]) / half[1]) ** 2)
    thin = 0.5 * thick * np.clip(0.35 + inside, 0.35, 1)
    dense = (
        np.clip((thin - np.abs(off)) / 2.6 + 0.5, 0, 1)
        * np.clip(inside / 0.5, 0, 1)
        * (0.75 + 0.2 * np.clip(rough, -1, 1))
    )
    part[...] = np.where(lung[box] & (part < -50), part + (-50 - part) * dense, part)


def nodule(scene: Scene, finding: Finding) -> None:
    """Put ``count`` soft, slightly lobulated balls of about ``extent`` mm into the zone."""
    _balls(scene, finding, 0.97 * WATER)


def granuloma(scene: Scene, finding: Finding) -> None:
    """Put a dense, calcified ball of ``extent`` mm into the zone."""
    _balls(scene, finding, 2.6 * WATER)


ROUNDS, TRIES = 15, 25
"""How often, and with how many places each time, nodules that lie apart on the film are looked for."""


def _balls(scene: Scene, finding: Finding, mu: float) -> None:
    for side in sides(finding):
        rng = np.random.default_rng([finding.track, side == "left"])
        lung = scene.torso.mask(*LUNG_OF[side])
        room = _Room(scene, lung, side, finding.location, finding.extent / 2 + 2)
        placed: list[Floats] = []
        count = finding.count or 1
        for attempt in range(ROUNDS * TRIES):
            if attempt % TRIES == 0:
                placed = []
            apart = finding.extent * (2.0 - 0.75 * (attempt // TRIES) / ROUNDS) + 2
            centre = room.place(rng)
            if all(np.hypot(*(centre - other)[[0, 2]]) > apart for other in placed):
                placed.append(centre)
            if len(placed) == count:
                break
        if len(placed) < count:
            raise NoRoomError(
                f"{count} nodules of {finding.extent:.0f} mm do not fit the {finding.location} side by side"
            )
        for centre in placed:
            _ball(scene, finding, centre, mu, rng)


def _ball(scene: Scene, finding: Finding, centre: Floats, mu: float, rng: np.random.Generator) -> None:
    radius = finding.extent / 2 * rng.uniform(0.97, 1.03)
    lobes = [(centre + rng.normal(0, 0.11 * radius, 3), radius * rng.uniform(0.88, 0.96)) for _ in range(4)]

    def draw(film: Floats, eye: Eye) -> None:
        layer = np.zeros_like(film)
        for place, size in lobes:
            one = np.zeros_like(film)
            add_tube(one, eye, np.stack([place, place + 0.01]), size, mu)
            np.maximum(layer, one, out=layer)
        film += ndi.gaussian_filter(layer, 0.5 / eye.plate.pixel_mm)

    scene.thin.append((finding.track, draw))


def _region(scene: Scene, finding: Finding, side: str) -> NDArray[np.bool_]:
    """Return the lobe a finding is said to fill, or the lung."""
    word = (finding.location or "").split(" ")[0]
    if (finding.location or "").endswith("lobe"):
        if (side, word) not in LOBE_OF:
            raise ValueError(f"no {side} {finding.location}: the middle lobe is on the right only")
        return scene.torso.mask(LOBE_OF[side, word])
    return scene.torso.mask(*LUNG_OF[side])


class _Room:
    """The places (mm) a lesion of a side may have: of its region, in the zone, clear of edge and heart by a margin."""

    def __init__(self, scene: Scene, region: NDArray[np.bool_], side: str, location: str | None, margin: float) -> None:
        """Take the margin in mm."""
        low, high = scene.marks.lungs[side]
        many = [max(1, round(3.0 / step)) for step in scene.torso.spacing]
        places = np.argwhere(region[:: many[0], :: many[1], :: many[2]].T)[:, ::-1]
        points = places * np.array(many) * scene.torso.spacing
        share = (points - low) / (high - low)
        if side == "right":
            share[:, 0] = 1 - share[:, 0]
        seen = (scene.marks.domes[side] - low[2]) / (high[2] - low[2])  # below the dome the belly hides the lung
        if (location or "").endswith("zone"):
            first, last = (seen + (1 - seen) * part for part in ZONES[(location or "").split(" ")[0]])
        else:
            first, last = (max(float(part), seen + 0.04) for part in np.percentile(share[:, 2], (28, 72)))
        good = _in_the_open(scene, side, margin)[places[:, 0] * many[0], places[:, 2] * many[2]]
        good &= (share[:, 0] > 0.35) & (share[:, 2] > first) & (share[:, 2] < last)
        if good.sum() <= 10:
            good[:] = True
        self.points, self.share, self.size = points[good], share[good], high - low
        self.heights = (first, last)

    def place(self, rng: np.random.Generator) -> Floats:
        """Return a place, drawn as shares of the lung's box: the same draw is the same place in any breath."""
        first, last = self.heights
        aim = np.array([rng.uniform(0.42, 0.9), rng.uniform(0.28, 0.78), rng.uniform(first, last)])
        return np.asarray(self.points[np.argmin((((self.share - aim) * self.size) ** 2).sum(1))])


def _in_the_open(scene: Scene, side: str, margin: float) -> NDArray[np.bool_]:
    """Return the part (across, height) of a lung's shadow that lies ``margin`` mm inside its edge, beside the heart."""
    step = scene.torso.spacing
    field = scene.torso.mask(*LUNG_OF[side]).any(1)
    inside = ndi.distance_transform_edt(np.pad(field, 1), (step[0], step[2]))[1:-1, 1:-1] > margin
    return np.asarray(inside & ~scene.torso.mask("heart").any(1))


def smooth_field(
    shape: tuple[int, ...], spacing: tuple[float, float, float], rng: np.random.Generator, size_mm: float
) -> Floats:
    """Return a smooth random field of spread 1."""
    many = [max(1, int(size_mm / 2 / s)) for s in spacing]
    coarse = rng.standard_normal([-(-n // m) + 3 for n, m in zip(shape, many, strict=True)])
    coarse = ndi.gaussian_filter(coarse, 1.0)
    coarse /= coarse.std()
    grid = np.meshgrid(*(np.arange(n) / m for n, m in zip(shape, many, strict=True)), indexing="ij")
    return np.asarray(ndi.map_coordinates(coarse, grid, order=1))
