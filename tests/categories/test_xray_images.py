"""Posture, sides, sizes and places in the radiographs, measured on what is drawn."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import ndimage as ndi
from xray_chests import PEOPLE, device, empty, eye, finding, patient, shadow, study, with_

from categories.chest.labels import LEFT_LUNG, RIGHT_LUNG
from categories.xray_report_correction.anatomy_upright import dome_level, rib_levels
from categories.xray_report_correction.projection import Beam, Plate, project
from categories.xray_report_correction.radiograph import _mark, render_study, stage
from categories.xray_report_correction.render_posture import heart_ratio
from categories.xray_report_correction.state import NoRoomError

EVERYBODY = range(len(PEOPLE))


def centre(film):
    rows, columns = np.indices(film.shape)
    weight = np.abs(film)
    return (rows * weight).sum() / weight.sum(), (columns * weight).sum() / weight.sum()


def middle_column(scene, seen):
    return seen.locate(np.array([[scene.marks.middle, 100.0, 200.0]]))[0][0, 0]


@pytest.mark.parametrize("detector", ["front", "back", "left"])
def test_a_small_ball_falls_where_geometry_says_and_keeps_its_mass(detector) -> None:
    spacing, shape = (2.0, 2.0, 2.5), (120, 100, 80)
    mu = np.zeros(shape, np.float32)
    mu[30:33, 20:23, 50:53] = 0.02
    beam, plate = Beam(detector, 1000), Plate(300, 300, 1.0, (120.0, 100.0))
    film = project(mu, spacing, beam, plate, shape)
    at = np.array([[31 * 2.0, 21 * 2.0, 51 * 2.5]])
    seen = eye(empty())
    places, grown = type(seen)(beam, plate, shape, spacing).locate(at)
    row, column = centre(film)
    assert np.hypot(column - places[0, 0], row - places[0, 1]) < 1.5
    mass = 0.02 * 27 * 2.0 * 2.0 * 2.5
    assert film.sum() / grown[0] ** 2 == pytest.approx(mass, rel=0.03)
    box = project(mu[28:36, 18:25, 48:56], spacing, beam, plate, shape, (28, 18, 48))
    assert np.abs(box - film).max() < 0.12 * film.max()


@pytest.mark.parametrize("number", EVERYBODY)
@pytest.mark.parametrize("ratio", [0.43, 0.47, 0.56, 0.69])
def test_the_heart_is_as_wide_as_the_study_says_or_there_is_no_such_study(number, ratio) -> None:
    for portable, extra in ((False, 0.0), (True, 0.05)):
        try:
            scene = stage(patient(number), study(portable=portable, ratio=ratio + extra), np.random.default_rng(1))
        except NoRoomError:
            assert ratio > 0.65, "only the widest hearts meet the ribs"
            continue
        seen = eye(scene, "AP" if portable else "PA")
        # A voxel at an edge is 0.009.
        assert heart_ratio(scene.torso.organs, seen) == pytest.approx(
            ratio + extra, abs=0.016 if ratio < 0.65 else 0.03
        )


@pytest.mark.parametrize("number", EVERYBODY)
@pytest.mark.parametrize("ribs", [8.2, 9.0, 10.2])
def test_so_many_posterior_ribs_lie_above_the_right_dome(number, ribs) -> None:
    torso = stage(patient(number), study(ribs=ribs), np.random.default_rng(2)).torso
    levels = rib_levels(torso)
    known = np.flatnonzero(~np.isnan(levels))
    found = np.interp(-dome_level(torso, RIGHT_LUNG), -levels[known], known + 1.0)
    assert found == pytest.approx(ribs, abs=0.45)


def test_the_right_dome_lies_higher_in_about_nine_of_ten() -> None:
    higher = [empty(n).marks.domes["right"] - empty(n).marks.domes["left"] for n in EVERYBODY]
    assert sum(gap > 3 for gap in higher) >= len(higher) - 1
    assert max(higher) < 32


@pytest.mark.parametrize("number", EVERYBODY)
def test_the_carina_lies_in_the_midline_well_below_the_lungs_tops(number) -> None:
    marks = empty(number).marks
    spine = marks.spine.at(marks.carina[2])
    assert abs(marks.carina[0] - spine[0]) < 16
    top = max(box[1, 2] for box in marks.lungs.values())
    assert 60 < top - marks.carina[2] < 130
    assert 1.1 * marks.domes["right"] < marks.carina[2]


SIDED = [
    finding("pleural_effusion", 350, "left"),
    finding("pneumothorax", 30, "left"),
    finding("consolidation", 50, "left", "mid zone"),
    finding("atelectasis", 9, "left", "mid zone"),
    finding("nodule", 15, "left", "upper zone"),
    finding("granuloma", 7, "left", "lower zone"),
    device("central_line", "left", "brachiocephalic vein"),
    device("pacemaker", "left", count=1),
    device("chest_tube", "left", "apex", 1),
]


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("thing", SIDED, ids=lambda thing: thing.kind)
def test_the_patients_left_is_at_the_right_of_a_frontal_view(thing, portable) -> None:
    for side, sign in (("left", 1), ("right", -1)):
        scene = with_(type(thing)(**{**vars(thing), "side": side}), portable=portable)
        film, seen = shadow(scene, "AP" if portable else "PA")
        away = (centre(film)[1] - middle_column(scene, seen)) * sign
        assert away > 15, f"{thing.kind} of the {side} lies {away:.0f} mm on the wrong side"


@pytest.mark.parametrize("side", ["left", "right"])
def test_an_upright_effusion_climbs_the_wall(side) -> None:
    scene = with_(finding("pleural_effusion", 350, side))
    film, _ = shadow(scene)
    dense = film > 0.3 * film.max()
    top = np.where(dense.any(0), dense.argmax(0), 10_000)
    filled = np.flatnonzero(dense.any(0))
    outer = filled[-len(filled) // 3 :] if side == "left" else filled[: len(filled) // 3]
    inner = filled[len(filled) // 2 - 4 : len(filled) // 2 + 4]
    assert np.median(top[inner]) - top[outer].min() > 15  # rows run down: at the wall the fluid stands higher


def test_fluid_runs_behind_the_lung_of_a_reclining_patient() -> None:
    upright, reclining = (with_(finding("pleural_effusion", 800, "right"), portable=p) for p in (False, True))
    spread = [np.ptp(np.flatnonzero(shadow(s, v)[0].max(1) > 0.1)) for s, v in ((upright, "PA"), (reclining, "AP"))]
    assert spread[1] > spread[0]
    start, change = reclining.boxes[7]
    depth = (np.arange(change.shape[1]) * change.sum((0, 2))).sum() / change.sum() + start[1]
    lung = np.flatnonzero(reclining.torso.mask(*RIGHT_LUNG).any((0, 2)))
    assert depth < (lung[0] + lung[-1]) / 2


@pytest.mark.parametrize("number", EVERYBODY)
def test_effusions_of_other_classes_differ_by_area(number) -> None:
    for portable in (False, True):
        area = {}
        for ml in (270, 450, 750, 1150, 1700, 2600):
            film, _ = shadow(
                with_(finding("pleural_effusion", ml, "left"), number, portable), "AP" if portable else "PA"
            )
            area[ml] = film.sum()
        assert area[270] < area[450] < 0.8 * area[750]
        assert area[750] < area[1150] < 0.9 * area[1700]


@pytest.mark.parametrize("portable", [False, True])
def test_a_pneumothorax_is_air_below_the_apex_bounded_by_a_line(portable) -> None:
    view = "AP" if portable else "PA"
    darker = {}
    for mm in (12, 19, 27, 42, 60, 92):
        scene = with_(finding("pneumothorax", mm, "right"), portable=portable)
        start, change = scene.boxes[7]
        inside = scene.torso.hu[start[0] : start[0] + change.shape[0]]
        assert (inside < -990).any()
        film, _ = shadow(scene, view)
        darker[mm] = -film[film < -0.02].sum()
        assert film.max() > 0.05  # the visceral pleura and the packed lung
    assert darker[12] < darker[19] < darker[27] < darker[42] < darker[60] < darker[92]


@pytest.mark.parametrize("zone", ["upper zone", "mid zone", "lower zone"])
def test_lesions_lie_in_their_zone(zone) -> None:
    third = {"lower zone": 0, "mid zone": 1, "upper zone": 2}[zone]
    for track in range(6):
        scene = with_(finding("nodule", 12, "right", zone, track))
        film, seen = shadow(scene)
        row, _ = centre(film)
        dome, top = scene.marks.domes["right"], scene.marks.lungs["right"][1, 2]
        rows = seen.locate(np.array([[100.0, 110.0, dome], [100.0, 110.0, top]]))[0][:, 1]
        share = (rows[0] - row) / (rows[0] - rows[1])
        assert third / 3 - 0.04 < share < (third + 1) / 3 + 0.04


@pytest.mark.parametrize("count", [1, 2, 3])
def test_so_many_nodules_of_that_size(count) -> None:
    film, _ = shadow(with_(finding("nodule", 16, "left", "mid zone", count=count)))
    spots, found = ndi.label(film > 0.25 * film.max())
    assert found == count
    across = [2 * np.sqrt((spots == n + 1).sum() / np.pi) / 1.1 for n in range(found)]
    assert np.allclose(across, 16, atol=3.0)


def test_a_lesion_stays_at_its_place_when_the_breath_changes() -> None:
    places = []
    for ribs in (8.6, 9.4, 10.2):
        thing = finding("nodule", 14, "right", "upper zone", 12)
        scene = stage(patient(), study(ribs=ribs, findings=[thing]), np.random.default_rng(int(ribs)))
        film, _ = shadow(scene)
        places.append(centre(film))
    assert np.ptp(np.array(places), axis=0).max() < 16


def test_consolidation_keeps_to_its_lobe() -> None:
    for side, lobe, names in (
        ("right", "middle lobe", ("lung_middle_lobe_right",)),
        ("left", "lower lobe", ("lung_lower_lobe_left",)),
    ):
        scene = with_(finding("consolidation", 50, side, lobe))
        start, change = scene.boxes[7]
        box = tuple(slice(a, a + n) for a, n in zip(start, change.shape, strict=True))
        outside = change[~scene.torso.mask(*names)[box]]
        assert np.abs(outside).max() == 0
        assert change.sum() * np.prod(scene.torso.spacing) / 0.0195 > 8_000  # mm3 of water


def test_hyperinflation_lowers_and_flattens_the_domes() -> None:
    normal = stage(patient(), study(ribs=9.4), np.random.default_rng(0))
    wide = stage(patient(), study(ribs=11.0, findings=[finding("hyperinflation", 0.8)]), np.random.default_rng(0))
    assert normal.marks.domes["right"] - wide.marks.domes["right"] > 35
    volume = [scene.torso.mask(*RIGHT_LUNG, *LEFT_LUNG).sum() for scene in (normal, wide)]
    assert volume[1] > 1.12 * volume[0]


def test_a_hernia_holds_gas_over_fluid_behind_the_heart() -> None:
    scene = with_(finding("hiatal_hernia", 70))
    change = scene.boxes[7][1]
    assert change.min() < -0.012
    film, seen = shadow(scene, "LATERAL")
    heart = scene.marks.heart.mean(0)
    assert centre(film)[1] > seen.locate(heart[None])[0][0, 0]  # the back lies at the right of a lateral


def digest_of_a_study() -> str:
    return (
        "import hashlib, sys; sys.path[:0] = ['tests/categories', '.']\n"
        "import numpy as np\n"
        "from xray_chests import *\n"
        "from categories.xray_report_correction.radiograph import render_study\n"
        "s = study(findings=[finding('pleural_effusion', 400, 'left'), finding('nodule', 14, 'right', 'mid zone', 9)],\n"
        "          devices=[device('pacemaker', 'left', count=2)])\n"
        "views = render_study(patient(1), s, np.random.default_rng(5), 'small')\n"
        "print(hashlib.sha256(b''.join(v.pixels.tobytes() for v in views)).hexdigest())\n"
    )


@pytest.mark.slow
def test_the_same_pixels_without_cpu_features_and_on_one_thread() -> None:
    found = set()
    for extra in ({}, {"NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512_SKX", "OMP_NUM_THREADS": "1"}):
        known = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", digest_of_a_study()],
            capture_output=True,
            check=False,
            text=True,
            env={**os.environ, **extra},
        )
        assert known.returncode == 0, known.stderr
        found.add(known.stdout)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("view", "letter", "side"), [("PA", "L", 1), ("PA", "R", -1), ("AP", "R", -1), ("LATERAL", "L", -1)]
)
def test_the_letter_is_on_its_side(view, letter, side) -> None:
    seen = eye(empty(), view)
    for seed in range(5):
        picture = np.zeros((seen.plate.rows, seen.plate.columns))
        _mark(picture, seen, letter, np.random.default_rng(seed))
        row, column = centre(picture)
        assert picture.max() > 0.8 * 4095
        assert row < 0.2 * seen.plate.rows
        assert (column - seen.plate.columns / 2) * side > 0.35 * seen.plate.columns


@pytest.mark.parametrize("portable", [False, True])
def test_pixels_have_a_real_films_size_and_range(portable) -> None:
    for view in render_study(patient(1), study(portable=portable), np.random.default_rng(0), "small"):
        assert 0.4 < view.pixel_mm < 0.8  # a quarter of the full picture's pixels
        assert view.pixels.dtype == np.uint16
        assert view.pixels.max() <= 4095
        assert np.percentile(view.pixels, 97) - np.percentile(view.pixels, 15) > 1500
