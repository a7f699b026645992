"""Findings of lung and airways: what is drawn obeys the definitions, lies where it should, and can be measured."""

import itertools
from functools import cache, lru_cache
from importlib import import_module

import numpy as np
import pytest
from ct_findings import KINDS, check_forms, check_repeats, draw_on, limits
from ct_small_thorax import LUNG_HU, ROOTS, SPACING, thorax
from scipy import ndimage

from categories.chest.labels import LOBES, ORGANS, where
from categories.chest.patient import Patient, Tree
from categories.ct_abnormality.canvas import open_canvas
from categories.ct_abnormality.lungs import survey

KEYS = (
    "emphysema",
    "atelectasis",
    "nodule",
    "opacity",
    "mosaic_attenuation",
    "peribronchial_thickening",
    "consolidation",
    "bronchiectasis",
    "septal_thickening",
)
SEEDS = range(4)
ML = float(np.prod(SPACING)) / 1000


@cache
def patient():
    return thorax()


@lru_cache(maxsize=6)
def drawn(key, kind, seed):
    """Return (canvas, HU before, facts)."""
    return draw_on(patient(), key, kind, seed, {} if seed % 2 else {"opacity": "present"})


def lung_of(organs):
    return where(organs, LOBES)


def around(place, half_mm):
    centre = np.array(place["ijk"])
    half = np.broadcast_to(half_mm, 3) / np.array(SPACING)
    return tuple(
        slice(max(0, int(c - h)), min(n, int(c + h) + 2))
        for c, h, n in zip(centre, half, patient().hu.shape, strict=True)
    )


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_facts_keep_to_the_definitions(key, seed):
    check_forms(drawn, key, seed)
    for kind in KINDS:
        canvas, before, _ = drawn(key, kind, seed)
        assert canvas.hu.min() > -1100 and np.abs(canvas.hu - before).max() < 1800


@pytest.mark.parametrize("key", KEYS)
def test_same_numbers_give_the_same_voxels(key):
    check_repeats(patient(), key, {"opacity": "present"})


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("kind", ["present", "lookalike", "grey"])
def test_coarse_grid_without_trees(key, kind):
    """A small-scale grid, and a patient of whom no bronchus or vessel is known."""
    full = patient()
    none = Tree(**{name: getattr(full.airways, name)[:0] for name in Tree.__dataclass_fields__})
    coarse = Patient(
        **{
            **vars(full),
            "hu": full.hu[::2, ::2, ::2],
            "organs": full.organs[::2, ::2, ::2],
            "affine": full.affine @ np.diag([2, 2, 2, 1.0]),
            "airways": none,
            "vessels": none,
        }
    )
    canvas = open_canvas(coarse, np.random.default_rng(1))
    before = canvas.hu.copy()
    facts = getattr(import_module(f"categories.ct_abnormality.{key}"), kind)(canvas, np.random.default_rng(3), {})
    assert not np.array_equal(canvas.hu, before)
    yes, no = limits(key)
    assert facts["measure"] >= yes if kind == "present" else facts["measure"] <= (no if kind == "lookalike" else yes)


@pytest.mark.parametrize("key", KEYS)
def test_nothing_outside_the_lungs_changes(key):
    """But for what a pull moves, a fat pad or a hump of the diaphragm, and the rim that lung and wall share."""
    for seed in SEEDS:
        canvas, before, _ = drawn(key, "present", seed)
        far = ~ndimage.binary_dilation(lung_of(patient().organs), iterations=4)
        if key == "atelectasis":
            far &= ~ndimage.binary_dilation(lung_of(patient().organs), iterations=12)
        assert np.array_equal(canvas.hu[far], before[far])


# Nodule


def elongation(canvas, before, place):
    """Return the height of what was added at a place, over its diameter in the slice of the place."""
    box = around(place, (14, 14, 24))
    labels, _ = ndimage.label(canvas.hu[box] - before[box] > 450)
    i, j, k = (round(c) - part.start for c, part in zip(place["ijk"], box, strict=True))
    near = labels[max(0, i - 3) : i + 4, max(0, j - 3) : j + 4, k]
    body = labels == np.bincount(near[near > 0]).argmax()
    area = body[:, :, k].sum() * SPACING[0] * SPACING[1]
    return float(np.flatnonzero(body.any((0, 1))).size * SPACING[2] / np.sqrt(4 * area / np.pi))


