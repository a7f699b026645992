"""prescriptions: home and hospital drugs, and those that answer the latent states (insulin in ketoacidosis)."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from categories.draw import Draw
from categories.ehr_data_quality.catalogue import DRIVERS, Drug, drugs
from categories.ehr_data_quality.cohort import DAY, Cohort
from categories.ehr_data_quality.labs import stamps

PER_DAY = 6.5
"""Orders per hospital day beside those of the first day."""
ON_ADMISSION = 14
NARROW_SPREAD = 0.75
"""Share of the orders of a drug for one patient that keep the patient's own dose."""


@dataclass
class Orders:
    """Orders as they are written, in parallel lists."""

    admission: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    stop: list[int] = field(default_factory=list)
    drug: list[int] = field(default_factory=list)
    dose: list[float] = field(default_factory=list)

    def write(self, admission: int, start: int, stop: int, drug: int, dose: float) -> None:
        self.admission.append(admission)
        self.start.append(start)
        self.stop.append(stop)
        self.drug.append(drug)
        self.dose.append(dose)


def make_prescriptions(draw: Draw, cohort: Cohort) -> pl.DataFrame:
    """Return prescriptions in MIMIC-IV's columns."""
    rng = draw.rng("orders")
    orders = Orders()
    for admission in range(len(cohort.a_id)):
        _routine(rng, cohort, admission, orders)
        _marked(rng, cohort, admission, orders)
    for name, admissions in cohort.episode.items():
        for admission in admissions.tolist():
            _answer(rng, cohort, int(admission), name, orders)
    _intensive(rng, cohort, orders)
    return _dress(draw, cohort, orders)


def _routine(rng: np.random.Generator, cohort: Cohort, admission: int, orders: Orders) -> None:
    """Drugs of the ward; a patient's dose mostly stays, no metformin with failing kidneys."""
    weight = np.array([drug.weight for drug in drugs()])
    start, end = int(cohort.a_start[admission]), int(cohort.a_end[admission])
    ren = cohort.knots[cohort.knot_at[admission], DRIVERS.index("ren")]
    if ren > 0.6:
        weight = np.where([drug.group == "metformin" for drug in drugs()], 0.0, weight)
    days = (end - start) / DAY
    count = int(rng.poisson(ON_ADMISSION)) + int(rng.poisson(PER_DAY * days))
    share = np.add.accumulate(weight)
    chosen = np.searchsorted(share / share[-1], rng.random(count), side="right")
    habit: dict[int, float] = {}
    for place, number in enumerate(chosen.tolist()):
        drug = drugs()[number]
        usual = habit.setdefault(number, float(rng.choice(drug.doses)))
        dose = usual if rng.random() < NARROW_SPREAD else float(rng.choice(drug.doses))
        at = start + int(rng.integers(10, 240)) if place < ON_ADMISSION else int(rng.integers(start, end))
        at = min(at, end - 30)
        stop = min(at + int(rng.exponential(2.2 * DAY)) + 60, end)
        orders.write(admission, at, stop, number, dose)


def _of_group(group: str) -> list[int]:
    return [i for i, drug in enumerate(drugs()) if drug.group == group]


def _marked(rng: np.random.Generator, cohort: Cohort, admission: int, orders: Orders) -> None:
    """Drugs that belong to a sex or an age; tamsulosin also for kidney stones in women."""
    patient = int(cohort.a_patient[admission])
    male, age, marks = bool(cohort.male[patient]), int(cohort.age[patient]), cohort.marks
    numbers: list[int] = []
    if marks["sex_drug"][patient] and rng.random() < 0.8:
        own = _of_group("male" if male else "female")
        if not male and age > 52:  # contraceptives end with the menopause
            own = [i for i in own if drugs()[i].name in ("Raloxifene", "Estradiol")]
        elif not male:
            own = [i for i in own if drugs()[i].name != "Raloxifene"]
        numbers.append(own[patient % len(own)])
    if marks["stone"][patient]:
        numbers.append(next(i for i, drug in enumerate(drugs()) if drug.name == "Tamsulosin"))
    if marks["age_drug"][patient] and rng.random() < 0.85:
        own = _of_group("old" if age >= 60 else "young")
        numbers.append(own[patient % len(own)])
    for number in numbers:
        start, end = int(cohort.a_start[admission]), int(cohort.a_end[admission])
        at = min(start + int(rng.integers(20, 300)), end - 30)
        orders.write(admission, at, end - int(rng.integers(0, 25)), number, float(rng.choice(drugs()[number].doses)))


def _answer(rng: np.random.Generator, cohort: Cohort, admission: int, episode: str, orders: Orders) -> None:
    """The treatment of a derangement: what explains it to the reader of the tables."""
    start, end = int(cohort.a_start[admission]), int(cohort.a_end[admission])
    if episode in ("cold", "fev"):
        stay = int(np.flatnonzero(cohort.s_adm == admission)[0])
        start, end = int(cohort.s_in[stay]), int(cohort.s_out[stay])
    for number in _of_group(episode):
        at = min(start + int(rng.integers(15, 150)), end - 30)
        orders.write(
            admission, at, min(at + int(rng.integers(600, 2200)), end), number, float(rng.choice(drugs()[number].doses))
        )


