"""Plain detectors of the 17 labels on a chest without noise, each with the finding that must trip it.

A detector returns a measured amount; above its limit the label is "yes". They are crude on purpose: they audit the
template, they judge nobody's answer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import ndimage as ndi

from categories.chest.labels import BONES, LEFT_LUNG, LOBES, ORGANS, VESSELS, where


@dataclass
class Chest:
    """HU without noise, organs, voxel (mm), and where the patient's own trees run."""

    hu: np.ndarray
    organs: np.ndarray
    mm: np.ndarray
    trees: np.ndarray

    @property
    def ml(self) -> float:
        return float(np.prod(self.mm)) / 1000

    def organ(self, *names: str) -> np.ndarray:
        return where(self.organs, names)

    @property
    def lungs(self) -> np.ndarray:
        return where(self.organs, LOBES)

    @property
    def bone(self) -> np.ndarray:
        return where(self.organs, BONES)


def near(mask: np.ndarray, mm: np.ndarray, reach_mm: float) -> np.ndarray:
    """Where the mask is no further than the reach; looked at only in its surroundings."""
    out = np.zeros_like(mask)
    if not mask.any():
        return out
    wide = [int(reach_mm / m) + 2 for m in mm]
    found = ndi.find_objects(mask.astype(np.uint8))[0]
    box = tuple(slice(max(0, s.start - w), s.stop + w) for s, w in zip(found, wide, strict=True))
    out[box] = ndi.distance_transform_edt(~mask[box], sampling=mm) <= reach_mm
    return out


def open_parenchyma(c: Chest) -> np.ndarray:
    """Lung away from the pleura, the hila and the patient's own vessels and bronchi."""
    inner = ndi.distance_transform_edt(c.lungs, sampling=c.mm) > 4
    return inner & ~near(c.trees, c.mm, 2.2)


def largest_ml(c: Chest, mask: np.ndarray) -> float:
    pieces, _ = ndi.label(mask)
    sizes = np.bincount(pieces.ravel())[1:]
    return float(sizes.max()) * c.ml if len(sizes) else 0.0


def widest_mm(c: Chest, mask: np.ndarray) -> float:
    """Diameter of the largest ball that fits."""
    return 2 * float(ndi.distance_transform_edt(mask, sampling=c.mm).max()) if mask.any() else 0.0


def dense_lung(c: Chest, above: float) -> np.ndarray:
    return open_parenchyma(c) & (c.hu > above)


def medical_material(c: Chest) -> float:
    return float(((c.hu > 1500) & ~near(c.bone, c.mm, 4)).sum()) * c.ml * 1000


def wall_calcium(c: Chest) -> float:
    arteries = c.organ("aorta", "brachiocephalic_trunk", "subclavian_artery_left", "common_carotid_artery_left")
    return largest_ml(c, near(arteries, c.mm, 1.5) & (c.hu >= 130) & ~near(c.bone, c.mm, 3)) * 1000


def coronary_calcium(c: Chest) -> float:
    return largest_ml(c, near(c.organ("heart"), c.mm, 3) & (c.hu >= 130) & ~near(c.bone, c.mm, 4)) * 1000


def cardiothoracic(c: Chest) -> float:
    heart = np.nonzero(c.organ("heart").any((1, 2)))[0]
    across = [np.nonzero(c.lungs[:, :, k].any(1))[0] for k in range(c.hu.shape[2])]
    return float(np.ptp(heart) + 1) / max(np.ptp(a) + 1 for a in across if len(a))


def pericardial_fluid(c: Chest) -> float:
    """Millilitres of water-like tissue in a shell round the heart, below the great vessels."""
    heart = c.organ("heart")
    low = np.nonzero(heart.any((0, 1)))[0]
    shell = near(heart, c.mm, 9) & ~near(where(c.organs, set(VESSELS) - {"heart"}), c.mm, 5) & ~c.lungs
    shell &= ~near(c.organ("liver", "stomach", "esophagus", "spleen"), c.mm, 5) & ~near(c.bone, c.mm, 6)
    shell[:, :, low[0] + int(0.55 * len(low)) :] = False
    shell &= ~heart & (c.hu > -5) & (c.hu < 32)
    return float(ndi.binary_opening(shell, np.ones((3, 3, 1))).sum()) * c.ml


def hernia(c: Chest) -> float:
    """Gas or gut beside the oesophagus above the diaphragm, ml."""
    base = int(np.nonzero(c.organ("liver").sum((0, 1)) > 50)[0].max())
    beside = near(c.organ("esophagus"), c.mm, 25) & ~near(c.organ("trachea"), c.mm, 12) & ~c.lungs
    beside[:, :, : base - 4] = False
    beside[:, :, base + 14 :] = False
    beside &= ~near(where(c.organs, VESSELS), c.mm, 2) & ~near(c.bone, c.mm, 4)
    gas = largest_ml(c, beside & (c.hu < -300))
    bulk = ndi.binary_opening(beside & (c.hu > -20), _ball(c, 9))
    return gas + largest_ml(c, bulk)


