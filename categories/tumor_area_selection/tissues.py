"""Rows of numbers that say what fills a region, drawn from ``tissues.toml``."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

COLUMNS = (
    "pattern", "scale_um", "share", "epithelioid", "epithelioid_matrix", "diameter_um", "spread", "elongation", "od",
    "clumping", "nucleolus", "irregularity", "mitosis", "cohesion", "lymphocytes", "lymphocytes_matrix",
    "lymphocyte_um", "fibroblasts", "fibroblasts_matrix", "eosin", "haematoxylin", "fibre", "eosin_matrix",
    "haematoxylin_matrix", "fibre_matrix", "red_cells", "red_cells_lumen", "macrophages", "debris", "adipose",
)  # fmt: skip
(
    PATTERN, SCALE, SHARE, EPITHELIOID, EPITHELIOID_MATRIX, DIAMETER, SPREAD, ELONGATION, OD,
    CLUMPING, NUCLEOLUS, IRREGULARITY, MITOSIS, COHESION, LYMPHOCYTES, LYMPHOCYTES_MATRIX,
    LYMPHOCYTE_UM, FIBROBLASTS, FIBROBLASTS_MATRIX, EOSIN, HAEM, FIBRE, EOSIN_MATRIX,
    HAEM_MATRIX, FIBRE_MATRIX, RED_CELLS, RED_CELLS_LUMEN, MACROPHAGES, DEBRIS, ADIPOSE,
) = range(len(COLUMNS))  # fmt: skip
BASE = ("glass", "fat", "capsule", "sinus", "cortex", "paracortex", "mantle", "medulla", "blood")
GLASS, FAT, CAPSULE, SINUS, CORTEX, PARACORTEX, MANTLE, MEDULLA, BLOOD = range(len(BASE))
MORPHOLOGIES = ("solid", "glandular", "infiltrating")
PATTERNED = ("tumour", "histiocytes", "blasts", "vessels", "follicle")
"""Kinds that share the laws of cytoplasm and matrix."""


@cache
def book() -> dict[str, Any]:
    """Return ``tissues.toml``."""
    return tomllib.loads((Path(__file__).parent / "tissues.toml").read_text(encoding="utf-8"))


def base_rows(rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Return the rows of the normal node, in the order of ``BASE``."""
    return [_row(_draw(rng, book()["base"][name])) for name in BASE]


def deposit_row(rng: np.random.Generator, kind: str, morphology: str) -> NDArray[np.float64]:
    """Return the row of one deposit. ``morphology`` sets the pattern of the kinds that can have one."""
    values: dict[str, float] = {}
    if kind in PATTERNED:
        law = book()["law"]
        values |= _draw(rng, law["cytoplasm"]) | _draw(rng, law["collagen" if rng.random() < 0.6 else "lymphoid"])
        if kind == "vessels":
            values |= _draw(rng, law["glandular"])
        elif kind != "follicle":
            values |= _draw(rng, law[morphology])
    values |= _draw(rng, book()["deposit"][kind])
    if "area_share" in values:
        share = values.pop("area_share") + (0.06 if morphology == "glandular" else 0.0)
        nucleus_mm2 = np.pi / 4e6 * values["diameter_um"] ** 2 * (1 + values["spread"] ** 2)
        values["epithelioid"] = float(np.clip(share / nucleus_mm2, 1900, 6500))
    if "mitoses" in values:
        values["mitosis"] = values.pop("mitoses") / values["epithelioid"]
    return _row(values)


def _draw(rng: np.random.Generator, entry: dict[str, Any]) -> dict[str, float]:
    return {name: round(rng.uniform(*v), 5) if isinstance(v, list) else float(v) for name, v in entry.items()}


def _row(values: dict[str, float]) -> NDArray[np.float64]:
    every = {**book()["default"], **values}
    if set(every) != set(COLUMNS):
        raise KeyError(f"tissues.toml: unknown or missing {sorted(set(every) ^ set(COLUMNS))}")
    return np.array([round(every[name], 6) for name in COLUMNS], np.float64)
