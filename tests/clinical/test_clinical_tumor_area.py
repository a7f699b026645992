"""Slides of the clinical edition: the same tissue under another grid, gold by the rule, nothing of the source's file left."""

import json

import camelyon
import numpy as np
import openslide
import pytest
import tifffile

from categories.catalog import find_task
from categories.draw import Draw
from categories.seed import case_key
from categories.tumor_area_selection.clinical import choose_cut
from categories.tumor_area_selection.mask import STEP, TILE, Cut, cut_mask, read_mask, tile_list
from categories.tumor_area_selection.reencode import read_block


@pytest.mark.parametrize("turn", range(8))
def test_a_box_as_shown_is_that_box_of_the_turned_picture(turn: int) -> None:
    picture = np.arange(40 * 56).reshape(40, 56)
    cut = Cut(8, 4, 32, 20, turn)
    shown = cut.turned(picture[4:24, 8:40])
    assert shown.shape[::-1] == cut.size
    for x, y, width, height in ((0, 0, 5, 3), (7, 2, 6, 9), (cut.size[0] - 4, cut.size[1] - 5, 4, 5)):
        left, top, wide, high = cut.source_box(x, y, width, height)
        part = cut.turned(picture[top : top + high, left : left + wide])
        assert (part == shown[y : y + height, x : x + width]).all()


def test_the_share_of_a_tile_is_of_its_area_within_the_slide() -> None:
    mask = np.zeros((300, 500), np.uint8)
    mask[256:, 256:] = 2
    mask[:64, :200] = 2
    shares = {(tile["x"], tile["y"]): (tile["share"], tile["tumour"]) for tile in tile_list(mask)}
    assert shares == {(1, 1): (1.0, True), (0, 0): (round(64 * 200 / 256**2, 5), False)}
    mask[:66, :200] = 2
    assert {tile["tumour"] for tile in tile_list(mask) if tile["x"] == tile["y"] == 0} == {True}


@pytest.fixture(scope="module")
def draw(stage):
    return stage(camelyon.TASK)


def test_the_slide_is_a_pyramid_that_readers_open_and_nothing_of_its_origin_is_in_it(draw) -> None:
    manifest = json.loads((draw.public / "manifest.json").read_text())
    path = draw.public / "slide.svs"
    with openslide.OpenSlide(str(path)) as slide:
        assert slide.dimensions == (manifest["width"], manifest["height"])
        assert slide.level_count == 4
        assert float(slide.properties["openslide.mpp-x"]) == pytest.approx(camelyon.MICRONS, rel=1e-3)
        assert slide.properties["openslide.vendor"] == "aperio"
    assert manifest["microns_per_pixel"] == pytest.approx(camelyon.MICRONS, abs=1e-4)
    content = path.read_bytes()
    for word in (b"real hospital", b"tumor_", b"CAMELYON", b"tifffile"):
        assert word not in content
    with tifffile.TiffFile(path) as file:
        assert all(page.tags.get("DateTime") is None for page in file.pages)


def test_gold_is_where_the_tumour_is_in_the_new_slide(draw) -> None:
    """Counted from the pixels of the new slide itself: the miniature's tumour is darker."""
    manifest = json.loads((draw.public / "manifest.json").read_text())
    gold = json.loads((draw.gold / "tiles.json").read_text())
    assert (gold["columns"], gold["rows"]) == (manifest["grid"]["columns"], manifest["grid"]["rows"])
    with openslide.OpenSlide(str(draw.public / "slide.svs")) as slide:
        picture = np.asarray(slide.read_region((0, 0), 2, slide.level_dimensions[2]).convert("RGB"))
    dark = picture[..., 1] < 120
    for tile in gold["tiles"]:
        part = dark[tile["y"] * TILE : (tile["y"] + 1) * TILE, tile["x"] * TILE : (tile["x"] + 1) * TILE]
        assert part.mean() == pytest.approx(tile["share"], abs=0.06), tile
    marked = {(tile["x"], tile["y"]) for tile in gold["tiles"] if tile["share"] > 0.06}
    rows, columns = -(-dark.shape[0] // TILE), -(-dark.shape[1] // TILE)
    seen = {
        (x, y)
        for y in range(rows)
        for x in range(columns)
        if dark[y * TILE : (y + 1) * TILE, x * TILE : (x + 1) * TILE].mean() > 0.12
    }
    assert seen <= marked | {(tile["x"], tile["y"]) for tile in gold["tiles"]}
    assert sum(tile["tumour"] for tile in gold["tiles"]) >= 5
    assert sum(focus["area_mm2"] for focus in gold["foci"]) == pytest.approx(
        camelyon.tumour(STEP).sum() * (camelyon.MICRONS * STEP / 1000) ** 2, rel=0.02
    )


def test_every_pixel_comes_from_the_source_once_more_encoded(draw, tmp_path) -> None:
    """Level 0 equals the turned cut of the old one, but for what a second JPEG costs."""
    path, masks = tmp_path / "source.tif", tmp_path / "mask.tif"
    path.write_bytes(camelyon.slide())
    masks.write_bytes(camelyon.mask())
    task = find_task(camelyon.TASK)
    made = Draw("slide_01", task.spec, case_key("0", "tumor_area_selection", "slide_01", 0), "small")
    with openslide.OpenSlide(str(path)) as source, openslide.OpenSlide(str(draw.public / "slide.svs")) as shown:
        cut = choose_cut(made, source, read_mask(masks, *source.dimensions))
        assert cut.size == shown.dimensions
        for x, y in ((0, 4_096), (4_096, 4_096)):
            block = read_block(source, cut, x, y)[:2_048, :2_048].astype(int)
            again = np.asarray(shown.read_region((x, y), 0, (2_048, 2_048)).convert("RGB")).astype(int)
            assert np.abs(block - again).mean() < 12
            assert abs(block.mean() - again.mean()) < 1


def test_what_lies_beyond_the_edge_of_a_block_is_filled(tmp_path) -> None:
    path = tmp_path / "source.tif"
    path.write_bytes(camelyon.slide())
    with openslide.OpenSlide(str(path)) as source:
        cut = Cut(2_048, 1_024, 4_160, 4_096, 1)
        block = read_block(source, cut, 0, 4_096)
    assert block.shape == (4_096, 4_096, 3)
    assert (block[64:] == block[63]).all()


def test_masks_follow_the_cut_and_the_turn() -> None:
    mask = np.zeros((64, 96), np.uint8)
    mask[10, 20] = 2
    shown = cut_mask(mask, Cut(16 * 8, 16 * 4, 16 * 40, 16 * 20, 4))
    assert shown.shape == (20, 40)
    assert np.argwhere(shown == 2).tolist() == [[6, 40 - 1 - 12]]