def nodes(c: Chest) -> float:
    """Widest round soft tissue (mm) beside the trachea, above its fork, that belongs to no labelled organ."""
    trachea = c.organ("trachea")
    rise = np.nonzero(trachea.any((0, 1)))[0]
    middle = near(trachea, c.mm, 18) & ~c.lungs
    middle[:, :, : int(np.percentile(rise, 40))] = False
    middle[:, :, int(np.percentile(rise, 70)) :] = False
    free = middle & ~near(where(c.organs, (*VESSELS, "esophagus", "thyroid_gland", "trachea")), c.mm, 2)
    free &= ~near(c.bone, c.mm, 6) & (c.hu > 0) & (c.hu < 100)
    return widest_mm(c, free)


def emphysema(c: Chest) -> float:
    return float((c.hu[c.lungs] < -950).mean())


def atelectasis(c: Chest) -> float:
    """Millilitres of dense lung in pieces that are flat or at the pleura."""
    dense = (c.hu > -450) & ndi.binary_erosion(c.lungs, np.ones((3, 3, 1)), 2) & ~near(c.trees, c.mm, 2.2)
    return largest_ml(c, dense)


def nodule(c: Chest) -> float:
    return widest_mm(c, dense_lung(c, -450))


def opacity(c: Chest) -> float:
    smooth = ndi.gaussian_filter(c.hu.astype(np.float32), (2.5, 2.5, 0.8))
    return largest_ml(c, open_parenchyma(c) & ~near(c.trees, c.mm, 4) & (smooth > -700))


def consolidation(c: Chest) -> float:
    dense = ndi.binary_opening(dense_lung(c, -250), _ball(c, 3.5))
    return largest_ml(c, dense)


def effusion(c: Chest) -> float:
    """Millilitres of water-like tissue between the lower lungs and the ribs behind."""
    behind = near(c.lungs, c.mm, 22) & ~near(c.bone, c.mm, 2.5) & ~c.lungs & (c.organs == ORGANS["body"])
    spine = np.nonzero(c.organ("spinal_cord").any((0, 2)))[0].mean()
    behind[:, int(spine + 90 / c.mm[1]) :] = False
    water = (c.hu > -5) & (c.hu < 30)
    thick = ndi.binary_opening(behind & water, _ball(c, 4.5))
    return largest_ml(c, thick)


def mosaic(c: Chest) -> float:
    """Spread (HU) of parenchyma between patches of some centimetres, the trend from back to front aside."""
    inner = open_parenchyma(c)
    weight = ndi.gaussian_filter(inner.astype(np.float32), (7, 7, 2))
    smooth = ndi.gaussian_filter(np.where(inner, c.hu, 0).astype(np.float32), (7, 7, 2)) / np.maximum(weight, 1e-3)
    place = np.argwhere(inner & (weight > 0.4))[::97]
    value = smooth[tuple(place.T)]
    design = np.column_stack([place, place[:, 1] ** 2, np.ones(len(place))]).astype(float)
    fitted = design @ np.linalg.lstsq(design, value, rcond=None)[0]
    return float((value - fitted).std())


def wall_share(lumen: np.ndarray, wall: np.ndarray) -> float:
    return float(np.median(wall / (2 * (lumen + wall))))


def septa(c: Chest) -> float:
    """Share of the outer lung (5 to 12 mm from the pleura) in fine lines denser than -700 HU off the trees."""
    deep = ndi.distance_transform_edt(c.lungs, sampling=c.mm)
    outer = (deep > 5) & (deep < 12)
    return float((outer & (c.hu > -700) & ~near(c.trees, c.mm, 1.5)).sum() / outer.sum())


def _ball(c: Chest, radius_mm: float) -> np.ndarray:
    reach = [int(radius_mm / m) for m in c.mm]
    axes = np.meshgrid(*[np.arange(-r, r + 1) * m for r, m in zip(reach, c.mm, strict=True)], indexing="ij")
    return sum(a * a for a in axes) <= radius_mm**2


def _put(
    c: Chest, centre: np.ndarray, radii_mm: tuple[float, float, float], hu: float, inside: np.ndarray
) -> np.ndarray:
    axes = [((np.arange(n) - p) * m / r) ** 2 for n, p, m, r in zip(c.hu.shape, centre, c.mm, radii_mm, strict=True)]
    ball = (axes[0][:, None, None] + axes[1][None, :, None] + axes[2][None, None, :] < 1) & inside
    c.hu[ball] = hu
    return ball


def _deep(c: Chest, names: tuple[str, ...] = LOBES) -> np.ndarray:
    """A place in the lung far from pleura and trees."""
    free = ndi.distance_transform_edt(where(c.organs, names) & ~near(c.trees, c.mm, 2), sampling=c.mm)
    return np.array(np.unravel_index(free.argmax(), free.shape))


def _middle(c: Chest, *names: str) -> np.ndarray:
    return np.argwhere(c.organ(*names)).mean(0)


def add_line(c: Chest) -> None:
    _put(c, _middle(c, "superior_vena_cava"), (1.5, 1.5, 60), 2500, c.hu > -2000)


