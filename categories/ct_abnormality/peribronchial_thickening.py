"""Peribronchial thickening: bronchi of normal bore with thick walls, in a cuff that blurs the artery beside them."""

import numpy as np

from categories.ct_abnormality.canvas import Canvas, Facts, States
from categories.ct_abnormality.lung_bronchi import Route, beside, draw_artery, draw_bronchus, mark, routes, smooth
from categories.ct_abnormality.lung_strokes import Place, around, polyline_depth, to_ijk
from categories.ct_abnormality.lung_texture import fine_axes, smooth_step
from categories.ct_abnormality.lungs import lobe_map, survey

YES_SHARE, NO_SHARE = (0.29, 0.36), (0.14, 0.18)
"""Wall over outer diameter."""
YES_COUNT, GREY_COUNT = (9, 16), (1, 3)
LUMEN_MM = (0.9, 1.9)
CUFF_HU, CUFF_MM = 230.0, 3.5


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Thicken the walls of nine to sixteen bronchi."""
    del states
    places = _thicken(canvas, rng, int(rng.integers(*YES_COUNT, endpoint=True)))
    return _facts(places, ["thick rings and tram lines", "cuff that blurs the artery"])


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Thicken the walls of one to three bronchi."""
    del states
    return _facts(_thicken(canvas, rng, int(rng.integers(*GREY_COUNT, endpoint=True))), ["thick ring"])


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Lay arteries against bronchi of normal wall: one side of the ring looks thick, the other is thin."""
    del states
    places = []
    for route in routes(canvas, rng, survey(canvas), int(rng.integers(8, 14)), reach_mm=18):
        share = float(rng.uniform(*NO_SHARE))
        lumen = [float(np.clip(r, *LUMEN_MM)) for r in route.radii]
        points = smooth(route.points, 4)
        bore = [float(r) for r in np.interp(np.linspace(0, 1, len(points)), np.linspace(0, 1, len(lumen)), lumen)]
        walls = [_wall(r, share) for r in bore]
        artery = [1.15 * (r + w) for r, w in zip(bore, walls, strict=True)]
        gaps = [r + 0.6 * w + a * 0.8 for r, w, a in zip(bore, walls, artery, strict=True)]
        draw_artery(canvas, beside(rng, points, gaps), artery)
        draw_bronchus(canvas, points, bore, walls)
        mark(canvas, points, max(bore) + 3)
        places.append(
            canvas.place(to_ijk(canvas, route.middle), "artery against a bronchus", 2 * bore[0], share=round(share, 3))
        )
    return {**_facts(places, ["thin wall away from the artery"]), "measure": 0.0}


def _facts(places: list[Place], signs: list[str]) -> Facts:
    return {"measure": float(len(places)), "unit": "bronchi", "places": places, "signs": signs}


def _wall(lumen: float, share: float) -> float:
    """Return the thickness of a wall that is this share of the outer diameter."""
    return 2 * lumen * share / (1 - 2 * share)


def _thicken(canvas: Canvas, rng: np.random.Generator, count: int) -> list[Place]:
    return [_one(canvas, rng, route) for route in routes(canvas, rng, survey(canvas), count, reach_mm=22)]


def _one(canvas: Canvas, rng: np.random.Generator, route: Route) -> Place:
    share = float(rng.uniform(*YES_SHARE))
    points = smooth(route.points, 4)
    lumen = np.interp(
        np.linspace(0, 1, len(points)), np.linspace(0, 1, len(route.radii)), np.clip(route.radii, *LUMEN_MM)
    )
    bore = [float(r * f) for r, f in zip(lumen, rng.uniform(0.9, 1.0, len(points)), strict=True)]
    # A wall is thick by patches; its ends run out.
    walls = [_wall(r, share) * float(f) for r, f in zip(bore, rng.uniform(0.9, 1.15, len(points)), strict=True)]
    _cuff(canvas, points, [r + w for r, w in zip(bore, walls, strict=True)])
    if route.artery_mm == 0:
        artery = [1.2 * r + 0.2 for r in bore]
        gaps = [r + w + 0.7 * a for r, w, a in zip(bore, walls, artery, strict=True)]
        draw_artery(canvas, beside(rng, points, gaps), artery)
    draw_bronchus(canvas, points, bore, walls)
    mark(canvas, points, max(bore) + max(walls) + 2)
    wall = round(float(np.mean(walls)), 2)
    return canvas.place(
        to_ijk(canvas, route.middle),
        "thick bronchial wall",
        2 * bore[0],
        share=round(share, 3),
        wall_mm=wall,
        lobe=route.lobe,
    )


def _cuff(canvas: Canvas, points: list[np.ndarray], outer: list[float]) -> None:
    """Add a haze round a bronchus and its artery that fades within a few millimetres."""
    box = around(canvas, points, max(outer) + CUFF_MM + 2)
    away = -polyline_depth(fine_axes(canvas, box, (1, 1, 1)), points, outer, reach_mm=CUFF_MM + 1)
    airy = smooth_step(canvas.hu[box], -250, -700) * ((lobe_map(canvas, box) > 0) & ~canvas.occupied[box])
    canvas.add(box, smooth_step(away, CUFF_MM, 0) * airy * CUFF_HU)