def _intensive(rng: np.random.Generator, cohort: Cohort, orders: Orders) -> None:
    """Pressors in shock and sedation on the ventilator, inside the stay only; what dialysis patients take."""
    for stay, admission in enumerate(cohort.s_adm.tolist()):
        begin, stop = int(cohort.s_in[stay]), int(cohort.s_out[stay])
        shock = cohort.state(np.array([admission]), np.array([begin]))[0, DRIVERS.index("cir")]
        if shock > 1.0 or rng.random() < 0.06:
            for number in _of_group("pressor")[: 1 + int(shock > 1.6) + int(shock > 2.2)]:
                at = begin + int(rng.integers(5, 90))
                orders.write(
                    admission, at, min(at + int(rng.integers(200, 2400)), stop), number, drugs()[number].doses[0]
                )
        if cohort.s_vent[stay] > 0:
            for number in _of_group("sedation")[: 1 + int(rng.integers(0, 3))]:
                at = begin + int(rng.integers(5, 60))
                orders.write(
                    admission, at, max(at + 30, begin + int(cohort.s_vent[stay])), number, drugs()[number].doses[0]
                )
    for admission in np.flatnonzero(cohort.dialysis).tolist():
        for number in _of_group("dia"):
            at = int(cohort.a_start[admission]) + int(rng.integers(30, 400))
            end = int(cohort.a_end[admission])
            orders.write(admission, min(at, end - 30), end, number, drugs()[number].doses[0])


def number_text(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> list[str]:
    """Print doses as the order system does: no superfluous zero."""
    return [f"{round(float(value), 5):g}" if value < 100_000 else f"{value:.0f}" for value in values]


def product_columns(drug: Drug, draw: Draw) -> dict[str, str]:
    """Return what the formulary says of a product."""
    code = int.from_bytes(draw.digest("product", drug.code)[:4], "big")
    return {
        "drug": drug.name,
        "formulary_drug_cd": drug.code,
        "gsn": f"{code % 79_999:06d}",
        "ndc": f"{code % 99_999_999:08d}{drug.times:03d}",
        "prod_strength": drug.printed_strength,
        "dose_unit_rx": drug.unit,
        "form_unit_disp": drug.form_unit,
        "route": drug.route,
    }


def _dress(draw: Draw, cohort: Cohort, orders: Orders) -> pl.DataFrame:
    rng = draw.rng("order columns")
    n = len(orders.drug)
    number, admission = np.array(orders.drug), np.array(orders.admission)
    dose, start = np.array(orders.dose), np.array(orders.start)
    stop = np.minimum(np.maximum(np.array(orders.stop), start), cohort.a_end[admission])
    product = [product_columns(drug, draw) for drug in drugs()]
    strength = np.array([drug.strength for drug in drugs()])[number]
    patient = cohort.a_patient[admission]
    order = np.lexsort((rng.random(n), start, patient))
    sequence = np.empty(n, dtype=np.int64)
    begins = np.flatnonzero(np.append([True], np.diff(patient[order]) != 0))
    sequence[order] = np.arange(n) - np.repeat(begins, np.diff(np.append(begins, n)))
    sequence = 12 + sequence * 3 + rng.integers(0, 3, n)
    subject = cohort.subject[patient]
    names = [f"P{draw.opaque_id('provider', i, length=5).upper()}" for i in range(60)]
    column = {key: [product[i][key] for i in number] for key in product[0]}
    return pl.DataFrame(
        {
            "subject_id": subject,
            "hadm_id": cohort.a_id[admission],
            "pharmacy_id": 10_000_000 + rng.choice(89_999_999, n, replace=False),
            "poe_id": [f"{s}-{q}" for s, q in zip(subject, sequence, strict=True)],
            "poe_seq": sequence,
            "order_provider_id": [names[i] for i in rng.integers(0, 60, n)],
            "starttime": stamps(start // 60 * 60),
            "stoptime": stamps(np.maximum(stop // 60 * 60, start // 60 * 60)),
            "drug_type": pl.Series(["MAIN"] * n),
            "drug": column["drug"],
            "formulary_drug_cd": column["formulary_drug_cd"],
            "gsn": column["gsn"],
            "ndc": column["ndc"],
            "prod_strength": column["prod_strength"],
            "form_rx": pl.Series([None] * n, dtype=pl.String),
            "dose_val_rx": number_text(dose),
            "dose_unit_rx": column["dose_unit_rx"],
            "form_val_disp": number_text(np.round(dose / strength, 4)),
            "form_unit_disp": column["form_unit_disp"],
            "doses_per_24_hrs": np.array([drug.times for drug in drugs()])[number],
            "route": column["route"],
        }
    )
