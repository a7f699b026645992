"""Bronchiectasis: bronchi wider than their artery (signet ring) that do not taper and come close to the pleura."""

import numpy as np

from categories.chest.labels import LOBES
from categories.ct_abnormality.canvas import Canvas, Facts, States
from categories.ct_abnormality.lung_bronchi import Route, beside, draw_artery, draw_bronchus, mark, routes, smooth
from categories.ct_abnormality.lung_strokes import Place, Point, to_ijk
from categories.ct_abnormality.lungs import Lungs, survey

YES_RATIO, NO_RATIO = (1.45, 2.1), (0.82, 0.95)
YES_COUNT, GREY_COUNT = (5, 9), (1, 2)
PLEURA_MM, FAR_MM = 6.0, 22.0
"""How close to the pleura wide bronchi come, and healthy ones do not."""
STEP_MM = 4.0
WALL_SHARE = 0.3
"""Wall over lumen radius: wall over outer diameter is then 0.12, as in the healthy."""


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Widen five to nine bronchi of one or two lobes."""
    del states
    lungs = survey(canvas)
    lobes = {str(name) for name in rng.choice(LOBES, int(rng.integers(1, 3)), replace=False)}
    places = _widen(canvas, rng, lungs, int(rng.integers(*YES_COUNT, endpoint=True)), lobes)
    return _facts(places, ["signet ring", "no taper", "bronchi near the pleura"])


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Widen one or two bronchi."""
    del states
    places = _widen(canvas, rng, survey(canvas), int(rng.integers(*GREY_COUNT, endpoint=True)), None)
    return _facts(places, ["single wide bronchus"])


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw stout bronchi beside stouter arteries: they taper and end far from the pleura."""
    del states
    lungs = survey(canvas)
    places = []
    for route in routes(canvas, rng, lungs, int(rng.integers(4, 8)), reach_mm=28):
        points = smooth(route.points, STEP_MM)
        while len(points) > 3 and lungs.depth_mm[lungs.at(to_ijk(canvas, points[-1]))] < FAR_MM:
            points.pop()
        artery = float(rng.uniform(2.1, 3.0))
        ratio = float(rng.uniform(*NO_RATIO))
        taper = np.linspace(1, rng.uniform(0.5, 0.65), len(points))
        _draw(canvas, rng, points, [float(ratio * artery * t) for t in taper], [float(artery * t) for t in taper])
        places.append(_place(canvas, points, "bronchus beside its artery", ratio, artery))
    return {**_facts(places, ["narrower than the artery", "tapers"]), "measure": 0.0}


def _facts(places: list[Place], signs: list[str]) -> Facts:
    return {
        "measure": float(len(places)),
        "unit": "bronchi",
        "places": places,
        "signs": signs,
    }


def _widen(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, count: int, lobes: set[str] | None) -> list[Place]:
    places = []
    for route in routes(canvas, rng, lungs, count, reach_mm=32, lobes=lobes):
        points = _to_pleura(canvas, rng, lungs, route)
        artery = float(np.clip(route.artery_mm or rng.uniform(1.0, 1.5), 1.0, 1.7))
        ratio = float(rng.uniform(*YES_RATIO))
        # Cylindrical to varicose: the bore varies along the way but does not fall.
        waves = 1 + float(rng.uniform(0.02, 0.16)) * rng.uniform(-1, 1, len(points))
        waves[0] = max(waves[0] * 0.85, 0.8)
        lumen = [float(max(1.32, ratio * w) * artery) for w in waves]
        taper = np.linspace(1, 0.75, len(points))
        _draw(canvas, rng, points, lumen, [float(artery * t) for t in taper])
        gap = float(lungs.depth_mm[lungs.at(to_ijk(canvas, points[-1]))])
        places.append({**_place(canvas, points, "wide bronchus", ratio, artery), "pleural_gap_mm": round(gap, 1)})
    return places


def _place(canvas: Canvas, points: list[Point], what: str, ratio: float, artery: float) -> Place:
    middle = to_ijk(canvas, points[len(points) // 2])
    return canvas.place(middle, what, 2 * ratio * artery, ratio=round(ratio, 3), artery_mm=round(2 * artery, 2))


def _to_pleura(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, route: Route) -> list[Point]:
    """Return a route and its way on, at most 30 mm, until close below the pleura."""
    points = list(route.points)
    way = points[-1] - points[-2]
    way = way / max(float(np.sqrt(way @ way)), 1e-6)
    for _ in range(8):
        here = points[-1]
        if lungs.depth_mm[lungs.at(to_ijk(canvas, here))] < PLEURA_MM + 3:
            break
        way = way + 0.18 * rng.standard_normal(3) * np.array([1, 1, 0.5])
        way = way / np.sqrt(way @ way)
        points.append(here + way * STEP_MM)
    return smooth(points, STEP_MM)


def _draw(
    canvas: Canvas, rng: np.random.Generator, points: list[Point], lumen: list[float], artery: list[float]
) -> None:
    """Draw an artery and the bronchus that touches it."""
    walls = [max(0.5, WALL_SHARE * r) for r in lumen]
    gaps = [r + w + a * 0.85 for r, w, a in zip(lumen, walls, artery, strict=True)]
    draw_artery(canvas, beside(rng, points, gaps), artery)
    draw_bronchus(canvas, points, lumen, walls)
    mark(canvas, points, max(lumen) + 3)
