"""Where the coronary arteries and the valves lie, as fractions of the heart's extent.

Read off the contrast-enhanced scan that the template was made from (its coronary lumens are visible); the heart's
extent is the bounding box of the organ map's ``heart``, so that the courses follow a heart of another size or shape.
"""

import numpy as np

from categories.chest.labels import where
from categories.ct_abnormality.canvas import Canvas
from categories.ct_abnormality.heart_shapes import Points, coarse, curve, extent, heart_points

OUTSIDE_MM = 6.0
"""The arteries run in the fat on the heart, which its mask leaves out: so far from it they are left alone."""
Fractions = tuple[tuple[float, float, float], ...]


def _scan(*voxels: tuple[float, float, float]) -> Fractions:
    """Turn voxels of the original scan into fractions of its heart (i 190-378, j 203-361, k 50-95)."""
    return tuple(((i - 190) / 188, (j - 203) / 158, (k - 50) / 45) for i, j, k in voxels)


CORONARIES: dict[str, Fractions] = {
    "LAD": _scan(
        (284, 282, 76), (300, 286, 76.5), (314, 294, 76), (324, 306, 75), (328, 318, 73), (328, 331, 70),
        (331, 340, 66), (337, 345, 62), (347, 345, 58), (358, 338, 54),
    ),
    "LCX": _scan(
        (284, 280, 76), (289, 272, 75), (296, 264, 74), (299, 258, 73), (303, 250, 71.5), (306, 244, 70),
        (307, 238, 67.5), (306, 233, 65), (300, 228.5, 61.5), (292, 227, 58.5),
    ),
    "RCA": _scan(
        (264, 323, 69), (260, 331, 68.5), (255, 338, 67), (249, 342, 64.5), (242, 343, 61.5), (235, 339, 58.5),
        (230, 331, 56), (230, 318, 54), (238, 303, 52.5),
    ),
}  # fmt: skip
LEFT_MAIN: Fractions = _scan((276, 285, 76), (280, 283, 76), (284, 282, 76))
MITRAL: Fractions = _scan(
    (291, 268, 69), (298, 262, 68), (301, 255, 66), (300, 248, 64), (294, 243, 62), (285, 245, 60.5)
)
"""The rear annulus of the mitral valve, 8 mm and more inside the groove in which the circumflex artery runs."""
AORTIC_VALVE: Fractions = _scan((271, 297, 67))
PERICARDIUM: Fractions = _scan((300, 346, 68), (312, 348, 65), (325, 349, 62), (340, 349, 58), (352, 344, 55))


def course(canvas: Canvas, fractions: Fractions, *, snap: bool = True) -> Points:
    """Return a course in mm; ``snap`` draws points far outside the heart towards its middle."""
    points = heart_points(canvas, fractions)
    if len(points) > 1:
        points = curve(points, 1.5)
    box = extent(canvas, ["heart"])
    if not snap or box is None:
        return points
    middle = np.array([(part.start + part.stop) / 2 for part in box]) * canvas.spacing_mm
    inward = middle - points
    inward /= np.maximum(np.sqrt((inward**2).sum(1, keepdims=True)), 1.0)
    view = coarse(canvas, extent(canvas, ["heart"], 24.0) or box)
    depth = view.depth(where(view.organs, ["heart"]))
    origin = np.array([part.start for part in view.box]) * canvas.spacing_mm
    for _ in range(14):
        index = np.clip(np.round((points - origin) / view.spacing_mm).astype(int), 0, np.array(depth.shape) - 1)
        outside = depth[index[:, 0], index[:, 1], index[:, 2]] < -OUTSIDE_MM
        points = points + inward * outside[:, None]
    return points
