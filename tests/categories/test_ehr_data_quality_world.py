"""Would a clinician believe the tables? Bands are those of the design; quantiles are taken over pooled seeds."""

from functools import cache

import numpy as np
import polars as pl
import pytest

from categories.draw import Draw
from categories.ehr_data_quality.catalogue import text_item
from categories.ehr_data_quality.labs import HAEMOLYSIS
from categories.ehr_data_quality.ledger import equivalent
from categories.ehr_data_quality.world import make_world
from categories.seed import case_key
from categories.spec import Case

SEEDS = ("0", "plausible one", "plausible two")
NA, K, HCO3, HB, LACTATE, WBC, GAP, CL = 50983, 50971, 50882, 51222, 50813, 51301, 50868, 50902
HR, TEMP, SPO2, SBP, RR = 220045, 223761, 220277, 220179, 220210
MIMIC_COLUMNS = {
    "patients": "subject_id gender anchor_age anchor_year anchor_year_group dod",
    "admissions": "subject_id hadm_id admittime dischtime deathtime admission_type admit_provider_id admission_location discharge_location insurance language marital_status race edregtime edouttime hospital_expire_flag",
    "labevents": "labevent_id subject_id hadm_id specimen_id itemid order_provider_id charttime storetime value valuenum valueuom ref_range_lower ref_range_upper flag priority comments",
    "prescriptions": "subject_id hadm_id pharmacy_id poe_id poe_seq order_provider_id starttime stoptime drug_type drug formulary_drug_cd gsn ndc prod_strength form_rx dose_val_rx dose_unit_rx form_val_disp form_unit_disp doses_per_24_hrs route",
    "d_labitems": "itemid label fluid category",
    "icustays": "subject_id hadm_id stay_id first_careunit last_careunit intime outtime los",
    "chartevents": "subject_id hadm_id stay_id caregiver_id charttime storetime itemid value valuenum valueuom warning",
    "d_items": "itemid label abbreviation linksto category unitname param_type lownormalvalue highnormalvalue",
}


def draw_of(seed: str, scale="full", case: str = "combined", families=("impossible_value",)) -> Draw:
    spec = Case(title="t", parameters={"families": families})
    return Draw(case, spec, case_key(seed, "ehr_data_quality", case, 0), scale)


@cache
def worlds() -> list[dict[str, pl.DataFrame]]:
    return [make_world(draw_of(seed)) for seed in SEEDS]


def pooled(table: str, itemid: int) -> pl.DataFrame:
    return pl.concat([w[table].filter(pl.col("itemid") == itemid) for w in worlds()])


def test_columns_and_size() -> None:
    for world in worlds():
        assert {name: " ".join(table.columns) for name, table in world.items()} == MIMIC_COLUMNS
        assert sum(table.height for table in world.values()) > 800_000
        assert world["patients"].height == 100
        assert world["d_labitems"].height > 1_600
        assert world["d_items"].height > 4_000
        assert world["chartevents"]["itemid"].n_unique() >= 300
        assert world["labevents"]["itemid"].n_unique() >= 150
        for events, book in (("labevents", "d_labitems"), ("chartevents", "d_items")):
            assert set(world[events]["itemid"]) <= set(world[book]["itemid"])
            assert world[book]["itemid"].is_unique().all()


@pytest.mark.parametrize(
    ("itemid", "low", "median", "high"),
    [
        (NA, (122, 134), (137, 141), (145, 151)),
        (K, (2.8, 3.6), (3.9, 4.4), (4.9, 6.3)),
        (HCO3, (10, 19), (22, 26), (29, 39)),
        (HB, (5.9, 8.6), (9.5, 12.5), (15, 17.2)),
        (GAP, (6, 11), (11, 16), (18, 32)),
    ],
)
def test_laboratory_quantiles(itemid: int, low, median, high) -> None:
    values = pooled("labevents", itemid)["valuenum"]
    for share, (least, most) in ((0.01, low), (0.5, median), (0.99, high)):
        assert least <= values.quantile(share) <= most, (itemid, share, values.quantile(share))