def add_wall_calcium(c: Chest) -> None:
    rim = np.argwhere(c.organ("aorta") & ~ndi.binary_erosion(c.organ("aorta")))
    _put(c, rim[len(rim) // 2], (3, 3, 4), 600, c.hu > -300)


def add_coronary_calcium(c: Chest) -> None:
    _put(c, _middle(c, "heart") + np.array([0, 20, 3]), (3, 3, 4), 600, c.hu > -2000)


def add_pericardial_fluid(c: Chest) -> None:
    heart = c.organ("heart")
    low = np.nonzero(heart.any((0, 1)))[0]
    shell = near(heart, c.mm, 9) & ~heart & ~c.bone
    shell[:, :, low[0] + int(0.55 * len(low)) :] = False
    c.hu[shell] = 12
    c.organs[shell] = ORGANS["body"]


def add_hernia(c: Chest) -> None:
    base = int(np.nonzero(c.organ("liver").sum((0, 1)) > 50)[0].max())
    at = np.argwhere(c.organ("esophagus")[:, :, base + 4]).mean(0)
    ball = _put(c, np.array([at[0], at[1] + 10 / c.mm[1], base + 4]), (24, 20, 24), 30, ~c.organ("aorta"))
    c.organs[ball] = ORGANS["body"]


def add_node(c: Chest) -> None:
    rise = np.nonzero(c.organ("trachea").any((0, 1)))[0]
    level = int(np.percentile(rise, 55))
    at = np.append(np.argwhere(c.organ("trachea")[:, :, level]).mean(0), level)
    ball = _put(c, at + np.array([-18 / c.mm[0], 2 / c.mm[1], 0]), (8, 8, 11), 45, c.hu > -2000)
    c.organs[ball] = ORGANS["body"]


def add_emphysema(c: Chest) -> None:
    rng = np.random.default_rng(0)
    c.hu[c.lungs & (c.hu < -700) & (rng.random(c.hu.shape) < 0.15)] = -985


def add_atelectasis(c: Chest) -> None:
    _put(c, _deep(c, LEFT_LUNG), (30, 22, 2.6), -50, c.lungs)


def add_nodule(c: Chest) -> None:
    _put(c, _deep(c), (5, 5, 5), 20, c.lungs)


def add_opacity(c: Chest) -> None:
    at = _deep(c)
    before = c.hu.copy()
    _put(c, at, (24, 24, 24), 0, c.lungs)
    c.hu[:] = np.where(c.hu == 0, np.minimum(before + 260, 40), c.hu)


def add_consolidation(c: Chest) -> None:
    _put(c, _deep(c), (22, 22, 22), 35, c.lungs)


def add_effusion(c: Chest) -> None:
    lungs = c.lungs
    for k in range(c.hu.shape[2] // 2):
        back = np.nonzero(lungs[:, :, k].any(0))[0]
        if len(back):
            layer = lungs[:, :, k].copy()
            layer[:, back[0] + int(24 / c.mm[1]) :] = False
            c.hu[:, :, k][layer] = 10
            c.organs[:, :, k][layer] = ORGANS["body"]


def add_mosaic(c: Chest) -> None:
    patch = ndi.gaussian_filter(np.random.default_rng(0).standard_normal(c.hu.shape), (10, 10, 4))
    c.hu[c.lungs & (c.hu < -600) & (patch > 0)] += 90


def add_septa(c: Chest) -> None:
    i, j = np.indices(c.hu.shape[:2])
    lines = ((i * c.mm[0]).astype(int) % 14 < 1) | ((j * c.mm[1]).astype(int) % 14 < 1)
    c.hu[lines[:, :, None] & c.lungs] = -550


@dataclass(frozen=True)
class Detector:
    measure: Callable[[Chest], float]
    limit: float
    add: Callable[[Chest], None]


DETECTORS = {
    "Medical material": Detector(medical_material, 5, add_line),
    "Arterial wall calcification": Detector(wall_calcium, 4, add_wall_calcium),
    "Coronary artery wall calcification": Detector(coronary_calcium, 4, add_coronary_calcium),
    "Pericardial effusion": Detector(pericardial_fluid, 25, add_pericardial_fluid),
    "Hiatal hernia": Detector(hernia, 4, add_hernia),
    "Lymphadenopathy": Detector(nodes, 10, add_node),
    "Emphysema": Detector(emphysema, 0.06, add_emphysema),
    "Atelectasis": Detector(atelectasis, 1.0, add_atelectasis),
    "Lung nodule": Detector(nodule, 5, add_nodule),
    "Lung opacity": Detector(opacity, 2.0, add_opacity),
    "Pleural effusion": Detector(effusion, 5, add_effusion),
    "Mosaic attenuation pattern": Detector(mosaic, 14, add_mosaic),
    "Consolidation": Detector(consolidation, 1.0, add_consolidation),
    "Interlobular septal thickening": Detector(septa, 0.03, add_septa),
}
"""Cardiomegaly, bronchiectasis and peribronchial thickening are measured on the warp and the trees themselves."""
