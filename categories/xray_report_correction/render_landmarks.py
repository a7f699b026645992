"""Places in a chest that other things are drawn by, read from its organ mask (mm from the first voxel)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from categories.chest.labels import LEFT_LUNG, RIGHT_LUNG
from categories.xray_report_correction.anatomy_upright import dome_level
from categories.xray_report_correction.render_torso import Torso

Floats = NDArray[np.float64]


LUNG_OF = {"right": RIGHT_LUNG, "left": LEFT_LUNG}


@dataclass(frozen=True)
class Line:
    """The middle of a long organ, by height."""

    height: Floats
    place: Floats
    """(n, 2): across, depth."""

    def at(self, z: float) -> Floats:
        """Return (x, y, z); beyond its ends the line goes straight up and down."""
        return np.array([np.interp(z, self.height, self.place[:, 0]), np.interp(z, self.height, self.place[:, 1]), z])


@dataclass(frozen=True)
class Landmarks:
    spine: Line
    trachea: Line
    cava: Line
    gullet: Line
    carina: Floats
    heart: Floats
    """(2, 3): lowest and highest corner of the heart's box."""
    lungs: dict[str, Floats]
    """Side -> (2, 3) box of that lung."""
    domes: dict[str, float]
    """Side -> height of the diaphragm's top there."""
    notch: Floats
    """Upper edge of the breastbone."""
    stomach: Floats
    width: float
    """Of the body (mm)."""
    middle: float
    """The spine's mean place across."""


def landmarks(torso: Torso) -> Landmarks:
    """Return the landmarks.

    Raises:
        ValueError: an organ that every chest has is not in the mask.
    """
    spine = _line(torso, *(f"vertebrae_{n}" for n in ("T12", *(f"T{i}" for i in range(1, 12)), "C7", "L1")))
    breast = _points(torso, "sternum")
    top = breast[breast[:, 2] >= breast[:, 2].max() - 8].mean(0)
    body = np.flatnonzero((torso.organs > 0).any((1, 2)))
    trachea = _line(torso, "trachea")
    return Landmarks(
        spine=spine,
        trachea=trachea,
        cava=_line(torso, "superior_vena_cava"),
        gullet=_line(torso, "esophagus"),
        carina=_carina(torso),
        heart=_box(torso, "heart"),
        lungs={side: _box(torso, *names) for side, names in LUNG_OF.items()},
        domes={s: dome_level(torso, names) * torso.spacing[2] for s, names in LUNG_OF.items()},
        notch=top,
        stomach=_points(torso, "stomach").mean(0),
        width=float((body[-1] - body[0]) * torso.spacing[0]),
        middle=float(spine.place[:, 0].mean()),
    )


def _found(torso: Torso, names: tuple[str, ...]) -> NDArray[np.bool_]:
    mask = torso.mask(*names)
    if not mask.any():
        raise ValueError(f"the organ mask holds no {' or '.join(names)}; use a chest with all organs of the contract")
    return mask


def _points(torso: Torso, *names: str) -> Floats:
    return np.asarray(np.argwhere(_found(torso, names).T)[:, ::-1] * np.asarray(torso.spacing))


def _box(torso: Torso, *names: str) -> Floats:
    """Return the box of an organ without its farthest thousandths: from counts of voxels, for lungs hold millions."""
    mask, ends = _found(torso, names), []
    for axis, step in enumerate(torso.spacing):
        counts = np.count_nonzero(mask, axis=tuple(other for other in range(3) if other != axis))
        ends.append(np.percentile(np.repeat(np.arange(len(counts)) * step, counts), (0.1, 99.9)))
    return np.stack(ends, 1)


def _line(torso: Torso, *names: str) -> Line:
    points = _points(torso, *names)
    height, index, count = np.unique(points[:, 2], return_inverse=True, return_counts=True)
    place = np.stack([np.bincount(index, points[:, axis]) / count for axis in (0, 1)], 1)
    return Line(height, place)


def _carina(torso: Torso) -> Floats:
    """Return where the windpipe divides: going down, the first slice much wider than the windpipe above it."""
    mask = torso.mask("trachea")
    across = np.asarray(mask.any(1))
    wide = np.array([np.ptp(np.flatnonzero(across[:, k])) if across[:, k].any() else 0 for k in range(mask.shape[2])])
    levels = np.flatnonzero(wide)
    usual = np.median(wide[levels[len(levels) // 3 :]])
    forked = [k for k in levels if wide[k] > 1.45 * usual]
    k = max(forked) if forked else int(levels[0])
    line = _line(torso, "trachea")
    return line.at(float(k * torso.spacing[2]))
