"""Calcium in the wall of the thoracic aorta and of the great arteries that leave it.

Look-alikes: calcified lymph nodes and a calcified arterial ligament, which touch the aorta's fat but not its wall.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from categories.chest.labels import BONES, where
from categories.ct_abnormality.calcium import SEEN_HU, SPECK_HU, number_of_plaques, plaque, visible
from categories.ct_abnormality.canvas import Canvas, Facts, States
from categories.ct_abnormality.heart_shapes import Coarse, Points, coarse, curve, extent, length_mm
from categories.ct_abnormality.lung_texture import distance, fine_axes, fractal, inside, pool

BRANCHES = ("brachiocephalic_trunk", "subclavian_artery_left", "common_carotid_artery_left")
PEAK_HU = (380.0, 1150.0)
SITES = ("arch", "descending", "branch")


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw curved plaques on the wall, on the arch nearly always, and elsewhere."""
    del states
    count = number_of_plaques(canvas, rng)
    sites = [str(site) for site in rng.choice(SITES, count, p=[0.45, 0.38, 0.17])]
    sites[0] = "arch"
    surface = _Aorta(canvas)
    places: list[Facts] = []
    for number, site in enumerate(sites):
        wanted = float((7.0 if number == 0 else 2.5) + 12.0 * rng.random() ** 2)
        places += _lay(canvas, rng, surface, site, wanted, float(rng.uniform(0.8, 1.6)))
    return _facts(places, ["curved along the wall", "several sites"])


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw one speck on the wall."""
    del states
    site = str(rng.choice(SITES[:2]))
    return _facts(_lay(canvas, rng, _Aorta(canvas), site, float(rng.uniform(1.0, 2.0)), 0.7, SPECK_HU), ["one speck"])


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw calcified nodes beside the aorta and, at times, a calcified arterial ligament."""
    del states
    places: list[Facts] = []
    surface = _Aorta(canvas)
    for _ in range(int(rng.choice([1, 2, 3], p=[0.45, 0.35, 0.2]))):
        places += _node(canvas, rng, surface)
    if rng.random() < 0.5 or not places:
        places += _ligament(canvas, rng, surface)
    return _facts(places, ["off the wall"]) | {"measure": 0.0}


def _facts(places: list[Facts], signs: list[str]) -> Facts:
    total = sum(place["length_mm"] for place in places)
    return {"measure": round(total, 1), "unit": "mm", "places": places, "signs": signs}


class _Aorta:
    """The thoracic aorta and its branches, coarse, with the depth below their outer surface."""

    def __init__(self, canvas: Canvas) -> None:
        lungs = extent(canvas, ["lung_lower_lobe_left", "lung_lower_lobe_right"])
        box = extent(canvas, ["aorta", *BRANCHES], 14.0)
        if box is None:
            raise ValueError("the organ map has no aorta")
        low = max(box[2].start, lungs[2].start if lungs else 0)
        self.view: Coarse = coarse(canvas, (box[0], box[1], slice(low, box[2].stop)), 1.5)
        self.aorta = where(self.view.organs, ["aorta"])
        self.depth = self.view.depth(self.aorta | where(self.view.organs, BRANCHES))
        planes = np.flatnonzero(self.aorta.any((0, 1)))
        k = self.view.axes[2].ravel()
        self.top = float(k[planes[-1]]) if len(planes) else float(k[-1])

    def point(self, index: NDArray[np.int_]) -> NDArray[np.float64]:
        """Return the position of a coarse point, mm."""
        return np.array([axis.ravel()[n] for axis, n in zip(self.view.axes, index, strict=True)])

    def outward(self, index: NDArray[np.int_]) -> NDArray[np.float64]:
        """Return the unit normal of the surface near a coarse point, pointing out of the vessel."""
        size = np.array(self.depth.shape)
        slope = np.zeros(3)
        for axis in range(3):
            step = np.eye(3, dtype=int)[axis]
            ahead, behind = np.clip(index + step, 0, size - 1), np.clip(index - step, 0, size - 1)
            slope[axis] = (self.depth[tuple(behind)] - self.depth[tuple(ahead)]) / self.view.spacing_mm[axis]
        return slope / max(float(np.sqrt((slope**2).sum())), 1e-6)

    def sites(self, site: str) -> NDArray[np.int_]:
        """Return the coarse points on the wall of a part."""
        wall = np.abs(self.depth - 0.6) < 0.9
        k = self.view.axes[2]
        if site == "branch":
            return np.argwhere(wall & where(self.view.organs, BRANCHES) & (k < self.top + 45))
        if site == "arch":
            return np.argwhere(wall & self.aorta & (k > self.top - 28))
        j = self.view.axes[1]
        back = np.argwhere(self.aorta)[:, 1]
        middle = j.ravel()[int((back.min() + back.max()) / 2)]
        return np.argwhere(wall & self.aorta & (k < self.top - 30) & (j < middle))


def _lay(
    canvas: Canvas,
    rng: np.random.Generator,
    surface: _Aorta,
    site: str,
    wanted_mm: float,
    radius_mm: float,
    seen_hu: float = SEEN_HU,
) -> list[Facts]:
    """Walk along the wall from a random point and lay calcium on the way."""
    spots = surface.sites(site)
    if not len(spots):
        spots = surface.sites("arch")
    if not len(spots):
        return []
    line = _walk(rng, surface, spots[rng.integers(len(spots))], wanted_mm)
    peak = float(rng.uniform(*PEAK_HU))
    box, _, core = plaque(canvas, rng, line, radius_mm, peak, seen_hu)
    canvas.occupy(box, core)
    long = round(length_mm(line) + 2 * radius_mm, 1)
    return [canvas.place(line.mean(0) / canvas.spacing_mm, site, long, length_mm=long, peak_hu=round(peak))]


