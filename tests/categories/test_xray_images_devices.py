"""Tips, sides and numbers of devices, measured on what is drawn (1 mm a pixel)."""

import numpy as np
import pytest
from scipy import ndimage as ndi
from xray_chests import device, finding, patient, shadow, study, with_

from categories.xray_report_correction.radiograph import stage

TWO = (0, 1)


def drawn(thing, number=0, portable=True, view="AP"):
    scene = with_(thing, number, portable)
    film, seen = shadow(scene, view)
    return scene, film, seen


def on_film(seen, *points):
    return seen.locate(np.array(points, float))[0]


def lowest(film, least=0.05):
    rows, columns = np.nonzero(film > least)
    row = rows.max()
    return row, columns[rows >= row - 1].mean()


@pytest.mark.parametrize("number", TWO)
@pytest.mark.parametrize("above", [32, 45, 60])
def test_a_breathing_tube_ends_so_far_above_the_carina(number, above) -> None:
    scene, film, seen = drawn(device("endotracheal_tube", extent=above), number)
    row, column = lowest(film)
    carina = on_film(seen, scene.marks.carina)[0]
    grown = seen.locate(scene.marks.carina[None])[1][0]
    assert (carina[1] - row) / grown == pytest.approx(above, abs=9)
    assert abs(column - carina[0]) < 14


@pytest.mark.parametrize("number", TWO)
def test_a_tube_too_deep_lies_in_the_right_bronchus(number) -> None:
    scene, film, seen = drawn(device("endotracheal_tube", extent=-20), number)
    row, column = lowest(film)
    carina = on_film(seen, scene.marks.carina)[0]
    assert 8 < row - carina[1] < 32
    assert column < carina[0] - 4  # the patient's right is at the left


@pytest.mark.parametrize("number", TWO)
def test_an_enteric_tube_ends_in_the_stomach_or_above_the_diaphragm(number) -> None:
    for tip, below in (("stomach", True), ("distal esophagus", False)):
        scene, film, seen = drawn(device("enteric_tube", tip=tip), number)
        dome = on_film(seen, [scene.marks.middle, 110, scene.marks.domes["left"]])[0, 1]
        row, column = lowest(film)
        assert (row > dome + 25) == below
        assert (row < dome + 8) != below
        if below:
            assert column > on_film(seen, [scene.marks.middle, 110, 100])[0, 0]


@pytest.mark.parametrize("number", TWO)
@pytest.mark.parametrize("side", ["left", "right"])
def test_central_lines_end_where_they_are_said_to(number, side) -> None:
    depth = {}
    for tip in ("brachiocephalic vein", "superior vena cava", "right atrium"):
        scene, film, seen = drawn(device("central_line", side, tip), number)
        row, column = lowest(film)
        depth[tip] = row
        middle = on_film(seen, [scene.marks.middle, 120, 200])[0, 0]
        carina = on_film(seen, scene.marks.carina)[0, 1]
        if tip == "brachiocephalic vein":
            assert (column > middle) == (side == "left")
            assert row < carina - 25
        elif tip == "superior vena cava":
            assert 0 < row - carina < 40
            assert middle - 45 < column < middle
        else:
            assert 60 < row - carina < 130
            assert column < middle
    assert depth["superior vena cava"] - depth["brachiocephalic vein"] > 25
    assert depth["right atrium"] - depth["superior vena cava"] > 35


@pytest.mark.parametrize("side", ["left", "right"])
def test_chest_tubes_end_at_apex_or_base_of_their_side(side) -> None:
    for number in TWO:
        for tip, upper in (("apex", True), ("base", False)):
            scene, film, seen = drawn(device("chest_tube", side, tip, 1), number)
            rows, columns = np.nonzero(film > 0.05)
            middle = on_film(seen, [scene.marks.middle, 120, 200])[0, 0]
            inner = np.argmin(np.abs(columns - middle))
            top, dome = (
                on_film(seen, [100, 110, z])[0, 1] for z in (scene.marks.lungs[side][1, 2], scene.marks.domes[side])
            )
            end = rows.min() if upper else rows.max()
            assert abs(columns[inner] - middle) > 15
            assert ((columns - middle > 0) == (side == "left")).all()
            assert (end - top < (dome - top) / 3) == upper


@pytest.mark.parametrize("count", [1, 2])
def test_so_many_chest_tubes(count) -> None:
    film = drawn(device("chest_tube", "left", "apex", count))[1]
    single = drawn(device("chest_tube", "left", "apex", 1))[1]
    assert film.sum() / single.sum() == pytest.approx(count, rel=0.35)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_so_many_leads_leave_the_generator(count) -> None:
    scene, film, seen = drawn(device("pacemaker", "left", count=count), portable=False, view="PA")
    # Across the great vein, below the collar bones and above the heart, each lead is crossed once.
    level = (scene.marks.carina[2] + scene.marks.notch[2]) / 2 - 12
    row = round(on_film(seen, [scene.marks.cava.at(level)[0], scene.marks.cava.at(level)[1], level])[0, 1])
    middle = on_film(seen, scene.marks.cava.at(level))[0, 0]
    band = film[row, int(middle) - 25 : int(middle) + 25]
    wide = (band > 0.1).sum()
    assert count * 1 <= wide <= count * 4 + 2
    assert band.sum() == pytest.approx(count * np.pi * 0.85**2 * 0.45, rel=0.4)


@pytest.mark.parametrize("count", [4, 5, 6, 7])
def test_so_many_wires_in_the_midline(count) -> None:
    scene, film, seen = drawn(device("sternal_wires", count=count), portable=False, view="PA")
    rows = np.flatnonzero((film > 0.2).any(1))
    groups = 1 + (np.diff(rows) > 4).sum()
    assert groups == count
    columns = np.nonzero(film > 0.2)[1]
    assert abs(columns.mean() - on_film(seen, [scene.marks.notch[0], scene.marks.notch[1], 200])[0, 0]) < 8


def test_unknown_tips_and_missing_sides_are_refused() -> None:
    for thing, words in (
        (device("central_line", "left", "spleen"), "no path of a central line to 'spleen'"),
        (device("central_line", None, "right atrium"), "needs a side"),
        (device("enteric_tube", tip="duodenum"), "no path of an enteric tube"),
        (device("chest_tube", "left", "moon", 1), "no path of a chest tube"),
        (finding("pleural_effusion", 300), "needs a side"),
    ):
        with pytest.raises(ValueError, match=words):
            with_(thing)
    with pytest.raises(ValueError, match="no picture of 'rib_fracture'"):
        stage(patient(), study(findings=[finding("rib_fracture", 4, "left")]), np.random.default_rng(0))


def test_a_lead_is_one_piece() -> None:
    film = drawn(device("pacemaker", "right", count=1), portable=False, view="PA")[1]
    assert ndi.label(film > 0.08, np.ones((3, 3)))[1] == 1
