"""From a supine scan in shallow breath to the chest as it stands (or sits) before the film.

The rib cage stays; lungs, heart and belly slide down inside it by the depth of the breath; the wall's width is followed
in polar coordinates. The heart is then widened or narrowed to a stated cardiothoracic ratio.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.chest.labels import BONES, LOBES, ORGANS, RIGHT_LUNG, where
from categories.xray_report_correction.render_torso import Places, Torso, filled_in, grown, places

ANGLES = 180
SOFT = 35.0
HEART = ("heart", "atrial_appendage_left")
FIXED = (*BONES, "spinal_cord", "autochthon_left", "autochthon_right")
FORBIDDEN = where(np.arange(256, dtype=np.uint8), BONES)
"""By label."""
SKETCHED = 2
"""Of so many slices a sketch has one."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Posture:
    """How one exposure finds the body. Lengths in mm."""

    drop: float
    """The diaphragm's way down from where the scan shows it; negative in a shallower breath."""
    left_more: float = 0.0
    """Additional way of the left dome."""
    flatten: float = 0.0
    """Additional way of the domes' tops only."""


@dataclass(frozen=True)
class HeartChange:
    """Heart borders (voxels along the first axis, by slice) and the factor that widens them about the middle."""

    factor: float
    middle: float
    right: Floats
    left: Floats
    wall_right: Floats
    wall_left: Floats
    weight: Floats
    """(J, K): where the change applies."""


@dataclass(frozen=True)
class Cage:
    """The inner face of the rib cage by angle and slice, in voxels of the first axis."""

    centre: Floats
    """(K, 2): x, y."""
    radius: Floats
    """(K, ANGLES)."""
    apex: float
    dome: float
    """Slices of the lungs' top and of the right dome."""
    step_mm: float
    """Between slices."""
    fixed: NDArray[np.bool_]
    """What does not slide: bones, cord and back muscles."""


def measure_cage(torso: Torso) -> Cage:
    """Return the inner face of the rib cage, smoothed: ribs, and lung where that reaches further."""
    ribs = torso.mask(*(name for name in BONES if name.startswith(("rib_", "sternum", "costal"))))
    lungs = torso.mask(*LOBES)
    spine = torso.mask(*(name for name in BONES if name.startswith("vertebrae")))
    slices = lungs.shape[2]
    centre = np.full((slices, 2), np.nan)
    for k in range(slices):
        bone, rib = (places(mask[:, :, k]) for mask in (spine, ribs))
        if len(bone[0]) > 50 and len(rib[0]) > 50:
            centre[k] = bone[0].mean(), np.percentile(rib[1], 2) * 0.5 + np.percentile(rib[1], 98) * 0.5
    for column in range(2):
        centre[:, column] = ndi.gaussian_filter1d(filled_in(centre[:, column]), 4, mode="nearest")
    bony, airy = np.full((slices, ANGLES), np.inf), np.zeros((slices, ANGLES))
    for k in range(slices):
        for mask, table, keep in ((ribs, bony, np.minimum), (lungs, airy, np.maximum)):
            x, y = places(mask[:, :, k])
            angle, reach = _polar(x - centre[k, 0], y - centre[k, 1])
            keep.at(table[k], angle.astype(int) % ANGLES, reach)
    bony[np.isinf(bony)] = np.nan
    face = np.stack([filled_in(bony[:, a]) if (~np.isnan(bony[:, a])).any() else airy[:, a] for a in range(ANGLES)], 1)
    face = ndi.median_filter(face, (5, 5), mode="nearest")
    face = np.maximum(ndi.gaussian_filter(face, (3, 2), mode=("nearest", "wrap")), airy + 0.5)
    face = ndi.gaussian_filter(face, (1.5, 0.7), mode=("nearest", "wrap"))
    top = float(np.flatnonzero(lungs.any((0, 1)))[-1])
    return Cage(centre, face, top, dome_level(torso, RIGHT_LUNG), torso.spacing[2], grown(torso.mask(*FIXED), 1))


def dome_level(torso: Torso, side: tuple[str, ...]) -> float:
    """Return the slice of a dome's top: the highest floor of the lung, away from its edges and from the heart."""
    lung = torso.mask(*side)
    low = np.where(lung.any(2), lung.argmax(2), -1)
    inner = ndi.binary_erosion(low >= 0, iterations=max(2, round(18 / torso.spacing[0])))
    heart = ndi.binary_dilation(torso.mask("heart").any(2), iterations=max(1, round(12 / torso.spacing[0])))
    area = inner & ~heart
    return float(np.percentile(ndi.median_filter(low, 5)[area], 95)) if area.any() else float(low.max())


