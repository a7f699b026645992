"""Members of a panel that the laboratory calculates from others: what an injected error must carry with it."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Formula = Callable[[Mapping[int, Floats], Mapping[str, Floats]], Floats]

SODIUM, CHLORIDE, BICARBONATE, GAP = 50983, 50902, 50882, 50868
HAEMOGLOBIN, HAEMATOCRIT, RED_CELLS, MCV, MCH, MCHC = 51222, 51221, 51279, 51250, 51248, 51249
PH, PCO2, PO2, SATURATION, BASE_EXCESS, TOTAL_CO2 = 50820, 50818, 50821, 50817, 50802, 50804
INR, PROTHROMBIN = 51237, 51274


def _gap(v: Mapping[int, Floats], _: Mapping[str, Floats]) -> Floats:
    return v[SODIUM] - v[CHLORIDE] - v[BICARBONATE]


def _chloride(v: Mapping[int, Floats], _: Mapping[str, Floats]) -> Floats:
    return v[SODIUM] - v[BICARBONATE] - v[GAP]


def _saturation(v: Mapping[int, Floats], c: Mapping[str, Floats]) -> Floats:
    """Severinghaus' curve."""
    pressure = v[PO2]
    return np.clip(100 / (23400 / (pressure**3 + 150 * pressure) + 1) + 0.4 * c["jitter"], 40, 100)


def _haematocrit(v: Mapping[int, Floats], c: Mapping[str, Floats]) -> Floats:
    return v[HAEMOGLOBIN] * (3.0 + 0.045 * np.clip(c["jitter"], -3, 3))


def _red_cells(v: Mapping[int, Floats], _: Mapping[str, Floats]) -> Floats:
    return v[HAEMATOCRIT] * 10 / v[MCV]


def _mch(v: Mapping[int, Floats], _: Mapping[str, Floats]) -> Floats:
    return v[HAEMOGLOBIN] * 10 / v[RED_CELLS]


def _mchc(v: Mapping[int, Floats], _: Mapping[str, Floats]) -> Floats:
    return v[HAEMOGLOBIN] * 100 / v[HAEMATOCRIT]


def _ph(v: Mapping[int, Floats], c: Mapping[str, Floats]) -> Floats:
    return np.clip(6.1 + np.log10(c["hco3"] / (0.0307 * v[PCO2])), 6.85, 7.72)


def _total_co2(v: Mapping[int, Floats], _: Mapping[str, Floats]) -> Floats:
    return 0.0307 * v[PCO2] * (1 + 10 ** (v[PH] - 6.1))


def _base_excess(v: Mapping[int, Floats], _: Mapping[str, Floats]) -> Floats:
    return 0.93 * (0.0307 * v[PCO2] * 10 ** (v[PH] - 6.1) - 24.4 + 14.8 * (v[PH] - 7.4))


def _prothrombin(v: Mapping[int, Floats], c: Mapping[str, Floats]) -> Floats:
    return v[INR] * (11.0 + 0.12 * np.clip(c["jitter"], -3, 3))


def _count(share: int) -> Formula:
    return lambda v, c: c["white"] * v[share] / 100


CALCULATED: dict[int, Formula] = {
    CHLORIDE: _chloride,
    HAEMATOCRIT: _haematocrit,
    RED_CELLS: _red_cells,
    MCH: _mch,
    MCHC: _mchc,
    PH: _ph,
    SATURATION: _saturation,
    TOTAL_CO2: _total_co2,
    BASE_EXCESS: _base_excess,
    PROTHROMBIN: _prothrombin,
    50953: lambda v, c: v[50998] * (1.3 + 0.01 * c["jitter"]),
    50905: lambda v, _: np.maximum(v[50907] - v[50904] - v[51000] / 5, 8),
    50903: lambda v, _: v[50907] / v[50904],
    50810: lambda v, _: v[50811] * 3.0,
    52075: _count(51256),
    51133: _count(51244),
    52074: _count(51254),
    52073: _count(51200),
    52069: _count(51146),
}
"""itemid -> formula over the panel's rounded members; ``context`` holds what is not itself reported."""
RECALCULATED: dict[int, Formula] = {GAP: _gap} | {
    k: v for k, v in CALCULATED.items() if k not in (CHLORIDE, SATURATION)
}
"""What the laboratory reports as calculated. (For chloride the model goes the other way: gap and sodium first.)"""
PARENTS = {
    GAP: (SODIUM, CHLORIDE, BICARBONATE),
    HAEMATOCRIT: (HAEMOGLOBIN,),
    RED_CELLS: (HAEMATOCRIT, MCV),
    MCH: (HAEMOGLOBIN, RED_CELLS),
    MCHC: (HAEMOGLOBIN, HAEMATOCRIT),
    TOTAL_CO2: (PCO2, PH),
    BASE_EXCESS: (PCO2, PH),
    PROTHROMBIN: (INR,),
    50953: (50998,),
    50905: (50907, 50904, 51000),
    50903: (50907, 50904),
    50810: (50811,),
}
"""itemid -> the members it is calculated from, in the order of calculation."""
