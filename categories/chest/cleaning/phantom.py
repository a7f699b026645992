"""A chest made of implicit shapes and tubes: the stand-in where the real scan cannot be had.

Schematic: one superellipse of a trunk, two lungs on domes, tubes for vessels, ribs and airways. Its data carry
``variant=phantom`` and are never pooled with the rest. Places are millimetres: x to the patient's left and y to the
front from the middle of the field, z from the lowest slice up.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.chest.labels import BONES, LEFT_LUNG, LOBES, ORGANS, RIGHT_LUNG, where
from categories.chest.paint import coverage
from categories.chest.template import Kind, Root

SHAPE, VOXEL_MM = (512, 512, 133), (0.703125, 0.703125, 2.5)
Place = tuple[float, float, float]
Mask = NDArray[np.bool_]
LEVELS_HU = {"liver": 58, "spleen": 48, "kidney_right": 32, "kidney_left": 32, "stomach": 30, "esophagus": 35}
FAT_HU, MUSCLE_HU, BLOOD_HU, LUNG_HU, AIR_HU = -102, 44, 40, -872, -1000
MARROW_HU, CORTEX_HU = 190, 620
DOMES = {-1: (-72.0, 118.0), 1: (72.0, 108.0)}
"""Middle (x) and height (z) of the domes, right and left."""
ROOTS: tuple[tuple[Kind, float, float, float, float], ...] = (
    # kind; out, up and ahead of the lobe's hilum; radius
    ("airway", 30.0, 0.0, 0.0, 3.6),
    ("artery", 38.0, 4.0, 8.0, 4.4),
    ("vein", 32.0, -14.0, 10.0, 4.4),
)
HALF_BODY = (158.0, 108.0)
HALF_LUNG, APEX_MM = (56.0, 80.0), 300.0


def phantom() -> tuple[NDArray[np.int16], NDArray[np.uint8]]:
    """Return HU and organs on the template's grid."""
    organs = np.zeros(SHAPE, np.uint8)
    x = (np.arange(SHAPE[0]) * VOXEL_MM[0] - 180)[:, None]
    y = (np.arange(SHAPE[1]) * VOXEL_MM[1] - 180)[None, :]
    for k in range(SHAPE[2]):
        _slice(organs[:, :, k], x, y, k * VOXEL_MM[2])
    for names, lines, width in _tubes():
        filled = _draw(lines, width) > 127
        if "rib" not in names:
            filled &= ~where(organs, BONES)
        organs[filled] = ORGANS[names]
    hu = _levels(organs)
    return np.rint(hu).astype(np.int16), organs


def phantom_roots() -> tuple[Root, ...]:
    """Return where the lung trees leave the phantom's hila."""
    found = []
    for lobe in LOBES:
        side = -1 if lobe in RIGHT_LUNG else 1
        height = {"upper": 205.0, "middle": 180.0, "lower": 165.0}[lobe.split("_")[1]]
        front = {"upper": 8.0, "middle": 14.0, "lower": -14.0}[lobe.split("_")[1]]
        for kind, out, up, ahead, radius in ROOTS:
            at = (side * out + 180, front + ahead + 180, height + up)
            found.append(Root(kind, lobe, at, radius * (0.8 if "middle" in lobe else 1.0)))
    return tuple(found)


def _slice(organs: NDArray[np.uint8], x: NDArray[np.floating], y: NDArray[np.floating], z: float) -> None:
    """Label one slice (I, J), in place; later shapes lie over earlier ones."""
    narrow = 1.0 if z < 262 else max(0.45, 1 - 0.0045 * (z - 262))
    wide, deep = HALF_BODY[0] * (1 + 0.12 * (z > 230) * min(1, (z - 230) / 60)), HALF_BODY[1] * (0.6 + 0.4 * narrow)
    body = np.abs(x / wide) ** 2.5 + np.abs(y / deep) ** 2.3
    cage = np.abs(x / (128 * narrow)) ** 2.3 + np.abs(y / (90 * narrow)) ** 2.2

    def put(name: str, mask: Mask) -> None:
        organs[mask] = ORGANS[name]

    put("fat", body < 1)
    put("body", (np.abs(x / (wide - 16)) ** 2.5 + np.abs(y / (deep - 12)) ** 2.3 < 1) & (cage > 0.9))
    domes = np.stack([height - 0.0065 * ((x - at) ** 2 + 0.9 * y * y) for at, height in DOMES.values()])
    belly = (cage < 0.92) & (np.where(x < 0, domes[0], domes[1]) > z)
    put("liver", belly & (x < 30) & (y > -70))
    put("spleen", belly & (((x - 88) / 34) ** 2 + ((y + 38) / 40) ** 2 + ((z - 70) / 48) ** 2 < 1))
    put("stomach", belly & (((x - 52) / 38) ** 2 + ((y - 30) / 32) ** 2 + ((z - 62) / 44) ** 2 < 1))
    for name, at in (("kidney_right", -58), ("kidney_left", 58)):
        put(name, ((x - at) / 26) ** 2 + ((y + 52) / 24) ** 2 + ((z - 22) / 50) ** 2 < 1)
    rise = max(0.0, (z - 120) / (APEX_MM - 120))
    small = max(0.0, 1 - 0.92 * rise * rise) ** 0.5
    for side, names in ((-1, RIGHT_LUNG), (1, LEFT_LUNG)):
        if z > APEX_MM:
            continue
        lung = ((x - side * 66 * (0.75 + 0.25 * small)) / (HALF_LUNG[0] * small)) ** 2 + (
            y / (HALF_LUNG[1] * small)
        ) ** 2 < 1
        lung &= (domes[0 if side < 0 else 1] < z) & (cage < 0.92)
        oblique = z > 172 - 0.95 * y
        upper, lower = (next(n for n in names if part in n) for part in ("upper", "lower"))
        put(lower, lung & ~oblique)
        put(upper, lung & oblique)
        if side < 0:
            put("lung_middle_lobe_right", lung & oblique & (z < 182))
    heart = ((x - 16) * 0.86 + (z - 134) * 0.3) ** 2 / 54**2 + (y - 22) ** 2 / 44**2
    put("heart", heart + ((z - 134) * 0.9 - (x - 16) * 0.25) ** 2 / 46**2 < 1)
    name = (
        f"vertebrae_{('T12', 'T11', 'T10', 'T9', 'T8', 'T7', 'T6', 'T5', 'T4', 'T3', 'T2', 'T1')[min(11, int(z / 27))]}"
    )
    put(name, ((x / 18) ** 2 + ((y + 62) / 16) ** 2 < 1) & (z % 27 > 5))
    put(name, (x / 15) ** 2 + ((y + 88) / 13) ** 2 < 1)
    put("spinal_cord", (x / 7) ** 2 + ((y + 84) / 6) ** 2 < 1)
    for side, name in ((-1, "autochthon_right"), (1, "autochthon_left")):
        put(name, (((x - side * 32) / 18) ** 2 + ((y + 88) / 12) ** 2 < 1) & (body < 1))
    put("sternum", (np.abs(x) < 16) & (np.abs(y - 93 * narrow) < 5) & (120 < z < 265))