def rib_levels(torso: Torso) -> Floats:
    """Return the slices at which the right ribs 1 to 12 leave the spine; NaN where a rib is not in the volume."""
    names = [f"rib_right_{rib}" for rib in range(1, 13)]
    everywhere = np.nonzero(torso.mask(*names).T)
    which = torso.organs.T[everywhere]
    levels = np.full(len(names), np.nan)
    for rib, name in enumerate(names):
        k, y = (axis[which == ORGANS[name]] for axis in everywhere[:2])
        if len(y) > 30:
            levels[rib] = k[y <= np.percentile(y, 15)].mean()
    return levels


def drop_for(torso: Torso, cage: Cage, ribs: float) -> float:
    """Return the way down (mm) after which so many posterior ribs lie above the right dome."""
    levels = rib_levels(torso)
    known = np.flatnonzero(~np.isnan(levels))
    wanted = np.interp(ribs, known + 1.0, levels[known])
    return float((cage.dome - wanted) * torso.spacing[2])


def heart_change(sketched: NDArray[np.uint8], torso: Torso, factor: float) -> HeartChange:
    """Return the map that widens a heart by a factor, from a sketch of the chest after breathing."""
    organs = np.zeros_like(torso.organs)
    organs[:, :, ::SKETCHED] = sketched
    heart, lungs = where(organs, HEART), where(organs, LOBES)
    levels = np.flatnonzero(heart.any((0, 1)))
    slices = heart.shape[2]
    edges = [np.full(slices, np.nan) for _ in range(4)]
    for k in range(levels[0], levels[-1] + 1):
        x = np.flatnonzero(heart[:, :, k].any(1))
        wall = np.flatnonzero(lungs[:, :, k].any(1))
        if len(x) and len(wall):
            edges[0][k], edges[1][k], edges[2][k], edges[3][k] = x[0], x[-1], wall[0], wall[-1]
    right, left, wall_right, wall_left = (ndi.gaussian_filter1d(filled_in(e), 3, mode="nearest") for e in edges)
    deep = np.flatnonzero(heart.any((0, 2)))
    y = np.arange(heart.shape[1])
    front = np.flatnonzero(lungs.any((0, 2)))[-1]
    step = torso.spacing[1]
    in_depth = _ramp(y, deep[0] - 30 / step, deep[0]) * (
        1 - _ramp(y, max(deep[-1] - 12 / step, front - 25 / step), front)
    )
    high = _ramp(np.arange(slices), levels[0] - 25 / torso.spacing[2], levels[0])
    along = high * (1 - _ramp(np.arange(slices), levels[-1] - 25 / torso.spacing[2], levels[-1] + 4))
    x = np.nonzero(heart.T)[2]
    middle = float((np.percentile(x, 2) + np.percentile(x, 60)) / 2)
    return HeartChange(factor, middle, right, left, wall_right - 1, wall_left + 1, in_depth[:, None] * along[None, :])


def move(torso: Torso, cage: Cage, posture: Posture, heart: HeartChange) -> Torso:
    """Return the chest in a posture."""
    organs, hu = torso.organs.copy("F"), torso.hu.copy("F")

    def one(k: int) -> None:
        (x, y), at = _sources(cage, posture, heart, k)
        found, wrong = _labels(torso, at)
        organs[x, y, k] = found
        values = ndi.map_coordinates(torso.hu, at, order=1, mode="nearest", output=np.float32)
        hu[x, y, k] = np.where(wrong, SOFT, values)

    _each(one, range(torso.organs.shape[2]))
    return replace(torso, hu=hu, organs=organs)


def sketch(torso: Torso, cage: Cage, posture: Posture) -> NDArray[np.uint8]:
    """Return the labels alone of the chest in a posture: (I, J, every second slice)."""
    return _sketched(torso, cage, posture, None, torso.organs[:, :, ::SKETCHED].copy("F"), range(torso.organs.shape[2]))