def test_caps_and_tails() -> None:
    """Nothing beyond life; the rare true extremes that an auditor must leave alone are there."""
    top = {i: pooled("labevents", i)["valuenum"].max() for i in (LACTATE, WBC, K, 50931, 50861)}
    assert top[LACTATE] <= 30
    assert top[WBC] <= 500
    assert 6.8 <= top[K] <= 10
    assert 600 <= top[50931] <= 1000
    assert top[50861] > 1000
    assert pooled("labevents", NA)["valuenum"].min() < 120
    temperature = pooled("chartevents", TEMP)["valuenum"]
    assert 103 < temperature.max() <= 107.6
    assert temperature.min() < 94
    assert pooled("chartevents", HR)["valuenum"].max() > 135


def test_formulas_hold() -> None:
    for world in worlds():
        labs = world["labevents"]
        wide = labs.filter(pl.col("itemid").is_in([NA, CL, HCO3, GAP])).pivot(
            "itemid", index="specimen_id", values="valuenum"
        )
        assert (wide[str(NA)] - wide[str(CL)] - wide[str(HCO3)] - wide[str(GAP)]).abs().max() == 0
        blood = labs.filter(pl.col("itemid").is_in([HB, 51221, 51249])).pivot(
            "itemid", index="specimen_id", values="valuenum"
        )
        ratio = blood["51221"] / blood[str(HB)]
        assert ratio.quantile(0.005) >= 2.7
        assert ratio.quantile(0.995) <= 3.3
        assert 31 <= blood["51249"].quantile(0.005) <= blood["51249"].quantile(0.995) <= 36


def test_people_and_time() -> None:
    for world in worlds():
        age = world["patients"]["anchor_age"]
        assert (((age >= 18) & (age <= 89)) | (age == 91)).all()
        stays, visits = world["icustays"], world["admissions"].sort("subject_id", "admittime")
        later = pl.col("admittime") < pl.col("dischtime").shift(1).over("subject_id")
        assert visits.filter(later).is_empty()
        inside = stays.join(visits, on="hadm_id")
        assert inside.filter(
            (pl.col("intime") < pl.col("admittime")) | (pl.col("outtime") > pl.col("dischtime"))
        ).is_empty()
        dead = visits.filter(pl.col("deathtime").is_not_null()).select("subject_id", "deathtime")
        assert dead.height >= 5
        for table, column in (
            ("labevents", "charttime"),
            ("chartevents", "charttime"),
            ("prescriptions", "stoptime"),
            ("admissions", "dischtime"),
        ):
            after = world[table].drop("deathtime", strict=False).join(dead, on="subject_id")
            assert after.filter(pl.col(column) > pl.col("deathtime")).is_empty(), table
        chart = world["chartevents"].join(stays.select("stay_id", "intime", "outtime"), on="stay_id")
        assert chart.filter(
            (pl.col("charttime") < pl.col("intime")) | (pl.col("charttime") > pl.col("outtime"))
        ).is_empty()


def test_drugs_fit_the_place_and_the_patient() -> None:
    for world in worlds():
        orders = world["prescriptions"]
        pressors = orders.filter(pl.col("drug").is_in(["Norepinephrine", "Phenylephrine", "Vasopressin"]))
        stays = world["icustays"].select("hadm_id", "intime", "outtime")
        placed = pressors.join(stays, on="hadm_id", how="left")
        hour = pl.duration(hours=1)  # orders stand on the full hour
        outside = (
            pl.col("intime").is_null()
            | (pl.col("starttime") < pl.col("intime") - hour)
            | (pl.col("starttime") > pl.col("outtime"))
        )
        assert pressors.height > 10
        assert placed.filter(outside).is_empty()
        first = (
            world["labevents"]
            .filter(pl.col("itemid") == 50912)
            .sort("charttime")
            .group_by("hadm_id")
            .agg(pl.col("valuenum").first())
        )
        metformin = orders.filter(pl.col("drug").str.contains("MetFORMIN")).join(first, on="hadm_id")
        assert (metformin["valuenum"] > 2.5).mean() < 0.02


