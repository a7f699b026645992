"""Miniature CAMELYON16 slides in the real format: tiled JPEG pyramids as BigTIFF, masks as tiled single-channel pyramids."""

import io
from collections.abc import Iterator
from functools import cache

import imagecodecs
import numpy as np
import tifffile

from categories.catalog import find_task, load_catalog

WIDTH, HEIGHT, TILE = 12_288, 10_240, 512
MICRONS = 0.243
SLIDES = [
    str(spec.clinical["slide"])
    for category in load_catalog()
    if category.id == "tumor_area_selection"
    for spec in category.cases.values()
]


def tissue(step: int) -> np.ndarray:
    """Return where there is tissue, one pixel for ``step`` level-0 pixels: a lopsided oval."""
    y, x = np.mgrid[0 : HEIGHT // step, 0 : WIDTH // step] * step
    return ((x - 6_000) / 5_200) ** 2 + ((y - 5_000) / 4_200 + 0.15 * np.sin(x / 2_500)) ** 2 < 1


def tumour(step: int) -> np.ndarray:
    """Return where there is tumour: two nests, away from every axis of symmetry."""
    y, x = np.mgrid[0 : HEIGHT // step, 0 : WIDTH // step] * step
    first = ((x - 4_900) / 3_900) ** 2 + ((y - 4_800) / 3_600) ** 2 < 1
    second = ((x - 10_000) / 900) ** 2 + ((y - 5_900) / 1_100) ** 2 < 1
    return (first | second) & tissue(step)


@cache
def slide() -> bytes:
    """Return the slide; where nothing was scanned it is white."""
    rng = np.random.default_rng(4)
    out = io.BytesIO()
    options = {
        "tile": (TILE, TILE),
        "photometric": "ycbcr",
        "compression": "jpeg",
        "subsampling": (2, 2),
        "metadata": None,
    }
    with tifffile.TiffWriter(out, bigtiff=True) as tiff:
        for factor in (1, 2, 4, 8, 16, 32):
            shape = (HEIGHT // factor, WIDTH // factor, 3)
            resolution = (1e4 / (MICRONS * factor),) * 2
            tiff.write(
                tiles(factor, shape, rng),
                shape=shape,
                dtype=np.uint8,
                subfiletype=0 if factor == 1 else 1,
                resolution=resolution,
                resolutionunit="CENTIMETER",
                software="Scanner of a real hospital",
                **options,
            )
    return out.getvalue()


def tiles(factor: int, shape: tuple[int, ...], rng: np.random.Generator) -> Iterator[bytes]:
    """Yield encoded tiles: white, or one of a few stained ones by what lies at their middle."""
    white = np.full((TILE, TILE, 3), 255, np.uint8)
    normal = [np.clip(rng.normal((200, 150, 190), 18, (TILE, TILE, 3)), 0, 255).astype(np.uint8) for _ in range(3)]
    cancer = [np.clip(rng.normal((150, 90, 160), 18, (TILE, TILE, 3)), 0, 255).astype(np.uint8) for _ in range(3)]
    coded = {"white": [encode(white)], "normal": [encode(t) for t in normal], "cancer": [encode(t) for t in cancer]}
    inside, ill = tissue(32), tumour(32)
    for row in range(-(-shape[0] // TILE)):
        for column in range(-(-shape[1] // TILE)):
            y, x = (min(int((k + 0.5) * TILE * factor), side - 1) // 32 for k, side in ((row, HEIGHT), (column, WIDTH)))
            kind = "cancer" if ill[y, x] else "normal" if inside[y, x] else "white"
            yield coded[kind][(row * 7 + column) % len(coded[kind])]


def encode(tile: np.ndarray) -> bytes:
    return imagecodecs.jpeg8_encode(tile, level=70, colorspace="RGB", outcolorspace="YCBCR", subsampling="420")


@cache
def mask() -> bytes:
    """Return the mask: 1 tissue, 2 tumour; its levels begin at 1/8 here, which spares the test a gigapixel."""
    out = io.BytesIO()
    with tifffile.TiffWriter(out, bigtiff=True) as tiff:
        for factor in (8, 16, 32):
            level = tissue(factor).astype(np.uint8) + tumour(factor)
            tiff.write(level, tile=(256, 256), compression="deflate", photometric="minisblack", metadata=None)
    return out.getvalue()


def files() -> dict[str, bytes]:
    """Return the bucket's objects: ten names, one picture."""
    found = {f"CAMELYON16/images/{name}.tif": slide() for name in SLIDES}
    return found | {f"CAMELYON16/masks/{name}_mask.tif": mask() for name in SLIDES}


TASK = find_task("tumor_area_selection/slide_01").id