def sketch_heart(
    torso: Torso, cage: Cage, posture: Posture, heart: HeartChange, first: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Return the sketch with a changed heart; ``first`` is that without: what the change does not reach stays."""
    reached = np.flatnonzero(heart.weight.any(0)).tolist()
    return _sketched(torso, cage, posture, heart, first.copy("F"), reached)


def _sketched(
    torso: Torso,
    cage: Cage,
    posture: Posture,
    heart: HeartChange | None,
    organs: NDArray[np.uint8],
    slices: Iterable[int],
) -> NDArray[np.uint8]:
    def one(k: int) -> None:
        (x, y), at = _sources(cage, posture, heart, k)
        organs[:, :, k // SKETCHED] = torso.organs[:, :, k]
        organs[x, y, k // SKETCHED] = _labels(torso, at)[0]

    _each(one, [k for k in slices if k % SKETCHED == 0])
    return organs


def _labels(torso: Torso, at: Floats) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return the labels at places (3, n), and where bone would slide, which it must not."""
    near = np.rint(at).astype(np.int64)
    found = torso.organs[near[0], near[1], near[2]]
    wrong = FORBIDDEN[found]
    return np.where(wrong, np.uint8(0), found), wrong


def _each(one: Callable[[int], None], slices: Iterable[int]) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, slices))


def _sources(cage: Cage, posture: Posture, heart: HeartChange | None, k: int) -> tuple[Places, Floats]:
    """Return which voxels (x, y) of slice k slide, and the places (3, n) where the scan shows what they will hold."""
    shape, step = cage.fixed.shape, cage.step_mm
    x, y = np.ogrid[: shape[0], : shape[1]]
    x, y = x - cage.centre[k, 0], y - cage.centre[k, 1]
    outside = np.hypot(x, y) > cage.radius[k].max()
    candidates = places(~outside & ~cage.fixed[:, :, k])
    x, y = x[candidates[0], 0], y[0, candidates[1]]
    if heart is not None:
        there = x + cage.centre[k, 0]
        x = x + heart.weight[candidates[1], k] * (_widen(there, heart, k) - there)
    angle, reach = _polar(x, y)
    share = reach / _at(cage.radius[k], angle)
    kept = share < 1
    moved = (candidates[0][kept], candidates[1][kept])
    x, angle, share = x[kept], angle[kept], share[kept]
    way = posture.drop + posture.left_more * _ramp(x, 0, 40) + posture.flatten * np.clip(1 - share**2, 0, 1)
    foot = cage.dome - posture.drop / step
    part = min(max((cage.apex - k) / (cage.apex - foot), 0), 1)
    z = np.clip(k + way / step * part * part * (3 - 2 * part), 0, shape[2] - 1)
    low = np.minimum(z.astype(np.int64), shape[2] - 2)
    rest = z - low
    outer = _at2(cage.radius, low, angle) * (1 - rest) + _at2(cage.radius, low + 1, angle) * rest
    centre = cage.centre[low] * (1 - rest)[:, None] + cage.centre[low + 1] * rest[:, None]
    turned = angle * (2 * np.pi / ANGLES)
    at = np.stack([centre[:, 0] + share * outer * np.cos(turned), centre[:, 1] + share * outer * np.sin(turned), z])
    return moved, np.clip(at, 0, np.array(shape)[:, None] - 1)


def _widen(x: Floats, heart: HeartChange, k: int) -> Floats:
    """Return the places from which a heart wider by a factor is drawn; the lung beside it is squeezed."""
    right = heart.middle + (heart.right[k] - heart.middle) * heart.factor
    left = heart.middle + (heart.left[k] - heart.middle) * heart.factor
    right, left = max(right, heart.wall_right[k] + 1.5), min(left, heart.wall_left[k] - 1.5)
    stops = [-1e4, heart.wall_right[k], right, heart.middle, left, heart.wall_left[k], 1e4]
    origin = [-1e4, heart.wall_right[k], heart.right[k], heart.middle, heart.left[k], heart.wall_left[k], 1e4]
    return np.asarray(np.interp(x, stops, origin))


def _polar(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return angles in steps of the cage's table, and distances."""
    return np.mod(np.arctan2(y, x) * (ANGLES / (2 * np.pi)), ANGLES), np.hypot(x, y)


def _at(table: Floats, angle: Floats) -> Floats:
    low = angle.astype(int) % ANGLES
    rest = angle - np.floor(angle)
    return np.asarray(table[low] * (1 - rest) + table[(low + 1) % ANGLES] * rest)


def _at2(table: Floats, rows: NDArray[np.int64], angle: Floats) -> Floats:
    low = angle.astype(int) % ANGLES
    rest = angle - np.floor(angle)
    return np.asarray(table[rows, low] * (1 - rest) + table[rows, (low + 1) % ANGLES] * rest)


def _ramp(x: Floats | NDArray[np.int64], start: float, end: float) -> Floats:
    part = np.clip((np.asarray(x, float) - start) / (end - start), 0, 1)
    return np.asarray(part * part * (3 - 2 * part))