@pytest.mark.parametrize("seed", SEEDS)
def test_nodules_are_round_and_upright_vessels_long(seed):
    canvas, before, facts = drawn("nodule", "present", seed)
    largest = max(facts["places"], key=lambda p: p["size_mm"])
    assert elongation(canvas, before, largest) < 1.9
    added = (canvas.hu - before)[around(largest, largest["size_mm"] / 2)] > 450
    sphere = 4 / 3 * np.pi * (largest["size_mm"] / 2) ** 3 / 1000
    assert 0.4 * sphere < added.sum() * ML < 1.9 * sphere
    canvas, before, facts = drawn("nodule", "lookalike", seed)
    assert min(elongation(canvas, before, place) for place in facts["places"]) > 2.1


def test_nodules_grow_more_visible_with_size():
    grey = [drawn("nodule", "grey", seed)[2]["places"][0] for seed in SEEDS]
    yes = [drawn("nodule", "present", seed)[2]["places"][0] for seed in SEEDS]
    assert max(p["volume_ml"] for p in grey) < min(p["volume_ml"] for p in yes)


# Consolidation and opacity


@pytest.mark.parametrize("seed", SEEDS)
def test_consolidation_is_solid_lung_with_air_in_it(seed):
    canvas, before, facts = drawn("consolidation", "present", seed)
    largest = facts["places"][0]
    box = around(largest, largest["size_mm"])
    lung = lung_of(canvas.organs)[box]
    solid = lung & (canvas.hu[box] > -100) & (before[box] < -600)
    closed = ndimage.binary_closing(np.pad(solid, 6), iterations=5)[6:-6, 6:-6, 6:-6]
    air = closed & (canvas.hu[box] < -600) & lung & ndimage.binary_dilation(solid, iterations=3)
    assert solid.sum() * ML > 4
    assert 5 < canvas.hu[box][solid & (canvas.hu[box] > 0)].mean() < 60
    assert air.sum() * ML > 0.1
    assert largest["lobe"] in LOBES


@pytest.mark.parametrize("seed", SEEDS)
def test_what_looks_consolidated_is_fat_or_organ(seed):
    canvas, before, facts = drawn("consolidation", "lookalike", seed)
    solid = (canvas.hu > -200) & (before < -600)
    assert solid.sum() * ML > 1
    still_lung = lung_of(canvas.organs) & solid & (canvas.hu > 0)
    assert still_lung.sum() < 0.12 * solid.sum()
    place = facts["places"][0]
    low = place["ijk"][2] < 0.45 * patient().hu.shape[2]
    assert low, "heart's angle and diaphragm are low in the chest"
    if "fat" in place["what"]:
        assert -125 < np.median(canvas.hu[solid]) < -85


@pytest.mark.parametrize("seed", SEEDS)
def test_haze_leaves_vessels_as_they_are(seed):
    canvas, before, facts = drawn("opacity", "present", seed)
    rise = canvas.hu - before
    hazy = rise > 90
    assert hazy.sum() * ML > 3
    assert 100 < np.median(rise[hazy]) < 340
    vessels = ndimage.binary_dilation(hazy, iterations=2) & (before > -100)
    assert np.abs(rise[vessels]).max(initial=0) < 25
    assert -780 < np.median(canvas.hu[hazy]) < -450
    assert facts["places"][0]["contrast_hu"] > 125


@pytest.mark.parametrize("seed", SEEDS)
def test_dependent_density_is_posterior_on_both_sides_and_has_no_border(seed):
    canvas, before, _ = drawn("opacity", "lookalike", seed)
    rise = canvas.hu - before
    dense = rise > 60
    posterior = patient().ras_mm(np.argwhere(dense).astype(float))[:, 1]
    lungs = patient().ras_mm(np.argwhere(lung_of(patient().organs)).astype(float))[:, 1]
    assert posterior.max() < np.quantile(lungs, 0.5), "RAS+: the back has the smaller second coordinate"
    left = patient().ras_mm(np.argwhere(dense).astype(float))[:, 0] < 0
    assert 0.25 < left.mean() < 0.75
    smooth = ndimage.gaussian_filter(np.where(before < -700, rise, 0), 1)
    inner = ndimage.binary_erosion((before < -700) & lung_of(patient().organs), iterations=3)
    assert np.quantile(np.abs(np.diff(smooth, axis=1))[inner[:, 1:]], 0.9999) < 45, "HU per voxel"


@pytest.mark.parametrize("kind", ["present", "grey"])
def test_haze_is_graded_by_size_and_contrast(kind):
    forms = [drawn("opacity", kind, seed)[2] for seed in SEEDS]
    product = [form["places"][0]["contrast_hu"] * form["measure"] for form in forms]
    assert min(product) > 3000 if kind == "present" else max(product) < 3750


# Emphysema and mosaic attenuation


def low_share(canvas):
    lung = lung_of(canvas.organs)
    return 100 * float((canvas.hu[lung] < -950).mean())


