"""Honest solver: classical image analysis of a chest CT, a measure for each label.

Arrays run upwards, backwards, to the patient's left: `fine` is the scan, `half` has its planes halved, `grid` all axes.
"""

import os
from pathlib import Path
from typing import Any as Array

import nibabel
import numpy as np
import pydicom
from scipy import ndimage as ndi
from scipy.ndimage import binary_dilation as dilated
from scipy.ndimage import binary_erosion as eroded
from skimage.transform import downscale_local_mean

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
OUT = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
POOLED: Array = downscale_local_mean
CANONICAL: Array = nibabel.as_closest_canonical
BALL = ndi.iterate_structure(ndi.generate_binary_structure(3, 1), 2)
STATIONS = (
    ((0, 34), (-16, 2), (-24, -10), 0.15),
    ((-32, -8), (2, 14), (-4, 14), 0.3),
    ((2, 14), (-34, -8), (26, 46), 0.25),
    ((-26, -14), (8, 20), (50, 64), 0.5),
)
"""Paratracheal, subcarinal, aortopulmonary, left hilar: box (mm from the carina), soft share that is no longer fat."""
LIMITS = (5, 14, 0.46, 80, 15, 58, 1, 4.5, 3.5, 125, 5.8, 14, 78, 9, 3, 300, 5.4)
"""The measures of the labels, in the order of labels.txt, from which they are answered yes."""


def read_scan(folder: Path) -> tuple[Array, Array]:
    """Return Hounsfield units and the spacing in millimetres."""
    if (folder / "scan.nii.gz").exists():
        image = CANONICAL(nibabel.load(folder / "scan.nii.gz"))
        voxels = np.asarray(image.dataobj).astype(np.int16)[::-1, ::-1].transpose(2, 1, 0)
        return np.ascontiguousarray(voxels), np.array(image.header.get_zooms()[:3], float)[::-1]
    files = sorted(map(pydicom.dcmread, (folder / "series").iterdir()), key=lambda f: float(f.ImagePositionPatient[2]))
    voxels = np.stack([f.pixel_array * float(f.RescaleSlope) + float(f.RescaleIntercept) for f in files])
    step = float(files[1].ImagePositionPatient[2]) - float(files[0].ImagePositionPatient[2])
    return voxels.astype(np.int16), np.array([step, *map(float, files[0].PixelSpacing)])


def parts(mask: Array, structure: Array | None = None) -> tuple[Array, Array]:
    """Return the labelled components and their counts of voxels (0 for the background)."""
    labels = ndi.label(mask, structure)[0]
    return labels, np.bincount(labels.ravel()) * (np.arange(labels.max() + 1) > 0)


