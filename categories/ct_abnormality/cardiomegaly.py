"""An enlarged heart: the patient's own, grown before the scan is made (see ``body``).

Look-alike: a heart of ordinary size that abundant cardiophrenic fat makes look wide.
"""

import numpy as np

from categories.chest.labels import LOBES, where
from categories.ct_abnormality.canvas import Canvas, Facts, State, States
from categories.ct_abnormality.heart_shapes import coarse, extent
from categories.ct_abnormality.lung_texture import fractal, inside, smooth_step

RATIO: dict[State, tuple[float, float]] = {
    "present": (0.545, 0.64),
    "lookalike": (0.42, 0.482),
    "grey": (0.508, 0.515),
}
"""Cardiothoracic ratio: reach of the heart over all cross-sections by the widest inner thorax of one.

The organ map shows up to 0.018 less than was asked for (a thin edge of the heart falls between voxels)."""
PAD_MM = (16.0, 30.0)
SIDES = {"left": ((0.75, 0.35, -0.55), 1.0), "right": ((-0.75, 0.4, -0.5), 0.75)}
"""Where fat gathers, seen from the middle of the heart (left, front, head), and its share of the thickness."""


def body(rng: np.random.Generator, state: State) -> dict[str, float]:
    """Return the cardiothoracic ratio that the patient is to have."""
    return {"cardiothoracic_ratio": round(float(rng.uniform(*RATIO[state])), 4)}


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Measure the enlarged heart."""
    del rng, states
    return _measured(canvas, ["cardiothoracic ratio", "heart volume"])


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Measure the heart."""
    del rng, states
    return _measured(canvas, ["cardiothoracic ratio"])


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Lay fat into the angles between heart and diaphragm, most often on both sides."""
    del states
    facts = _measured(canvas, ["cardiophrenic fat"])
    sides = ["left", "right"] if rng.random() < 0.65 else ["left"]
    pads = {side: _pad(canvas, rng, side) for side in sides}
    return facts | {"fat_ml": pads}


def _measured(canvas: Canvas, signs: list[str]) -> Facts:
    # ``extent`` looks at every other voxel: one more on each side.
    rim = 2 * max(canvas.spacing_mm)
    heart, lungs = extent(canvas, ["heart"], rim), extent(canvas, LOBES, rim)
    if heart is None or lungs is None:
        raise ValueError("the organ map has no heart or no lung")
    lung = np.asarray(where(canvas.organs[lungs], LOBES).any(1), np.bool_)
    first, last = lung.argmax(0), lung.shape[0] - lung[::-1].argmax(0)
    thorax = int((last - first)[lung.any(0)].max())
    masked = where(canvas.organs[heart], ["heart"])
    across = np.flatnonzero(masked.any((1, 2)))
    wide = int(across[-1] - across[0] + 1)
    middle = np.array([(part.start + part.stop) / 2 for part in heart])
    voxel = float(np.prod(canvas.spacing_mm))
    return {
        "measure": round(wide / thorax, 3),
        "unit": "ratio",
        "places": [canvas.place(middle, "heart", wide * canvas.spacing_mm[0])],
        "signs": signs,
        "heart_mm": round(wide * canvas.spacing_mm[0], 1),
        "thorax_mm": round(thorax * canvas.spacing_mm[0], 1),
        "heart_ml": round(float(masked.sum()) * voxel / 1000, 1),
    }


def _pad(canvas: Canvas, rng: np.random.Generator, side: str) -> float:
    """Draw the fat of one cardiophrenic angle and return its volume, mL."""
    heart, around = extent(canvas, ["heart"]), extent(canvas, ["heart"], PAD_MM[1] + 10)
    if heart is None or around is None:
        return 0.0
    view = coarse(canvas, around, 2.2)
    outside = -view.depth(where(view.organs, ["heart"]))
    middle = [(part.start + part.stop) / 2 * mm for part, mm in zip(heart, canvas.spacing_mm, strict=True)]
    half = [(part.stop - part.start) / 2 * mm for part, mm in zip(heart, canvas.spacing_mm, strict=True)]
    i, j, k = ((axis - m) / h for axis, m, h in zip(view.axes, middle, half, strict=True))
    (x, y, z), share = SIDES[side]
    facing = (i * x + j * y + k * z) / (np.sqrt(i * i + j * j + k * k + 1e-3) * float(np.sqrt(x * x + y * y + z * z)))
    thick = share * float(rng.uniform(*PAD_MM)) * (1 + 0.2 * fractal(rng, view.axes, 50.0))
    depth = (thick * smooth_step(facing, 0.45, 0.95) * smooth_step(k, 0.5, -0.1) - np.maximum(outside, 0)).astype(
        np.float32
    )
    lung = view.depth(where(view.organs, LOBES))
    box = view.bounds((depth > -1) & (lung > -4) & (outside > -4))
    if box is None:
        return 0.0
    room = where(canvas.organs[box], LOBES) | ((canvas.hu[box] < -130) & (view.spread(lung, box) > -3))
    alpha = inside(view.spread(depth, box), 1.2) * room
    strands = smooth_step(np.abs(fractal(rng, canvas.mm(box), 12.0, octaves=2)), 0.12, 0.0)
    canvas.put(box, alpha, -102.0 + 55.0 * strands)
    canvas.occupy(box, alpha > 0.3)
    return round(float(alpha.sum(dtype=np.float64)) * float(np.prod(canvas.spacing_mm)) / 1000, 1)