def _tubes() -> list[tuple[str, list[Place], float]]:
    """Return name, course and radius (mm) of what runs through the chest."""
    arch = [(4 + 24 * np.cos(a), -2 + 30 * np.cos(a) * 0.9, 222 + 26 * np.sin(a)) for a in np.linspace(np.pi, 0, 9)]
    arch = [(x, -y, z) for x, y, z in arch]
    found: list[tuple[str, list[Place], float]] = [
        ("aorta", [(-20, 26, 150), *arch, (26, -40, 200), (22, -46, 120), (12, -48, 0)], 12.0),
        ("heart", [(10, 40, 160), (14, 28, 198), (-28, 10, 196)], 11.5),
        ("heart", [(14, 28, 198), (36, 2, 204)], 10.0),
        ("superior_vena_cava", [(-34, 20, 160), (-30, 22, 250)], 8.5),
        ("inferior_vena_cava", [(-24, 0, 0), (-22, 6, 124)], 10.5),
        ("pulmonary_vein", [(-10, 2, 158), (-40, -4, 160)], 5.5),
        ("pulmonary_vein", [(10, 0, 160), (40, -6, 166)], 5.5),
        ("esophagus", [(6, -34, 100), (2, -32, 200), (0, -30, 330)], 7.0),
        ("trachea", [(0, -8, 330), (0, -10, 215), (-30, -4, 190)], 8.0),
        ("trachea", [(0, -10, 215), (34, -6, 186)], 6.5),
        ("clavicula_right", [(-14, 88, 262), (-60, 62, 290), (-120, 10, 300)], 5.0),
        ("clavicula_left", [(14, 88, 262), (60, 62, 290), (120, 10, 300)], 5.0),
        ("scapula_right", [(-70, -88, 270), (-84, -84, 180)], 5.0),
        ("scapula_left", [(70, -88, 270), (84, -84, 180)], 5.0),
    ]
    for number in range(1, 12):
        top, small = 306 - 22 * number, 0.62 + 0.38 * min(1.0, number / 5)
        for side, name in ((-1, f"rib_right_{number}"), (1, f"rib_left_{number}")):
            turns = np.linspace(0.06, 0.80, 26) * np.pi
            course = [
                (side * np.sin(t) * 131 * small, -np.cos(t) * 94 * small, top - t / np.pi * (50 + 3 * number))
                for t in turns
            ]
            found.append((name, course, 4.4))
    return found


def _draw(course: Sequence[Place], radius: float) -> NDArray[np.uint8]:
    places = np.array(course, np.float64) + np.array([180.0, 180.0, 0.0])
    width = np.full(len(places) - 1, radius)
    return coverage(SHAPE, np.array(VOXEL_MM), places[:-1], places[1:], width, width)


def _levels(organs: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return HU of the labels, edges softened as a scanner's are."""
    table = np.full(256, BLOOD_HU, np.float32)
    table[0], table[ORGANS["fat"]], table[ORGANS["body"]] = AIR_HU, FAT_HU, MUSCLE_HU
    for name in ORGANS:
        if name.startswith("autochthon"):
            table[ORGANS[name]] = MUSCLE_HU
    for name, level in LEVELS_HU.items():
        table[ORGANS[name]] = level
    table[[ORGANS[name] for name in LOBES]] = LUNG_HU
    table[ORGANS["trachea"]] = AIR_HU
    table[[ORGANS[name] for name in BONES]] = MARROW_HU
    hu = table[organs]
    bone = where(organs, BONES)
    inner = ndi.binary_erosion(bone, np.ones((3, 3, 1)), 1)
    hu[bone & ~inner] = CORTEX_HU
    return np.asarray(ndi.gaussian_filter(hu, (0.7, 0.7, 0.3)), np.float32)
