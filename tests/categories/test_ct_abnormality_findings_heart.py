"""Findings of heart, vessels, pleura, nodes and hiatus: sizes, places, densities, and detectors that tell them apart."""

import numpy as np
import pytest
from ct_findings import KINDS, check_forms, check_repeats, limits, ml
from ct_heart_patients import drawn, noisy, patient, ras_of
from scipy import ndimage

from categories.chest.labels import BONES, LEFT_LUNG, LOBES, VESSELS, where
from categories.ct_abnormality import cardiomegaly
from categories.ct_abnormality.canvas import open_canvas
from categories.ct_abnormality.heart_courses import CORONARIES, LEFT_MAIN, course
from categories.ct_abnormality.heart_shapes import extent
from categories.ct_abnormality.hiatal_hernia import find_hiatus

KEYS = (
    "pericardial_effusion",
    "pleural_effusion",
    "hiatal_hernia",
    "lymphadenopathy",
    "arterial_calcification",
    "coronary_calcification",
)
SEEDS = range(6)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_facts_keep_to_the_definitions(key, seed):
    check_forms(drawn, key, seed)
    assert all(drawn(key, kind, seed)[2]["places"] for kind in KINDS)


@pytest.mark.parametrize("key", KEYS)
def test_same_numbers_give_the_same_voxels(key):
    check_repeats(patient(1), key, {"atelectasis": "lookalike"})


def test_sizes_spread_over_both_sides_of_the_threshold():
    for key in KEYS:
        sizes = [drawn(key, "present", seed)[2]["measure"] for seed in range(9)]
        assert len(set(sizes)) >= 7, f"{key} comes in one size"
        assert min(sizes) < 5 * limits(key)[0]


# --- pleura


def fluid_ml(canvas):
    """A reader's fluid: rear half of the lungs, no gas, between water and soft tissue."""
    hu = ndimage.uniform_filter(noisy(canvas), (3, 3, 3))
    lung = ndimage.binary_erosion(where(canvas.organs, LOBES), np.ones((3, 3, 1)))
    rear = np.argwhere(lung)[:, 1].mean()
    lung[:, int(rear) :] = False
    return ml(canvas, lung & (hu > -8) & (hu < 34))


@pytest.mark.parametrize("seed", SEEDS)
def test_pleural_fluid_lies_behind_and_is_not_what_looks_like_it(seed):
    canvas, before, facts = drawn("pleural_effusion", "present", seed)
    changed = (np.abs(canvas.hu - before) > 300) & where(canvas.organs, LOBES)
    assert ras_of(canvas, changed)[1] < ras_of(canvas, where(canvas.organs, LOBES))[1] - 20
    for layer, place in zip(facts["layers"], facts["places"], strict=True):
        assert (place["ras_mm"][0] < 0) == (layer["side"] == "left")
        i, j, k = (round(v) for v in place["ijk"])
        assert 0 <= layer["hu"] <= 25
        assert abs(float(np.median(canvas.hu[i - 1 : i + 2, j, k])) - layer["hu"]) < 12
        assert layer["volume_ml"] > 30
    assert fluid_ml(canvas) > 12
    assert fluid_ml(drawn("pleural_effusion", "lookalike", seed)[0]) < 6