@pytest.mark.parametrize("seed", SEEDS)
def test_low_attenuation_area_tells_emphysema(seed):
    base = low_share(open_canvas(patient(), np.random.default_rng(1)))
    canvas, before, facts = drawn("emphysema", "present", seed)
    assert low_share(canvas) - base > 10
    dark = (canvas.hu < -950) & (before > -950)
    k = np.argwhere(dark)[:, 2] / patient().hu.shape[2]
    whole = np.argwhere(lung_of(patient().organs))[:, 2] / patient().hu.shape[2]
    assert k.mean() > whole.mean(), "the upper lobes have more"
    assert all(place["what"] == "bulla" for place in facts["places"])
    vessels = before > -200
    assert np.abs(canvas.hu - before)[vessels & lung_of(patient().organs)].mean() < 30
    assert low_share(drawn("emphysema", "lookalike", seed)[0]) - base < 3


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cyst_has_a_wall_and_a_hole_has_none(seed):
    canvas, before, facts = drawn("emphysema", "lookalike", seed)
    for place in facts["places"]:
        box = around(place, place["size_mm"] / 2 + 3)
        hole = canvas.hu[box] < -940
        rim = ndimage.binary_dilation(hole, iterations=2) & ~hole
        assert np.quantile(canvas.hu[box][rim], 0.6) > -800
    canvas, before, _ = drawn("emphysema", "grey", seed)
    hole = (canvas.hu < -940) & (before > -940)
    rim = ndimage.binary_dilation(hole, iterations=2) & ~hole & (before < -700)
    assert np.quantile(canvas.hu[rim] - before[rim], 0.95) < 10


def test_the_body_is_inflated_alike_without_emphysema():
    module = import_module("categories.ct_abnormality.emphysema")
    values = {
        s: [module.body(np.random.default_rng(n), s)["inflation"] for n in range(50)]
        for s in ("present", "lookalike", "grey")
    }
    assert all(0 <= v <= 1 for v in itertools.chain(*values.values()))
    assert max(values["lookalike"]) > min(values["present"]), "a low diaphragm alone tells nothing"


@pytest.mark.parametrize("seed", SEEDS)
def test_mosaic_has_two_levels_and_thin_vessels_where_dark(seed):
    canvas, before, facts = drawn("mosaic_attenuation", "present", seed)
    inner = ndimage.binary_erosion(lung_of(patient().organs), iterations=2) & (before < -800)
    rise = (canvas.hu - before)[inner]
    dark, bright = rise < 0, rise > 0.4 * facts["contrast_hu"]
    assert 0.2 < dark.mean() < 0.6
    assert dark.mean() + bright.mean() > 0.85, "few voxels between the levels"
    assert rise[bright].mean() - rise[dark].mean() > 55
    vessel = (before > -720) & (before < -300) & lung_of(patient().organs)
    level = ndimage.gaussian_filter(np.where(inner, canvas.hu - before, 0), 3)
    in_dark, in_bright = vessel & (level < -0.02 * facts["contrast_hu"]), vessel & (level > 0.4 * facts["contrast_hu"])
    thinner = (canvas.hu - before)[in_dark].mean() - np.median(rise[dark])
    same = (canvas.hu - before)[in_bright].mean() - np.median(rise[bright])
    assert thinner < -60 and thinner < same - 20


@pytest.mark.parametrize("seed", SEEDS)
def test_expiration_has_a_gradient_but_few_borders(seed):
    def borders(kind):
        canvas, before, _ = drawn("mosaic_attenuation", kind, seed)
        inner = ndimage.binary_erosion(lung_of(patient().organs) & (before < -800), iterations=3)
        return float((np.abs(np.diff(canvas.hu - before, axis=1))[inner[:, 1:]] > 12).mean())

    assert borders("lookalike") < 0.25 * borders("present")


# Atelectasis


@pytest.mark.parametrize("seed", SEEDS)
def test_atelectasis_draws_the_lung_towards_it(seed):
    canvas, before, facts = drawn("atelectasis", "present", seed)
    assert all(place["pull_mm"] >= 4 for place in facts["places"])
    place = facts["places"][0]
    dense = (canvas.hu > -300) & (before < -600) & lung_of(canvas.organs)
    assert dense.sum() * ML > 0.4
    assert abs(np.argwhere(dense)[:, 2].mean() - np.mean([p["ijk"][2] for p in facts["places"]])) < 25
    texture = np.abs(canvas.hu - before)
    near = np.zeros_like(dense)
    near[around(place, 30)] = True
    pulled = near & ~dense & (before < -700) & lung_of(patient().organs)
    assert np.median(texture[pulled]) > 1, "the parenchyma about it has moved"


