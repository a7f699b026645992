"""Near the limits of the definitions: what is drawn a little above or below one measures so on the voxels."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from ct_findings import limits, reach_mm, section_mm
from ct_heart_patients import patient
from ct_small_thorax import thorax
from scipy import ndimage

from categories.chest.labels import LOBES, VESSELS, where
from categories.ct_abnormality import (
    atelectasis,
    cardiomegaly,
    consolidation,
    emphysema,
    hiatal_hernia,
    lymphadenopathy,
    mosaic_attenuation,
    nodule,
    opacity,
    pericardial_effusion,
    pleural_effusion,
)
from categories.ct_abnormality.canvas import open_canvas
from categories.ct_abnormality.lungs import survey

SEEDS = range(4)
NOTHING_NEAR = (("pleural_effusion", 3), ("hiatal_hernia", 5))
NEAR = (0.82, 0.92, 1.08, 1.18)
"""Sizes that are asked for, relative to a limit."""
Pair = tuple[float, float]
"""(what the gold says, what the voxels show)."""


@cache
def healthy():
    return thorax()


def lung_canvas():
    canvas = open_canvas(healthy(), np.random.default_rng(1))
    return canvas, canvas.hu.copy(), survey(canvas)


def heart_canvas(seed, ratio=None):
    canvas = open_canvas(patient(seed % 3, ratio), np.random.default_rng(1))
    return canvas, canvas.hu.copy()


def largest_part(mask):
    parts, _ = ndimage.label(mask)
    counts = np.bincount(parts.ravel())
    return parts == 1 + int(np.argmax(counts[1:])) if len(counts) > 1 else mask


def of_nodule(size, rng, seed) -> Pair:
    del seed
    canvas, before, lungs = lung_canvas()
    place, _ = nodule._nodule(canvas, rng, lungs, size)
    near = canvas.box(np.array(place["ijk"]), 0.55 * size)  # without the vessels that run to it
    rise = np.zeros(canvas.hu.shape, np.float32)
    rise[near] = canvas.hu[near] - before[near]
    # a small body fills its voxels in part: their shares add up to its volume
    volume = np.clip(rise / 890, 0, 1).sum() * np.prod(canvas.spacing_mm)
    return place["size_mm"], float(np.cbrt(6 * volume / np.pi))


def of_haze(size, rng, seed) -> Pair:
    del seed
    canvas, before, lungs = lung_canvas()
    place = opacity._haze(canvas, rng, lungs, size, 220.0)
    hazy = ndimage.binary_closing(canvas.hu - before > 110, np.ones((3, 3, 1)))
    return place["size_mm"], section_mm(canvas, hazy)


def of_consolidation(size, rng, seed) -> Pair:
    del seed
    canvas, before, lungs = lung_canvas()
    place = consolidation._consolidation(canvas, rng, lungs, size, halo=False)
    solid = largest_part(canvas.hu - before > 450)
    return place["size_mm"], section_mm(canvas, ndimage.binary_closing(solid, np.ones((5, 5, 1)), iterations=2))


def of_plate(size, rng, seed) -> Pair:
    del seed
    canvas, before, lungs = lung_canvas()
    place = atelectasis._plate(canvas, rng, lungs, size, pull=0.0)
    return place["size_mm"], reach_mm(canvas, largest_part(canvas.hu - before > 400))


def of_holes(size, rng, seed) -> Pair:
    del seed
    canvas, before, _ = lung_canvas()
    gold = emphysema._destroy(canvas, rng, size)["measure"]
    lung = where(canvas.organs, LOBES) & (before < -600)
    return gold, 100 * float((lung & (canvas.hu < -950) & (before >= -950)).sum() / lung.sum())


def of_patchwork(size, rng, seed) -> Pair:
    del seed
    canvas, before, _ = lung_canvas()
    gold = mosaic_attenuation._patchwork(canvas, rng, size, 100.0)["measure"]
    inner = ndimage.binary_erosion(where(canvas.organs, LOBES), iterations=2) & (before < -800)
    return gold, 100 * float((inner & (canvas.hu - before < 30)).sum() / inner.sum())


def of_pleural_fluid(size, rng, seed) -> Pair:
    canvas, before = heart_canvas(seed)
    space = pleural_effusion.cavity(canvas, "right")
    gold = pleural_effusion.layer(canvas, rng, space, size, 0.0)["thickness_mm"]
    lung = where(canvas.organs, [name for name in LOBES if name.endswith("right")])
    rear = lung & (lung.cumsum(1) * canvas.spacing_mm[1] < 20)  # not the wedge that lies in the fissure
    layer = (rear & (canvas.hu > -350) & (before < -350)).sum(1) * canvas.spacing_mm[1]
    return gold, float(np.quantile(layer[layer > 0], 0.9))


def of_pericardial_fluid(size, rng, seed) -> Pair:
    canvas, before = heart_canvas(seed)
    gold = pericardial_effusion._shell(canvas, rng, size, 12.0)["measure"]
    fluid = (np.abs(canvas.hu - 12) < 14) & (np.abs(canvas.hu - before) > 25)
    whole = ndimage.binary_closing(where(canvas.organs, VESSELS), iterations=3)
    away = ndimage.distance_transform_edt(~whole, canvas.spacing_mm)
    return gold, float(np.quantile(away[fluid & (away < 40)], 0.998))


def of_hernia(size, rng, seed) -> Pair:
    canvas, before = heart_canvas(seed)
    gold = hiatal_hernia._hernia(canvas, rng, size, [])["measure"]
    sac = (np.abs(canvas.hu - before) > 25) & ((canvas.hu > -20) | (canvas.hu < -900))
    planes = np.flatnonzero(sac.sum((0, 1)) > 3)
    hiatus = hiatal_hernia.find_hiatus(canvas).at[2]
    return gold, float((planes[-1] + 0.5) * canvas.spacing_mm[2] - hiatus) if len(planes) else 0.0


def of_node(size, rng, seed) -> Pair:
    canvas, before = heart_canvas(seed)
    place = lymphadenopathy._draw(canvas, rng, [size], 0.0, (0.0, 40.0))[0]
    near = canvas.box(np.array(place["ijk"]), 1.5 * size)
    node = np.zeros(canvas.hu.shape, bool)
    node[near] = (canvas.hu[near] > -25) & (np.abs(canvas.hu - before)[near] > 20)
    node = largest_part(node)
    plane = node[:, :, int(node.sum((0, 1)).argmax())]
    if plane.sum() < 4:
        return place["size_mm"], 0.0
    at = np.argwhere(plane) * np.array(canvas.spacing_mm[:2])
    return place["size_mm"], 4 * float(np.sqrt(np.linalg.eigvalsh(np.cov(at.T))[0]))


def of_heart(size, rng, seed) -> Pair:
    canvas, _ = heart_canvas(seed, round(size, 4))
    gold = cardiomegaly.present(canvas, rng, {})["measure"]
    heart = np.flatnonzero(where(canvas.organs, ["heart"]).any((1, 2)))
    lung = where(canvas.organs, LOBES).any(1)
    return gold, float(np.ptp(heart) + 1) / max(np.ptp(np.flatnonzero(row)) + 1 for row in lung.T if row.any())


MEASURES: dict[str, tuple[Callable[..., Pair], float]] = {
    "nodule": (of_nodule, 0.8),
    "opacity": (of_haze, 0.6),
    "consolidation": (of_consolidation, 1.0),
    "atelectasis": (of_plate, 3.0),
    "emphysema": (of_holes, 0.3),
    "mosaic_attenuation": (of_patchwork, 0.8),
    "pleural_effusion": (of_pleural_fluid, 2.0),
    "pericardial_effusion": (of_pericardial_fluid, 1.6),
    "hiatal_hernia": (of_hernia, 2.6),
    "lymphadenopathy": (of_node, 1.2),
    "cardiomegaly": (of_heart, 0.01),
}
"""Key -> (draws one of a size and measures it, how far over a limit its voxels may lie, in the limit's unit).

The patients are of 1 and 1.4 mm voxels in slices 2.5 mm apart: what is measured on them is no finer.
Bronchi and septa are counted, material is there or not: nothing is near their limits. Plaques are as thin as these
voxels: what they measure here is not their length.
"""


def near(key: str) -> list[float]:
    """Return the limits of a label that sizes come near to.

    Neither fluid thinner than 4.8 mm in the pleura nor a stomach less than 9 mm above the hiatus is drawn at all.
    """
    return [limit for limit in limits(key) if limit and (key, limit) not in NOTHING_NEAR]


def asked(key: str) -> list[float]:
    steps = (0.97, 0.99, 1.01, 1.03) if key == "cardiomegaly" else NEAR
    return [round(limit * step, 3) for limit in near(key) for step in steps]


@pytest.mark.parametrize(("key", "size"), [(key, size) for key in MEASURES for size in asked(key)])
@pytest.mark.parametrize("seed", SEEDS)
def test_gold_and_voxels_are_on_one_side_of_each_limit(key, size, seed):
    measure, blur = MEASURES[key]
    gold, seen = measure(size, np.random.default_rng(seed), seed)
    for limit in near(key):
        assert seen >= limit - blur if gold >= limit else seen <= limit + blur


@pytest.mark.parametrize("key", MEASURES)
def test_sizes_near_a_limit_come_on_both_of_its_sides(key):
    measure, _ = MEASURES[key]
    golds = [measure(size, np.random.default_rng(seed), seed)[0] for size in asked(key) for seed in SEEDS[:2]]
    for limit in near(key):
        assert min(golds) < limit < max(golds)
