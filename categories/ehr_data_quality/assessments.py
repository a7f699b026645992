"""The charted assessments by text and score: they follow the latent states, and only what applies is charted."""

from typing import Protocol

import numpy as np
import polars as pl
from scipy.signal import lfilter

from categories.ehr_data_quality.catalogue import DRIVERS, TextItem, text_items
from categories.ehr_data_quality.cohort import Bools, Cohort, Floats, Ints, quantise


class Rounds(Protocol):
    """What this module needs of the charting grid (``charting.Grid``)."""

    @property
    def stay(self) -> Ints: ...
    @property
    def minute(self) -> Ints: ...
    @property
    def ventilated(self) -> Ints: ...
    @property
    def states(self) -> Floats: ...
    def every(self, hours: int) -> Ints: ...


def make_assessments(rng: np.random.Generator, cohort: Cohort, grid: "Rounds") -> pl.DataFrame:
    """Return (stay, minute, itemid, value, valuenum) of all assessments."""
    first = np.flatnonzero(np.append([True], grid.stay[1:] != grid.stay[:-1]))
    parts = []
    for item in text_items():
        places = grid.every(item.every) if item.every else first
        keep = _applies(cohort, grid, item, places) & (rng.random(len(cohort.s_adm)) < item.share)[grid.stay[places]]
        places = places[keep & (rng.random(len(places)) > 0.04)]
        if len(places):
            parts.append(_answers(rng, cohort, grid, item, places))
    return pl.concat(parts)


def _applies(cohort: Cohort, grid: "Rounds", item: TextItem, places: Ints) -> Bools:
    """Tell at which rounds an item is charted at all."""
    stay = grid.stay[places]
    admission = cohort.s_adm[stay]
    patient = cohort.a_patient[admission]
    ventilated = grid.ventilated[places] > 0
    state = grid.states[places]
    rules: dict[str, Bools] = {
        "": np.ones(len(places), dtype=bool),
        "vent": ventilated,
        "unvent": ~ventilated,
        "dialysis": cohort.dialysis[admission],
        "cooling": state[:, DRIVERS.index("cold")] > 0.05,
        "fever": state[:, DRIVERS.index("fev")] > 0.4,
        "pregnancy": cohort.marks["history"][patient] & (cohort.age[patient] <= 58),
        "menses": cohort.marks["history"][patient] & (cohort.age[patient] > 44),
        "history": np.ones(len(places), dtype=bool),
        "urinary": np.ones(len(places), dtype=bool),
    }
    return rules[item.needs]


def _answers(rng: np.random.Generator, cohort: Cohort, grid: "Rounds", item: TextItem, places: Ints) -> pl.DataFrame:
    stay = grid.stay[places]
    patient = cohort.a_patient[cohort.s_adm[stay]]
    if item.needs == "urinary":
        values = _devices(rng, cohort, stay, patient, grid.ventilated[places] > 0)
    elif item.driver in ("old", "age"):
        values = _history(rng, cohort, item, patient)
    elif item.needs == "menses":
        values = np.array(item.values)[(cohort.age[patient] < 52).astype(np.int64)]
    else:
        values = np.array(item.values)[_grades(rng, cohort, grid, item, places)]
    number: Floats = np.full(len(places), np.nan)
    if item.scores:
        score = dict(zip(item.values, item.scores, strict=True))
        number = np.array([float(score[str(value)]) for value in values], dtype=np.float64)
    if item.label == "GCS - Verbal Response":
        tube = grid.ventilated[places] > 0
        values = np.where(tube, "No Response-ETT", values)
        number = np.where(tube, 1.0, number)
    return pl.DataFrame(
        {
            "stay": stay,
            "minute": grid.minute[places],
            "valuenum": number,
            "value": pl.Series(values.astype(object), dtype=pl.String),
        }
    ).with_columns(itemid=pl.lit(item.itemid, dtype=pl.Int64))


def _grades(rng: np.random.Generator, cohort: Cohort, grid: "Rounds", item: TextItem, places: Ints) -> Ints:
    """Return the index of the answer: the state's pull, the stay's own lean, slow noise so that answers persist."""
    n = len(places)
    slow = lfilter([0.45], [1, -0.85], rng.normal(0, 1, n))
    if item.driver == "none":
        lean = rng.integers(0, len(item.values), len(cohort.s_adm))[grid.stay[places]]
        other = rng.integers(0, len(item.values), n)
        return np.asarray(np.where(rng.random(n) < 0.15, other, lean), dtype=np.int64)
    state = grid.states[places][:, DRIVERS.index(item.driver)]
    if item.driver == "neu":
        state = state + 1.6 * (grid.ventilated[places] > 0)
    tendency = rng.normal(0, 0.35, len(cohort.s_adm))[grid.stay[places]]
    grade = np.floor(quantise(item.slope * state + tendency + 0.5 * slow + 0.2))
    return np.clip(grade, 0, len(item.values) - 1).astype(np.int64)


def _devices(
    rng: np.random.Generator, cohort: Cohort, stay: Ints, patient: Ints, ventilated: Bools
) -> "np.ndarray[tuple[int], np.dtype[np.str_]]":
    """Urinary devices: some can be worn by one sex only; those are charted in about half of the patients."""
    external = np.where(cohort.male[patient], "Condom catheter", "PureWick female external catheter")
    plain = np.where(rng.random(len(cohort.s_adm))[stay] < 0.6, "Foley catheter", "Void")
    worn = cohort.marks["device"][patient] & ~ventilated & (rng.random(len(stay)) < 0.7)
    return np.where(ventilated, "Foley catheter", np.where(worn, external, plain))


def _history(
    rng: np.random.Generator, cohort: Cohort, item: TextItem, patient: Ints
) -> "np.ndarray[tuple[int], np.dtype[np.str_]]":
    """Admission history that belongs to an age."""
    frail, age = cohort.marks["frail"][patient], cohort.age[patient]
    pick = rng.random(len(patient))
    if item.label == "Living situation":
        return np.select(
            [cohort.marks["parents"][patient], frail & (pick < 0.4), pick < 0.45],
            ["Lives with parents", "Assisted living", "Lives alone"],
            "Lives with spouse",
        )
    if item.label == "Occupation status":
        return np.select([age <= 25, age >= 67], ["Student", "Retired"], np.where(pick < 0.1, "Retired", "Employed"))
    return np.where((frail & (pick < 0.6)) | (pick < 0.03), "Yes", "No")