class Chest:
    """A scan with body, lungs (`filled`: with vessels), bony cage, and places from the carina (mm)."""

    def __init__(self, fine: Array, mm: Array) -> None:
        """Segment."""
        self.mm, self.half_mm, self.grid_mm = mm, mm * [1, 2, 2], mm * [2, 4, 4]
        self.fine = fine[tuple(slice(n // k * k) for n, k in zip(fine.shape, (2, 4, 4), strict=True))]
        self.half = np.stack([POOLED(plane, (2, 2)) for plane in self.fine]).astype(np.float32)
        self.grid, body, lung = (POOLED(a, (2, 2, 2)) for a in (self.half, *self._outline()))
        self.grid, self.body, self.lung = self.grid.astype(np.float32), body > 0.5, lung > 0.5
        self.ml = float(np.prod(self.grid_mm) / 1000)
        self.level = float(np.median(self.half[self.half_lung]))
        self.smooth = ndi.gaussian_filter(self.grid, 0.8)
        self.bare = ndi.grey_opening(ndi.gaussian_filter(np.clip(self.grid, -1000, 100), 0.6), size=(3, 3, 3))
        self.filled = ndi.binary_closing(self.lung, iterations=3) | self.lung
        self.cage, self.carina = self._cage() | self.lung, self._carina()
        axes = [(np.arange(n) - c / 2) * s for n, c, s in zip(self.grid.shape, self.carina, self.grid_mm, strict=True)]
        self.up, self.back, self.left = np.meshgrid(*axes, indexing="ij", sparse=True)

    def _outline(self) -> tuple[Array, Array]:
        self.half_body = np.zeros(self.half.shape, bool)
        for k, plane in enumerate(self.half):
            labels, counts = parts(ndi.binary_opening(plane > -350, iterations=2))
            self.half_body[k] = ndi.binary_fill_holes(labels == max(int(counts.argmax()), 1))
        inside = ndi.binary_erosion(self.half_body, np.ones((1, 3, 3)), iterations=2)
        labels, counts = parts((self.half < -500) & inside)
        self.half_lung = (counts * np.prod(self.half_mm) > 120_000)[labels]
        return self.half_body, self.half_lung

    def _cage(self) -> Array:  # the nearest bone about the body's middle in 120 directions
        bone = ndi.maximum_filter1d(self.grid > 170, 2 * int(9 / self.grid_mm[0]) + 1, axis=0)
        radius, rays = np.full((len(bone), 120), 400.0), []
        rows, columns = np.mgrid[: bone.shape[1], : bone.shape[2]]
        for k, body in enumerate(self.body):
            y, x = np.nonzero(body)
            middle = (y.mean(), np.median(x)) if len(y) else (0, 0)
            across, down = (columns - middle[1]) * self.grid_mm[2], (rows - middle[0]) * self.grid_mm[1]
            far, turn = np.hypot(across, down), (np.arctan2(down, across) * 60 / np.pi).astype(int) % 120
            hit = bone[k] & body & (far > 45)
            np.minimum.at(radius[k], turn[hit], far[hit])
            rays.append((far, turn))
        radius = ndi.median_filter(ndi.percentile_filter(radius, 30, size=(1, 9), mode="wrap"), (5, 5), mode="wrap")
        return np.stack([far < radius[k][turn] - 1 for k, (far, turn) in enumerate(rays)]) & self.body

    def _carina(self) -> Array:  # where the section of the trachea, followed downwards, shrinks most
        track: list[Array] = []
        for k in range(len(self.half) - 1, -1, -1):
            labels, counts = parts((self.half[k] < -880) & self.half_body[k])
            areas = counts * self.half_mm[1] * self.half_mm[2]
            near = track[-1][1:3] if track else ndi.center_of_mass(self.half_body[k])
            reach, low, high = ((8, 8), 40, 1200) if track else ((50, 25), 60, 700)
            spots = []
            for i in np.flatnonzero((areas > low) & (areas < high)):
                spot = ndi.center_of_mass(labels == i)
                gap = abs((np.array(spot) - near) * self.half_mm[1:])
                if (gap < reach).all():
                    spots.append((gap.sum() if track else -areas[i], k, *spot, areas[i]))
            if not spots and len(track) > 15:
                break
            track = [*track, min(spots)[1:]] if spots else []
        if len(track) < 5:
            return np.array(self.half.shape) * [0.65, 0.5, 0.5]
        area = np.array([spot[3] for spot in track] + 4 * [track[-1][3] * (track[-1][3] < 100)])
        last = range(int(0.4 * len(track)) + 1, len(track))
        drops = [area[max(j - 3, 0) : j].max() - area[j + 1 : j + 4].max() for j in last]
        return np.array(track[int(np.argmax(drops)) - len(drops)][:3]) - [-1, 0, 0]


def masses(c: Chest) -> tuple[float, ...]:
    """Return the volumes (ml) of pericardial fluid, a dense sheet or wedge, dependent fluid; air (%) in dense lung."""
    fluid = (c.smooth > -12) & (c.smooth < 28) & dilated(c.cage) & c.body
    middle = np.array([np.median(np.nonzero(b)[0]) if b.any() else 0 for b in c.body])
    behind = (np.arange(fluid.shape[1])[None, :, None] - middle[:, None, None]) * c.grid_mm[1] > 15
    (labels, counts), pleural = parts(eroded(dilated(eroded(fluid), mask=fluid) & behind)), 0.0
    for i in np.argsort(-counts)[:6]:
        layer = dilated(labels == i)
        if counts[i] and ndi.center_of_mass(layer)[0] * c.grid_mm[0] > 60 and c.smooth[layer].mean() < 22:
            depth = ndi.distance_transform_edt(layer[ndi.find_objects(layer.astype(int))[0]], sampling=c.grid_mm)
            pleural = max(pleural, float(layer.sum() * c.ml) * (depth.max() > 5))
    fluid = (c.smooth > -5) & (c.smooth < 26) & eroded(c.cage, None, 2) & ~c.lung
    zone = (abs(c.up + 77) < 48) & (abs(c.back + 39) < 61) & (abs(c.left - 22) < 83)
    volumes = parts(dilated(eroded(fluid), mask=fluid) & zone)[1] * c.ml
    above, below = (np.maximum.accumulate(c.lung[::way], 0)[::way] for way in (-1, 1))
    zone = above & below & c.cage & (c.back > 5) & (abs(c.left) > 15) & (c.smooth > 24) & (c.smooth < 85)
    wedge = 2 * c.ml * parts(ndi.binary_opening(zone, BALL))[1].max()
    return float(volumes.max()), max(plate(c), float(wedge)), pleural, bronchogram(c)


def bronchogram(c: Chest) -> float:
    """Return the largest share of air (%) in a dense body within the hull of a lung."""
    reach, hull = int(24 / c.grid_mm[1]), np.zeros_like(c.lung)
    for z, left in np.ndindex(len(hull), 2):
        wide = ndi.distance_transform_edt(~np.pad(c.lung[z] & ((c.left[0] < 0) == left), reach)) <= reach
        hull[z] |= (ndi.distance_transform_edt(wide) > reach)[reach:-reach, reach:-reach]
    dense = np.pad((ndi.grey_closing(c.smooth, (3, 3, 3)) > -150) & hull, 3)
    labels, counts = parts(ndi.binary_opening(ndi.binary_closing(dense, BALL)[3:-3, 3:-3, 3:-3] & hull, BALL))
    air = np.bincount(labels.ravel(), (c.grid < -250).ravel(), len(counts)) / np.maximum(counts, 1)
    return 100 * float(air[counts * c.ml > 2].max(initial=0))


def plate(c: Chest) -> float:
    """Return the volume (ml) of the largest flat dense sheet within the lungs."""
    places, sheet, sizes = np.nonzero(eroded(c.filled) & (c.smooth > -450)), np.zeros_like(c.lung), [0.0]
    bend = curvatures(np.clip(c.grid, -1000, 100), c.grid_mm, 3.0, places)
    sheet[places] = (bend[:, 0] < -150) & (abs(bend[:, 1]) < -0.45 * bend[:, 0])
    labels, counts = parts(sheet, np.ones((3, 3, 3)))
    for i in np.flatnonzero(counts * c.ml > 0.5):
        at = np.argwhere(labels == i) * c.grid_mm
        sizes.append(float(counts[i] * c.ml) * (np.ptp(at @ np.linalg.eigh(np.cov(at.T))[1][:, 0]) < 16))
    return max(sizes)


def curvatures(field: Array, mm: Array, scale: float, places: tuple[Array, ...]) -> Array:
    """Return the ordered eigenvalues of the Hessian (HU at that scale) at some places."""
    matrix = np.empty((len(places[0]), 3, 3), np.float32)
    for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        order = [(i == k) + (j == k) for k in range(3)]
        value = ndi.gaussian_filter(field, scale / mm, order, truncate=3)[places]
        matrix[:, i, j] = matrix[:, j, i] = value * scale * scale / (mm[i] * mm[j])
    return np.linalg.eigvalsh(matrix)


def lung_findings(c: Chest) -> tuple[float, ...]:
    """Return holes (%), nodule (HU), haze off the dependent lung (ml), spread (HU), lines at the pleura (per mille)."""
    height = np.flip(np.cumsum(np.flip(c.filled, 1), 1), 1) * c.grid_mm[1]
    dense = dilated(dilated(eroded(c.smooth > -250), mask=c.smooth > -250), None, 2)
    haze = eroded(c.filled, None, 2) & (c.bare > np.median(c.bare[c.lung]) + 135) & (c.bare < -380) & (height > 25)
    weight = ndi.gaussian_filter(c.filled.astype(np.float32), 15 / c.grid_mm) + 1e-3
    around = ndi.gaussian_filter(np.where(c.filled, np.clip(c.bare, -970, -600), 0), 15 / c.grid_mm) / weight
    clear = eroded(c.filled, None, 3) & (c.bare < -650) & (c.bare > -965)
    low, high = np.percentile((c.bare - around)[clear], (15, 85))
    hazy, spread = float(parts(eroded(haze & ~dense))[1].max() * c.ml), float(high - low)
    mm, masks = c.half_mm, (c.filled, eroded(c.filled), eroded(c.filled, None, 2))
    fill, inner, deep = (m.repeat(2, 0).repeat(2, 1).repeat(2, 2) for m in masks)
    box = ndi.find_objects(fill.astype(np.uint8))[0]
    field, fill, inner, deep = np.clip(c.half[box], -1000, 100), fill[box], inner[box], deep[box]
    smooth = ndi.gaussian_filter(field, 0.7)
    blob = -ndi.gaussian_laplace(field, 2.6 / mm)
    places = np.nonzero((blob == ndi.maximum_filter(blob, 5)) & deep & (blob > 40))
    bend = curvatures(field, mm, 2.6, places)
    crowd = ndi.uniform_filter((smooth > -400).astype(np.float32), [int(24 / s) | 1 for s in mm])[places]
    alone = (crowd < 0.2) & (bend[:, 0] > 2.6 * bend[:, 2])
    nodule = float(-bend[alone, 2].min(initial=0))
    thin = inner & (abs(smooth - c.level / 2 + 95) < -c.level / 2 - 155) & (ndi.gaussian_laplace(field, 1.1 / mm) < -60)
    places = np.nonzero(thin)
    bend = curvatures(field, mm, 1.1, places)
    thin[places] = (bend[:, 0] < -60) & (abs(bend[:, 1]) < 0.4 * abs(bend[:, 0]))
    rim = fill & ~deep
    lines, holes = (thin & rim).sum() / rim.sum(), ((smooth < -950) & fill).sum() / fill.sum()
    return 100 * float(holes), nodule, hazy, spread, 1000 * float(lines)


def dense_parts(c: Chest) -> tuple[float, ...]:
    """Return the lengths (mm) of plaques of the aorta, of the coronaries, and of the longest metal part."""
    mean = np.stack([ndi.uniform_filter(plane.astype(np.float32), 3) for plane in c.fine])
    high = (mean > 130) & (c.fine > 130) & c.half_body.repeat(2, 1).repeat(2, 2)
    labels, counts = parts(high, np.ones((3, 3, 3)))
    fat = ndi.uniform_filter(((c.smooth > -200) & (c.smooth < -25)).astype(np.float32), 5)
    soft = ndi.uniform_filter(((c.smooth > 10) & (c.smooth < 90)).astype(np.float32), 7)
    deep, inside = ndi.distance_transform_edt(~c.lung, sampling=c.grid_mm), eroded(c.cage)
    found, voxel = np.zeros(3), np.prod(c.mm)
    for i, box in enumerate(ndi.find_objects(labels), 1):
        place = np.array(ndi.center_of_mass(labels[box] == i)) + [s.start for s in box]
        at = tuple((place // [2, 4, 4]).astype(int))
        if not inside[at] or counts[i] < 5 or not 4 <= counts[i] * voxel <= 60_000:
            continue
        where = np.argwhere(labels[box] == i)
        values = c.fine[box][tuple(where.T)]
        spread, axes = np.linalg.eigh(np.cov(where.T * c.mm[:, None]) + 1e-6 * np.eye(3))
        thin, length = 4 * np.sqrt(max(spread[0], 0)), float(np.ptp(where * c.mm @ axes[:, -1]))
        found[2] = max(found[2], length * ((values > 1500).sum() * voxel > 20))
        z, y, x = (place / [1, 2, 2] - c.carina) * c.half_mm
        if counts[i] * voxel > 1500 or values.max() < 250:
            continue
        near = (6 < z < 45 and abs(x) < 50 and y > -60) or (z < 6 and 10 < x < 48 and y > 8)
        found[0] += length * (near and soft[at] > 0.27 and thin < 4.8 and (spread[2] > 3 * spread[0] or thin < 4))
        ring = fat[at] < 0.01 and soft[at] > 0.75 and thin > 4.4
        valve = deep[at] > 23.5 and -36 < y < -18 and x < 29 and soft[at] > 0.86
        shell, rib = z < -61 and x > 50 and y < -55, y < -72 and values.max() < 430
        found[1] += length * (-135 < z < -30 and -96 < y < 9 and -12 < x < 90 and not (ring or valve or shell or rib))
    return float(found[2]), float(found[0]), float(found[1])


def mediastinum(c: Chest) -> tuple[float, ...]:
    """Return the cardiothoracic ratio, the space between the lungs before the spine (mm), the fullest nodal station."""
    first, widths, gaps = int(c.carina[0] / 2), [0.0], [0.0]
    for z in range(max(first - int(125 / c.grid_mm[0]), 0), first - int(30 / c.grid_mm[0])):
        plane = (c.smooth[z] > 0) & c.cage[z] & ~c.lung[z] & (abs(c.back[0] + 41) < 53)
        labels, counts = parts(ndi.binary_opening(plane, BALL[2]))
        if counts.any() and c.up[z, 0, 0] > -75:
            widths.append(float(np.ptp(np.nonzero(labels == counts.argmax())[1])))
        spine = np.nonzero(((c.grid[z] > 200) & (abs(c.left[0]) < 14) & (c.back[0] > 5)).any(1))[0]
        air = np.nonzero(c.lung[z][max(spine[0] - int(18 / c.grid_mm[1]), 0)])[0] if len(spine) else np.zeros(0)
        middle = c.carina[2] / 2 + 5 / c.grid_mm[2]
        if (air < middle - 3).any() and (air > middle + 3).any():
            gaps.append((air[air > middle + 3].min() - air[air < middle - 3].max()) * c.grid_mm[2])
    soft, full = ndi.gaussian_filter(c.half, 0.8), 0.0
    for *sides_mm, limit in STATIONS:
        ends = zip(sides_mm, c.carina, c.half_mm, strict=True)
        box = tuple(slice(max(int(o + a / s), 0), int(o + b / s) + 1) for (a, b), o, s in ends)
        full = max(full, float(((soft[box] > 5) & (soft[box] < 110)).mean()) / limit)
    ratio = np.percentile(widths, 95) / np.ptp(np.nonzero(c.lung.any((0, 1)))[0])
    return float(ratio), float(np.percentile(gaps, 75)), full


def bronchi(c: Chest) -> tuple[float, ...]:
    """Return the lengths (mm, summed over slices) of rings with a wide lumen and of narrow ones with a dense wall."""
    radii, angles = np.arange(0, 8, 0.35), np.arange(24) * np.pi / 12
    down, across = np.outer(np.sin(angles), radii) / c.mm[1], np.outer(np.cos(angles), radii) / c.mm[2]
    found = np.zeros(2)
    for z in np.flatnonzero(c.half_lung.sum((1, 2)) > 800):
        plane = ndi.gaussian_filter(c.fine[z].astype(np.float32), 0.7)
        near = ndi.binary_dilation(c.half_lung[z], iterations=3).repeat(2, 0).repeat(2, 1)
        labels, counts = parts((plane < c.level - 30) & near)
        wanted = np.flatnonzero(abs(counts * c.mm[1] * c.mm[2] - 60.5) < 59.5)
        centre = np.array(ndi.center_of_mass(labels > 0, labels, wanted)).reshape(-1, 2, 1, 1)
        rays = ndi.map_coordinates(plane, [centre[:, 0] + down, centre[:, 1] + across], order=1, mode="nearest")
        first = (rays > c.level + 80).argmax(2)
        reach = np.minimum(first[..., None] + np.arange(4), len(radii) - 1)
        wall = np.percentile(np.take_along_axis(rays, reach, 2).max(2), (15, 50), axis=1)
        hit, lumen = first > 0, 0.7 * first.sum(1) / np.maximum((first > 0).sum(1), 1)
        uneven = np.sqrt((hit * (0.7 * first - lumen[:, None]) ** 2).sum(1) / np.maximum(hit.sum(1), 1))
        ring = (hit.mean(1) > 0.85) & (uneven < 0.4 * lumen)
        found[0] += (ring & (abs(lumen - 5.5) < 1.5) & (wall[1] > c.level + 120)).sum() * c.mm[0]
        found[1] += (ring & (lumen < 3.5) & (wall[0] > -400)).sum() * c.mm[0]
    return float(found[1]), float(found[0])


def measures(c: Chest) -> tuple[float, ...]:
    """Return the labels' measures, in the order of labels.txt."""
    metal, arterial, coronary = dense_parts(c)
    ratio, space, station = mediastinum(c)
    pericardial, collapsed, pleural, consolidated = masses(c)
    holes, nodule, haze, spread, lines = lung_findings(c)
    values = (metal, arterial, ratio, pericardial, coronary, space, station, holes, collapsed, nodule, haze, pleural)
    return (*values, spread, (airways := bronchi(c))[0], consolidated, airways[1], lines)


def main() -> None:
    """Measure, compare, write."""
    labels = (DATA / "labels.txt").read_text(encoding="utf-8").split("\n")[: len(LIMITS)]
    found = zip(labels, measures(Chest(*read_scan(DATA))), LIMITS, strict=True)
    OUT.mkdir(parents=True, exist_ok=True)
    lines = (f"{label}: {'yes' if value >= limit else 'no'}\n" for label, value, limit in found)
    (OUT / "predictions.txt").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
