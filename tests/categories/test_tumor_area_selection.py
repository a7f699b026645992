"""Tumour area selection: the file is a scanner's, the node is a node, the gold is what is drawn."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import openslide
import pytest
import tifffile
from sklearn.metrics import roc_auc_score
from tumor_area_readers import draw_of

from categories.tumor_area_selection import cells as c
from categories.tumor_area_selection import tissues as t
from categories.tumor_area_selection.deposits import plan
from categories.tumor_area_selection.render import cells_near, draw_window, open_slide
from categories.tumor_area_selection.slide_map import GREY, LEAST_POSITIVE, MAX_GREY, draw_map, tile_shares
from categories.tumor_area_selection.stain import RUIFROK_JOHNSTON, draw_stain
from categories.tumor_area_selection.synthetic import foci, tile_list

TASK = "tumor_area_selection/slide_01"
MM2 = (0.25 / 1000) ** 2


@pytest.fixture(scope="module")
def slide():
    draw = draw_of("slide_01", "0", "small")
    return open_slide(draw, draw_map(draw))


@pytest.fixture(scope="module")
def staged_slide(stage):
    return stage(TASK)


def test_opens_as_a_scanner_file_with_a_pyramid(staged_slide) -> None:
    manifest = json.loads((staged_slide.public / "manifest.json").read_text())
    path = staged_slide.public / manifest["slide"]
    assert openslide.OpenSlide.detect_format(str(path)) == "aperio"
    with openslide.OpenSlide(str(path)) as file:
        assert file.dimensions == (manifest["width"], manifest["height"])
        assert [round(d) for d in file.level_downsamples] == [1, 4, 16, 64]
        assert float(file.properties["openslide.mpp-x"]) == 0.25
        assert file.properties["openslide.objective-power"] == "40"
        at = (manifest["width"] // 2 // 64 * 64, manifest["height"] // 2 // 64 * 64)
        fine = np.asarray(file.read_region(at, 0, (1024, 1024)).convert("RGB")).astype(float)
        for level, side in ((1, 256), (2, 64), (3, 16)):
            coarse = np.asarray(file.read_region(at, level, (side, side)).convert("RGB")).astype(float)
            mean = fine.reshape(side, 1024 // side, side, 1024 // side, 3).mean((1, 3))
            # JPEG halves the colour's resolution and every pixel differs from the next: lightness is compared
            assert np.abs((coarse - mean).mean((0, 1))).max() < 3, level
            assert np.corrcoef(coarse.mean(2).ravel(), mean.mean(2).ravel())[0, 1] > 0.95, level
    columns, rows = manifest["grid"]["columns"], manifest["grid"]["rows"]
    assert (columns, rows) == (-(-manifest["width"] // 4096), -(-manifest["height"] // 4096))
    assert sorted(p.name for p in staged_slide.public.iterdir()) == ["manifest.json", "slide.svs"]
    assert len({p.stat().st_mtime for p in staged_slide.public.iterdir()}) == 1


def test_all_tiles_share_one_header_and_the_tags_tell_sizes_only(staged_slide) -> None:
    with tifffile.TiffFile(staged_slide.public / "slide.svs") as file:
        assert file.is_bigtiff
        pages = list(file.pages)
        assert [page.is_tiled for page in pages] == [True] * 4
        heads = set()
        with (staged_slide.public / "slide.svs").open("rb") as raw:
            for page in pages:
                for offset in page.dataoffsets:
                    raw.seek(offset)
                    data = raw.read(700)
                    heads.add(hashlib.sha256(data[: data.index(b"\xff\xda")]).hexdigest())
        assert len(heads) == 1
        names = {tag.name for page in pages for tag in page.tags.values()}
    assert not names & {"DateTime", "Software", "HostComputer", "Artist", "DocumentName", "ImageID"}


def test_gold_is_what_is_drawn(slide, staged_slide) -> None:
    gold = json.loads((staged_slide.gold / "tiles.json").read_text())
    assert gold["tiles"] == tile_list(slide.map)
    shares = tile_shares(slide.map.tumour())
    for tile in gold["tiles"]:
        assert tile["share"] == pytest.approx(shares[tile["y"], tile["x"]], abs=1e-5)
        assert tile["tumour"] == (shares[tile["y"], tile["x"]] >= 0.2)
    assert len(gold["tiles"]) == (shares > 0).sum()


@pytest.mark.parametrize("case", ["slide_02", "slide_03"])
def test_enough_tumour_few_grey_tiles(case: str) -> None:
    found = draw_map(draw_of(case, "a private seed", "small"))
    positive = (found.shares >= 0.2).sum()
    assert positive >= LEAST_POSITIVE["small"]
    assert ((found.shares >= GREY[0]) & (found.shares < GREY[1])).sum() <= max(1, MAX_GREY * positive)
    assert any(d.kind == "tumour" and d.radius_mm < 0.4 for d in found.deposits), "a small one is declared"
    assert all(d.radius_mm >= 0.4 or d.radius_mm < 0.3 for d in found.deposits if d.kind == "tumour")
    assert foci(found)


def test_windows_that_overlap_agree(slide) -> None:
    y, x = (np.argwhere(slide.map.tumour()).mean(0) * 32 // 32 * 32).astype(int)
    y, x = int(y) // 32 * 32, int(x) // 32 * 32
    first = draw_window(slide, cells_near(slide, x, y, 512), x, y)
    second = draw_window(slide, cells_near(slide, x + 256, y + 96, 512), x + 256, y + 96)
    assert (first[96:, 256:] == second[:-96, :-256]).all()
    block = cells_near(slide, x // 4096 * 4096, y // 4096 * 4096, 8192)
    assert (draw_window(slide, block, x, y) == first).all(), "cells placed by block or by window are the same"


def cells_of(slide, size: int = 8192):
    """Return all cells of the middle of the slide."""
    y, x = (slide.map.height - size) // 2, (slide.map.width - size) // 2
    found = cells_near(slide, x, y, size)
    inside = (found[:, c.X] > x) & (found[:, c.X] < x + size) & (found[:, c.Y] > y) & (found[:, c.Y] < y + size)
    box = np.s_[y // 32 : (y + size) // 32, x // 32 : (x + size) // 32]
    return found[inside], np.bincount(slide.map.exact[box].ravel(), minlength=len(slide.map.rows)) * 1024 * MM2


def test_cells_are_of_a_lymph_node(slide) -> None:
    found, area = cells_of(slide, 14336)
    kinds = {d.number: d.kind for d in slide.map.deposits}
    for region in np.flatnonzero(area > 0.1):
        here = found[found[:, c.REGION] == region]
        nuclei = here[np.isin(here[:, c.KIND], [c.EPITHELIOID, c.LYMPHOCYTE, c.FIBROBLAST])]
        share = (np.pi / 4 * nuclei[:, c.DIAMETER_UM] ** 2).sum() / 1e6 / area[region]
        assert share <= 0.65, (kinds.get(region, region), share)
        big = here[here[:, c.KIND] == c.EPITHELIOID][:, c.DIAMETER_UM]
        small = here[here[:, c.KIND] == c.LYMPHOCYTE][:, c.DIAMETER_UM]
        if region in (t.CORTEX, t.PARACORTEX, t.MANTLE):
            assert 9_000 <= len(small) / area[region] <= 20_000
            assert 5 <= np.median(small) <= 8
        if kinds.get(region) == "tumour":
            assert 800 <= len(big) / area[region] <= 7_000
            assert 1.5 <= np.median(big) / 6.4 <= 3
        elif kinds.get(region) in ("histiocytes", "blasts", "vessels", "follicle"):
            assert np.median(big) < 11


def test_no_two_nuclei_lie_on_one_another_and_no_grid_shows(slide) -> None:
    found, _ = cells_of(slide)
    nuclei = found[np.isin(found[:, c.KIND], [c.EPITHELIOID, c.LYMPHOCYTE])]
    order = np.argsort(nuclei[:, c.X])
    x, y, d = (nuclei[order, k] for k in (c.X, c.Y, c.DIAMETER_UM))
    for step in range(1, 40):
        near = np.hypot(x[step:] - x[:-step], y[step:] - y[:-step]) * 0.25
        assert (near > 0.4 * (d[step:] + d[:-step])).all()
    for period in (8, 18, 512):
        counts = np.bincount((nuclei[:, c.X] % period * 8 / period).astype(int), minlength=8)
        assert counts.std() / counts.mean() < 0.12


def test_mitoses_are_few_and_not_the_tumours_alone(slide) -> None:
    rng = draw_of("slide_01", "mitoses", "small").rng("rows")
    for kind in ("tumour", "follicle", "blasts"):
        per_2mm2 = [
            2 * row[t.MITOSIS] * row[t.EPITHELIOID] for row in (t.deposit_row(rng, kind, "solid") for _ in range(100))
        ]
        assert 1 < np.mean(per_2mm2) < 40
        assert max(per_2mm2) <= 40


def test_stain_stays_near_the_published_vectors() -> None:
    rng = draw_of("slide_01", "stains", "small").rng("stain")
    for _ in range(200):
        for drawn, published in zip(draw_stain(rng).vectors, RUIFROK_JOHNSTON, strict=True):
            cosine = drawn @ published / np.linalg.norm(drawn) / np.linalg.norm(published)
            assert np.degrees(np.arccos(min(1, cosine))) <= 15


def test_ink_folds_and_defocus_cross_tumour_and_others(slide) -> None:
    tumour, tissue = slide.map.tumour(), slide.map.regions > 0
    for overlay in slide.map.overlays:
        assert (overlay[tissue & ~tumour] > 128).any()
    for overlay in slide.map.overlays[[0, 2, 3]]:
        assert (overlay[tumour] > 128).any()


def test_shape_and_depth_do_not_tell_tumour() -> None:
    """One law of shape and place: radii and outlines of metastases and look-alikes have the same distribution."""
    rows = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows += [
            (kind == "tumour", radius)
            for kind, _, radius in plan(rng, 60.0, "full")
            if radius > 0.55 and kind in ("tumour", "vessels", "histiocytes", "blasts")
        ]
    labels, radii = (np.array(v) for v in zip(*rows, strict=True))
    assert abs(roc_auc_score(labels, radii) - 0.5) < 0.05


WORDS = """
import hashlib, sys
sys.path[:0] = ["tests/categories"]
from sklearn.metrics import roc_auc_score
from tumor_area_readers import draw_of
from categories.tumor_area_selection.deposits import plan
from categories.tumor_area_selection.render import cells_near, draw_window, open_slide
from categories.tumor_area_selection.slide_file import encode
from categories.tumor_area_selection.slide_map import draw_map
draw = draw_of("slide_01", "0", "small")
slide = open_slide(draw, draw_map(draw))
digest = hashlib.sha256(slide.map.regions.tobytes() + slide.map.overlays.tobytes() + slide.map.shares.tobytes())
y, x = slide.map.height // 2 // 32 * 32, slide.map.width // 2 // 32 * 32
cells = cells_near(slide, x, y, 2048)
for k in range(16):
    picture = draw_window(slide, cells, x + k % 4 * 512, y + k // 4 * 512)
    digest.update(picture.tobytes() + encode(picture))
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_same_pixels_without_the_processors_extensions() -> None:
    plain = {**os.environ, "PYTHONPATH": "."}
    without = {
        "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX",
        "OPENBLAS_CORETYPE": "Prescott",
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "JSIMD_FORCENONE": "1",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
    }
    found = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", WORDS],
            env=plain | extra,
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for extra in ({}, without)
    ]
    assert len(found[0].strip()) == 64
    assert found[0] == found[1]
