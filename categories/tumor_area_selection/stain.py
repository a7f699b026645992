"""Stain, glass and scanner: from optical density to the eight-bit picture."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from categories.tumor_area_selection.kernels import between, hash32, kernel, noise

RUIFROK_JOHNSTON = np.array([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11]])
"""Haematoxylin and eosin, RGB optical density (Ruifrok and Johnston 2001); eosin as in the common H&E-only table."""
MAX_DEGREES = 12.0
STEPS = 1024
"""Steps of the exponential's table per unit of optical density."""
S_SCANNER, S_SCANNER2 = 24, 25
INK = np.array([[1.2, 0.75, 0.12], [1.1, 0.45, 0.85]])
"""Optical density of a blue and a green-black marker."""


@dataclass(frozen=True)
class Stain:
    """Colours of one slide."""

    vectors: NDArray[np.float64]
    """2 x 3: optical density per unit of haematoxylin and of eosin."""
    light: NDArray[np.uint16]
    """3 x (4 * STEPS): transmitted light by optical density, in sixteenths of a grey level."""


def draw_stain(rng: np.random.Generator) -> Stain:
    """Draw vectors within twelve degrees of the published ones, strengths, and the white of the scanner."""
    vectors = []
    for published, strength in zip(RUIFROK_JOHNSTON, (1.2, 0.95), strict=True):
        norm = published / np.sqrt((published**2).sum())
        while True:
            drawn = np.abs(norm + np.round(rng.normal(0, 0.055, 3), 6))
            drawn = drawn / np.sqrt((drawn**2).sum())
            if drawn @ norm > np.cos(np.radians(MAX_DEGREES)):
                break
        vectors.append(np.round(drawn * strength * rng.uniform(0.85, 1.15), 5))
    white = np.round(rng.uniform(240, 245) + rng.uniform(-1.5, 1.5, 3), 3)
    fall = np.exp(-np.arange(4 * STEPS) / STEPS)
    return Stain(np.array(vectors), np.round(white[:, None] * fall * 16 - 0.013).astype(np.uint16))


@kernel
def develop(
    density: NDArray[np.float32],
    x0: int,
    y0: int,
    overlays: NDArray[np.uint8],
    table: NDArray[np.float32],
    vectors: NDArray[np.float64],
    light: NDArray[np.uint16],
    ink: NDArray[np.float64],
) -> NDArray[np.uint16]:
    """Return the light (size x size x 3, sixteenths) behind tissue, regional stain, folds and ink."""
    size = density.shape[1]
    m = size // 32 + 2
    regional = np.empty((2, m, m))
    marked = False
    for i in range(m):
        for j in range(m):
            x = x0 + 32 * j
            y = y0 + 32 * i
            regional[0, i, j] = 1 + 0.10 * noise(table, x * 0.0016, y * 0.0016)
            regional[1, i, j] = 1 + 0.14 * noise(table, x * 0.0016 + 333, y * 0.0016 + 111)
            for k in range(3):
                marked = marked or between(overlays[k], x, y) > 0
    out = np.empty((size, size, 3), np.uint16)
    top = light.shape[1] - 1
    for y in range(size):
        i = y // 32
        v = (y % 32) / 32.0
        for x in range(size):
            j = x // 32
            u = (x % 32) / 32.0
            w = (1 - u) * (1 - v), u * (1 - v), (1 - u) * v, u * v
            a = regional[0]
            b = regional[1]
            h = density[0, y, x] * (w[0] * a[i, j] + w[1] * a[i, j + 1] + w[2] * a[i + 1, j] + w[3] * a[i + 1, j + 1])
            e = density[1, y, x] * (w[0] * b[i, j] + w[1] * b[i, j + 1] + w[2] * b[i + 1, j] + w[3] * b[i + 1, j + 1])
            blue = green = 0.0
            if marked:
                fold = 1 + 0.8 * between(overlays[2], x0 + x, y0 + y) / 255
                h *= fold
                e *= fold
                streak = (1 + 0.22 * noise(table, (x0 + x) * 0.05, (y0 + y) * 0.05)) / 255
                blue = between(overlays[0], x0 + x, y0 + y) * streak
                green = between(overlays[1], x0 + x, y0 + y) * streak
            for k in range(3):
                od = h * vectors[0, k] + e * vectors[1, k] + blue * ink[0, k] + green * ink[1, k]
                out[y, x, k] = light[k, min(top, max(0, int(od * STEPS)))]
    return out


@kernel
def soften(picture: NDArray[np.uint16], rounds: int) -> NDArray[np.uint16]:
    """Blur by the binomial 1-2-1 in both directions, in integers; the outermost pixels stay."""
    size = picture.shape[0]
    for _round in range(rounds):
        rows = picture.copy()
        for y in range(size):
            for x in range(1, size - 1):
                for k in range(3):
                    rows[y, x, k] = (picture[y, x - 1, k] + 2 * picture[y, x, k] + picture[y, x + 1, k] + 2) >> 2
        picture = rows.copy()
        for y in range(1, size - 1):
            for x in range(size):
                for k in range(3):
                    picture[y, x, k] = (rows[y - 1, x, k] + 2 * rows[y, x, k] + rows[y + 1, x, k] + 2) >> 2
    return picture


@kernel
def scan(
    sharp: NDArray[np.uint16],
    blurred: NDArray[np.uint16],
    x0: int,
    y0: int,
    margin: int,
    focus: NDArray[np.uint8],
    salts: NDArray[np.uint32],
) -> NDArray[np.uint8]:
    """Return the eight-bit picture without its margin: defocus mixed in, camera noise added last, by coordinate."""
    size = sharp.shape[0] - 2 * margin
    out = np.empty((size, size, 3), np.uint8)
    for y in range(size):
        for x in range(size):
            gx = x0 + x + margin
            gy = y0 + y + margin
            far = int(between(focus, gx, gy)) if blurred.shape[0] > 0 else 0
            a = hash32(gx, gy, salts[S_SCANNER])
            b = hash32(gx, gy, salts[S_SCANNER2])
            for k in range(3):
                value = int(sharp[y + margin, x + margin, k])
                if far:
                    value += (int(blurred[y + margin, x + margin, k]) - value) * far // 255
                s = np.uint32(10 * k)
                grain = int((a >> s) & np.uint32(0x3FF)) + int((b >> s) & np.uint32(0x3FF)) - 1023
                value = (value * 16 + grain * 3 // 4 + 128) >> 8
                out[y, x, k] = min(255, max(0, value))
    return out


def glass(stain: Stain, number: int, size: int, salts: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return one tile of bare glass, with the noise of the camera at a place far off the slide."""
    od = 0.012 * (stain.vectors[0] + stain.vectors[1]) * STEPS
    level = stain.light[np.arange(3), od.astype(np.int64)]
    plain = np.broadcast_to(level, (size, size, 3)).astype(np.uint16)
    none = np.zeros((2, 2), np.uint8)
    return np.asarray(scan(plain, np.empty((0, 0, 3), np.uint16), (1 << 20) + number * size, 1 << 20, 0, none, salts))
