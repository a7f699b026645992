"""Devices: what they are made of, where they run, and that nothing on the skin or in bone is one."""

import numpy as np
import pytest
from ct_findings import ml
from ct_heart_patients import drawn, patient
from scipy import ndimage

from categories.chest.labels import BONES, LEFT_LUNG, RIGHT_LUNG, where
from categories.ct_abnormality import device_implants, device_tubes
from categories.ct_abnormality.canvas import open_canvas
from categories.ct_abnormality.heart_shapes import extent
from categories.ct_abnormality.metal import STREAK_AREA_MM2, streaks

SEEDS = range(8)
KINDS = {
    "central_line": device_tubes,
    "pacemaker": device_tubes,
    "chest_drain": device_tubes,
    "gastric_tube": device_tubes,
    "sternal_wires": device_implants,
    "clips": device_implants,
    "valve": device_implants,
    "stent": device_implants,
}


def fit(name, seed):
    canvas = open_canvas(patient(seed % 3), np.random.default_rng(1))
    before = canvas.hu.copy()
    return canvas, before, getattr(KINDS[name], name)(canvas, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_material_is_under_the_skin_and_what_looks_like_it_is_not(seed):
    canvas, before, facts = drawn("medical_material", "present", seed)
    assert facts["measure"] >= 5 and len(facts["signs"]) >= 2 and facts["places"]
    inside = (canvas.organs > 0) & ~ndimage.binary_dilation(where(canvas.organs, BONES), iterations=2)
    assert ((canvas.hu - before > 120) & inside).any()
    canvas, before, facts = drawn("medical_material", "lookalike", seed)
    assert facts["measure"] == 0 and facts["places"]
    dense = canvas.hu - before > 400
    assert dense.any()
    skin = ndimage.distance_transform_edt(canvas.organs > 0, canvas.spacing_mm)
    bone = ndimage.distance_transform_edt(~where(canvas.organs, BONES), canvas.spacing_mm)
    assert (skin[dense & (bone > 6)] < 5).all()
    canvas, before, facts = drawn("medical_material", "grey", seed)
    assert 0 < facts["measure"] < 4
    assert 0 < ml(canvas, canvas.hu - before > 400) < 0.25


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_each_device_is_dense_long_enough_and_inside(name, seed):
    canvas, before, places = fit(name, seed)
    assert places, "nothing was fitted"
    assert max(place["size_mm"] for place in places) >= 5
    gain = canvas.hu - before
    assert gain.max() > (150 if name == "gastric_tube" else 300)
    assert np.isfinite(canvas.hu).all()
    if name != "chest_drain":  # it comes out through the skin
        metal = (gain > 800) & (canvas.organs == 0)
        assert ml(canvas, metal) < 0.05
    for place in places:
        np.testing.assert_allclose(place["ras_mm"], canvas.patient.ras_mm(np.array(place["ijk"])), atol=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_line_ends_in_the_superior_vena_cava(seed):
    canvas, _, places = fit("central_line", seed)
    tip = np.array([float(v) for v in places[0]["tip"].strip("[]").split(",")])
    cava = canvas.patient.ras_mm(np.argwhere(where(canvas.organs, ["superior_vena_cava"])).astype(float))
    assert np.sqrt(((cava - tip) ** 2).sum(1)).min() < 6
    assert tip[2] < np.quantile(cava[:, 2], 0.6)


@pytest.mark.parametrize("seed", range(4))
def test_pacemaker_is_on_the_left_with_a_lead_in_the_right_heart(seed):
    canvas, before, places = fit("pacemaker", seed)
    generator = places[-1]
    spine = canvas.patient.ras_mm(np.argwhere(where(canvas.organs, ["vertebrae_T5"])).mean(0))
    assert generator["what"] == "generator" and generator["ras_mm"][0] < spine[0] - 30
    assert generator["ras_mm"][1] > spine[1] + 60
    dense = canvas.hu - before > 700
    heart = where(canvas.organs, ["heart"])
    assert ml(canvas, dense & heart) > 0.1
    leads = canvas.patient.ras_mm(np.argwhere(dense & heart).astype(float))
    middle = canvas.patient.ras_mm(np.argwhere(heart).mean(0))
    assert leads[:, 0].max() > middle[0]


@pytest.mark.parametrize("seed", range(4))
def test_drain_is_hollow_and_runs_in_one_pleural_space(seed):
    canvas, before, places = fit("chest_drain", seed)
    lung = where(canvas.organs, LEFT_LUNG if places[0]["side"] == "left" else RIGHT_LUNG)
    wall = (canvas.hu - before > 300) & (canvas.hu > -300)
    assert (wall & lung).sum() > 0.6 * wall.sum()
    box = extent(canvas, LEFT_LUNG if places[0]["side"] == "left" else RIGHT_LUNG)
    planes = np.flatnonzero((wall & lung).any((0, 1)))
    assert np.ptp(planes) > 0.3 * (box[2].stop - box[2].start)


@pytest.mark.parametrize("seed", range(3))
def test_wires_go_round_the_breastbone(seed):
    canvas, before, places = fit("sternal_wires", seed)
    assert sum(place["what"] == "sternal wire" for place in places) >= 3
    bone = where(canvas.organs, ["sternum"])
    near = ndimage.distance_transform_edt(~bone, canvas.spacing_mm)
    dense = canvas.hu - before > 500
    wires = [place for place in places if place["what"] == "sternal wire"]
    assert all(near[tuple(round(v) for v in place["ijk"])] < 14 for place in wires)
    assert (near[dense] < 30).mean() > 0.9


def test_streaks_grow_with_the_metal_and_leave_the_air_alone():
    canvas = open_canvas(patient(0), np.random.default_rng(1))
    box = extent(canvas, ["heart"])
    box = (
        slice(box[0].start, box[0].start + 16),
        slice(box[1].start, box[1].start + 8),
        slice(box[2].start, box[2].start + 1),
    )
    spread = []
    for size in (0.05, 0.4, 1.0):
        share = np.zeros(tuple(part.stop - part.start for part in box), np.float32)
        share[4:12, 2:6] = size
        fresh = open_canvas(patient(0), np.random.default_rng(1))
        streaks(fresh, box, share, np.random.default_rng(2))
        change = fresh.hu - canvas.hu
        assert not change[:, :, : box[2].start].any() and not change[:, :, box[2].stop :].any()
        spread.append(float(change.std()))
    area = 32 * canvas.spacing_mm[0] * canvas.spacing_mm[1] * 0.05
    assert spread[0] == 0 or area > STREAK_AREA_MM2
    assert spread[2] > 1.5 * spread[1] > 0