def _walk(rng: np.random.Generator, surface: _Aorta, start: NDArray[np.int_], wanted_mm: float) -> Points:
    """Return a course on the inner side of the wall: mostly round the vessel, a little along it."""
    index, point = start, surface.point(start)
    normal = surface.outward(index)
    along = np.array([0.0, 0.0, 1.0])
    way = np.cross(normal, along) * rng.choice([-1.0, 1.0]) + along * rng.uniform(-0.45, 0.45)
    origin = np.array([axis.ravel()[0] for axis in surface.view.axes])
    points = [point]
    for _ in range(int(wanted_mm / 1.5) + 1):
        way = way - normal * float((way * normal).sum())
        way = way / max(float(np.sqrt((way**2).sum())), 1e-6)
        point = point + 1.5 * way
        size = np.array(surface.depth.shape)
        index = np.clip(np.round((point - origin) / surface.view.spacing_mm).astype(int), 0, size - 1)
        normal = surface.outward(index)
        # Back to half a millimetre below the surface.
        point = point + normal * float(np.clip(surface.depth[tuple(index)] - 0.6, -1.5, 1.5)) * 0.6
        points.append(point)
    line = np.array(points, np.float64)
    return curve(line, 1.0) if wanted_mm > 3 else line[:2]


def _node(canvas: Canvas, rng: np.random.Generator, surface: _Aorta) -> list[Facts]:
    """Draw a small node with calcium inside, in soft tissue or fat 6 mm and more off the wall."""
    apart = -surface.depth
    unnamed = where(surface.view.organs, ["body", "fat", "background"]) & (surface.view.hu > -160)
    bone = (surface.view.hu > 100) | where(surface.view.organs, BONES)
    unnamed &= ~ndimage.binary_dilation(bone, iterations=3)
    spots = np.argwhere((apart > 6.5) & (apart < 12.0) & unnamed & (surface.view.axes[2] > surface.top - 60))
    spots = spots[surface.view.axes[2].ravel()[spots[:, 2]] < surface.top - 4]
    if not len(spots):
        return []
    centre = surface.point(spots[rng.integers(len(spots))])
    radius = float(rng.uniform(2.4, 3.8))
    box = canvas.box(centre / canvas.spacing_mm, radius + 2)
    fine = (2, 2, 3)
    axes = fine_axes(canvas, box, fine)
    away = distance(axes, centre, np.array([1.0, rng.uniform(0.8, 1.2), rng.uniform(0.9, 1.4)]))
    away = away + 0.5 * fractal(rng, axes, 4.0, octaves=2)
    canvas.put(box, pool(inside(radius - away, 0.7), fine), 40.0)
    eggshell = rng.random() < 0.35
    core = inside(0.9 - np.abs(away - radius + 1.1), 0.6) if eggshell else inside(radius * rng.uniform(0.6, 0.9) - away)
    peak = float(rng.uniform(*PEAK_HU))
    alpha = visible(canvas.hu[box], pool(core, fine), peak)
    canvas.put(box, alpha, peak)
    canvas.occupy(box, alpha > 0.3)
    return [canvas.place(centre / canvas.spacing_mm, "calcified node", 2 * radius, peak_hu=round(peak), length_mm=0.0)]


def _ligament(canvas: Canvas, rng: np.random.Generator, surface: _Aorta) -> list[Facts]:
    """Draw calcium of the arterial ligament: a short bar somewhere in the window between arch and pulmonary artery."""
    spots = surface.sites("arch")
    if not len(spots):
        return []
    points = np.array([surface.point(spot) for spot in spots])
    low = points[points[:, 2] < surface.top - 16]
    low = low if len(low) else points
    # From the arch's underside, left of its middle, where the left subclavian artery leaves it or before.
    left, rear, front = (np.quantile(low[:, axis], share) for axis, share in ((0, 0.55), (1, 0.25), (1, 0.75)))
    under = low[(low[:, 0] > left) & (low[:, 1] > rear) & (low[:, 1] < front)]
    under = under if len(under) else low
    start = under[rng.integers(len(under))] + np.array([rng.uniform(1.0, 4.0), rng.uniform(-2.0, 2.0), 0.0])
    start = start - np.array([0.0, 0.0, float(rng.uniform(5.0, 9.0))])
    # It runs down and forwards to the left pulmonary artery.
    way = np.array([rng.uniform(-0.1, 0.7), rng.uniform(0.1, 0.8), -rng.uniform(0.5, 1.0)])
    line = start + np.linspace(0, float(rng.uniform(2.5, 8.0)), 5)[:, None] * way / np.sqrt(way @ way)
    peak = float(rng.uniform(*PEAK_HU))
    box, _, core = plaque(canvas, rng, np.round(line, 6), float(rng.uniform(0.7, 1.4)), peak)
    canvas.occupy(box, core)
    long = round(length_mm(line) + 2, 1)
    spot = line.mean(0) / canvas.spacing_mm
    return [canvas.place(spot, "arterial ligament", long, peak_hu=round(peak), length_mm=long)]