def test_charting_habits() -> None:
    for world in worlds():
        chart = world["chartevents"]
        assert 0.70 <= (chart["charttime"].dt.minute() == 0).mean() <= 0.85
        cuff = chart.filter(pl.col("itemid") == SBP)["valuenum"]
        assert (cuff % 10 == 0).mean() > 0.14
        assert (cuff % 2 == 0).mean() > 0.6
    assert (pooled("chartevents", SPO2)["valuenum"] == 100).mean() >= 0.15
    hourly = [
        pooled("chartevents", i)
        .with_columns(pl.col("charttime").dt.truncate("1h"))
        .unique(["stay_id", "charttime"], keep="first", maintain_order=True)
        for i in (HR, TEMP)
    ]
    both = hourly[0].join(hourly[1], on=["stay_id", "charttime"])
    assert 0.2 <= np.corrcoef(both["valuenum"], both["valuenum_right"])[0, 1] <= 0.35


def test_flags_units_and_repeats() -> None:
    for world in worlds():
        labs = world["labevents"].filter(pl.col("ref_range_lower").is_not_null())
        outside = (pl.col("valuenum") < pl.col("ref_range_lower")) | (pl.col("valuenum") > pl.col("ref_range_upper"))
        noise = labs.select((outside != (pl.col("flag") == "abnormal")).mean()).item()
        assert 0.005 <= noise <= 0.01
        pairs = labs.sort("subject_id", "itemid", "charttime").with_columns(
            gap=pl.col("charttime").diff().over("subject_id", "itemid").dt.total_minutes()
        )
        assert pairs.filter(pl.col("gap") <= 5).height >= 160  # ten natural repeats for each injected one
        vitals = (
            world["chartevents"].filter(pl.col("itemid").is_in([HR, RR, SPO2])).sort("stay_id", "itemid", "charttime")
        )
        gap = vitals.with_columns(gap=pl.col("charttime").diff().over("stay_id", "itemid").dt.total_minutes())
        assert gap.filter(pl.col("gap") <= 5).height >= 80


def test_sexes_differ_in_blood_and_ranges() -> None:
    for world in worlds():
        labs = world["labevents"].join(world["patients"].select("subject_id", "gender"), on="subject_id")
        blood = labs.filter(pl.col("itemid") == HB)
        ranges = dict(blood.group_by("gender").agg(pl.col("ref_range_lower").unique()).rows())
        assert ranges == {"M": [13.7], "F": [12.0]}
        middle = dict(blood.group_by("gender").agg(pl.col("valuenum").median()).rows())
        assert middle["M"] > middle["F"]


def test_oddities_are_explained_in_the_tables() -> None:
    for world in worlds():
        labs, orders, chart = world["labevents"], world["prescriptions"], world["chartevents"]
        high = labs.filter((pl.col("itemid") == 50931) & (pl.col("valuenum") > 500))["hadm_id"].unique()
        treated = orders.filter(pl.col("drug") == "Insulin Human Regular")["hadm_id"].unique()
        assert set(high) <= set(treated)
        salt = labs.filter((pl.col("itemid") == NA) & (pl.col("valuenum") < 121))["hadm_id"].unique()
        assert set(salt) <= set(orders.filter(pl.col("drug").str.contains("Sodium Chloride"))["hadm_id"])
        white = labs.filter((pl.col("itemid") == WBC) & (pl.col("valuenum") > 70))["hadm_id"].unique()
        assert set(white) <= set(orders.filter(pl.col("drug") == "HydroxyUREA")["hadm_id"])
        cold = chart.filter((pl.col("itemid") == TEMP) & (pl.col("valuenum") < 94))["stay_id"].unique()
        cooled = chart.filter(pl.col("itemid") == text_item("Cooling Device").itemid)["stay_id"].unique()
        assert set(cold) <= set(cooled)
        spoilt = labs.filter(pl.col("comments").str.contains("HEMOLYZED"))
        assert spoilt.height > 5
        assert set(spoilt["itemid"]) <= set(HAEMOLYSIS)


def test_dialysis_patients_saw() -> None:
    """A falling urea is natural where the chart says dialysis."""
    world = worlds()[0]
    item = text_item("Dialysis Patient").itemid
    treated = world["chartevents"].filter(pl.col("itemid") == item)["hadm_id"].unique().to_list()
    urea = world["labevents"].filter((pl.col("itemid") == 51006) & pl.col("hadm_id").is_in(treated))
    assert urea["valuenum"].max() > 1.8 * urea["valuenum"].min()


def test_natural_unit_labels_are_spellings_only() -> None:
    table = worlds()[0]["labevents"].filter(pl.col("itemid") == NA)
    assert all(equivalent(unit, "mEq/L") for unit in table["valueuom"].unique())
