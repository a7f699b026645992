"""Oedema of both lungs, and a stomach that slides into the chest."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.chest.labels import LEFT_LUNG, LOBES, RIGHT_LUNG
from categories.xray_report_correction.lesions_lung import smooth_field
from categories.xray_report_correction.projection import Eye
from categories.xray_report_correction.render_scene import WATER, Scene
from categories.xray_report_correction.render_shapes import add_tube, curve
from categories.xray_report_correction.state import Finding

Floats = NDArray[np.float64]
WALL, FLUID, GAS = 40.0, 22.0, -960.0
WALL_MM = 3.5


def pulmonary_edema(scene: Scene, finding: Finding) -> None:
    """Fill the lungs from the hila with water: ``extent`` 0.3 interstitial, 0.6 haze, 0.9 bat-wing airspaces."""
    rng = np.random.default_rng(finding.track)
    grade = finding.extent
    low = np.minimum(scene.marks.lungs["right"][0], scene.marks.lungs["left"][0])
    high = np.maximum(scene.marks.lungs["right"][1], scene.marks.lungs["left"][1])
    box, (x, y, z) = scene.grid(low, high)
    part, lungs = scene.torso.hu[box], scene.torso.mask(*LOBES)[box]
    near = np.zeros(part.shape)
    for side in (-1, 1):
        hilum = scene.marks.carina + np.array([side * 46.0, -4, -34])
        away = ((x - hilum[0]) / 44) ** 2 + ((y - hilum[1]) / 52) ** 2 + ((z - hilum[2]) / 58) ** 2
        near = np.maximum(near, np.exp(-away))
    base = np.clip(1 - (z - low[2]) / (high[2] - low[2]), 0, 1)
    patch = smooth_field(part.shape, scene.torso.spacing, rng, 14.0) + 0.6 * smooth_field(
        part.shape, scene.torso.spacing, rng, 6.0
    )
    haze = (70 + 170 * grade) * (0.5 + 0.8 * base) + 950 * max(grade - 0.25, 0) * near * (1 + 0.3 * patch)
    airspace = np.clip((near * 1.25 + 0.18 * patch - 0.52) / 0.3, 0, 1) * np.clip((grade - 0.55) / 0.4, 0, 1)
    wet = part + haze * (part < -300) + np.clip(part + 850, 0, 500) * (0.3 + 0.3 * grade) * (part < -200)
    wet = wet + (-80 - wet) * airspace * (wet < -80)
    part[...] = np.where(lungs, wet, part)
    _septa(scene, finding.track, rng, grade)
    _cuffs(scene, finding.track, rng, grade)


def _septa(scene: Scene, track: int, rng: np.random.Generator, grade: float) -> None:
    """Add thickened septa at the lungs' lower outer edges (Kerley B): short level lines that reach the pleura."""
    lines = []
    for names in (RIGHT_LUNG, LEFT_LUNG):
        mask = scene.torso.mask(*names)
        levels = np.flatnonzero(mask.any((0, 1)))
        for _ in range(int(10 + 8 * grade)):
            k = int(levels[0] + (levels[-1] - levels[0]) * rng.uniform(0.12, 0.42))
            y, x = np.nonzero(mask[:, :, k].T)
            outer = int(x.min() if names == RIGHT_LUNG else x.max())
            deep = y[np.abs(x - outer) < 3]
            start = np.array([outer, rng.choice(deep), k + rng.random()]) * scene.torso.spacing
            inward = 1 if names == RIGHT_LUNG else -1
            end = start + np.array([inward * rng.uniform(11, 19), rng.normal(0, 5), rng.normal(0, 1.5)])
            lines.append(curve(np.stack([start, (start + end) / 2 + rng.normal(0, 0.5, 3), end]), 3))

    def draw(film: Floats, eye: Eye) -> None:
        for line in lines:
            add_tube(film, eye, line, 0.75, 1.2 * WATER)

    scene.thin.append((track, draw))


def _cuffs(scene: Scene, track: int, rng: np.random.Generator, grade: float) -> None:
    """Add thick walls of bronchi seen end-on, a few near each hilum."""
    rings, along = [], np.array([0.0, 5.0, 0.0])
    for side in (-1, 1):
        hilum = scene.marks.carina + np.array([side * 44.0, -4, -26])
        for _ in range(1):
            place = hilum + np.array([side * rng.uniform(-4, 16), rng.uniform(-18, 18), rng.uniform(-8, 26)])
            rings.append((place, rng.uniform(1.9, 2.6)))

    def draw(film: Floats, eye: Eye) -> None:
        layer = np.zeros_like(film)
        for place, radius in rings:
            wall = 1.3 + 0.5 * grade
            line = np.stack([place - along, place + along])
            add_tube(layer, eye, line, radius + wall, 1.1 * WATER, core=radius / (radius + wall))
        film += ndi.gaussian_filter(layer, 0.7 / eye.plate.pixel_mm)

    scene.thin.append((track, draw))


def hiatal_hernia(scene: Scene, finding: Finding) -> None:
    """Put a stomach pouch ``extent`` mm wide behind the heart, fluid below and gas above a level."""
    rng = np.random.default_rng(finding.track)
    half = finding.extent / 2 * np.array([1.0, 0.78, 0.86])
    foot = scene.marks.heart[0, 2]
    centre = scene.marks.gullet.at(foot + 0.75 * half[2])
    spine = scene.marks.spine.at(foot + half[2])
    centre += np.array([rng.uniform(4, 14), 0, 0])
    centre[1] = max(centre[1], spine[1] + 24 + half[1])
    box, (x, y, z) = scene.grid(centre - half - 4, centre + half + 4)
    away = np.sqrt(
        ((x - centre[0]) / half[0]) ** 2 + ((y - centre[1]) / half[1]) ** 2 + ((z - centre[2]) / half[2]) ** 2
    )
    level = centre[2] + rng.uniform(-0.1, 0.2) * half[2]
    outer = np.clip((1 - away) * half.min() / 1.5 + 0.5, 0, 1)
    inner = np.clip((1 - away) * half.min() / 1.5 - WALL_MM / 1.5 + 0.5, 0, 1)
    content = FLUID + (GAS - FLUID) * np.clip((z - level) / 2.5 + 0.5, 0, 1)
    part = scene.torso.hu[box]
    pouch = WALL + (content - WALL) * inner
    part[...] = part + (pouch - part) * outer