def test_pleural_fluid_has_a_meniscus():
    canvas, _, facts = drawn("pleural_effusion", "present", 2)
    side = facts["layers"][0]["side"]
    lung = where(canvas.organs, LEFT_LUNG if side == "left" else tuple(n for n in LOBES if n not in LEFT_LUNG))
    k = round(facts["places"][0]["ijk"][2])
    fluid = lung[:, :, k] & (canvas.hu[:, :, k] > -100)
    columns = np.flatnonzero(lung[:, :, k].any(1) & fluid.any(1))
    front = np.array([np.flatnonzero(fluid[i])[-1] for i in columns])
    middle = front[len(front) // 3 : 2 * len(front) // 3].mean()
    assert max(front[:6].max(), front[-6:].max()) > middle + 2


def test_lung_beside_pleural_fluid_collapses_only_where_it_may():
    free, _, facts = drawn("pleural_effusion", "present", 4)
    assert all(layer["collapse_mm"] == 0 for layer in facts["layers"])
    tied, _, facts = drawn("pleural_effusion", "present", 4, atelectasis="present")
    assert facts["layers"][0]["collapse_mm"] > 4
    dense = [(c.hu > -150) & where(c.organs, LOBES) for c in (free, tied)]  # the fluid is the same in both
    assert ml(tied, dense[1]) > ml(free, dense[0]) + 10


# --- pericardium and heart


def shell(canvas, low, high, reach_mm=25):
    box = extent(canvas, ["heart"], reach_mm)
    heart = where(canvas.organs[box], VESSELS)
    near = ndimage.distance_transform_edt(~heart, canvas.spacing_mm)
    hu = ndimage.uniform_filter(noisy(canvas)[box], 3)
    soft = where(canvas.organs[box], (*LOBES, "body", "fat", "background"))
    found = np.zeros(canvas.hu.shape, bool)
    found[box] = soft & (near > 2.5) & (near < reach_mm) & (hu > low) & (hu < high)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_pericardial_fluid_lies_behind_and_is_not_fat(seed):
    with_fluid, before, facts = drawn("pericardial_effusion", "present", seed)
    alike = drawn("pericardial_effusion", "lookalike", seed)[0]
    assert 0 <= facts["hu"] <= 25 and facts["volume_ml"] > 25
    assert facts["volume_ml"] > 2.5 * drawn("pericardial_effusion", "grey", seed)[2]["volume_ml"]
    plain = open_canvas(with_fluid.patient, np.random.default_rng(1))
    more = ml(with_fluid, shell(with_fluid, -8, 33)) - ml(plain, shell(plain, -8, 33))
    less = ml(alike, shell(alike, -8, 33)) - ml(plain, shell(plain, -8, 33))
    assert more > 12 and less < 8
    changed = with_fluid.hu - before > 300
    assert ras_of(with_fluid, changed)[1] < ras_of(with_fluid, where(with_fluid.organs, ["heart"]))[1]


@pytest.mark.parametrize("state", ["present", "lookalike", "grey"])
@pytest.mark.parametrize("seed", range(3))
def test_heart_has_the_ratio_of_its_state(state, seed):
    ratio = cardiomegaly.body(np.random.default_rng(seed), state)["cardiothoracic_ratio"]
    canvas = open_canvas(patient(seed, ratio), np.random.default_rng(1))
    before = canvas.hu.copy()
    facts = getattr(cardiomegaly, state)(canvas, np.random.default_rng(seed), {})
    heart, lung = (where(canvas.organs, names).any((1, 2)) for names in (["heart"], LOBES))
    measured = np.ptp(np.flatnonzero(heart)) / np.ptp(np.flatnonzero(lung))
    assert abs(measured - facts["measure"]) < 0.03
    low, high = {"present": (0.52, 0.7), "lookalike": (0.3, 0.49), "grey": (0.49, 0.52)}[state]
    assert low < facts["measure"] < high
    changed = np.abs(canvas.hu - before) > 300
    assert changed.any() == (state == "lookalike")
    if state == "lookalike":
        assert ml(canvas, changed & (canvas.hu < -40) & (canvas.hu > -140)) > 10


# --- calcium


def calcium_near(canvas, before, near):
    return ml(canvas, near & (canvas.hu >= 130) & (before < 130))


def near_arteries(canvas, reach_mm):
    found = np.ones(canvas.hu.shape, bool)
    for fractions in (*CORONARIES.values(), LEFT_MAIN):
        line = np.round(course(canvas, fractions) / canvas.spacing_mm).astype(int)
        found[line[:, 0], line[:, 1], line[:, 2]] = False
    return ndimage.distance_transform_edt(found, canvas.spacing_mm) < reach_mm


@pytest.mark.parametrize("seed", SEEDS)
def test_coronary_calcium_is_on_the_arteries_and_valve_calcium_is_not(seed):
    shares = {}
    for kind in ("present", "lookalike"):
        canvas, before, facts = drawn("coronary_calcification", kind, seed)
        calcium = (canvas.hu >= 130) & (before < 130)
        assert ml(canvas, calcium) > 0.02
        shares[kind] = (calcium & near_arteries(canvas, 4.5)).sum() / calcium.sum()
        middle = patient(seed % 3).ras_mm(np.array(find_middle(canvas)))
        for place in facts["places"]:
            if place["what"] in ("LAD", "LCX"):
                assert place["ras_mm"][0] < middle[0] + 15
            assert place["peak_hu"] >= 300
    assert shares["present"] > 0.9
    assert shares["lookalike"] < 0.45
    canvas, before, facts = drawn("coronary_calcification", "grey", seed)
    assert 0 < ml(canvas, (canvas.hu >= 130) & (before < 130)) < 0.2


def find_middle(canvas):
    return [(part.start + part.stop) / 2 for part in extent(canvas, ["heart"])]


@pytest.mark.parametrize("seed", SEEDS)
def test_everyone_has_fat_in_the_coronary_grooves(seed):
    amounts = {}
    for kind in ("present", "lookalike"):
        canvas, before, _ = drawn("coronary_calcification", kind, seed)
        amounts[kind] = ml(canvas, (before > 0) & (canvas.hu < -20) & near_arteries(canvas, 7))
    assert all(amount > 0.05 for amount in amounts.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_arterial_calcium_is_in_the_wall_and_nodes_are_off_it(seed):
    names = ("aorta", "brachiocephalic_trunk", "subclavian_artery_left", "common_carotid_artery_left")
    for kind, expected in (("present", True), ("lookalike", False)):
        canvas, before, facts = drawn("arterial_calcification", kind, seed)
        calcium = (canvas.hu >= 130) & (before < 130)
        vessel = where(canvas.organs, names)
        inside = ndimage.distance_transform_edt(vessel, canvas.spacing_mm)
        outside = ndimage.distance_transform_edt(~vessel, canvas.spacing_mm)
        at_wall = calcium & (outside < 2.9) & (inside < 6)
        share = at_wall.sum() / calcium.sum()
        assert (share > 0.9) if expected else (share < 0.35), (kind, share)
        assert not (calcium & where(canvas.organs, BONES)).any()
        if expected:
            assert {place["what"] for place in facts["places"]} <= {"arch", "descending", "branch"}
            assert facts["places"][0]["what"] == "arch"


# --- nodes and hiatus


@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_have_the_size_they_are_said_to_have_at_their_stations(seed):
    for kind in ("present", "lookalike"):
        canvas, before, facts = drawn("lymphadenopathy", kind, seed)
        middle = patient(seed % 3).ras_mm(np.array(find_middle(canvas)))
        for place in facts["places"]:
            i, j, k = (round(v) for v in place["ijk"])
            if not place["fatty_hilum"]:
                assert 15 < canvas.hu[i, j, k] < 62
            station = place["what"]
            if station.endswith(("4L", "10L", "station 5", "axilla left")):
                assert place["ras_mm"][0] < middle[0] + 40
            if station.endswith("10R"):
                assert place["ras_mm"][0] > middle[0] + 20
            assert 0.9 * place["size_mm"] <= place["long_mm"]
            sphere = np.pi / 6 * place["size_mm"] ** 3 / 1000
            assert 0.4 * sphere < place["volume_ml"] < 6 * sphere
        changed = (np.abs(canvas.hu - before) > 25) & (canvas.hu > 10) & (canvas.hu < 70)
        parts, count = ndimage.label(changed)
        largest = max(ml(canvas, parts == n) for n in range(1, count + 1)) if count else 0.0
        assert (largest > 0.45) == (kind == "present"), largest


def test_no_node_fills_a_bronchus():
    for seed in SEEDS:
        canvas, before, _ = drawn("lymphadenopathy", "present", seed)
        lumen = where(canvas.organs, ["trachea"]) & (before < -900)
        assert (canvas.hu[lumen] < -500).mean() > 0.995


@pytest.mark.parametrize("seed", SEEDS)
def test_hernia_lies_behind_the_heart_with_a_gas_level(seed):
    canvas, before, facts = drawn("hiatal_hernia", "present", seed)
    hiatus = find_hiatus(canvas)
    gas = (canvas.hu < -500) & (before > -500)
    drawn_soft = (canvas.hu > -5) & (before < -500)
    assert facts["volume_ml"] > 10 and ml(canvas, drawn_soft) > 3 and ml(canvas, gas) > 0.3
    place, heart = facts["places"][0]["ras_mm"], patient(seed % 3).ras_mm(np.array(find_middle(canvas)))
    assert place[1] < heart[1] and abs(place[0] - heart[0]) < 60
    planes = np.flatnonzero((drawn_soft | gas).any((0, 1)))
    assert (planes[-1] + 1) * canvas.spacing_mm[2] > hiatus.at[2] + 15
    # Gas is in front of what lies: the patient is supine.
    for k in np.flatnonzero(gas.any((0, 1)))[1:-1]:
        food = (canvas.hu[:, :, k] > 0) & (canvas.hu[:, :, k] < 32) & (np.abs(canvas.hu - before)[:, :, k] > 5)
        if food.sum() > 20:
            assert np.argwhere(gas[:, :, k])[:, 1].mean() > np.argwhere(food)[:, 1].mean()


@pytest.mark.parametrize("seed", SEEDS)
def test_what_looks_like_a_hernia_brings_no_stomach_into_the_chest(seed):
    canvas, before, facts = drawn("hiatal_hernia", "lookalike", seed)
    in_lung = where(canvas.organs, LOBES) & (canvas.hu > -5) & (before < -500)
    present, there, _ = drawn("hiatal_hernia", "present", seed)
    sac = where(present.organs, LOBES) & (present.hu > -5) & (there < -500)
    assert ml(canvas, in_lung) < 0.5 * ml(present, sac)
    assert facts["kind"] in ("fat", "wide gullet")