@pytest.mark.parametrize("seed", SEEDS)
def test_an_accessory_fissure_is_a_hairline_and_pulls_nothing(seed):
    canvas, before, _ = drawn("atelectasis", "lookalike", seed)
    assert np.array_equal(canvas.organs, patient().organs)
    line = (canvas.hu - before) > 250
    assert line.any()
    assert (ndimage.distance_transform_edt(line, sampling=SPACING)).max() < 3.0


# Bronchi


def rays(canvas, place, count=24, reach=9.0):
    """Return (lumen, wall) lengths in mm along rays in the axial slice of a place."""
    i, j, k = place["ijk"]
    steps = np.arange(0, reach, 0.2)
    lumens, walls = [], []
    for angle in np.linspace(0, 2 * np.pi, count, endpoint=False):
        at = [i + np.cos(angle) * steps / SPACING[0], j + np.sin(angle) * steps / SPACING[1], np.full(len(steps), k)]
        line = ndimage.map_coordinates(canvas.hu, at, order=1)
        solid = line > -550
        first = int(np.argmax(solid)) if solid.any() else len(line)
        rest = ~solid[first:]
        lumens.append(first * 0.2)
        walls.append((int(np.argmax(rest)) if rest.any() else len(rest)) * 0.2)
    return np.array(lumens), np.array(walls)


@pytest.mark.parametrize("seed", SEEDS)
def test_walls_are_thick_all_round_and_arteries_on_one_side(seed):
    thick = [np.quantile(rays(drawn("peribronchial_thickening", "present", seed)[0], p)[1], 0.3)
             for p in drawn("peribronchial_thickening", "present", seed)[2]["places"]]  # fmt: skip
    thin = [np.quantile(rays(drawn("peribronchial_thickening", "lookalike", seed)[0], p)[1], 0.3)
            for p in drawn("peribronchial_thickening", "lookalike", seed)[2]["places"]]  # fmt: skip
    assert np.median(thick) > 1.6 * max(np.median(thin), 0.4)
    for place in drawn("peribronchial_thickening", "present", seed)[2]["places"]:
        assert place["share"] >= 0.28
    for place in drawn("peribronchial_thickening", "lookalike", seed)[2]["places"]:
        assert place["share"] <= 0.19


@pytest.mark.parametrize("seed", SEEDS)
def test_wide_bronchi_do_not_taper_and_reach_the_pleura(seed):
    lungs = survey(open_canvas(patient(), np.random.default_rng(1)))
    depth = lungs.spread(lungs.depth_mm, lungs.box)

    def air_near_pleura(kind):
        canvas, before, _ = drawn("bronchiectasis", kind, seed)
        new = ((canvas.hu < -940) & (before > -940))[lungs.box]
        at = np.argwhere(new & (depth > 4) & (depth < 18)) + [part.start for part in lungs.box]
        roots = [np.linalg.norm(at * SPACING - root, axis=1) for root in ROOTS]
        return float((np.minimum(*roots) > 45).sum() * ML)

    _, _, facts = drawn("bronchiectasis", "present", seed)
    assert all(place["ratio"] > 1.3 for place in facts["places"])
    assert all(place["ratio"] < 1.0 for place in drawn("bronchiectasis", "lookalike", seed)[2]["places"])
    assert air_near_pleura("present") > 4 * air_near_pleura("lookalike") + 0.05


# Septa


@pytest.mark.parametrize("seed", SEEDS)
def test_septa_meet_the_pleura_and_veins_do_not(seed):
    lungs = survey(open_canvas(patient(), np.random.default_rng(1)))
    depth = lungs.spread(lungs.depth_mm, lungs.box)

    def lines(kind):
        canvas, before, _ = drawn("septal_thickening", kind, seed)
        inside = lung_of(patient().organs)[lungs.box]
        new = ((canvas.hu - before)[lungs.box] > 150) & inside
        return float((new & (depth < 8)).sum() * ML), float(new.sum() * ML)

    near, _ = lines("present")
    few, drawn_ml = lines("lookalike")
    assert drawn_ml > 0.05
    assert near > 1.0 and near > 20 * few
    assert lines("grey")[1] < 0.5 * lines("present")[1]


def test_the_base_is_healthy():
    """The detectors above say no on the patient as it is."""
    canvas = open_canvas(patient(), np.random.default_rng(1))
    assert low_share(canvas) < 3
    lung = lung_of(canvas.organs)
    assert abs(np.median(canvas.hu[lung]) - LUNG_HU) < 20
    assert ORGANS["fat"] not in canvas.organs
