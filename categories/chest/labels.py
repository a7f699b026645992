"""The organ mask's numbers. Names are those of TotalSegmentator (version 1), as the template's package lists them."""

import itertools
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_NAMES = """
background spleen kidney_right kidney_left gallbladder liver stomach pancreas adrenal_gland_right adrenal_gland_left
lung_upper_lobe_left lung_lower_lobe_left lung_upper_lobe_right lung_middle_lobe_right lung_lower_lobe_right
esophagus trachea thyroid_gland small_bowel duodenum colon urinary_bladder prostate kidney_cyst_left kidney_cyst_right
sacrum vertebrae_S1 vertebrae_L5 vertebrae_L4 vertebrae_L3 vertebrae_L2 vertebrae_L1 vertebrae_T12 vertebrae_T11
vertebrae_T10 vertebrae_T9 vertebrae_T8 vertebrae_T7 vertebrae_T6 vertebrae_T5 vertebrae_T4 vertebrae_T3 vertebrae_T2
vertebrae_T1 vertebrae_C7 vertebrae_C6 vertebrae_C5 vertebrae_C4 vertebrae_C3 vertebrae_C2 vertebrae_C1
heart aorta pulmonary_vein brachiocephalic_trunk subclavian_artery_right subclavian_artery_left
common_carotid_artery_right common_carotid_artery_left brachiocephalic_vein_left brachiocephalic_vein_right
atrial_appendage_left superior_vena_cava inferior_vena_cava portal_vein_and_splenic_vein iliac_artery_left
iliac_artery_right iliac_vena_left iliac_vena_right humerus_left humerus_right scapula_left scapula_right
clavicula_left clavicula_right femur_left femur_right hip_left hip_right spinal_cord gluteus_maximus_left
gluteus_maximus_right gluteus_medius_left gluteus_medius_right gluteus_minimus_left gluteus_minimus_right
autochthon_left autochthon_right iliopsoas_left iliopsoas_right brain skull
rib_left_1 rib_left_2 rib_left_3 rib_left_4 rib_left_5 rib_left_6 rib_left_7 rib_left_8 rib_left_9 rib_left_10
rib_left_11 rib_left_12 rib_right_1 rib_right_2 rib_right_3 rib_right_4 rib_right_5 rib_right_6 rib_right_7
rib_right_8 rib_right_9 rib_right_10 rib_right_11 rib_right_12 sternum carpal costal_cartilages
body fat
"""
ORGANS: dict[str, int] = {name: number for number, name in enumerate(_NAMES.split())}
"""Name -> number. ``body`` and ``fat`` are ours: all else inside the skin, and its part that is fat."""
LOBES = tuple(name for name in ORGANS if name.startswith("lung_"))
RIGHT_LUNG = tuple(name for name in LOBES if name.endswith("right"))
LEFT_LUNG = tuple(name for name in LOBES if name.endswith("left"))
VESSELS = tuple(ORGANS)[ORGANS["heart"] : ORGANS["portal_vein_and_splenic_vein"]]
"""The heart and the great vessels of the chest."""
BONES = tuple(
    name
    for name in ORGANS
    if name.startswith(("vertebrae_", "rib_", "humerus", "scapula", "clavicula"))
    or name in ("sacrum", "sternum", "costal_cartilages", "skull", "carpal")
)
PIECE = 1 << 17
GUT = ("stomach", "small_bowel", "duodenum", "colon")


def where(organs: NDArray[np.uint8], names: Iterable[str]) -> NDArray[np.bool_]:
    """Return where the mask holds one of the names.

    Raises:
        KeyError: a name that the mask does not know.
    """
    numbers = sorted({ORGANS[name] for name in names})
    found = np.zeros_like(organs, bool)
    starts = [k for k, number in enumerate(numbers) if k == 0 or number != numbers[k - 1] + 1]
    runs = [
        (np.uint8(numbers[first]), np.uint8(numbers[after - 1]))
        for first, after in itertools.pairwise([*starts, len(numbers)])
    ]
    # Piece by piece, for what a core's cache holds. A run of neighbours by one comparison (below its first the
    # difference wraps): faster than a table.
    voxels, marks = organs.ravel("K"), found.ravel("K")
    for start in range(0, voxels.size, PIECE):
        piece, mark = voxels[start : start + PIECE], marks[start : start + PIECE]
        for low, high in runs:
            mark |= piece - low <= high - low
    return found
